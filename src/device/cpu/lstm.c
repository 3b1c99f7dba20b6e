/* One step of a layer of LSTM cells: matrix products around own loops over the gates.
 *
 * gates is (N, 4 H): input i, forget f, candidate g, output o after their functions; w is (4 H, I + H) over x and h.
 *
 *     c' = f c + i g      h' = o tanh(c')
 *     with e = dc' + dh' o (1 - tanh(c')^2):   di = e g   df = e c   dg = e i   do = dh' tanh(c')   dc = e f
 *
 * and each of the four times the slope of its function. Without a step before, h and c are zero and not there. */
#include "device/cpu/gemm.h"
#include "device/cpu/rows.h"
#include "device/cpu/view.h"
#include "device/cpu/wide.h"

static tide__matrix matrix(const float *data, int64_t stride) { return (tide__matrix){data, stride, false}; }
static tide__matrix transposed(const float *data, int64_t stride) { return (tide__matrix){data, stride, true}; }

/* ---- forward ---- */

/* One row of gates, before their functions and then after; c is NULL in the first step. */
TIDE__WIDE static void finish_gates(int64_t n, const float *c, float *gates, float *h_out, float *c_out) {
    float *input = gates, *forget = gates + n, *candidate = gates + 2 * n, *output = gates + 3 * n;
#pragma omp simd
    for (int64_t i = 0; i < 2 * n; i++) gates[i] = tide__sigmoid(gates[i]);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) candidate[i] = tide__tanh(candidate[i]);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) output[i] = tide__sigmoid(output[i]);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        c_out[i] = input[i] * candidate[i] + (c ? forget[i] * c[i] : 0);
        h_out[i] = output[i] * tide__tanh(c_out[i]);
    }
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    const int64_t rows = d->x.n, inputs = d->x.c, n = d->y.c, all = inputs + n;
    const uint32_t w_at = d->has_prev ? 3 : 1;
    const float *x = tide__floats(call, 0), *w = tide__floats(call, w_at), *bias = tide__floats(call, w_at + 1);
    const float *c = d->has_prev ? tide__floats(call, 2) : NULL;
    float *h_out = tide__floats(call, w_at + 2), *c_out = tide__floats(call, w_at + 3),
          *gates = tide__floats(call, w_at + 4);
    for (int64_t r = 0; r < rows; r++) memcpy(gates + r * 4 * n, bias, (size_t)(4 * n) * sizeof *gates);
    TIDE_TRY(tide__gemm(rows, 4 * n, inputs, 1, matrix(x, inputs), transposed(w, all), 1, gates, 4 * n));
    if (d->has_prev)
        TIDE_TRY(tide__gemm(rows, 4 * n, n, 1, matrix(tide__floats(call, 1), n), transposed(w + inputs, all), 1, gates,
                            4 * n));
#pragma omp parallel for schedule(static) if (rows * n > TIDE__PARALLEL_FLOATS / 8)
    for (int64_t r = 0; r < rows; r++)
        finish_gates(n, c ? c + r * n : NULL, gates + r * 4 * n, h_out + r * n, c_out + r * n);
    return TIDE_OK;
}

/* ---- backward ---- */

/* Of one row; dgates may be gates. NULL where there is no step before or after. */
typedef struct gate_row {
    const float *gates, *c_out, *c, *dh, *dc_next;
    float *dgates, *dc;
} gate_row;

TIDE__WIDE static void gates_backward(int64_t n, const gate_row *o) {
    for (int64_t k = 0; k < n; k++) {
        const float i = o->gates[k], f = o->gates[n + k], g = o->gates[2 * n + k], out = o->gates[3 * n + k];
        const float dh = o->dh[k], t = tide__tanh(o->c_out[k]);
        const float e = (o->dc_next ? o->dc_next[k] : 0) + dh * out * (1 - t * t);
        o->dgates[k] = e * g * i * (1 - i);
        o->dgates[n + k] = o->c ? e * o->c[k] * f * (1 - f) : 0;
        o->dgates[2 * n + k] = e * i * (1 - g * g);
        o->dgates[3 * n + k] = dh * t * out * (1 - out);
        if (o->dc) o->dc[k] = e * f;
    }
}

static tide_status run_gates(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    const int64_t rows = d->y.n, n = d->y.c;
    uint32_t at = 2;
    const float *gates = tide__floats(call, 0), *c_out = tide__floats(call, 1);
    const float *c = d->has_prev ? tide__floats(call, at++) : NULL, *dh = tide__floats(call, at++);
    const float *dc_next = d->has_next ? tide__floats(call, at++) : NULL;
    float *dgates = tide__floats(call, at++), *dc = d->has_prev ? tide__floats(call, at) : NULL;
#pragma omp parallel for schedule(static) if (rows * n > TIDE__PARALLEL_FLOATS / 8)
    for (int64_t r = 0; r < rows; r++) {
        const gate_row row = {gates + r * 4 * n,
                              c_out + r * n,
                              c ? c + r * n : NULL,
                              dh + r * n,
                              dc_next ? dc_next + r * n : NULL,
                              dgates + r * 4 * n,
                              dc ? dc + r * n : NULL};
        gates_backward(n, &row);
    }
    return TIDE_OK;
}

