/* What GPUs have in common: how they are opened, waits that are counted, copies inside the arena, faults as failures. */
#include "device/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"

tide_status tide__gpu_open(const tide__gpu_kind *kind, const char *which, const tide_device_options *options,
                           tide_device **out) {
    tide__gpu *gpu = calloc(1, kind->size_bytes);
    if (!gpu) return tide__fail_memory();
    gpu->base = (tide_device){.v = kind->v, .align_bytes = kind->align_bytes};
    gpu->backend = kind->backend;
    snprintf(gpu->name, sizeof gpu->name, "%s%s%s", kind->name, which ? ":" : "", which ? which : "");
    tide_status status = kind->start(gpu, which, options);
    if (status != TIDE_OK) {
        kind->v->close(&gpu->base);
        return status;
    }
    *out = &gpu->base;
    return TIDE_OK;
}

tide_status tide__gpu_queue_sync(tide_queue *queue) {
    if (queue->kind == TIDE_QUEUE_COMPUTE) atomic_fetch_add(&((tide__gpu *)queue->device)->host_waits, 1);
    return tide__host_queue_sync(queue);
}

/* Ranges that overlap go in pieces as long as the distance, each after the one whose bytes it overwrites. */
tide_status tide__gpu_run_within(tide__host_queue *queue, const tide__command *command) {
    const tide__gpu_backend *backend = ((const tide__gpu *)queue->base.device)->backend;
    const uint64_t from = command->within.from, to = command->within.to, size = command->within.size_bytes;
    const uint64_t distance = from > to ? from - to : to - from;
    for (uint64_t done = 0, piece; done < size; done += piece) {
        piece = tide__min_u64(distance, size - done);
        uint64_t at = from > to ? done : size - done - piece;
        TIDE_TRY(backend->copy_inside(queue, command->within.arena, from + at, to + at, piece));
    }
    return TIDE_OK;
}

tide_status tide__gpu_fault_status(const tide__gpu_fault *f) {
    if (f->code == TIDE__FAULT_NONE) return TIDE_OK;
    if (f->code == TIDE__FAULT_LABEL)
        return tide__fail(TIDE_E_ARGUMENT, "softmax-loss: label %d of sample %d is not one of %d classes", f->value,
                          f->place, f->limit);
    return tide__fail(TIDE_E_ARGUMENT, "embedding: token %d at %d is not in a vocabulary of %d", f->value, f->place,
                      f->limit);
}
