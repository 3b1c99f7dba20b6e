/* Flops per op kind (docs/costs.md) and the roofline of machine.h. */
#include "nn/cost.h"

#include <stdbool.h>

#include "base/error.h"
#include "base/size.h"
#include "nn/graph.h"

/* Longer than this (about 13 days) is a nonsensical model or machine; sums over a program stay within 64 bits. */
#define MAX_COST_NS 0x1p50

/* Flops per element of kinds that stream over their data; `over` is what is counted. */
typedef struct stream_work {
    enum { OVER_NOTHING, OVER_X, OVER_Y, OVER_ELEMENTS } over;
    uint32_t flops; /* per element */
    enum { ALONE, TIMES_KERNEL_AREA, PLUS_TWICE_LRN_SIZE } factor;
} stream_work;

static const stream_work streams[TIDE_OP_KIND_COUNT] = {
    [TIDE_OP_BN_FWD] = {OVER_X, 8, ALONE},
    [TIDE_OP_BN_INFER] = {OVER_X, 2, ALONE},
    [TIDE_OP_BN_BWD] = {OVER_X, 11, ALONE},
    [TIDE_OP_RELU_FWD] = {OVER_X, 1, ALONE},
    [TIDE_OP_RELU_BWD] = {OVER_X, 1, ALONE},
    [TIDE_OP_MAXPOOL_FWD] = {OVER_Y, 1, TIMES_KERNEL_AREA},
    [TIDE_OP_MAXPOOL_BWD] = {OVER_Y, 1, ALONE},
    [TIDE_OP_AVGPOOL_FWD] = {OVER_Y, 1, TIMES_KERNEL_AREA},
    [TIDE_OP_AVGPOOL_BWD] = {OVER_Y, 1, TIMES_KERNEL_AREA},
    [TIDE_OP_ADD] = {OVER_X, 1, ALONE},
    [TIDE_OP_SOFTMAX_LOSS_FWD] = {OVER_X, 5, ALONE},
    [TIDE_OP_SOFTMAX_LOSS_BWD] = {OVER_X, 2, ALONE},
    [TIDE_OP_DROPOUT_FWD] = {OVER_X, 10, ALONE},
    [TIDE_OP_DROPOUT_BWD] = {OVER_X, 10, ALONE},
    [TIDE_OP_LRN_FWD] = {OVER_X, 4, PLUS_TWICE_LRN_SIZE},
    [TIDE_OP_LRN_BWD] = {OVER_X, 8, PLUS_TWICE_LRN_SIZE},
    [TIDE_OP_SGD] = {OVER_ELEMENTS, 4, ALONE},
    [TIDE_OP_MOMENTUM] = {OVER_ELEMENTS, 6, ALONE},
    [TIDE_OP_ADAM] = {OVER_ELEMENTS, 14, ALONE},
    [TIDE_OP_ADAMW] = {OVER_ELEMENTS, 15, ALONE},
    [TIDE_OP_GRAD_NORM] = {OVER_ELEMENTS, 2, ALONE},
    [TIDE_OP_ACCUMULATE] = {OVER_ELEMENTS, 1, ALONE},
    [TIDE_OP_LAYERNORM_FWD] = {OVER_X, 8, ALONE},
    [TIDE_OP_LAYERNORM_BWD] = {OVER_X, 11, ALONE},
    [TIDE_OP_GELU_FWD] = {OVER_X, 10, ALONE},
    [TIDE_OP_GELU_BWD] = {OVER_X, 16, ALONE},
    [TIDE_OP_EMBEDDING_FWD] = {OVER_Y, 1, ALONE},
    [TIDE_OP_EMBEDDING_BWD] = {OVER_Y, 2, ALONE},
    [TIDE_OP_LSTM_BWD_GATES] = {OVER_Y, 25, ALONE},
};

static bool is_upconv(tide_op_kind kind) { return kind >= TIDE_OP_UPCONV_FWD && kind <= TIDE_OP_UPCONV_BWD_WEIGHTS; }

static bool is_attention(tide_op_kind kind) { return kind == TIDE_OP_ATTENTION_FWD || kind == TIDE_OP_ATTENTION_BWD; }

static bool is_lstm(tide_op_kind kind) {
    return kind == TIDE_OP_LSTM_FWD || kind == TIDE_OP_LSTM_BWD_WEIGHTS || kind == TIDE_OP_LSTM_BWD_DATA;
}

static bool is_head(tide_op_kind kind) { return kind == TIDE_OP_HEAD_LOSS || kind == TIDE_OP_HEAD_SCORE; }

