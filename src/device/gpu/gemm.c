/* See gemm.h; and fully connected layers, which are products and nothing else. */
#include "device/gpu/gemm.h"

/* Of panels and blocks at most: with one lane, where local memory is a cache, with one lane and little of it, and with
 * many lanes. kc does not depend on the product: it decides about bits. */
typedef struct limits {
    int64_t rows, columns, mc, nc, kc; /* rows, columns and nc as in kernels/tile.gpu */
} limits;
static const limits roomy = {6, 16, 96, 192, 256}, narrow = {6, 16, 24, 32, 32}, shared = {4, 4, 64, 64, 16};
#define ROOMY_BYTES (UINT64_C(384) << 10)

static const limits *limits_of(const tide__gpu *gpu) {
    if (gpu->lanes > 1) return &shared;
    return gpu->local_bytes >= ROOMY_BYTES ? &roomy : &narrow;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Equal blocks of at most `most`, in whole panels. */
static int64_t cut(int64_t n, int64_t most, int64_t panel) {
    int64_t blocks = ceil_div(n, most);
    return ceil_div(ceil_div(n, blocks), panel) * panel;
}

static uint64_t local_bytes(const tide__gemm_blocks *b) { return b->a_bytes + b->b_bytes + b->c_bytes; }

static void measure(tide__gemm_blocks *b, int64_t m, int64_t n) {
    b->rows = (size_t)ceil_div(m, b->mc);
    b->columns = (size_t)ceil_div(n, b->nc);
    b->a_bytes = (uint64_t)(b->mc * b->kc) * sizeof(float);
    b->b_bytes = (uint64_t)(b->nc * b->kc) * sizeof(float);
    b->c_bytes = (uint64_t)(b->mc * b->nc) * sizeof(float);
}

/* As large as local memory allows, but so many that every unit has a few. */
tide__gemm_blocks tide__cut_blocks(const tide__gpu *gpu, int64_t m, int64_t n, int64_t times) {
    const limits *l = limits_of(gpu);
    tide__gemm_blocks b = {.kc = l->kc};
    int64_t most_nc = l->nc;
    b.mc = cut(m, l->mc, l->rows);
    for (;;) {
        b.nc = cut(n, most_nc, l->columns);
        measure(&b, m, n);
        int64_t blocks = times * (int64_t)(b.rows * b.columns);
        if (blocks >= 3 * (int64_t)gpu->units || most_nc <= 2 * l->columns || n <= 2 * l->columns) break;
        most_nc /= 2;
    }
    while (local_bytes(&b) > gpu->local_bytes && b.mc > l->rows) {
        b.mc -= l->rows;
        measure(&b, m, n);
    }
    return b;
}

tide_status tide__gpu_sum_rows(tide__gpu_kernel *k, uint32_t from, uint32_t to, int64_t rows, int64_t columns) {
    const bool one = ((const tide__gpu *)k->base.device)->lanes == 1; /* then an item has 8 columns */
    return TIDE__LAUNCH(k, "gemm", "sum_rows",
                        one ? (size_t)ceil_div(columns, 8) : tide__lane_groups(k, (uint64_t)columns), 1, 1,
                        tide__place(from), tide__place(to), tide__int(rows), tide__int(columns));
}

bool tide__gpu_product_is_foreign(const tide__gpu_kernel *k, const tide__gemm *g) {
    tide__gpu *gpu = (tide__gpu *)k->base.device;
    return gpu->backend->takes_product && gpu->backend->takes_product(gpu, g);
}

tide_status tide__gpu_gemm(tide__gpu_kernel *k, const tide__gemm *g) {
    if (tide__gpu_product_is_foreign(k, g)) return ((tide__gpu *)k->base.device)->backend->add_product(k, g);
    const int64_t heads = g->heads ? g->heads : 1, samples = g->samples ? g->samples : 1;
    const tide__gemm_blocks b = tide__cut_blocks((tide__gpu *)k->base.device, g->m, g->n, samples * heads);
    const bool bias = g->flags & (TIDE__GEMM_BIAS | TIDE__GEMM_ROW_BIAS);
    return TIDE__LAUNCH(
        k, "gemm", "multiply", b.rows, b.columns, samples * heads, tide__place_at(g->a.operand, g->a.first * 4),
        tide__place_at(g->b.operand, g->b.first * 4), tide__place_at(g->c.operand, g->c.first * 4),
        tide__place(bias ? g->bias : 0), tide__local(b.a_bytes), tide__local(b.b_bytes), tide__local(b.c_bytes),
        tide__int(g->m), tide__int(g->n), tide__int(g->depth), tide__int(b.mc), tide__int(b.nc), tide__int(b.kc),
        tide__int(g->flags), tide__float(g->alpha), tide__long((uint64_t)g->a.row), tide__long((uint64_t)g->a.column),
        tide__long((uint64_t)g->b.row), tide__long((uint64_t)g->b.column), tide__long((uint64_t)g->c.row),
        tide__int(heads), tide__long((uint64_t)g->a.sample), tide__long((uint64_t)g->a.head),
        tide__long((uint64_t)g->b.sample), tide__long((uint64_t)g->b.head), tide__long((uint64_t)g->c.sample),
        tide__long((uint64_t)g->c.head));
}

/* ---- fully connected: w is (outputs, inputs) ---- */

/* y = x w' + bias */
static tide_status build_forward(tide__gpu_kernel *k, int64_t rows, int64_t inputs, int64_t outputs, bool bias) {
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)(rows * inputs)));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)(outputs * inputs)));
    if (bias) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)outputs));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, (uint64_t)(rows * outputs)));
    return tide__gpu_gemm(k, &(tide__gemm){.m = rows,
                                           .n = outputs,
                                           .depth = inputs,
                                           .a = {.operand = 0, .row = inputs, .column = 1},
                                           .b = {.operand = 1, .row = 1, .column = inputs},
                                           .c = {.operand = bias ? 3 : 2, .row = outputs},
                                           .alpha = 1,
                                           .flags = bias ? TIDE__GEMM_BIAS : 0,
                                           .bias = 2});
}