static tide_status run_weights(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    const int64_t rows = d->x.n, inputs = d->x.c, n = d->y.c, all = inputs + n;
    const float *x = tide__floats(call, 0), *dgates = tide__floats(call, k->n_reads - 1);
    float *dw = tide__floats(call, k->n_reads), *dbias = tide__floats(call, k->n_reads + 1);
    TIDE_TRY(tide__gemm(4 * n, inputs, rows, 1, transposed(dgates, 4 * n), matrix(x, inputs), 0, dw, all));
    if (d->has_prev)
        TIDE_TRY(tide__gemm(4 * n, n, rows, 1, transposed(dgates, 4 * n), matrix(tide__floats(call, 1), n), 0,
                            dw + inputs, all));
    for (int64_t i = 0; !d->has_prev && i < 4 * n; i++) memset(dw + i * all + inputs, 0, (size_t)n * sizeof *dw);
    memset(dbias, 0, (size_t)(4 * n) * sizeof *dbias);
    for (int64_t r = 0; r < rows; r++) tide__row_add(dgates + r * 4 * n, 4 * n, dbias);
    return TIDE_OK;
}

static tide_status run_data(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    const int64_t rows = d->x.n, inputs = d->x.c, n = d->y.c, all = inputs + n;
    const float *w = tide__floats(call, 0), *dgates = tide__floats(call, 1);
    TIDE_TRY(
        tide__gemm(rows, inputs, 4 * n, 1, matrix(dgates, 4 * n), matrix(w, all), 0, tide__floats(call, 2), inputs));
    if (!d->has_prev) return TIDE_OK;
    return tide__gemm(rows, n, 4 * n, 1, matrix(dgates, 4 * n), matrix(w + inputs, all), 0, tide__floats(call, 3), n);
}

/* ---- building ---- */

static tide_status add_weights(tide__cpu_kernel *k, tide__access access) {
    return tide__add_matrix(k, access, 4 * k->desc.y.c, k->desc.x.c + k->desc.y.c);
}

/* `count` operands of N rows of `width`. */
static tide_status add_rows(tide__cpu_kernel *k, tide__access access, int64_t width, int count) {
    for (int i = 0; i < count; i++) TIDE_TRY(tide__add_activation(k, access, (tide_shape){k->desc.x.n, width, 1, 1}));
    return TIDE_OK;
}

static tide_status build_forward(tide__cpu_kernel *k) {
    const int64_t n = k->desc.y.c;
    k->run = run_forward;
    TIDE_TRY(add_rows(k, TIDE__READ, k->desc.x.c, 1));
    TIDE_TRY(add_rows(k, TIDE__READ, n, k->desc.has_prev ? 2 : 0));
    TIDE_TRY(add_weights(k, TIDE__READ));
    TIDE_TRY(tide__add_vector(k, TIDE__READ, 4 * n, dnnl_f32));
    TIDE_TRY(add_rows(k, TIDE__WRITE, n, 2));
    return add_rows(k, TIDE__WRITE, 4 * n, 1);
}

static tide_status build_gates(tide__cpu_kernel *k) {
    const int64_t n = k->desc.y.c;
    const int prev = k->desc.has_prev ? 1 : 0, next = k->desc.has_next ? 1 : 0;
    k->run = run_gates;
    TIDE_TRY(add_rows(k, TIDE__READ, 4 * n, 1));
    TIDE_TRY(add_rows(k, TIDE__READ, n, 2 + prev + next));
    TIDE_TRY(add_rows(k, TIDE__WRITE, 4 * n, 1));
    return add_rows(k, TIDE__WRITE, n, prev);
}

static tide_status build_weights(tide__cpu_kernel *k) {
    const int64_t n = k->desc.y.c;
    k->run = run_weights;
    TIDE_TRY(add_rows(k, TIDE__READ, k->desc.x.c, 1));
    TIDE_TRY(add_rows(k, TIDE__READ, n, k->desc.has_prev ? 1 : 0));
    TIDE_TRY(add_rows(k, TIDE__READ, 4 * n, 1));
    TIDE_TRY(add_weights(k, TIDE__WRITE));
    return tide__add_vector(k, TIDE__WRITE, 4 * n, dnnl_f32);
}

static tide_status build_data(tide__cpu_kernel *k) {
    k->run = run_data;
    TIDE_TRY(add_weights(k, TIDE__READ));
    TIDE_TRY(add_rows(k, TIDE__READ, 4 * k->desc.y.c, 1));
    TIDE_TRY(add_rows(k, TIDE__WRITE, k->desc.x.c, 1));
    return add_rows(k, TIDE__WRITE, k->desc.y.c, k->desc.has_prev ? 1 : 0);
}

tide_status tide__build_lstm_cell(tide__cpu_kernel *k, const tide_op_desc *source) {
    switch (source->kind) {
    case TIDE_OP_LSTM_FWD: return build_forward(k);
    case TIDE_OP_LSTM_BWD_GATES: return build_gates(k);
    case TIDE_OP_LSTM_BWD_WEIGHTS: return build_weights(k);
    default: return build_data(k);
    }
}
