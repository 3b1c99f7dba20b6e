/* What the parts of a measurement share: a device with one arena and two queues, and one way to time things on it.
 *
 * measure.c puts a machine together, measure_ops.c finds rates of kernels, measure_tiers.c of copies. */
#ifndef TIDE_RUN_MEASURE_H
#define TIDE_RUN_MEASURE_H

#include <tidemark/run.h>

#include "base/error.h"

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
void tide__bench_say(const tide__bench *b, const char *text);

/* Three significant digits: more would be noise in a file that people read. At least 1. */
double tide__bench_round(double value);

/* flops_per_s, bytes_per_s, both efficiencies, launch_ns. */
tide_status tide__measure_ops(const tide__bench *b, tide_machine *m);
/* Tiers and channels. */
tide_status tide__measure_tiers(const tide__bench *b, tide_machine *m);

#endif
