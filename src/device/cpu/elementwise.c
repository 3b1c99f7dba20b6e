/* Ops that treat every stored float alike: relu, add, accumulate, zero. Any write may lie exactly on a read; layouts
 * do not matter, and zero padding stays zero. */
#include <string.h>

#include "device/cpu/view.h"

static int64_t stored_floats(const tide__cpu_kernel *k) {
    return (int64_t)(k->operands.data[0].size_bytes / sizeof(float));
}

/* ---- relu ---- */

/* Written so that NaN comes through: a diverging run should look like one. */
static tide_status run_relu_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const float *x = tide__floats(call, 0);
    float *y = tide__floats(call, 1);
    int64_t n = stored_floats(k);
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
    return TIDE_OK;
}

static tide_status run_relu_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const float *y = tide__floats(call, 0), *dy = tide__floats(call, 1);
    float *dx = tide__floats(call, 2);
    int64_t n = stored_floats(k);
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < n; i++) dx[i] = y[i] > 0 ? dy[i] : 0;
    return TIDE_OK;
}

tide_status tide__build_relu(tide__cpu_kernel *k, const tide_op_desc *source) {
    bool forward = source->kind == TIDE_OP_RELU_FWD;
    TIDE_TRY(tide__check_shape(&source->x, "x"));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    if (!forward) TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    k->run = forward ? run_relu_forward : run_relu_backward;
    return tide__add_activation(k, TIDE__WRITE, source->x);
}

/* ---- add, accumulate ---- */

static tide_status run_sum(const tide__cpu_kernel *k, const tide__call *call) {
    const float *a = tide__floats(call, 0), *b = tide__floats(call, 1);
    float *y = tide__floats(call, 2);
    int64_t n = stored_floats(k);
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
    return TIDE_OK;
}

tide_status tide__build_add(tide__cpu_kernel *k, const tide_op_desc *source) {
    TIDE_TRY(tide__check_shape(&source->x, "x"));
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

static tide_status run_zero(const tide__cpu_kernel *k, const tide__call *call) {
    memset(tide__at(call, 0), 0, k->operands.data[0].size_bytes);
    return TIDE_OK;
}

tide_status tide__build_zero(tide__cpu_kernel *k, const tide_op_desc *source) {
    k->run = run_zero;
    return tide__add_floats(k, TIDE__WRITE, source->elements);
}
