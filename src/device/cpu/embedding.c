/* Embeddings: rows of a table by token, plus rows by position. The gradient is dense: a row per token of the
 * vocabulary. Each thread sums a range of columns over all tokens, in their order, so bits do not depend on threads.
 *
 * Tokens are data from outside: one that is not in the vocabulary fails the queue before anything is touched. */
#include <string.h>

#include "device/cpu/bf16.h"
#include "device/cpu/view.h"
#include "device/op_check.h"

#define COLUMNS 64 /* of a range */

static tide_status check_tokens(const int32_t *token, const tide_op_desc *d) {
    for (int64_t i = 0; i < d->y.n; i++)
        if (token[i] < 0 || token[i] >= d->vocabulary)
            return tide__fail(TIDE_E_ARGUMENT, "embedding: token %d at %lld is not in a vocabulary of %lld", token[i],
                              (long long)i, (long long)d->vocabulary);
    return TIDE_OK;
}

static void write_row(const float *table, const float *position, int64_t width, tide__values y) {
    float tile[TIDE__TILE_FLOATS];
    for (int64_t at = 0, n; at < width; at += n) {
        const tide__values part = tide__values_from(y, at);
        n = tide__tile_of(y, width - at);
        float *to = tide__values_write(part, tile);
        memcpy(to, table + at, (size_t)n * sizeof *to);
        if (position) tide__row_add(position + at, n, to);
        tide__values_stored(part, n, to);
    }
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    const int64_t width = d->y.c, context = d->x.c;
    const int32_t *token = tide__at(call, 0);
    const float *table = tide__floats(call, 1), *positions = d->bias ? tide__floats(call, 2) : NULL;
    const tide__values y = tide__values_of(k, call, k->n_reads);
    TIDE_TRY(check_tokens(token, d));
#pragma omp parallel for schedule(static) if (d->y.n * width > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < d->y.n; i++)
        write_row(table + token[i] * width, positions ? positions + i % context * width : NULL, width,
                  tide__values_from(y, i * width));
    return TIDE_OK;
}

/* ---- backward ---- */

static void zero_range(const void *context, int64_t begin, int64_t end) {
    float *to = *(float *const *)context;
    memset(to + begin, 0, (size_t)(end - begin) * sizeof *to);
}

/* One range of columns: every row of dy goes to the row of its token and to that of its position. */
static void add_columns(const tide_op_desc *d, const int32_t *token, tide__values dy, int64_t first, float *table,
                        float *positions) {
    float tile[COLUMNS];
    const int64_t width = d->y.c, n = width - first < COLUMNS ? width - first : COLUMNS;
    for (int64_t i = 0; i < d->y.n; i++) {
        const float *row = tide__values_read(tide__values_from(dy, i * width + first), n, tile);
        tide__row_add(row, n, table + token[i] * width + first);
        if (positions) tide__row_add(row, n, positions + i % d->x.c * width + first);
    }
}

static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    const int64_t width = d->y.c;
    const int32_t *token = tide__at(call, 0);
    const tide__values dy = tide__values_of(k, call, 1);
    float *table = tide__floats(call, 2), *positions = d->bias ? tide__floats(call, 3) : NULL;
    TIDE_TRY(check_tokens(token, d));
    tide__for_ranges(d->vocabulary * width, zero_range, &table);
    if (positions) tide__for_ranges(tide__position_rows(d) * width, zero_range, &positions);
#pragma omp parallel for schedule(static) if (d->y.n * width > TIDE__PARALLEL_FLOATS)
    for (int64_t first = 0; first < width; first += COLUMNS) add_columns(d, token, dy, first, table, positions);
    return TIDE_OK;
}

/* ---- building ---- */

/* Plain rows, as fully connected layers have their weights: the table of a language model may be both. */
static tide_status add_table(tide__cpu_kernel *k, tide__access access, int64_t rows) {
    return tide__add_matrix(k, access, rows, k->desc.y.c);
}

tide_status tide__build_embedding(tide__cpu_kernel *k, const tide_op_desc *source) {
    bool forward = source->kind == TIDE_OP_EMBEDDING_FWD;
    tide__access tables = forward ? TIDE__READ : TIDE__WRITE;
    TIDE_TRY(tide__add_vector(k, TIDE__READ, source->y.n, dnnl_s32));
    if (!forward) TIDE_TRY(tide__add_activation(k, TIDE__READ, source->y));
    TIDE_TRY(add_table(k, tables, source->vocabulary));
    if (source->bias) TIDE_TRY(add_table(k, tables, tide__position_rows(source)));
    k->run = forward ? run_forward : run_backward;
    return forward ? tide__add_activation(k, TIDE__WRITE, source->y) : TIDE_OK;
}
