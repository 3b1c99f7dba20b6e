/* Ops that treat every stored float alike: add, accumulate, zero, cut, paste. Any write may lie exactly on a read; layouts
 * do not matter, and zero padding stays zero. */
#include <string.h>

#include "device/cpu/bf16.h"
#include "device/cpu/wide.h"

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
