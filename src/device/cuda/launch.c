/* What gpu/ leaves to CUDA: launches of functions, pinned memory and the moves between it and the arena. */
#include <stdio.h>

#include "base/size.h"
#include "device/cuda/cuda.h"
#include "device/cuda/libraries.h"
#include "device/gpu/kernel.h"

/* What every function begins with, kernels/words_cuda.gpu; then its own arguments. */
typedef struct first_args {
    CUdeviceptr arena, faults;
    unsigned y, z; /* of the first group of this launch */
} first_args;
enum { FIRST_ARGS = 4 };

static tide__cuda *device_of(const tide__host_queue *queue) { return (tide__cuda *)queue->base.device; }

/* ---- launches ---- */

/* Arrays of shared memory become offsets in one block; its size. */
static uint64_t place_shared(tide__gpu_value *values, size_t n) {
    enum { ALIGN = 16 };
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        if (values[i].size_bytes) continue;
        const uint64_t size_bytes = values[i].u;
        values[i] = (tide__gpu_value){.size_bytes = sizeof(uint32_t), .u = end};
        end = (end + size_bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
    }
    return end;
}

/* In y and z a grid has limits; what is larger goes in several. */
static CUresult launch_grids(const tide__cuda_queue *queue, const tide__gpu_launch *l, first_args *first, void **params,
                             uint64_t shared_bytes) {
    const tide__cu *cu = &device_of(&queue->host)->cu;
    CUresult result = CUDA_SUCCESS;
    for (size_t z = 0; z < l->groups[2] && result == CUDA_SUCCESS; z += TIDE__CUDA_MAX_GRID)
        for (size_t y = 0; y < l->groups[1] && result == CUDA_SUCCESS; y += TIDE__CUDA_MAX_GRID) {
            first->y = (unsigned)y;
            first->z = (unsigned)z;
            result = cu->LaunchKernel(l->function, (unsigned)l->groups[0],
                                      (unsigned)tide__min_u64(l->groups[1] - y, TIDE__CUDA_MAX_GRID),
                                      (unsigned)tide__min_u64(l->groups[2] - z, TIDE__CUDA_MAX_GRID), TIDE__CUDA_LANES,
                                      1, 1, (unsigned)shared_bytes, queue->stream, params, NULL);
        }
    return result;
}

static tide_status launch(tide__host_queue *base, const tide__command *command, const tide__gpu_launch *l,
                          const tide__gpu_value *values) {
    const tide__cuda_queue *queue = (const tide__cuda_queue *)base;
    tide__gpu_value own[TIDE__GPU_MAX_ARGS];
    void *params[FIRST_ARGS + TIDE__GPU_MAX_ARGS];
    first_args first = {((const tide__cuda_arena *)command->kernel.arena)->bytes, queue->faults, 0, 0};
    params[0] = &first.arena, params[1] = &first.faults, params[2] = &first.y, params[3] = &first.z;
    for (size_t i = 0; i < l->n_args; i++) {
        own[i] = values[i];
        params[FIRST_ARGS + i] = &own[i].u;
    }
    const uint64_t shared_bytes = place_shared(own, l->n_args);
    char doing[64];
    snprintf(doing, sizeof doing, "launch %s",
             tide_op_kind_name(((const tide__gpu_kernel *)command->kernel.kernel)->desc.kind));
    TIDE_TRY(tide__cuda_before(device_of(base)));
    return tide__cuda_after(device_of(base), launch_grids(queue, l, &first, params, shared_bytes), doing);
}

static tide_status copy_inside(tide__host_queue *queue, tide_arena *arena, uint64_t from, uint64_t to,
                               uint64_t size_bytes) {
    tide__cuda *cuda = device_of(queue);
    const CUdeviceptr bytes = ((const tide__cuda_arena *)arena)->bytes;
    CUstream stream = ((tide__cuda_queue *)queue)->stream;
    TIDE_TRY(tide__cuda_before(cuda));
    return tide__cuda_after(cuda, cuda->cu.MemcpyDtoDAsync(bytes + to, bytes + from, size_bytes, stream),
                            "copy inside the arena");
}

/* ---- pinned memory ---- */

/* Any context of the process may use it, but this one is current where it is called. */
static tide_status pin(tide__gpu *gpu, uint64_t size_bytes, void **out) {
    const tide__cu *cu = &((tide__cuda *)gpu)->cu;
    return tide__cu_check(cu, cu->MemHostAlloc(out, size_bytes, CU_MEMHOSTALLOC_PORTABLE), "pin memory of the host");
}

static void unpin(tide__gpu *gpu, void *bytes) {
    const tide__cuda *cuda = (tide__cuda *)gpu;
    if (!cuda->is_gone) cuda->cu.MemFreeHost(bytes);
}

/* ---- moves ---- */

static tide_status move_start(tide__host_queue *base, const tide__gpu_move *m) {
    tide__cuda_queue *queue = (tide__cuda_queue *)base;
    tide__cuda *cuda = device_of(base);
    const tide__cu *cu = &cuda->cu;
    const CUdeviceptr at = ((const tide__cuda_arena *)m->arena)->bytes + m->offset;
    TIDE_TRY(tide__cuda_before(cuda));
    CUresult result = m->out ? cu->MemcpyDtoHAsync(m->data, at, m->size_bytes, queue->stream)
                             : cu->MemcpyHtoDAsync(at, m->data, m->size_bytes, queue->stream);
    TIDE_TRY(tide__cuda_after(cuda, result, m->out ? "copy from the GPU" : "copy to the GPU"));
    result = cu->EventRecord(queue->moved[m->half], queue->stream);
    if (result != CUDA_SUCCESS) cu->StreamSynchronize(queue->stream); /* what has begun must not outlive its slot */
    return tide__cuda_after(cuda, result, "mark a copy");
}

static tide_status move_finish(tide__host_queue *base, int half) {
    tide__cuda *cuda = device_of(base);
    return tide__cuda_after(cuda, cuda->cu.EventSynchronize(((tide__cuda_queue *)base)->moved[half]),
                            "complete a copy");
}

const tide__gpu_backend tide__cuda_backend = {
    .title = "CUDA",
    .function = tide__cuda_function,
    .launch = launch,
    .copy_inside = copy_inside,
#if TIDE_HAVE_CUDA_LIBRARIES
    .add_ways = tide__cuda_add_ways,
    .forget_ways = tide__cuda_forget_ways,
    .run_product = tide__cuda_run_way,
#endif
    .pin = pin,
    .unpin = unpin,
    .move_start = move_start,
    .move_finish = move_finish,
};
