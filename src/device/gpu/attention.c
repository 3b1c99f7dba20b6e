/* Attention's products: batches over samples and heads (kernels/gemm.gpu).
 *
 *     scores S = Q K' / root(d)   (lower triangle)     y = P V
 *     dP = dy V'   dV = P' dy                          dQ = dS K / root(d)   dK = dS' Q / root(d) */
#include <math.h>

#include "device/op_check.h"
#include "device/gpu/copy.h"
#include "device/gpu/gemm.h"

typedef struct heads {
    int64_t samples, heads, context, width, head; /* head: width of one */
    float scale;
} heads;

static heads heads_of(const tide_op_desc *d) {
    const tide_shape *s = tide__attention_square(d);
    heads h = {s->n, s->c, s->h, s == &d->x ? d->y.c : d->x.c / 3, 0, 0};
    h.head = h.width / h.heads;
    h.scale = 1 / sqrtf((float)h.head);
    return h;
}

/* Rows of tokens, `wide` floats each, from column `first` on; (T, head) per head. */
static tide__gemm_matrix tokens(const heads *h, uint32_t operand, int64_t wide, int64_t first) {
    return (tide__gemm_matrix){operand, wide, 1, first, h->context * wide, h->head};
}

static tide__gemm_matrix square(const heads *h, uint32_t operand) {
    const int64_t one = h->context * h->context;
    return (tide__gemm_matrix){operand, h->context, 1, 0, h->heads * one, one};
}

static tide__gemm_matrix transposed(tide__gemm_matrix m) {
    const int64_t row = m.row;
    m.row = m.column;
    m.column = row;
    return m;
}

/* (T, T), zero above the diagonal = factor * a b', both (T, head). */
static tide_status add_lower(tide__gpu_kernel *k, const heads *h, float factor, tide__gemm_matrix a,
                             tide__gemm_matrix b, uint32_t out) {
    return tide__gpu_gemm(k, &(tide__gemm){.m = h->context,
                                           .n = h->context,
                                           .depth = h->head,
                                           .a = a,
                                           .b = transposed(b),
                                           .c = square(h, out),
                                           .alpha = factor,
                                           .flags = TIDE__GEMM_LOWER_C,
                                           .samples = h->samples,
                                           .heads = h->heads});
}

/* (T, head) = factor * a b or a' b, a (T, T) zero above the diagonal. */
static tide_status add_apply(tide__gpu_kernel *k, const heads *h, float factor, uint32_t a, bool transpose,
                             tide__gemm_matrix b, tide__gemm_matrix out) {
    const tide__gemm_matrix lower = square(h, a);
    return tide__gpu_gemm(k, &(tide__gemm){.m = h->context,
                                           .n = h->head,
                                           .depth = h->context,
                                           .a = transpose ? transposed(lower) : lower,
                                           .b = b,
                                           .c = out,
                                           .alpha = factor,
                                           .flags = transpose ? TIDE__GEMM_UPPER_A : TIDE__GEMM_LOWER_A,
                                           .samples = h->samples,
                                           .heads = h->heads});
}

tide_status tide__gpu_build_scores(tide__gpu_kernel *k, const tide_op_desc *d) {
    const heads h = heads_of(d);
    const int64_t w = h.width;
    const uint64_t qkv = tide__shape_elements(&d->x), scores = tide__shape_elements(&d->y);
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, qkv));
    if (d->kind == TIDE_OP_SCORES_FWD) {
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, scores));
        return add_lower(k, &h, h.scale, tokens(&h, 0, 3 * w, 0), tokens(&h, 0, 3 * w, w), 1);
    }
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, qkv / 3));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, scores));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, qkv));
    TIDE_TRY(add_apply(k, &h, h.scale, 2, false, tokens(&h, 0, 3 * w, w), tokens(&h, 3, 3 * w, 0)));
    TIDE_TRY(add_apply(k, &h, h.scale, 2, true, tokens(&h, 0, 3 * w, 0), tokens(&h, 3, 3 * w, w)));
    return tide__gpu_copy(k, (tide__blocks_of){1, 0, w}, (tide__blocks_of){3, 2 * w, 3 * w}, w, d->x.n);
}

tide_status tide__gpu_build_values(tide__gpu_kernel *k, const tide_op_desc *d) {
    const heads h = heads_of(d);
    const int64_t w = h.width;
    const uint64_t prob = tide__shape_elements(&d->x), y = tide__shape_elements(&d->y);
    const tide__gemm_matrix v = tokens(&h, 1, 3 * w, 2 * w);
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, prob));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, 3 * y));
    if (d->kind == TIDE_OP_VALUES_FWD) {
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, y));
        return add_apply(k, &h, 1, 0, false, v, tokens(&h, 2, w, 0));
    }
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, y));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, prob));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, y));
    TIDE_TRY(add_lower(k, &h, 1, tokens(&h, 2, w, 0), v, 3));
    return add_apply(k, &h, 1, 0, true, tokens(&h, 2, w, 0), tokens(&h, 4, w, 0));
}
