/* One step of a layer of LSTM cells: products around the gates (kernels/gemm.gpu, kernels/tokens.gpu). w is
 * (4 H, inputs + H) over x and h; the first step has no h and c. */
#include "device/gpu/gemm.h"

typedef struct cell {
    int64_t rows, inputs, n, all; /* n: H; all: inputs + H */
} cell;

static cell cell_of(const tide_op_desc *d) { return (cell){d->x.n, d->x.c, d->y.c, d->x.c + d->y.c}; }

static tide_status reads(tide__gpu_kernel *k, int64_t elements, int count) {
    for (int i = 0; i < count; i++) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)elements));
    return TIDE_OK;
}

static tide_status writes(tide__gpu_kernel *k, int64_t elements, int count) {
    for (int i = 0; i < count; i++) TIDE_TRY(tide__gpu_writes(k, TIDE__F32, (uint64_t)elements));
    return TIDE_OK;
}

/* gates (rows, 4 n) = bias + from (rows, width) w', or that added; w from column `first` on. */
static tide_status add_gates(tide__gpu_kernel *k, const cell *c, uint32_t from, int64_t width, int64_t first,
                             uint32_t w, uint32_t gates) {
    return tide__gpu_gemm(k, &(tide__gemm){.m = c->rows,
                                           .n = 4 * c->n,
                                           .depth = width,
                                           .a = {.operand = from, .row = width, .column = 1},
                                           .b = {.operand = w, .row = 1, .column = c->all, .first = first},
                                           .c = {.operand = gates, .row = 4 * c->n},
                                           .alpha = 1,
                                           .flags = first ? TIDE__GEMM_ADD_TO : TIDE__GEMM_BIAS,
                                           .bias = w + 1});
}

static tide_status build_forward(tide__gpu_kernel *k, const tide_op_desc *d, const cell *c) {
    const uint32_t w = d->has_prev ? 3 : 1, gates = w + 4;
    TIDE_TRY(reads(k, c->rows * c->inputs, 1));
    TIDE_TRY(reads(k, c->rows * c->n, d->has_prev ? 2 : 0));
    TIDE_TRY(reads(k, 4 * c->n * c->all, 1));
    TIDE_TRY(reads(k, 4 * c->n, 1));
    TIDE_TRY(writes(k, c->rows * c->n, 2));
    TIDE_TRY(writes(k, c->rows * 4 * c->n, 1));
    TIDE_TRY(add_gates(k, c, 0, c->inputs, 0, w, gates));
    if (d->has_prev) TIDE_TRY(add_gates(k, c, 1, c->n, c->inputs, w, gates));
    return TIDE__LAUNCH(k, "tokens", "finish_gates", c->rows, 1, 1, tide__place(d->has_prev ? 2 : 0),
                        tide__place(w + 2), tide__place(w + 3), tide__place(gates), tide__int(c->n),
                        tide__int(d->has_prev ? 1 : 0));
}

static tide_status build_gates(tide__gpu_kernel *k, const tide_op_desc *d, const cell *c) {
    const uint32_t prev = d->has_prev ? 1 : 0, next = d->has_next ? 1 : 0;
    const uint32_t dh = 2 + prev, dc_next = dh + next, dgates = dc_next + 1;
    TIDE_TRY(reads(k, c->rows * 4 * c->n, 1));
    TIDE_TRY(reads(k, c->rows * c->n, (int)(2 + prev + next)));
    TIDE_TRY(writes(k, c->rows * 4 * c->n, 1));
    TIDE_TRY(writes(k, c->rows * c->n, (int)prev));
    return TIDE__LAUNCH(k, "tokens", "gates_backward", c->rows, 1, 1, tide__place(0), tide__place(1),
                        tide__place(prev ? 2 : 1), tide__place(dh), tide__place(dc_next), tide__place(dgates),
                        tide__place(prev ? dgates + 1 : dgates), tide__int(c->n), tide__int(prev), tide__int(next));
}

/* Columns of dw = dgates' from; without `depth` they become zero. */
static tide_status add_weights(tide__gpu_kernel *k, const cell *c, uint32_t from, int64_t width, int64_t first,
                               int64_t depth) {
    const uint32_t dgates = k->n_reads - 1;
    return tide__gpu_gemm(k, &(tide__gemm){.m = 4 * c->n,
                                           .n = width,
                                           .depth = depth,
                                           .a = {.operand = dgates, .row = 1, .column = 4 * c->n},
                                           .b = {.operand = from, .row = width, .column = 1},
                                           .c = {.operand = k->n_reads, .row = c->all, .first = first},
                                           .alpha = 1});
}

static tide_status build_weights(tide__gpu_kernel *k, const tide_op_desc *d, const cell *c) {
    TIDE_TRY(reads(k, c->rows * c->inputs, 1));
    TIDE_TRY(reads(k, c->rows * c->n, d->has_prev ? 1 : 0));
    TIDE_TRY(reads(k, c->rows * 4 * c->n, 1));
    TIDE_TRY(writes(k, 4 * c->n * c->all, 1));
    TIDE_TRY(writes(k, 4 * c->n, 1));
    TIDE_TRY(add_weights(k, c, 0, c->inputs, 0, c->rows));
    TIDE_TRY(add_weights(k, c, d->has_prev ? 1 : 0, c->n, c->inputs, d->has_prev ? c->rows : 0));
    return tide__gpu_sum_rows(k, k->n_reads - 1, k->n_reads + 1, c->rows, 4 * c->n);
}

/* dgates w, of the columns from `first` on. */
static tide_status add_data(tide__gpu_kernel *k, const cell *c, int64_t width, int64_t first, uint32_t out) {
    return tide__gpu_gemm(k, &(tide__gemm){.m = c->rows,
                                           .n = width,
                                           .depth = 4 * c->n,
                                           .a = {.operand = 1, .row = 4 * c->n, .column = 1},
                                           .b = {.operand = 0, .row = c->all, .column = 1, .first = first},
                                           .c = {.operand = out, .row = width},
                                           .alpha = 1});
}

static tide_status build_data(tide__gpu_kernel *k, const tide_op_desc *d, const cell *c) {
    TIDE_TRY(reads(k, 4 * c->n * c->all, 1));
    TIDE_TRY(reads(k, c->rows * 4 * c->n, 1));
    TIDE_TRY(writes(k, c->rows * c->inputs, 1));
    TIDE_TRY(writes(k, c->rows * c->n, d->has_prev ? 1 : 0));
    TIDE_TRY(add_data(k, c, c->inputs, 0, 2));
    return d->has_prev ? add_data(k, c, c->n, c->inputs, 3) : TIDE_OK;
}

tide_status tide__gpu_build_lstm(tide__gpu_kernel *k, const tide_op_desc *d) {
    const cell c = cell_of(d);
    switch (d->kind) {
    case TIDE_OP_LSTM_FWD: return build_forward(k, d, &c);
    case TIDE_OP_LSTM_BWD_GATES: return build_gates(k, d, &c);
    case TIDE_OP_LSTM_BWD_WEIGHTS: return build_weights(k, d, &c);
    default: return build_data(k, d, &c);
    }
}
