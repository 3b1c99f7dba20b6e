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

bool tide__shrink_blocks(const tide__gpu *gpu, int64_t m, int64_t n, tide__gemm_blocks *b) {
    const int64_t panel = limits_of(gpu)->rows;
    if (b->mc <= panel) return false;
    b->mc -= panel;
    measure(b, m, n);
    return true;
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
    while (local_bytes(&b) > gpu->local_bytes && tide__shrink_blocks(gpu, m, n, &b)) continue;
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

/* ---- for libraries ---- */

static bool view(const tide__gemm_matrix *m, int64_t rows, int64_t columns, tide__product_matrix *out) {
    const bool plain = m->column == 1 && m->row >= columns;
    if (!plain && !(m->row == 1 && m->column >= rows)) return false;
    *out = (tide__product_matrix){!plain, (size_t)m->first, (size_t)(plain ? m->row : m->column)};
    return true;
}

bool tide__gemm_is_whole(const tide__gemm *g, tide__product_shape *out) {
    const int whole = TIDE__GEMM_BIAS | TIDE__GEMM_ROW_BIAS | TIDE__GEMM_ADD_TO;
    if ((g->flags & ~whole) || g->samples > 1 || g->heads > 1 || g->depth == 0) return false;
    *out = (tide__product_shape){.m = (size_t)g->m, .n = (size_t)g->n, .depth = (size_t)g->depth, .alpha = g->alpha};
    out->beta = g->flags ? 1 : 0;
    out->c = (tide__product_matrix){false, (size_t)g->c.first, (size_t)g->c.row};
    return view(&g->a, g->m, g->depth, &out->a) && view(&g->b, g->depth, g->n, &out->b) && g->c.row >= g->n &&
           !(out->a.transposed && out->b.transposed);
}

tide_status tide__gpu_spread_bias(tide__gpu_kernel *k, const tide__gemm *g) {
    if (!(g->flags & (TIDE__GEMM_BIAS | TIDE__GEMM_ROW_BIAS))) return TIDE_OK;
    return TIDE__LAUNCH(k, "gemm", "spread_bias", tide__runs((uint64_t)g->n), g->m, 1, tide__place(g->bias),
                        tide__place_at(g->c.operand, g->c.first * 4), tide__long((uint64_t)g->n),
                        tide__long((uint64_t)g->c.row), tide__int(g->flags & TIDE__GEMM_ROW_BIAS ? 1 : 0));
}

/* ---- fully connected: w is (outputs, inputs) ---- */

tide__gemm tide__fc_product(const tide_op_desc *d) {
    const int64_t rows = d->x.n, inputs = d->x.c * d->x.h * d->x.w, outputs = d->y.c;
    switch (d->kind) {
    case TIDE_OP_FC_FWD: /* y = x w' + bias */
        return (tide__gemm){.m = rows,
                            .n = outputs,
                            .depth = inputs,
                            .a = {.operand = 0, .row = inputs, .column = 1},
                            .b = {.operand = 1, .row = 1, .column = inputs},
                            .c = {.operand = d->bias ? 3 : 2, .row = outputs},
                            .alpha = 1,
                            .flags = d->bias ? TIDE__GEMM_BIAS : 0,
                            .bias = 2};
    case TIDE_OP_FC_BWD_DATA: /* dx = dy w */
        return (tide__gemm){.m = rows,
                            .n = inputs,
                            .depth = outputs,
                            .a = {.operand = 1, .row = outputs, .column = 1},
                            .b = {.operand = 0, .row = inputs, .column = 1},
                            .c = {.operand = 2, .row = inputs},
                            .alpha = 1};
    default: /* dw = dy' x */
        return (tide__gemm){.m = outputs,
                            .n = inputs,
                            .depth = rows,
                            .a = {.operand = 1, .row = 1, .column = outputs},
                            .b = {.operand = 0, .row = inputs, .column = 1},
                            .c = {.operand = 2, .row = inputs},
                            .alpha = 1};
    }
}

tide_status tide__fc_bias_gradient(tide__gpu_kernel *k, const tide_op_desc *d) {
    if (d->kind != TIDE_OP_FC_BWD_WEIGHTS || !d->bias) return TIDE_OK;
    return tide__gpu_sum_rows(k, 1, 3, d->x.n, d->y.c);
}

static tide_status declare(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint64_t inputs = (uint64_t)(d->x.c * d->x.h * d->x.w), outputs = (uint64_t)d->y.c;
    const uint64_t x = (uint64_t)d->x.n * inputs, y = (uint64_t)d->x.n * outputs, w = inputs * outputs;
    const bool forward = d->kind == TIDE_OP_FC_FWD, data = d->kind == TIDE_OP_FC_BWD_DATA;
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, data ? w : x));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, forward ? w : y));
    if (forward && d->bias) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, outputs));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, forward ? y : data ? x : w));
    return !forward && !data && d->bias ? tide__gpu_writes(k, TIDE__F32, outputs) : TIDE_OK;
}

tide_status tide__gpu_build_fc(tide__gpu_kernel *k, const tide_op_desc *d) {
    const tide__gemm product = tide__fc_product(d);
    if (d->x.c * d->x.h * d->x.w > INT32_MAX)
        return tide__fail(TIDE_E_UNSUPPORTED, "rows of more than %d floats", INT32_MAX);
    TIDE_TRY(declare(k, d));
    TIDE_TRY(tide__gpu_gemm(k, &product));
    return tide__fc_bias_gradient(k, d);
}
