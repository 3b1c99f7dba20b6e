/* Queues of the CUDA device: host queues in front of a stream (cuda.h).
 *
 * Invariant: `in_flight` is set iff something may still be ahead in the stream: ops of a compute queue, marks of any. Copies,
 * which the thread makes itself, run only after a drain. An error of the driver sticks to the context: it is the failure of the drain that meets
 * it, and of every call after. */
#include <stdlib.h>

#include "device/cuda/cuda.h"
#include "device/gpu/kernel.h"

static tide__cuda *device_of(const tide__cuda_queue *queue) { return (tide__cuda *)queue->host.base.device; }

/* ---- on the queue's thread ---- */

/* The thread is ours: the context stays current. Where it does not become so, nothing of this thread reaches the driver. */
static void begin(tide__host_queue *base) {
    tide__cuda *cuda = (tide__cuda *)base->base.device;
    const CUresult result = cuda->cu.CtxSetCurrent(cuda->context);
    if (result != CUDA_SUCCESS) tide__cuda_lose(cuda, result, "make its context current");
}

/* Until the GPU has passed what is in the stream. Asleep: a sync of the stream itself would keep a core busy meanwhile, which
 * the tiers' threads need. */
static CUresult await_stream(const tide__cu *cu, tide__cuda_queue *queue) {
    const CUresult result = cu->EventRecord(queue->moved[0], queue->stream);
    return result == CUDA_SUCCESS ? cu->EventSynchronize(queue->moved[0]) : result;
}

static tide_status drain(tide__host_queue *base) {
    tide__cuda_queue *queue = (tide__cuda_queue *)base;
    tide__cuda *cuda = device_of(queue);
    if (!queue->in_flight) return TIDE_OK;
    queue->in_flight = false;
    TIDE_TRY(tide__cuda_before(cuda));
    CUresult result = cuda->cu.MemcpyDtoHAsync(queue->report, queue->faults, sizeof *queue->report, queue->stream);
    if (result == CUDA_SUCCESS) result = await_stream(&cuda->cu, queue);
    TIDE_TRY(tide__cuda_after(cuda, result, "complete its ops"));
    atomic_store(&cuda->n_ops, 0);
    return tide__gpu_fault_status(queue->report);
}

/* A copy queue's stream has nothing ahead but marks, so this is short; what waits for the queue finds them passed. */
static tide_status drain_marks(tide__host_queue *base) {
    tide__cuda_queue *queue = (tide__cuda_queue *)base;
    tide__cuda *cuda = device_of(queue);
    if (!queue->in_flight) return TIDE_OK;
    queue->in_flight = false;
    TIDE_TRY(tide__cuda_before(cuda));
    return tide__cuda_after(cuda, await_stream(&cuda->cu, queue), "pass an event");
}

static tide_status run_kernel(tide__host_queue *base, const tide__command *command) {
    tide__cuda_queue *queue = (tide__cuda_queue *)base;
    tide__cuda *cuda = device_of(queue);
    queue->in_flight = true;
    atomic_store(&cuda->last_op, 1 + (uint32_t)((const tide__gpu_kernel *)command->kernel.kernel)->desc.kind);
    atomic_fetch_add(&cuda->n_ops, 1);
    TIDE_TRY(tide__gpu_run_kernel(base, command));
    return cuda->stepwise ? drain(base) : TIDE_OK;
}

/* Pinned memory goes with the context where somebody in the process resets the device: it is asked before any is touched. */
static tide_status run_copy(tide__host_queue *base, const tide__command *command) {
    tide__cuda *cuda = (tide__cuda *)base->base.device;
    TIDE_TRY(tide__cuda_before(cuda));
    const CUresult result = cuda->cu.EventQuery(((tide__cuda_queue *)base)->moved[0]);
    if (result != CUDA_ERROR_NOT_READY) TIDE_TRY(tide__cuda_after(cuda, result, "begin a copy"));
    return tide__gpu_run_copy(base, command);
}

