/* Opening a GPU and describing it. */
#include "device/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/libraries.h"
#include "device/gpu/kernel.h"

#define OLDEST 75 /* compute capability that the kernels are compiled for at least, cmake/cuda.cmake */

/* What the GPU was at: an error comes back from any call after the op that made it. */
static void describe_ops(const tide__cuda *cuda, char *out, size_t size) {
    const uint32_t n = atomic_load(&cuda->n_ops), kind = atomic_load(&cuda->last_op);
    const char *last = kind ? tide_op_kind_name((tide_op_kind)(kind - 1)) : "";
    if (!kind)
        out[0] = 0;
    else if (n == 0)
        snprintf(out, size, ", after %s", last);
    else if (n == 1)
        snprintf(out, size, ", with %s under way", last);
    else
        snprintf(out, size, ", with %u ops under way, the last of them %s; TIDE_CUDA_SYNC=1 has one at a time", n,
                 last);
}

/* Fails where somebody has reset the device. */
tide_status tide__cuda_enter(const tide__cuda *cuda) {
    char ops[128];
    const CUresult result = cuda->cu.CtxPushCurrent(cuda->context);
    if (result == CUDA_SUCCESS) return TIDE_OK;
    describe_ops(cuda, ops, sizeof ops);
    return tide__fail(TIDE_E_DEVICE, "CUDA cannot make a context current: %s (%d)%s",
                      tide__cu_error_name(&cuda->cu, result), (int)result, ops);
}

void tide__cuda_leave(const tide__cuda *cuda) {
    CUcontext own;
    cuda->cu.CtxPopCurrent(&own);
}

void tide__cuda_lose(tide__cuda *cuda, CUresult result, const char *doing) {
    char ops[128];
    describe_ops(cuda, ops, sizeof ops);
    pthread_mutex_lock(&cuda->lock);
    if (!atomic_load(&cuda->is_lost))
        snprintf(cuda->lost_text, sizeof cuda->lost_text, "CUDA cannot %s: %s (%d)%s", doing,
                 tide__cu_error_name(&cuda->cu, result), (int)result, ops);
    atomic_store(&cuda->is_lost, true);
    pthread_mutex_unlock(&cuda->lock);
}

tide_status tide__cuda_before(const tide__cuda *cuda) {
    return atomic_load(&cuda->is_lost) ? tide__fail(TIDE_E_DEVICE, "%s", cuda->lost_text) : TIDE_OK;
}

tide_status tide__cuda_after(tide__cuda *cuda, CUresult result, const char *doing) {
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) return tide__cu_check(&cuda->cu, result, doing);
    tide__cuda_lose(cuda, result, doing);
    return tide__cuda_before(cuda);
}

static void close_device(tide_device *device) {
    tide__cuda *cuda = (tide__cuda *)device;
    if (cuda->context) {
        cuda->is_gone = tide__cuda_enter(cuda) != TIDE_OK;
        tide__gpu_staging_close(&cuda->gpu);
#if TIDE_HAVE_CUDA_LIBRARIES
        tide__cuda_libraries_close(cuda);
#endif
        tide__cuda_modules_unload(cuda);
        tide__cuda_marks_free(cuda);
        if (!cuda->is_gone) tide__cuda_leave(cuda);
        cuda->cu.DevicePrimaryCtxRelease(cuda->id);
    }
    pthread_mutex_destroy(&cuda->lock);
    pthread_mutex_destroy(&cuda->marks_lock);
    pthread_cond_destroy(&cuda->marked);
    free(cuda);
}

static tide_status get_info(const tide_device *base, tide_device_info *out) {
    const tide__cuda *cuda = (const tide__cuda *)base;
    size_t free_bytes = 0, all_bytes = 0;
    TIDE_TRY(tide__cuda_enter(cuda));
    CUresult result = cuda->cu.MemGetInfo(&free_bytes, &all_bytes);
    tide__cuda_leave(cuda);
    TIDE_TRY(tide__cu_check(&cuda->cu, result, "count free memory"));
    *out = (tide_device_info){.threads = cuda->gpu.units,
                              .align_bytes = base->align_bytes,
                              .memory_bytes = free_bytes,
                              .staging_bytes = TIDE__GPU_STAGING_BYTES,
                              .flops_per_s = cuda->flops_per_s,
                              .has_kernels = true};
    snprintf(out->name, sizeof out->name, "%s", cuda->gpu.name);
    snprintf(out->description, sizeof out->description, "%s, %u units, compute capability %d.%d, driver for CUDA %d.%d",
             cuda->model, cuda->gpu.units, cuda->major, cuda->minor, cuda->cu.version / 1000,
             cuda->cu.version % 1000 / 10);
    return TIDE_OK;
}