/* dx = dy w */
static tide_status build_data(tide__gpu_kernel *k, int64_t rows, int64_t inputs, int64_t outputs) {
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)(outputs * inputs)));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)(rows * outputs)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, (uint64_t)(rows * inputs)));
    return tide__gpu_gemm(k, &(tide__gemm){.m = rows,
                                           .n = inputs,
                                           .depth = outputs,
                                           .a = {.operand = 1, .row = outputs, .column = 1},
                                           .b = {.operand = 0, .row = inputs, .column = 1},
                                           .c = {.operand = 2, .row = inputs},
                                           .alpha = 1});
}

/* dw = dy' x, dbias = columns' sums of dy */
static tide_status build_weights(tide__gpu_kernel *k, int64_t rows, int64_t inputs, int64_t outputs, bool bias) {
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)(rows * inputs)));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)(rows * outputs)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, (uint64_t)(outputs * inputs)));
    TIDE_TRY(tide__gpu_gemm(k, &(tide__gemm){.m = outputs,
                                             .n = inputs,
                                             .depth = rows,
                                             .a = {.operand = 1, .row = 1, .column = outputs},
                                             .b = {.operand = 0, .row = inputs, .column = 1},
                                             .c = {.operand = 2, .row = inputs},
                                             .alpha = 1}));
    if (!bias) return TIDE_OK;
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, (uint64_t)outputs));
    return tide__gpu_sum_rows(k, 1, 3, rows, outputs);
}

tide_status tide__gpu_build_fc(tide__gpu_kernel *k, const tide_op_desc *d) {
    const int64_t rows = d->x.n, inputs = d->x.c * d->x.h * d->x.w, outputs = d->y.c;
    if (inputs > INT32_MAX) return tide__fail(TIDE_E_UNSUPPORTED, "rows of more than %d floats", INT32_MAX);
    switch (d->kind) {
    case TIDE_OP_FC_FWD: return build_forward(k, rows, inputs, outputs, d->bias);
    case TIDE_OP_FC_BWD_DATA: return build_data(k, rows, inputs, outputs);
    default: return build_weights(k, rows, inputs, outputs, d->bias);
    }
}
