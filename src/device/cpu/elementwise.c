/* Ops that treat every stored float alike: relu, add, accumulate, zero, cut, paste. Any write may lie exactly on a read; layouts
 * do not matter, and zero padding stays zero. */
#include <string.h>

#include "device/cpu/bf16.h"
#include "device/cpu/wide.h"

/* ---- relu ---- */

/* Written so that NaN comes through: a diverging run should look like one. */
TIDE__WIDE static void relu_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise *o = context;
    const float *x = o->a;
    float *y = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

TIDE__WIDE static void relu_backward_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise *o = context;
    const float *y = o->a, *dy = o->b;
    float *dx = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float slope = dy[i]; /* read in any case: then there is no branch */
        dx[i] = y[i] > 0 ? slope : 0;
    }
}

/* bf16 is compared as it lies: 0x8000 is -0, from 0xff81 on it is NaN; 0x7f80 is infinity. */
TIDE__WIDE static void relu_bf16_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise_bf16 *o = context;
    const uint16_t *x = o->a;
    uint16_t *y = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) y[i] = x[i] > 0x8000 && x[i] <= 0xff80 ? 0 : x[i];
}

TIDE__WIDE static void relu_backward_bf16_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise_bf16 *o = context;
    const uint16_t *y = o->a, *dy = o->b;
    uint16_t *dx = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        uint16_t slope = dy[i];
        dx[i] = y[i] > 0 && y[i] <= 0x7f80 ? slope : 0;
    }
}

static tide_status run_relu_forward(const tide__cpu_kernel *k, const tide__call *call) {
    tide__run_pointwise(k, call, relu_range, relu_bf16_range);
    return TIDE_OK;
}

static tide_status run_relu_backward(const tide__cpu_kernel *k, const tide__call *call) {
    tide__run_pointwise(k, call, relu_backward_range, relu_backward_bf16_range);
    return TIDE_OK;
}

tide_status tide__build_relu(tide__cpu_kernel *k, const tide_op_desc *source) {
    bool forward = source->kind == TIDE_OP_RELU_FWD;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    if (!forward) TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    k->run = forward ? run_relu_forward : run_relu_backward;
    return tide__add_activation(k, TIDE__WRITE, source->x);
}

/* ---- add, accumulate ---- */

TIDE__WIDE static void sum_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise *o = context;
    const float *a = o->a, *b = o->b;
    float *y = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) y[i] = a[i] + b[i];
}

TIDE__WIDE static void sum_bf16_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise_bf16 *o = context;
    const uint16_t *a = o->a, *b = o->b;
    uint16_t *y = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) y[i] = tide__bf16_of(tide__float_of(a[i]) + tide__float_of(b[i]));
}

static tide_status run_sum(const tide__cpu_kernel *k, const tide__call *call) {
    tide__run_pointwise(k, call, sum_range, sum_bf16_range);
    return TIDE_OK;
}

tide_status tide__build_add(tide__cpu_kernel *k, const tide_op_desc *source) {
    TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    k->run = run_sum;
    return tide__add_activation(k, TIDE__WRITE, source->x);
}

tide_status tide__build_accumulate(tide__cpu_kernel *k, const tide_op_desc *source) {
    TIDE_TRY(tide__add_floats(k, TIDE__READ, source->elements));
    TIDE_TRY(tide__add_floats(k, TIDE__READ, source->elements));
    k->run = run_sum;
    return tide__add_floats(k, TIDE__WRITE, source->elements);
}

/* ---- zero ---- */

static void zero_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise *o = context;
    memset(o->out + begin, 0, (size_t)(end - begin) * sizeof *o->out);
}

static tide_status run_zero(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__pointwise o = {NULL, NULL, tide__floats(call, 0)};
    tide__for_ranges((int64_t)k->desc.elements, zero_range, &o);
    return TIDE_OK;
}

tide_status tide__build_zero(tide__cpu_kernel *k, const tide_op_desc *source) {
    k->run = run_zero;
    return tide__add_floats(k, TIDE__WRITE, source->elements);
}

/* ---- cut, paste ---- */

typedef struct copying {
    const float *from;
    float *to;
} copying;

static void copy_range(const void *context, int64_t begin, int64_t end) {
    const copying *o = context;
    memcpy(o->to + begin, o->from + begin, (size_t)(end - begin) * sizeof *o->to);
}

static tide_status run_cut(const tide__cpu_kernel *k, const tide__call *call) {
    const copying o = {tide__floats(call, 0) + k->desc.part_first, tide__floats(call, 1)};
    tide__for_ranges((int64_t)k->desc.part_elements, copy_range, &o);
    return TIDE_OK;
}

tide_status tide__build_cut(tide__cpu_kernel *k, const tide_op_desc *source) {
    TIDE_TRY(tide__add_floats(k, TIDE__READ, source->elements));
    k->run = run_cut;
    return tide__add_floats(k, TIDE__WRITE, source->part_elements);
}

static tide_status run_paste(const tide__cpu_kernel *k, const tide__call *call) {
    const copying o = {tide__floats(call, k->n_reads - 1), tide__floats(call, k->n_reads) + k->desc.part_first};
    tide__for_ranges((int64_t)k->desc.part_elements, copy_range, &o);
    return TIDE_OK;
}

tide_status tide__build_paste(tide__cpu_kernel *k, const tide_op_desc *source) {
    if (source->has_prev) TIDE_TRY(tide__add_floats(k, TIDE__READ, source->elements));
    TIDE_TRY(tide__add_floats(k, TIDE__READ, source->part_elements));
    k->run = run_paste;
    return tide__add_floats(k, TIDE__WRITE, source->elements);
}
