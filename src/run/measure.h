/* What the parts of a measurement share: a device with one arena and two queues, and one way to time things on it.
 *
 * measure.c puts a machine together, measure_ops.c finds rates of kernels, measure_tiers.c of copies, measure_drag.c
 * how much a kernel suffers from a copy beside it. */
#ifndef TIDE_RUN_MEASURE_H
#define TIDE_RUN_MEASURE_H

#include <tidemark/run.h>

#include "base/error.h"
#include "tier/tier.h"

typedef struct tide__bench {
    const tide_measure_options *options;
    tide_device *device;
    tide_device_info info;
    tide_arena *arena; /* options->arena_bytes, filled with 1.0f */
    tide_queue *compute, *copy;
    tide_event *from, *to;
    uint64_t item_ns; /* about what the repetitions of one thing may take */
} tide__bench;

typedef struct tide__timing {
    uint64_t best_ns, median_ns; /* of one run; >= 1 */
} tide__timing;

/* Enqueues one run of the thing that is measured. */
typedef tide_status (*tide__bench_fn)(void *context, tide_queue *queue);

/* Once to warm up, then again and again for about item_ns, each run timed by the device's events. */
tide_status tide__bench_time(const tide__bench *b, tide_queue *queue, tide__bench_fn enqueue, void *context,
                             tide__timing *out);
/* The same, from `from` to `to` on a queue, once and now. */
tide_status tide__bench_time_once(const tide__bench *b, tide_queue *queue, tide__bench_fn enqueue, void *context,
                                  uint64_t *ns);
void tide__bench_say(const tide__bench *b, const char *text);

/* Three significant digits: more would be noise in a file that people read. At least 1. */
double tide__bench_round(double value);

/* One kernel with its operands side by side in the arena. */
typedef struct tide__bench_item {
    tide_kernel *kernel;
    tide_arena *arena;
    uint64_t offsets[TIDE_KERNEL_MAX_OPERANDS * 2 + 1];
    uint32_t n_offsets;
    uint64_t operand_bytes; /* all operands, once each */
    uint64_t end;           /* offset behind the last */
} tide__bench_item;
/* Operands from `offset` on. TIDE_E_UNSUPPORTED if the device has no such kernel. Close by destroying the kernel. */
tide_status tide__bench_open_item(const tide__bench *b, const tide_op_desc *desc, uint64_t offset,
                                  tide__bench_item *it);
tide_status tide__bench_enqueue_item(void *item, tide_queue *queue); /* a tide__bench_fn */

/* One transfer between the start of the arena and a tier. */
typedef struct tide__bench_copy {
    tide_arena *arena;
    tide__tier_slot slot;
    uint64_t size_bytes;
    bool out;
} tide__bench_copy;
tide_status tide__bench_enqueue_copy(void *copy, tide_queue *queue); /* a tide__bench_fn */

/* drag_percent of a channel. */
tide_status tide__measure_drag(const tide__bench *b, const tide__bench_copy *copy, uint32_t *percent);
/* flops_per_s, bytes_per_s, both efficiencies, launch_ns. */
tide_status tide__measure_ops(const tide__bench *b, tide_machine *m);
/* Tiers and channels. */
tide_status tide__measure_tiers(const tide__bench *b, tide_machine *m);

#endif
