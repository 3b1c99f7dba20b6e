/* Attention, tiled over queries and keys (Dao et al. 2022, "FlashAttention"; Milakov and Gimelshein 2018 for the softmax):
 * no matrix of all pairs of tokens exists, neither forward nor backward. Memory is linear in the length.
 *
 *     forward    S = Q K' / root(d)    P = e^(S - m)    y = P V / l             m, l: largest score and sum of a row so far
 *     backward   P = e^(S - lse)       dP = dy V'       dS = P (dP - dy . y)    lse = m + log l
 *                dV = P' dy            dQ = dS K / root(d)                      dK = dS' Q / root(d)
 *
 * A tile is QUERIES x KEYS scores. Where a later tile of a row has a larger score, what the row has so far is scaled down.
 * A token sees only itself and those before: tiles end at the diagonal, and in those on the diagonal scores above it
 * count as P = 0.
 *
 * Forward, every tile of queries of every head of every sample is a matter of its own, for one thread; backward, every
 * head, because all its queries add to the same dK and dV. So bits do not depend on threads. */
#include <math.h>
#include <omp.h>

#include "device/cpu/gemm.h"
#include "device/cpu/rows.h"
#include "device/cpu/view.h"
#include "device/cpu/wide.h"

#define QUERIES 64
#define KEYS 512 /* a multiple of QUERIES: the first key of a tile is seen by all its queries */

typedef struct heads {
    int64_t samples, heads, context, width, head; /* head: width of one */
    int64_t queries, keys;                        /* of a whole tile */
    float scale;
} heads;

/* One head of one sample: its first float in (., 3 C), (., C) and (N, heads, T). */
typedef struct spot {
    int64_t qkv, y, row;
} spot;

/* Rows [query, query + rows) of a head against the keys [key, key + keys). */
typedef struct tile {
    int64_t query, rows, key, keys;
} tile;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static heads heads_of(const tide_op_desc *d) {
    heads h = {d->x.n / d->context, d->heads, d->context, d->y.c, d->y.c / d->heads, 0, 0, 0};
    h.queries = smaller(QUERIES, h.context);
    h.keys = smaller(KEYS, h.context);
    h.scale = 1 / sqrtf((float)h.head);
    return h;
}

static spot spot_of(const heads *h, int64_t i) {
    int64_t row = i / h->heads * h->context, column = i % h->heads * h->head;
    return (spot){row * 3 * h->width + column, row * h->width + column, i * h->context};
}

static tile first_tile(const heads *h, int64_t query) {
    return (tile){.query = query, .rows = smaller(QUERIES, h->context - query)};
}

/* The next keys of these queries; false after the diagonal. */
static bool next_keys(tile *t) {
    t->key += t->keys;
    t->keys = smaller(KEYS, t->query + t->rows - t->key);
    return t->keys > 0;
}

/* Keys of the tile that its row `row` sees. */
static int64_t seen(const tile *t, int64_t row) { return smaller(t->keys, t->query + row + 1 - t->key); }

static tide__matrix rows_of(const float *data, int64_t stride) { return (tide__matrix){data, stride, false}; }
static tide__matrix transposed(const float *data, int64_t stride) { return (tide__matrix){data, stride, true}; }

/* out (rows x keys) = factor * a b'; a has a row per query, b one per key of the head. */
static tide_status pair_product(const heads *h, const tile *t, float factor, const float *a, int64_t stride_a,
                                const float *b, int64_t stride_b, float *out) {
    return tide__gemm(t->rows, t->keys, h->head, factor, rows_of(a + t->query * stride_a, stride_a),
                      transposed(b + t->key * stride_b, stride_b), 0, out, h->keys);
}

/* ---- forward ---- */

/* What rows have so far. */
typedef struct running {
    float largest[QUERIES];
    double sum[QUERIES];
} running;

/* Scores of a row become e^(score - largest); the row of y so far is scaled to the new largest score. */
static void softmax_row(const heads *h, const tile *t, int64_t row, running *so_far, float *score, float *y) {
    const int64_t n = seen(t, row);
    float largest = tide__row_max(score, n);
    if (t->key > 0) {
        const float before = so_far->largest[row];
        largest = before > largest ? before : largest;
        const float share = tide__exp(before - largest);
        if (share != 1) tide__row_scale(y, h->head, share, y);
        so_far->sum[row] *= (double)share;
    }
    tide__row_exp(score, n, largest, score);
    so_far->sum[row] += tide__row_sum(score, n);
    so_far->largest[row] = largest;
    memset(score + n, 0, (size_t)(t->keys - n) * sizeof *score);
}

static tide_status forward_queries(const heads *h, spot s, int64_t query, const tide__call *call, float *scores) {
    const int64_t wide = 3 * h->width;
    const float *q = tide__floats(call, 0) + s.qkv, *k = q + h->width, *v = k + h->width;
    float *y = tide__floats(call, 1) + s.y + query * h->width, *lse = tide__floats(call, 2) + s.row + query;
    running so_far = {.sum = {0}};
    tile t = first_tile(h, query);
    while (next_keys(&t)) {
        TIDE_TRY(pair_product(h, &t, h->scale, q, wide, k, wide, scores));
        for (int64_t r = 0; r < t.rows; r++) softmax_row(h, &t, r, &so_far, scores + r * h->keys, y + r * h->width);
        TIDE_TRY(tide__gemm(t.rows, h->head, t.keys, 1, rows_of(scores, h->keys), rows_of(v + t.key * wide, wide),
                            t.key > 0, y, h->width));
    }
    for (int64_t r = 0; r < t.rows; r++) {
        tide__row_scale(y + r * h->width, h->head, (float)(1 / so_far.sum[r]), y + r * h->width);
        lse[r] = (float)((double)so_far.largest[r] + log(so_far.sum[r]));
    }
    return TIDE_OK;
}