static tide_status run_within(tide__host_queue *base, const tide__command *command) {
    ((tide__cuda_queue *)base)->in_flight = true;
    return tide__gpu_run_within(base, command);
}

static const tide__queue_hooks compute_hooks = {.begin = begin,
                                                .run_kernel = run_kernel,
                                                .run_copy = run_copy,
                                                .run_within = run_within,
                                                .drain = drain,
                                                .mark = tide__cuda_run_mark};
static const tide__queue_hooks copy_hooks = {
    .begin = begin, .run_copy = run_copy, .drain = drain_marks, .mark = tide__cuda_run_mark};

/* ---- life, with the context current ---- */

static tide_status create_faults(const tide__cu *cu, tide__cuda_queue *queue) {
    void *report = NULL;
    TIDE_TRY(tide__cu_check(cu, cu->MemHostAlloc(&report, sizeof *queue->report, CU_MEMHOSTALLOC_PORTABLE),
                            "pin memory of the host"));
    queue->report = report;
    TIDE_TRY(tide__cu_check(cu, cu->MemAlloc(&queue->faults, sizeof *queue->report), "allocate a queue's faults"));
    TIDE_TRY(tide__cu_check(cu, cu->MemsetD8Async(queue->faults, 0, sizeof *queue->report, queue->stream),
                            "clear a queue's faults"));
    return tide__cu_check(cu, cu->StreamSynchronize(queue->stream), "clear a queue's faults");
}

static void release_parts(const tide__cu *cu, tide__cuda_queue *queue) {
    for (int i = 0; i < 2; i++)
        if (queue->moved[i]) cu->EventDestroy(queue->moved[i]);
    if (queue->faults) cu->MemFree(queue->faults);
    if (queue->report) cu->MemFreeHost(queue->report);
    if (queue->stream) cu->StreamDestroy(queue->stream);
}

static tide_status create_parts(tide__cuda *cuda, tide_queue_kind kind, tide__cuda_queue *queue) {
    const tide__cu *cu = &cuda->cu;
    /* Not in step with the default stream, on which libraries of the process may work. */
    TIDE_TRY(tide__cu_check(cu, cu->StreamCreate(&queue->stream, CU_STREAM_NON_BLOCKING), "create a stream"));
    for (int i = 0; i < 2; i++)
        TIDE_TRY(tide__cu_check(cu, cu->EventCreate(&queue->moved[i], CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING),
                                "create an event"));
    TIDE_TRY(tide__gpu_staging_open(&cuda->gpu));
    return kind == TIDE_QUEUE_COMPUTE ? create_faults(cu, queue) : TIDE_OK;
}

tide_status tide__cuda_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out) {
    tide__cuda *cuda = (tide__cuda *)device;
    tide__cuda_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return tide__fail_memory();
    tide_status status = tide__cuda_enter(cuda);
    if (status == TIDE_OK) {
        status = create_parts(cuda, kind, queue);
        if (status == TIDE_OK)
            status = tide__host_queue_start(&queue->host, device, kind,
                                            kind == TIDE_QUEUE_COMPUTE ? &compute_hooks : &copy_hooks);
        if (status != TIDE_OK) release_parts(&cuda->cu, queue);
        tide__cuda_leave(cuda);
    }
    if (status != TIDE_OK) {
        free(queue);
        return status;
    }
    *out = &queue->host.base;
    return TIDE_OK;
}

void tide__cuda_queue_destroy(tide_queue *base) {
    tide__cuda_queue *queue = (tide__cuda_queue *)base;
    const tide__cuda *cuda = device_of(queue);
    tide__host_queue_stop(&queue->host);
    if (tide__cuda_enter(cuda) == TIDE_OK) {
        release_parts(&cuda->cu, queue);
        tide__cuda_leave(cuda);
    }
    free(queue);
}
