/* The arena: one allocation, refused with what is free. */
#include <stdlib.h>

#include "device/cuda/cuda.h"

static tide_status fail_allocation(const tide__cuda *cuda, uint64_t size_bytes, CUresult result) {
    size_t free_bytes = 0, all_bytes = 0;
    if (result != CUDA_ERROR_OUT_OF_MEMORY || cuda->cu.MemGetInfo(&free_bytes, &all_bytes) != CUDA_SUCCESS)
        return tide__cu_check(&cuda->cu, result, "allocate the arena");
    return tide__fail(TIDE_E_MEMORY,
                      "%s: an arena of %llu bytes (%.1f MiB) does not fit: %llu bytes (%.1f MiB) of %.1f MiB are free",
                      cuda->gpu.name, (unsigned long long)size_bytes, (double)size_bytes / 0x1p20,
                      (unsigned long long)free_bytes, (double)free_bytes / 0x1p20, (double)all_bytes / 0x1p20);
}

static tide_status allocate(const tide__cuda *cuda, uint64_t size_bytes, CUdeviceptr *out) {
    CUdeviceptr bytes = 0;
    TIDE_TRY(tide__cuda_enter(cuda));
    CUresult result = cuda->cu.MemAlloc(&bytes, size_bytes);
    tide_status status = result == CUDA_SUCCESS ? TIDE_OK : fail_allocation(cuda, size_bytes, result);
    tide__cuda_leave(cuda);
    if (status == TIDE_OK) *out = bytes;
    return status;
}

tide_status tide__cuda_arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out) {
    tide__cuda_arena *arena = calloc(1, sizeof *arena);
    if (!arena) return tide__fail_memory();
    arena->base = (tide_arena){.device = device, .size_bytes = size_bytes};
    tide_status status = allocate((const tide__cuda *)device, size_bytes, &arena->bytes);
    if (status != TIDE_OK) {
        free(arena);
        return status;
    }
    *out = &arena->base;
    return TIDE_OK;
}

void tide__cuda_arena_destroy(tide_arena *base) {
    tide__cuda_arena *arena = (tide__cuda_arena *)base;
    const tide__cuda *cuda = (const tide__cuda *)base->device;
    if (tide__cuda_enter(cuda) == TIDE_OK) {
        cuda->cu.MemFree(arena->bytes);
        tide__cuda_leave(cuda);
    }
    free(arena);
}
