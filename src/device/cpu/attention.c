/* Attention: the products with queries, keys and values, and the softmax between them. Each head of each sample is a
 * matter of its own, for one thread; so bits do not depend on threads.
 *
 *     scores S = Q K' / root(d)   (lower triangle)      P = softmax(S)      y = P V
 *     dP = dy V'   dV = P' dy     dS = P (dP - sum of P dP per row)         dQ = dS K / root(d)   dK = dS' Q / root(d)
 *
 * A token sees only itself and those before, so what lies above the diagonal is zero and products go in blocks of
 * rows, each as far as the diagonal: half the work. Scores and what has their shape are plain row-major. */
#include <math.h>

#include "device/cpu/gemm.h"
#include "device/cpu/rows.h"
#include "device/cpu/view.h"
#include "device/cpu/wide.h"

#define BLOCK 64 /* rows of a product */

typedef struct heads {
    int64_t samples, heads, context, width, head; /* head: width of one */
    float scale;
} heads;

/* One head of one sample: rows of q, k, v and of what is shaped like y. */
typedef struct spot {
    int64_t qkv, y, square; /* first float in (., 3 C), (., C) and (N, heads, T, T) */
} spot;

static heads heads_of(const tide_op_desc *d) {
    bool values = d->kind == TIDE_OP_VALUES_FWD || d->kind == TIDE_OP_VALUES_BWD;
    const tide_shape *square = values ? &d->x : &d->y;
    heads h = {square->n, square->c, square->h, values ? d->y.c : d->x.c / 3, 0, 0};
    h.head = h.width / h.heads;
    h.scale = 1 / sqrtf((float)h.head);
    return h;
}

static spot spot_of(const heads *h, int64_t i) {
    int64_t row = i / h->heads * h->context, column = i % h->heads * h->head;
    return (spot){row * 3 * h->width + column, row * h->width + column, i * h->context * h->context};
}

static int64_t block_rows(const heads *h, int64_t row) { return h->context - row < BLOCK ? h->context - row : BLOCK; }

static tide__matrix rows_of(const float *data, int64_t stride) { return (tide__matrix){data, stride, false}; }
static tide__matrix transposed(const float *data, int64_t stride) { return (tide__matrix){data, stride, true}; }

/* ---- products ---- */

/* out (T x T) = factor * a b', zero above the diagonal; rows of a and b are `stride_a`, `stride_b` apart. */
static tide_status lower_product(const heads *h, float factor, const float *a, int64_t stride_a, const float *b,
                                 int64_t stride_b, float *out) {
    const int64_t t = h->context;
    for (int64_t row = 0; row < t; row += BLOCK) {
        int64_t n = block_rows(h, row);
        TIDE_TRY(tide__gemm(n, row + n, h->head, factor, rows_of(a + row * stride_a, stride_a), transposed(b, stride_b),
                            0, out + row * t, t));
        for (int64_t i = row; i < row + n; i++) memset(out + i * t + i + 1, 0, (size_t)(t - i - 1) * sizeof *out);
    }
    return TIDE_OK;
}

/* out (T x head) = factor * a b, a (T x T) zero above the diagonal. */
static tide_status apply_lower(const heads *h, float factor, const float *a, const float *b, int64_t stride_b,
                               float *out, int64_t stride_out) {
    const int64_t t = h->context;
    for (int64_t row = 0; row < t; row += BLOCK) {
        int64_t n = block_rows(h, row);
        TIDE_TRY(tide__gemm(n, h->head, row + n, factor, rows_of(a + row * t, t), rows_of(b, stride_b), 0,
                            out + row * stride_out, stride_out));
    }
    return TIDE_OK;
}

/* The same with a' for a: column `row` of a begins at the diagonal. */
static tide_status apply_upper(const heads *h, float factor, const float *a, const float *b, int64_t stride_b,
                               float *out, int64_t stride_out) {
    const int64_t t = h->context;
    for (int64_t row = 0; row < t; row += BLOCK)
        TIDE_TRY(tide__gemm(block_rows(h, row), h->head, t - row, factor, transposed(a + row * t + row, t),
                            rows_of(b + row * stride_b, stride_b), 0, out + row * stride_out, stride_out));
    return TIDE_OK;
}

static tide_status scores_head(const heads *h, spot s, const tide__call *call) {
    const float *q = tide__floats(call, 0) + s.qkv;
    return lower_product(h, h->scale, q, 3 * h->width, q + h->width, 3 * h->width, tide__floats(call, 1) + s.square);
}

static tide_status scores_backward_head(const heads *h, spot s, const tide__call *call) {
    const int64_t wide = 3 * h->width;
    const float *q = tide__floats(call, 0) + s.qkv, *dv = tide__floats(call, 1) + s.y,
                *dscores = tide__floats(call, 2) + s.square;
    float *dq = tide__floats(call, 3) + s.qkv, *dk = dq + h->width, *dv_out = dk + h->width;
    TIDE_TRY(apply_lower(h, h->scale, dscores, q + h->width, wide, dq, wide));
    TIDE_TRY(apply_upper(h, h->scale, dscores, q, wide, dk, wide));
    for (int64_t i = 0; i < h->context; i++) memcpy(dv_out + i * wide, dv + i * h->width, (size_t)h->head * sizeof *dv);
    return TIDE_OK;
}

