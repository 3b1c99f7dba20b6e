/* The CPU device: host memory as the arena, a thread per queue, kernels by oneDNN and by own loops.
 *
 * Compute queues run their kernels with the device's number of OpenMP threads; kernels are created under the same
 * number, because oneDNN builds it into its primitives. */
#ifndef TIDE_DEVICE_CPU_CPU_H
#define TIDE_DEVICE_CPU_CPU_H

#include "base/vec.h"
#include "device/cpu/onednn.h"
#include "device/cpu/team.h"
#include "device/host_arena.h"
#include "device/host_queue.h"

#define TIDE__CPU_ALIGN 64 /* bytes: a cache line, and what oneDNN's fastest paths want */

typedef struct tide__cpu {
    tide_device base;
    uint32_t threads;
    dnnl_engine_t engine;
    tide__team *team; /* NULL: one thread waits for nobody */
} tide__cpu;

typedef struct tide__cpu_queue {
    tide__host_queue host;
    dnnl_stream_t stream; /* compute queues only */
} tide__cpu_queue;

/* queue.c */
tide_status tide__cpu_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out);
void tide__cpu_queue_destroy(tide_queue *queue);

#endif
