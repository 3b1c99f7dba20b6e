/* Figures: products and convolutions as a share of what the device's data sheet says, copies in either direction, and both
 * at once. Sizes grow until an op takes a while, so that slow devices are not kept busy for minutes. */
#include "selftest.h"

#include <stdlib.h>
#include <time.h>

#define MIB (UINT64_C(1) << 20)
#define LONG_ENOUGH_NS UINT64_C(20000000)
enum { MAX_SIZE = 4096, RUNS = 3 };

/* An op of growing size on its own arena. */
typedef struct load {
    tide_device *device;
    tide_kernel *kernel;
    tide_arena *arena;
    tide_queue *queue;
    tide_event *from, *to;
    uint64_t offsets[4];
    uint32_t n_offsets;
    double flops;
    uint64_t best_ns;
} load;

static void close_load(load *l) {
    tide_event_destroy(l->from);
    tide_event_destroy(l->to);
    tide_queue_destroy(l->queue);
    tide_arena_destroy(l->arena);
    tide_kernel_destroy(l->kernel);
    *l = (load){0};
}

static uint64_t place(load *l, const tide_kernel_info *info) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < info->n_reads + info->n_writes; i++, end = (end + 4095) & ~UINT64_C(4095)) {
        l->offsets[l->n_offsets++] = end;
        end += i < info->n_reads ? info->read[i].size_bytes : info->write[i - info->n_reads].size_bytes;
    }
    if (info->variant[0].workspace_bytes) l->offsets[l->n_offsets++] = end;
    return end + info->variant[0].workspace_bytes;
}

static tide_status ones(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    float *values = data;
    for (uint64_t i = 0; i < size_bytes / sizeof *values; i++) values[i] = 1;
    return TIDE_OK;
}

static tide_status open_load(tide_device *device, const tide_op_desc *d, double flops, load *l) {
    const tide_io fill = {.fn = ones, .channel = TIDE_NONE};
    tide_kernel_info info;
    *l = (load){.device = device, .flops = flops};
    tide_status status = tide_kernel_create(device, d, &l->kernel);
    if (status == TIDE_OK) status = tide_kernel_get_info(l->kernel, &info);
    const uint64_t bytes = status == TIDE_OK ? place(l, &info) : 0;
    if (status == TIDE_OK) status = tide_arena_create(device, bytes, &l->arena);
    if (status == TIDE_OK) status = tide_queue_create(device, TIDE_QUEUE_COMPUTE, &l->queue);
    if (status == TIDE_OK) status = tide_event_create(device, &l->from);
    if (status == TIDE_OK) status = tide_event_create(device, &l->to);
    if (status == TIDE_OK) status = tide_copy_in(l->queue, l->arena, 0, bytes, fill);
    return status == TIDE_OK ? tide_queue_sync(l->queue) : status;
}

static tide_status enqueue(load *l) {
    return tide_kernel_enqueue(l->kernel, 0, l->queue, l->arena, l->offsets, l->n_offsets, NULL);
}

/* The device's own time of `times` runs. */
static tide_status run_load(load *l, int times, uint64_t *ns) {
    tide_status status = tide_event_record(l->from, l->queue);
    for (int i = 0; i < times && status == TIDE_OK; i++) status = enqueue(l);
    if (status == TIDE_OK) status = tide_event_record(l->to, l->queue);
    if (status == TIDE_OK) status = tide_queue_sync(l->queue);
    return status == TIDE_OK ? tide_event_elapsed(l->from, l->to, ns) : status;
}

static tide_status time_load(load *l) {
    l->best_ns = UINT64_MAX;
    for (int i = 0; i <= RUNS; i++) { /* the first builds what is built late */
        uint64_t ns = 0;
        tide_status status = run_load(l, 1, &ns);
        if (status != TIDE_OK) return status;
        if (i > 0 && ns < l->best_ns) l->best_ns = ns ? ns : 1;
    }
    return TIDE_OK;
}

/* ---- ops ---- */

static tide_op_desc product(int64_t size, double *flops) {
    *flops = 2.0 * (double)size * (double)size * (double)size;
    return (tide_op_desc){.kind = TIDE_OP_FC_FWD, .x = {size, size, 1, 1}, .y = {size, size, 1, 1}};
}

/* 64 channels of 28 x 28 pixels in and out, 3 x 3 windows; size / 32 images. */
static tide_op_desc convolution(int64_t size, double *flops) {
    const int64_t images = size / 32, side = 28, channels = 64;
    *flops = 2.0 * (double)(images * side * side * channels * channels * 9);
    const tide_shape shape = {images, channels, side, side};
    return (tide_op_desc){.kind = TIDE_OP_CONV_FWD,
                          .x = shape,
                          .y = shape,
                          .kernel_h = 3,
                          .kernel_w = 3,
                          .stride = 1,
                          .pad_h = 1,
                          .pad_w = 1};
}

/* The first size that takes long enough, or the largest that fits; the load stays open. */
static tide_status find_load(selftest *s, tide_op_desc (*describe)(int64_t size, double *flops), load *l,
                             int64_t *size) {
    for (*size = 64;; *size *= 2) {
        double flops;
        const tide_op_desc d = describe(*size, &flops);
        tide_status status = open_load(s->device, &d, flops, l);
        if (status == TIDE_OK) status = time_load(l);
        if (status != TIDE_OK || l->best_ns >= LONG_ENOUGH_NS || *size >= MAX_SIZE) return status;
        close_load(l);
    }
}

static void say_rate(selftest *s, const char *what, const load *l) {
    const double per_s = l->flops / (double)l->best_ns * 1e9;
    if (s->info.flops_per_s > 0)
        selftest_say(s, "%s: %.1f GFLOP/s, %.1f %% of the peak", what, per_s / 1e9, 100 * per_s / s->info.flops_per_s);
    else
        selftest_say(s, "%s: %.1f GFLOP/s", what, per_s / 1e9);
}