static tide_status values_head(const heads *h, spot s, const tide__call *call) {
    const float *prob = tide__floats(call, 0) + s.square, *v = tide__floats(call, 1) + s.qkv + 2 * h->width;
    return apply_lower(h, 1, prob, v, 3 * h->width, tide__floats(call, 2) + s.y, h->width);
}

static tide_status values_backward_head(const heads *h, spot s, const tide__call *call) {
    const float *prob = tide__floats(call, 0) + s.square, *v = tide__floats(call, 1) + s.qkv + 2 * h->width,
                *dy = tide__floats(call, 2) + s.y;
    TIDE_TRY(lower_product(h, 1, dy, h->width, v, 3 * h->width, tide__floats(call, 3) + s.square));
    return apply_upper(h, 1, prob, dy, h->width, tide__floats(call, 4) + s.y, h->width);
}

static tide_status run_products(const tide__cpu_kernel *k, const tide__call *call) {
    const heads h = heads_of(&k->desc);
    const tide_op_kind kind = k->desc.kind;
    tide_status (*const one)(const heads *, spot, const tide__call *) =
        kind == TIDE_OP_SCORES_FWD   ? scores_head
        : kind == TIDE_OP_SCORES_BWD ? scores_backward_head
        : kind == TIDE_OP_VALUES_FWD ? values_head
                                     : values_backward_head;
    int failed = 0;
#pragma omp parallel for schedule(static) reduction(| : failed)
    for (int64_t i = 0; i < h.samples * h.heads; i++) failed |= one(&h, spot_of(&h, i), call) != TIDE_OK;
    return failed ? tide__fail(TIDE_E_MEMORY, "oneDNN cannot multiply the matrices of attention") : TIDE_OK;
}

/* ---- softmax ---- */

/* Row `row` of a square; prob may lie on x. */
static void softmax_row(const float *x, int64_t row, int64_t context, float *prob) {
    const int64_t n = row + 1;
    tide__row_exp(x, n, tide__row_max(x, n), prob);
    tide__row_scale(prob, n, (float)(1 / tide__row_sum(prob, n)), prob);
    memset(prob + n, 0, (size_t)(context - n) * sizeof *prob);
}

TIDE__WIDE static void backward_row(const float *prob, const float *dprob, int64_t n, float sum, float *dx) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dx[i] = prob[i] * (dprob[i] - sum);
}

static tide_status run_softmax(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_shape *s = &k->desc.x;
    const int64_t rows = s->n * s->c * s->h, t = s->w;
    const float *x = tide__floats(call, 0);
    float *prob = tide__floats(call, 1);
#pragma omp parallel for schedule(static) if (rows * t > TIDE__PARALLEL_FLOATS)
    for (int64_t r = 0; r < rows; r++) softmax_row(x + r * t, r % t, t, prob + r * t);
    return TIDE_OK;
}

/* dx may lie on dprob. */
static tide_status run_softmax_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_shape *s = &k->desc.x;
    const int64_t rows = s->n * s->c * s->h, t = s->w;
    const float *prob = tide__floats(call, 0), *dprob = tide__floats(call, 1);
    float *dx = tide__floats(call, 2);
#pragma omp parallel for schedule(static) if (rows * t > TIDE__PARALLEL_FLOATS)
    for (int64_t r = 0; r < rows; r++) {
        const int64_t n = r % t + 1, at = r * t;
        backward_row(prob + at, dprob + at, n, (float)tide__row_dot(prob + at, dprob + at, n), dx + at);
        memset(dx + at + n, 0, (size_t)(t - n) * sizeof *dx);
    }
    return TIDE_OK;
}

/* ---- building ---- */

static tide_status add_square(tide__cpu_kernel *k, tide__access access, const tide_shape *s) {
    return tide__add_vector(k, access, s->n * s->c * s->h * s->w, dnnl_f32);
}

tide_status tide__build_scores(tide__cpu_kernel *k, const tide_op_desc *source) {
    const tide_shape *qkv = &source->x, *scores = &source->y;
    k->run = run_products;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *qkv));
    if (source->kind == TIDE_OP_SCORES_FWD) return add_square(k, TIDE__WRITE, scores);
    TIDE_TRY(tide__add_activation(k, TIDE__READ, (tide_shape){qkv->n, qkv->c / 3, 1, 1}));
    TIDE_TRY(add_square(k, TIDE__READ, scores));
    return tide__add_activation(k, TIDE__WRITE, *qkv);
}

tide_status tide__build_values(tide__cpu_kernel *k, const tide_op_desc *source) {
    const tide_shape *prob = &source->x, *y = &source->y;
    k->run = run_products;
    TIDE_TRY(add_square(k, TIDE__READ, prob));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, (tide_shape){y->n, 3 * y->c, 1, 1}));
    if (source->kind == TIDE_OP_VALUES_FWD) return tide__add_activation(k, TIDE__WRITE, *y);
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *y));
    TIDE_TRY(add_square(k, TIDE__WRITE, prob));
    return tide__add_activation(k, TIDE__WRITE, *y);
}

tide_status tide__build_causal_softmax(tide__cpu_kernel *k, const tide_op_desc *source) {
    bool forward = source->kind == TIDE_OP_CAUSAL_SOFTMAX_FWD;
    k->run = forward ? run_softmax : run_softmax_backward;
    TIDE_TRY(add_square(k, TIDE__READ, &source->x));
    if (!forward) TIDE_TRY(add_square(k, TIDE__READ, &source->x));
    return add_square(k, TIDE__WRITE, &source->x);
}
