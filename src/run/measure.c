/* Measuring a machine: opens a bench on the device, has the parts measured, puts the figures together. The method and
 * what it leaves out stand in docs/costs.md. */
#include "base/options.h"
#include "run/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (UINT64_C(1) << 20)
enum { MAX_RUNS = 64, MIN_RUNS = 3, N_ITEMS = 32 /* things that are timed, about */ };

/* ---- timing ---- */

void tide__bench_say(const tide__bench *b, const char *text) {
    if (b->options->progress) b->options->progress(b->options->progress_context, text);
}

double tide__bench_round(double value) {
    if (!(value >= 1)) return 1;
    double unit = pow(10, floor(log10(value)) - 2);
    return unit > 1 ? round(value / unit) * unit : round(value);
}

tide_status tide__bench_time_once(const tide__bench *b, tide_queue *queue, tide__bench_fn enqueue, void *context,
                                  uint64_t *ns) {
    TIDE_TRY(tide_event_record(b->from, queue));
    TIDE_TRY(enqueue(context, queue));
    TIDE_TRY(tide_event_record(b->to, queue));
    TIDE_TRY(tide_queue_sync(queue));
    TIDE_TRY(tide_event_elapsed(b->from, b->to, ns));
    *ns += *ns == 0;
    return TIDE_OK;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

tide_status tide__bench_time(const tide__bench *b, tide_queue *queue, tide__bench_fn enqueue, void *context,
                             tide__timing *out) {
    uint64_t ns[MAX_RUNS], total = 0;
    int n = 0;
    TIDE_TRY(tide__bench_time_once(b, queue, enqueue, context, &ns[0]));
    while (n < MIN_RUNS || (n < MAX_RUNS && total < b->item_ns)) {
        TIDE_TRY(tide__bench_time_once(b, queue, enqueue, context, &ns[n]));
        total += ns[n++];
    }
    qsort(ns, (size_t)n, sizeof *ns, by_value);
    *out = (tide__timing){.best_ns = ns[0], .median_ns = ns[n / 2]};
    return TIDE_OK;
}

/* ---- the bench ---- */

static tide_status ones(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    float *values = data;
    for (uint64_t i = 0; i < size_bytes / sizeof *values; i++) values[i] = 1;
    return TIDE_OK;
}

/* Filled, so that every page is there and no kernel meets numbers that are slow to compute with. */
static tide_status open_bench(tide__bench *b) {
    TIDE_TRY(tide_arena_create(b->device, b->options->arena_bytes, &b->arena));
    TIDE_TRY(tide_queue_create(b->device, TIDE_QUEUE_COMPUTE, &b->compute));
    TIDE_TRY(tide_queue_create(b->device, TIDE_QUEUE_COPY, &b->copy));
    TIDE_TRY(tide_event_create(b->device, &b->from));
    TIDE_TRY(tide_event_create(b->device, &b->to));
    tide_io fill = {.fn = ones, .channel = TIDE_NONE};
    TIDE_TRY(tide_copy_in(b->copy, b->arena, 0, b->options->arena_bytes, fill));
    return tide_queue_sync(b->copy);
}

static void close_bench(tide__bench *b) {
    tide_queue_destroy(b->compute);
    tide_queue_destroy(b->copy);
    tide_event_destroy(b->from);
    tide_event_destroy(b->to);
    tide_arena_destroy(b->arena);
}

/* ---- the machine ---- */

void tide_measure_options_init(tide_measure_options *options) {
    *options = (tide_measure_options){
        .size = sizeof *options, .disk_bytes = 64 * MIB, .arena_bytes = 192 * MIB, .time_ns = UINT64_C(4000000000)};
}

static tide_status check(const tide_device *device, const tide_measure_options *o, tide_device_info *info) {
    if (!device) return tide__fail(TIDE_E_ARGUMENT, "a measurement needs a device");
    if (o->name && snprintf(NULL, 0, "%s", o->name) >= TIDE_MACHINE_NAME_BYTES)
        return tide__fail(TIDE_E_ARGUMENT, "the name of a machine has at most %d bytes", TIDE_MACHINE_NAME_BYTES - 1);
    if (o->arena_bytes < 16 * MIB) return tide__fail(TIDE_E_ARGUMENT, "a measurement needs an arena of 16 MiB");
    TIDE_TRY(tide_device_get_info(device, info));
    return info->has_kernels ? TIDE_OK
                             : tide__fail(TIDE_E_UNSUPPORTED, "device \"%s\" has no kernels to measure", info->name);
}

static void describe(const tide__bench *b, tide_machine *m) {
    *m = (tide_machine){.source = "measured", .memory_bytes = b->info.memory_bytes, .align_bytes = b->info.align_bytes};
    snprintf(m->name, sizeof m->name, "%s", b->options->name ? b->options->name : b->info.name);
}

static tide_status measure(tide__bench *b, tide_machine *m) {
    describe(b, m);
    TIDE_TRY(open_bench(b));
    TIDE_TRY(tide__measure_tiers(b, m)); /* first: a folder that cannot be written shows at once */
    TIDE_TRY(tide__measure_ops(b, m));
    return tide_machine_validate(m);
}

tide_status tide_machine_measure(tide_device *device, const tide_measure_options *options, tide_machine *out) {
    tide_measure_options taken;
    tide__bench b = {.options = &taken, .device = device};
    tide_machine m;
    tide_measure_options_init(&taken);
    if (!out) return tide__fail(TIDE_E_ARGUMENT, "a measurement needs a place for the machine");
    TIDE_TRY(tide__options_take("tide_measure_options", options, sizeof taken, &taken));
    TIDE_TRY(check(device, &taken, &b.info));
    b.item_ns = taken.time_ns / N_ITEMS;
    tide_status status = measure(&b, &m);
    close_bench(&b);
    if (status == TIDE_OK) *out = m;
    return status;
}
