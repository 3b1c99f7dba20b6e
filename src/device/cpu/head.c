/* The head of a language model with its loss, some rows at a time: scores of a chunk of rows, their softmax and its gradient
 * on the same bytes, then what they give to both gradients. The scores of all rows never exist at once, and none is computed
 * twice.
 *
 *     S = x W'      P = softmax(S)      G = (P - [class is label]) / rows      dx = G W      dW += G' x
 *
 * In the workspace: the loss of every row, which are added in order, and the chunk; where x is bf16 also its rows in float32,
 * and those of dx. */
#include <math.h>

#include "device/cpu/bf16.h"
#include "device/cpu/gemm.h"
#include "device/cpu/softmax.h"
#include "device/cpu/view.h"
#include "device/op_check.h"

typedef struct head {
    int64_t rows, width, classes, chunk;
    tide__values x;
    const float *w;
    const int32_t *label;
    double *loss;            /* of rows */
    float *scores;           /* of a chunk */
    float *rows_x, *rows_dx; /* of a chunk, where they are bf16 */
} head;

static uint64_t losses_bytes(const tide_op_desc *d) {
    return ((uint64_t)d->x.n * sizeof(double) + TIDE__CPU_ALIGN - 1) / TIDE__CPU_ALIGN * TIDE__CPU_ALIGN;
}

static tide_status open_head(const tide__cpu_kernel *k, const tide__call *call, head *out) {
    const tide_op_desc *d = &k->desc;
    char *workspace = tide__at(call, (uint32_t)k->operands.count);
    *out = (head){d->x.n,
                  d->x.c,
                  d->y.c,
                  tide__head_rows(d),
                  tide__values_of(k, call, 0),
                  tide__floats(call, 1),
                  tide__at(call, 2),
                  (double *)(void *)workspace,
                  (float *)(void *)(workspace + losses_bytes(d)),
                  NULL,
                  NULL};
    out->rows_x = out->scores + out->chunk * out->classes;
    out->rows_dx = out->rows_x + out->chunk * out->width;
    return tide__check_labels(out->label, out->rows, 1, out->classes);
}

static tide__matrix matrix(const float *data, int64_t stride) { return (tide__matrix){data, stride, false}; }
static tide__matrix transposed(const float *data, int64_t stride) { return (tide__matrix){data, stride, true}; }

/* Rows [first, first + n). */
static const float *read_rows(const head *h, int64_t first, int64_t n) {
    const tide__values x = tide__values_from(h->x, first * h->width);
    if (!x.is_bf16) return (const float *)(const void *)x.data;
    tide__bf16_widen_all((const uint16_t *)(const void *)x.data, n * h->width, h->rows_x);
    return h->rows_x;
}

/* Of n rows. */
static tide_status make_scores(const head *h, const float *x, int64_t n) {
    return tide__gemm(n, h->classes, h->width, 1, matrix(x, h->width), transposed(h->w, h->width), 0, h->scores,
                      h->classes);
}

static float mean_loss(const head *h) {
    double sum = 0;
    for (int64_t i = 0; i < h->rows; i++) sum += h->loss[i];
    return (float)(sum / (double)h->rows);
}

static int64_t chunk_rows(const head *h, int64_t first) {
    return h->rows - first < h->chunk ? h->rows - first : h->chunk;
}

/* ---- loss and gradients ---- */

/* Scores become their gradients. */
static void make_gradients(const head *h, int64_t first, int64_t n, float share) {
#pragma omp parallel for schedule(static) if (n * h->classes > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < n; i++) {
        float *row = h->scores + i * h->classes;
        const int32_t label = h->label[first + i];
        h->loss[first + i] = tide__softmax_row(row, h->classes, label, row);
        tide__row_scale(row, h->classes, share, row);
        row[label] -= share;
    }
}

static tide_status run_loss(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__values dx = tide__values_of(k, call, 3);
    float *dw = tide__floats(call, 4);
    const float scale = k->desc.loss_scale != 0 ? k->desc.loss_scale : 1.0f;
    head h;
    TIDE_TRY(open_head(k, call, &h));
    for (int64_t first = 0; first < h.rows; first += h.chunk) {
        const int64_t n = chunk_rows(&h, first);
        const tide__values out = tide__values_from(dx, first * h.width);
        const float *x = read_rows(&h, first, n);
        float *rows_dx = tide__values_write(out, h.rows_dx);
        TIDE_TRY(make_scores(&h, x, n));
        make_gradients(&h, first, n, scale / (float)h.rows);
        TIDE_TRY(tide__gemm(n, h.width, h.classes, 1, matrix(h.scores, h.classes), matrix(h.w, h.width), 0, rows_dx,
                            h.width));
        TIDE_TRY(tide__gemm(h.classes, h.width, n, 1, transposed(h.scores, h.classes), matrix(x, h.width), first > 0,
                            dw, h.width));
        if (out.is_bf16) tide__bf16_round_all(rows_dx, n * h.width, (uint16_t *)(void *)out.data);
    }
    tide__floats(call, 5)[0] = mean_loss(&h);
    return TIDE_OK;
}

/* ---- scores of labels ---- */

static int64_t likeliest(const float *x, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static tide_status run_score(const tide__cpu_kernel *k, const tide__call *call) {
    float *score = tide__floats(call, 3);
    head h;
    TIDE_TRY(open_head(k, call, &h));
    for (int64_t first = 0; first < h.rows; first += h.chunk) {
        const int64_t n = chunk_rows(&h, first);
        TIDE_TRY(make_scores(&h, read_rows(&h, first, n), n));
#pragma omp parallel for schedule(static) if (n * h.classes > TIDE__PARALLEL_FLOATS)
        for (int64_t i = first; i < first + n; i++) {
            float *row = h.scores + (i - first) * h.classes;
            score[2 * i + 1] = (float)likeliest(row, h.classes);
            h.loss[i] = tide__softmax_row(row, h.classes, h.label[i], row);
            score[2 * i] = (float)-h.loss[i];
        }
    }
    tide__floats(call, 4)[0] = mean_loss(&h);
    return TIDE_OK;
}

tide_status tide__build_head(tide__cpu_kernel *k, const tide_op_desc *d) {
    const bool loss = d->kind == TIDE_OP_HEAD_LOSS;
    k->run = loss ? run_loss : run_score;
    const int64_t widened = !d->bf16 ? 0 : loss ? 2 * d->x.c : d->x.c; /* floats of a row */
    k->workspace_bytes = losses_bytes(d) + (uint64_t)(tide__head_rows(d) * (d->y.c + widened)) * sizeof(float);
    TIDE_TRY(tide__add_activation(k, TIDE__READ, d->x));
    TIDE_TRY(tide__add_matrix(k, TIDE__READ, d->y.c, d->x.c));
    TIDE_TRY(tide__add_vector(k, TIDE__READ, d->x.n, dnnl_s32));
    if (loss) {
        TIDE_TRY(tide__add_activation(k, TIDE__WRITE, d->x));
        TIDE_TRY(tide__add_matrix(k, TIDE__WRITE, d->y.c, d->x.c));
    } else {
        TIDE_TRY(tide__add_vector(k, TIDE__WRITE, 2 * d->x.n, dnnl_f32));
    }
    return tide__add_vector(k, TIDE__WRITE, 1, dnnl_f32);
}