static const tide__device_vtable vtable = {
    .close = close_device,
    .get_info = get_info,
    .arena_create = tide__cuda_arena_create,
    .arena_destroy = tide__cuda_arena_destroy,
    .queue_create = tide__cuda_queue_create,
    .queue_destroy = tide__cuda_queue_destroy,
    .queue_sync = tide__gpu_queue_sync,
    .queue_check = tide__host_queue_check,
    .event_create = tide__cuda_event_create,
    .event_destroy = tide__cuda_event_destroy,
    .event_record = tide__cuda_event_record,
    .event_wait = tide__cuda_event_wait,
    .event_query = tide__cuda_event_query,
    .event_sync = tide__cuda_event_sync,
    .event_elapsed = tide__cuda_event_elapsed,
    .copy = tide__host_copy,
    .copy_within = tide__host_copy_within,
    .kernel_create = tide__gpu_kernel_create,
    .kernel_destroy = tide__gpu_kernel_destroy,
    .kernel_enqueue = tide__host_kernel_enqueue,
    .operand_layout = tide__gpu_operand_layout,
    .piece_pack = tide__gpu_piece_pack,
    .piece_unpack = tide__gpu_piece_unpack,
    .variant_library = tide__gpu_variant_library,
#if TIDE_HAVE_CUDA_LIBRARIES
    .trust = tide__cuda_libraries_trust,
#endif
};

/* A multiply-add per lane and clock; units have 64 lanes in 7.x and 8.0, else 128. */
static double peak_of(const tide__cuda *cuda, int clock_khz) {
    const int lanes = cuda->major == 7 || (cuda->major == 8 && cuda->minor == 0) ? 64 : 128;
    return 2.0 * lanes * cuda->gpu.units * clock_khz * 1e3;
}

static tide_status read_limits(tide__cuda *cuda) {
    int units = 0, shared = 0, clock_khz = 0;
    const tide__cu *cu = &cuda->cu;
    if (cuda->major * 10 + cuda->minor < OLDEST)
        return tide__fail(TIDE_E_DEVICE, "%s (%s) is too old: it has compute capability %d.%d, the kernels need %d.%d",
                          cuda->gpu.name, cuda->model, cuda->major, cuda->minor, OLDEST / 10, OLDEST % 10);
    CUresult result = cu->DeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, cuda->id);
    if (result == CUDA_SUCCESS)
        result = cu->DeviceGetAttribute(&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, cuda->id);
    if (result == CUDA_SUCCESS) result = cu->DeviceGetAttribute(&clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, cuda->id);
    TIDE_TRY(tide__cu_check(cu, result, "describe a GPU"));
    cuda->gpu.units = units > 0 ? (uint32_t)units : 1;
    cuda->gpu.local_bytes = (uint64_t)shared;
    cuda->gpu.lanes = TIDE__CUDA_LANES;
    cuda->flops_per_s = peak_of(cuda, clock_khz);
    return TIDE_OK;
}

/* A GPU that others fill, or that one of them has for itself, is refused here. */
static tide_status retain_context(tide__cuda *cuda) {
    CUresult result = cuda->cu.DevicePrimaryCtxRetain(&cuda->context, cuda->id);
    if (result == CUDA_SUCCESS) return TIDE_OK;
    cuda->context = NULL;
    return tide__fail(TIDE_E_DEVICE, "%s (%s) is %s: %s (%d)", cuda->gpu.name, cuda->model,
                      result == CUDA_ERROR_OUT_OF_MEMORY ? "full, there is no memory for a context" : "not usable",
                      tide__cu_error_name(&cuda->cu, result), (int)result);
}

/* With the context; libraries take some memory of their own, which is gone before anybody counts what is free. */
static tide_status open_libraries(tide__cuda *cuda, tide_libraries wanted) {
#if TIDE_HAVE_CUDA_LIBRARIES
    TIDE_TRY(tide__cuda_enter(cuda));
    tide_status status = tide__cuda_libraries_open(cuda, wanted);
    tide__cuda_leave(cuda);
    return status;
#else
    return TIDE_OK;
#endif
}

static tide_status start(tide__gpu *gpu, const char *which, const tide_device_options *options) {
    tide__cuda *cuda = (tide__cuda *)gpu;
    const char *stepwise = getenv("TIDE_CUDA_SYNC");
    cuda->stepwise = stepwise && strcmp(stepwise, "0") != 0;
    pthread_mutex_init(&cuda->lock, NULL);
    pthread_mutex_init(&cuda->marks_lock, NULL);
    pthread_cond_init(&cuda->marked, NULL);
    TIDE_TRY(tide__cu_load(&cuda->cu));
    TIDE_TRY(tide__cuda_choose(cuda, which));
    TIDE_TRY(read_limits(cuda));
    TIDE_TRY(retain_context(cuda));
    return open_libraries(cuda, options->libraries);
}

static const tide__gpu_kind kind = {.name = "cuda",
                                    .size_bytes = sizeof(tide__cuda),
                                    .align_bytes = TIDE__CUDA_ALIGN,
                                    .v = &vtable,
                                    .backend = &tide__cuda_backend,
                                    .start = start};

tide_status tide__cuda_open(const char *which, const tide_device_options *options, tide_device **out) {
    return tide__gpu_open(&kind, which, options, out);
}