/* The workspace of a thread: `squares` tiles of scores. */
static float *own_scores(const heads *h, const tide__call *call, uint32_t workspace, int64_t squares) {
    return tide__floats(call, workspace) + omp_get_thread_num() * squares * h->queries * h->keys;
}

static tide_status settle(int failed) {
    return failed ? tide__fail(TIDE_E_MEMORY, "oneDNN cannot multiply the matrices of attention") : TIDE_OK;
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const heads h = heads_of(&k->desc);
    const int64_t tiles = (h.context + h.queries - 1) / h.queries;
    int failed = 0;
#pragma omp parallel for schedule(static, 1) reduction(| : failed)
    for (int64_t i = 0; i < h.samples * h.heads * tiles; i++)
        failed |= forward_queries(&h, spot_of(&h, i / tiles), i % tiles * h.queries, call,
                                  own_scores(&h, call, 3, 1)) != TIDE_OK;
    return settle(failed);
}

/* ---- backward ---- */

/* prob: scores of a row, which become probabilities; dscore: dP, which becomes dS. */
TIDE__WIDE static void backward_row(int64_t n, float lse, float sum, float *prob, float *dscore) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const float p = tide__exp(prob[i] - lse);
        prob[i] = p;
        dscore[i] = p * (dscore[i] - sum);
    }
}

typedef struct gradients {
    const float *q, *y, *lse, *dy;
    float *dq;
} gradients;

static tide_status backward_tile(const heads *h, const gradients *g, const tile *t, const float *sum, float *prob,
                                 float *dscore) {
    const int64_t wide = 3 * h->width, w = h->width;
    const float *k = g->q + w, *v = k + w, *dy = g->dy + t->query * w;
    float *dk = g->dq + w + t->key * wide, *dv = dk + w;
    TIDE_TRY(pair_product(h, t, h->scale, g->q, wide, k, wide, prob));
    TIDE_TRY(pair_product(h, t, 1, g->dy, w, v, wide, dscore));
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t n = seen(t, r), at = r * h->keys;
        backward_row(n, g->lse[t->query + r], sum[r], prob + at, dscore + at);
        memset(prob + at + n, 0, (size_t)(t->keys - n) * sizeof *prob);
        memset(dscore + at + n, 0, (size_t)(t->keys - n) * sizeof *dscore);
    }
    TIDE_TRY(tide__gemm(t->keys, h->head, t->rows, 1, transposed(prob, h->keys), rows_of(dy, w), 1, dv, wide));
    TIDE_TRY(tide__gemm(t->keys, h->head, t->rows, h->scale, transposed(dscore, h->keys),
                        rows_of(g->q + t->query * wide, wide), 1, dk, wide));
    return tide__gemm(t->rows, h->head, t->keys, h->scale, rows_of(dscore, h->keys), rows_of(k + t->key * wide, wide),
                      t->key > 0, g->dq + t->query * wide, wide);
}

static tide_status backward_head(const heads *h, spot s, const tide__call *call, float *scores) {
    const int64_t wide = 3 * h->width, w = h->width;
    const gradients g = {tide__floats(call, 0) + s.qkv, tide__floats(call, 1) + s.y, tide__floats(call, 2) + s.row,
                         tide__floats(call, 3) + s.y, tide__floats(call, 4) + s.qkv};
    for (int64_t i = 0; i < h->context; i++)
        for (int64_t part = 1; part < 3; part++) memset(g.dq + i * wide + part * w, 0, (size_t)h->head * sizeof *g.dq);
    for (int64_t query = 0; query < h->context; query += h->queries) {
        float sum[QUERIES];
        tile t = first_tile(h, query);
        for (int64_t r = 0; r < t.rows; r++)
            sum[r] = (float)tide__row_dot(g.dy + (query + r) * w, g.y + (query + r) * w, h->head);
        while (next_keys(&t)) TIDE_TRY(backward_tile(h, &g, &t, sum, scores, scores + h->queries * h->keys));
    }
    return TIDE_OK;
}

static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const heads h = heads_of(&k->desc);
    int failed = 0;
#pragma omp parallel for schedule(static) reduction(| : failed)
    for (int64_t i = 0; i < h.samples * h.heads; i++)
        failed |= backward_head(&h, spot_of(&h, i), call, own_scores(&h, call, 5, 2)) != TIDE_OK;
    return settle(failed);
}

/* ---- building ---- */

static void set_workspace(tide__cpu_kernel *k, uint64_t squares) {
    const heads h = heads_of(&k->desc);
    const uint64_t threads = ((tide__cpu *)k->base.device)->threads;
    k->workspace_bytes = threads * squares * (uint64_t)(h.queries * h.keys) * sizeof(float);
}

tide_status tide__build_attention(tide__cpu_kernel *k, const tide_op_desc *source) {
    const tide_shape *qkv = &source->x, *y = &source->y;
    const int64_t rows = y->n * source->heads;
    const bool forward = source->kind == TIDE_OP_ATTENTION_FWD;
    k->run = forward ? run_forward : run_backward;
    set_workspace(k, forward ? 1 : 2);
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *qkv));
    TIDE_TRY(tide__add_activation(k, forward ? TIDE__WRITE : TIDE__READ, *y));
    TIDE_TRY(tide__add_vector(k, forward ? TIDE__WRITE : TIDE__READ, rows, dnnl_f32));
    if (forward) return TIDE_OK;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *y));
    return tide__add_activation(k, TIDE__WRITE, *qkv);
}