/* ---- copies ---- */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Both ways through the same bytes of the host, of `size` each. */
typedef struct ways {
    tide_arena *arena;
    tide_queue *out, *in;
    unsigned char *bytes;
    uint64_t size;
} ways;

static tide_status open_ways(selftest *s, ways *w) {
    w->size = s->info.memory_bytes / 16 < 64 * MIB ? s->info.memory_bytes / 16 & ~(MIB - 1) : 64 * MIB;
    w->bytes = calloc(2, w->size);
    if (!w->bytes) return TIDE_E_MEMORY;
    tide_status status = tide_arena_create(s->device, 2 * w->size, &w->arena);
    if (status == TIDE_OK) status = tide_queue_create(s->device, TIDE_QUEUE_COPY, &w->out);
    return status == TIDE_OK ? tide_queue_create(s->device, TIDE_QUEUE_COPY, &w->in) : status;
}

static void close_ways(ways *w) {
    tide_queue_destroy(w->out);
    tide_queue_destroy(w->in);
    tide_arena_destroy(w->arena);
    free(w->bytes);
}

static tide_status start_copies(ways *w, bool out, bool in) {
    tide_status status = TIDE_OK;
    if (in) status = tide_copy_in(w->in, w->arena, 0, w->size, selftest_from(w->bytes));
    if (out && status == TIDE_OK)
        status = tide_copy_out(w->out, w->arena, w->size, w->size, selftest_to(w->bytes + w->size));
    return status;
}

static tide_status finish_copies(ways *w) {
    tide_status status = tide_queue_sync(w->out);
    return status == TIDE_OK ? tide_queue_sync(w->in) : status;
}

static tide_status time_copies(ways *w, bool out, bool in, uint64_t *best_ns) {
    *best_ns = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        const uint64_t begin = now_ns();
        tide_status status = start_copies(w, out, in);
        if (status == TIDE_OK) status = finish_copies(w);
        if (status != TIDE_OK) return status;
        const uint64_t ns = now_ns() - begin;
        *best_ns = ns < *best_ns ? ns : *best_ns;
    }
    return TIDE_OK;
}

static void say_copies(selftest *s, ways *w, const char *what, bool out, bool in) {
    uint64_t ns = 0;
    tide_status status = time_copies(w, out, in, &ns);
    if (status != TIDE_OK)
        selftest_check(s, what, status, false);
    else
        selftest_say(s, "%s: %.2f GB/s", what, (double)(w->size * (uint64_t)(out + in)) / (double)ns);
}

static tide_status together(ways *w, load *l, int times, uint64_t *ns, uint64_t *product_ns) {
    const uint64_t begin = now_ns();
    tide_status status = start_copies(w, true, true);
    if (status == TIDE_OK) status = run_load(l, times, product_ns);
    if (status == TIDE_OK) status = finish_copies(w);
    *ns = now_ns() - begin;
    return status;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Products as long as the copies take, alone and beside them: what overlaps costs neither. */
static tide_status beside(selftest *s, ways *w, load *l) {
    uint64_t copies_ns = 0, alone_ns = UINT64_MAX, both_ns = UINT64_MAX, product_ns = UINT64_MAX;
    tide_status status = time_copies(w, true, true, &copies_ns);
    const int times = (int)smaller(copies_ns / l->best_ns + 1, 1000);
    for (int i = 0; i < RUNS && status == TIDE_OK; i++) {
        uint64_t alone, both = 0, product;
        status = run_load(l, times, &alone);
        if (status == TIDE_OK) status = together(w, l, times, &both, &product);
        if (status != TIDE_OK) return status;
        alone_ns = smaller(alone_ns, alone);
        both_ns = smaller(both_ns, both);
        product_ns = smaller(product_ns, product);
    }
    if (status != TIDE_OK) return status;
    selftest_say(s,
                 "beside products: %.1f ms of copies and %.1f ms of products take %.1f ms together, and slow the "
                 "products by %.0f %%",
                 (double)copies_ns / 1e6, (double)alone_ns / 1e6, (double)both_ns / 1e6,
                 100 * ((double)product_ns / (double)alone_ns - 1));
    return TIDE_OK;
}

/* ---- all of it ---- */

static void measure_copies(selftest *s, load *products) {
    ways w = {0};
    tide_status status = open_ways(s, &w);
    if (status == TIDE_OK) {
        say_copies(s, &w, "copies from the device", true, false);
        say_copies(s, &w, "copies to the device", false, true);
        say_copies(s, &w, "copies both ways at once", true, true);
        status = products ? beside(s, &w, products) : TIDE_OK;
    }
    if (status != TIDE_OK) selftest_check(s, "copies", status, false);
    close_ways(&w);
}

void selftest_speed(selftest *s) {
    load products = {0}, convolutions = {0};
    char what[64];
    int64_t size;
    selftest_head(s, "speed");
    tide_status status = find_load(s, convolution, &convolutions, &size);
    snprintf(what, sizeof what, "convolution 3 x 3, 64 channels, %lld images", (long long)size / 32);
    if (status == TIDE_OK)
        say_rate(s, what, &convolutions);
    else
        selftest_check(s, what, status, false);
    close_load(&convolutions);
    status = find_load(s, product, &products, &size);
    snprintf(what, sizeof what, "product of two matrices of %lld x %lld", (long long)size, (long long)size);
    if (status == TIDE_OK)
        say_rate(s, what, &products);
    else
        selftest_check(s, what, status, false);
    measure_copies(s, status == TIDE_OK ? &products : NULL);
    close_load(&products);
}