static bool is_matrix(tide_op_kind kind) {
    return kind <= TIDE_OP_FC_BWD_WEIGHTS || is_upconv(kind) || is_attention(kind) || is_lstm(kind) || is_head(kind);
}

/* Four gates, each over x and, after the first step, h. */
static bool lstm_flops(const tide_op_desc *d, uint64_t *out) {
    uint64_t depth = (uint64_t)(d->x.c + (d->has_prev ? d->y.c : 0));
    return tide__shape_elements(d->y, out) && tide__mul(*out, 4 * 2, out) && tide__mul(*out, depth, out);
}

/* Every query meets on average half of the keys of its sample: in two products forward, in five backward, which makes
 * the scores again. */
static bool attention_flops(const tide_op_desc *d, uint64_t *out) {
    uint64_t products = d->kind == TIDE_OP_ATTENTION_FWD ? 2 : 5;
    return tide__shape_elements(d->y, out) && tide__mul(*out, (uint64_t)d->context, out) &&
           tide__mul(*out, products, out);
}

/* One product for the scores, two for the gradients. */
static bool head_flops(const tide_op_desc *d, uint64_t *out) {
    uint64_t products = d->kind == TIDE_OP_HEAD_LOSS ? 3 : 1;
    return tide__shape_elements(d->y, out) && tide__mul(*out, (uint64_t)d->x.c, out) &&
           tide__mul(*out, 2 * products, out);
}

/* Multiply-adds per element of y. */
static bool matrix_depth(const tide_op_desc *d, uint64_t *out) {
    if (is_upconv(d->kind)) return *out = (uint64_t)d->x.c, true; /* one position of the window reaches it */
    bool conv = d->kind <= TIDE_OP_CONV_BWD_WEIGHTS;
    tide_shape window = {d->x.c, conv ? d->kernel_h : d->x.h, conv ? d->kernel_w : d->x.w, 1};
    return tide__shape_elements(window, out);
}

static bool matrix_flops(const tide_op_desc *d, uint64_t *out) {
    uint64_t outputs, depth;
    if (is_lstm(d->kind)) return lstm_flops(d, out);
    if (is_attention(d->kind)) return attention_flops(d, out);
    if (is_head(d->kind)) return head_flops(d, out);
    return tide__shape_elements(d->y, &outputs) && matrix_depth(d, &depth) && tide__mul(outputs, depth, out) &&
           tide__mul(*out, 2, out) && tide__add(*out, d->bias ? outputs : 0, out);
}

static bool stream_flops(const tide_op_desc *d, uint64_t *out) {
    const stream_work *work = &streams[d->kind];
    uint64_t elements = d->part_elements ? d->part_elements : d->elements;
    if (work->over == OVER_NOTHING) return *out = 0, true;
    if (work->over != OVER_ELEMENTS && !tide__shape_elements(work->over == OVER_X ? d->x : d->y, &elements))
        return false;
    uint64_t factor = work->flops;
    if (work->factor == TIMES_KERNEL_AREA) factor *= (uint64_t)d->kernel_h * (uint64_t)d->kernel_w;
    if (work->factor == PLUS_TWICE_LRN_SIZE) factor += 2 * (uint64_t)d->lrn_size;
    return tide__mul(elements, factor, out);
}

tide_status tide__op_flops(const tide_op_desc *desc, uint64_t *out) {
    uint64_t flops = 0;
    if (!(is_matrix(desc->kind) ? matrix_flops(desc, &flops) : stream_flops(desc, &flops)))
        return tide__fail(TIDE_E_OVERFLOW, "the work of one %s does not fit 64 bits", tide_op_kind_name(desc->kind));
    *out = flops;
    return TIDE_OK;
}

tide_status tide__op_cost_ns(const tide_machine *m, tide_op_kind kind, tide__work work, uint64_t *out) {
    if (!m) return *out = 0, TIDE_OK;
    bool matrix = is_matrix(kind);
    double of_flops = matrix ? m->matrix_efficiency * work.speed : 1.0;
    double of_bytes = matrix ? 1.0 : m->vector_efficiency;
    double peak = matrix && work.half && m->half_flops_per_s > 0 ? m->half_flops_per_s : m->flops_per_s;
    double compute = (double)work.flops / (peak * (of_flops < 1.0 ? of_flops : 1.0));
    double memory = (double)work.bytes / (m->bytes_per_s * of_bytes);
    double ns = (double)m->launch_ns + 1e9 * (compute > memory ? compute : memory);
    if (!(ns <= MAX_COST_NS))
        return tide__fail(TIDE_E_OVERFLOW, "one %s would take more than 13 days on %s", tide_op_kind_name(kind),
                          m->name);
    *out = (uint64_t)(ns + 0.5);
    return TIDE_OK;
}
