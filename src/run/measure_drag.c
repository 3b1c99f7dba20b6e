/* How much a kernel suffers from a copy beside it: the same convolutions alone, and while the channel moves bytes. What
 * they take longer, per time the copy takes alone, is the channel's drag. On a device with a copy engine of its own it is
 * small; where the cores that compute also copy, it is not. */
#include <stdlib.h>

#include "base/size.h"
#include "run/measure.h"

enum { ROUNDS = 5, MOST_PERCENT = 90, MOST_RUNS = 10000 };

/* Convolutions in a row, and the copy that runs beside them. */
typedef struct contest {
    const tide__bench *b;
    tide__bench_item item;
    tide__bench_copy copy;
    uint64_t runs, copy_ns; /* the copy alone */
} contest;

static tide_status enqueue_runs(void *context, tide_queue *queue) {
    contest *c = context;
    for (uint64_t i = 0; i < c->runs; i++) TIDE_TRY(tide__bench_enqueue_item(&c->item, queue));
    return TIDE_OK;
}

/* The copy begins first, so that none of it is left when the last convolution ends. */
static tide_status time_beside(contest *c, uint64_t *ns) {
    TIDE_TRY(tide__bench_enqueue_copy(&c->copy, c->b->copy));
    tide_status status = tide__bench_time_once(c->b, c->b->compute, enqueue_runs, c, ns);
    tide_status copied = tide_queue_sync(c->b->copy);
    return status == TIDE_OK ? copied : status;
}

/* As many runs as take three times as long as the copy. */
static tide_status count_runs(contest *c) {
    tide__timing copy, run;
    TIDE_TRY(tide__bench_time(c->b, c->b->copy, tide__bench_enqueue_copy, &c->copy, &copy));
    TIDE_TRY(tide__bench_time(c->b, c->b->compute, tide__bench_enqueue_item, &c->item, &run));
    c->copy_ns = copy.median_ns;
    c->runs = tide__min_u64(3 * copy.median_ns / run.median_ns + 1, MOST_RUNS);
    return TIDE_OK;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of some rounds: alone and beside take turns, so that both see the same machine. */
static tide_status compare(contest *c, uint32_t *percent) {
    double drag[ROUNDS];
    TIDE_TRY(count_runs(c));
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t alone, beside;
        TIDE_TRY(tide__bench_time_once(c->b, c->b->compute, enqueue_runs, c, &alone));
        TIDE_TRY(time_beside(c, &beside));
        drag[i] = 100 * ((double)beside - (double)alone) / (double)c->copy_ns;
    }
    qsort(drag, ROUNDS, sizeof *drag, by_value);
    double middle = drag[ROUNDS / 2] + 0.5;
    *percent = middle < 1 ? 0 : middle > MOST_PERCENT ? MOST_PERCENT : (uint32_t)middle;
    return TIDE_OK;
}

tide_status tide__measure_drag(const tide__bench *b, const tide__bench_copy *copy, uint32_t *percent) {
    const tide_shape layer = {b->options->arena_bytes >> 20 < 128 ? 1 : 8, 64, 56, 56};
    const tide_op_desc desc = {
        .kind = TIDE_OP_CONV_FWD, .x = layer, .y = layer, .kernel_h = 1, .kernel_w = 1, .stride = 1, .needs_dx = 1};
    contest c = {.b = b, .copy = *copy};
    *percent = 0;
    tide_status status = tide__bench_open_item(b, &desc, b->options->arena_bytes / 2, &c.item);
    if (status == TIDE_E_UNSUPPORTED) return TIDE_OK;
    if (status != TIDE_OK) return status;
    if (c.item.end <= b->options->arena_bytes) status = compare(&c, percent);
    tide_kernel_destroy(c.item.kernel);
    return status;
}
