/* Queues of the CPU device: host queues, whose kernels are done when they return. */
#include <omp.h>
#include <stdlib.h>

#include "device/cpu/kernel.h"

static void begin(tide__host_queue *queue) {
    bool compute = queue->base.kind == TIDE_QUEUE_COMPUTE;
    omp_set_dynamic(0); /* oneDNN counts on getting every thread it was promised */
    omp_set_num_threads(compute ? (int)((tide__cpu *)queue->base.device)->threads : 1);
}

static tide_status run_kernel(tide__host_queue *queue, const tide__command *command) {
    const tide__cpu_kernel *kernel = (const tide__cpu_kernel *)command->kernel.kernel;
    tide__call call = {.arena = ((tide__host_arena *)command->kernel.arena)->bytes,
                       .variant = command->kernel.variant,
                       .offsets = command->offsets,
                       .args = &command->kernel.args,
                       .stream = ((tide__cpu_queue *)queue)->stream};
    return kernel->run(kernel, &call);
}

static const tide__queue_hooks hooks = {.begin = begin, .run_kernel = run_kernel};

tide_status tide__cpu_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out) {
    tide_status status;
    tide__cpu_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return tide__fail_memory();
    if (kind == TIDE_QUEUE_COMPUTE) {
        dnnl_engine_t engine = ((tide__cpu *)device)->engine;
        TIDE_TRY_GOTO(tide__stream_create(engine, &queue->stream), destroy);
    }
    TIDE_TRY_GOTO(tide__host_queue_start(&queue->host, device, kind, &hooks), destroy);
    *out = &queue->host.base;
    return TIDE_OK;
destroy:
    tide__stream_destroy(queue->stream);
    free(queue);
    return status;
}

void tide__cpu_queue_destroy(tide_queue *base) {
    tide__cpu_queue *queue = (tide__cpu_queue *)base;
    tide__host_queue_stop(&queue->host);
    tide__stream_destroy(queue->stream);
    free(queue);
}
