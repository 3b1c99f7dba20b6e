/* The head of a language model with its loss, in chunks of rows: products (gemm.h) around the functions of the loss
 * (kernels/softmax.gpu), which work in place on the chunk's scores. See cpu/head.c. */
#include "device/gpu/gemm.h"
#include "device/op_check.h"

#define WIDE_BYTES 8

/* The workspace: the loss of every row, then the scores of a chunk, from `scores_at` bytes on. */
typedef struct head {
    int64_t rows, width, classes, chunk, scores_at;
    uint32_t workspace;
} head;

static head head_of(const tide__gpu_kernel *k, const tide_op_desc *d) {
    const int64_t align = (int64_t)k->base.device->align_bytes, losses = d->x.n * WIDE_BYTES;
    return (head){d->x.n, d->x.c, d->y.c, tide__head_rows(d), (losses + align - 1) / align * align, tide__workspace(k)};
}

static tide__gemm_matrix scores_of(const head *h) {
    return (tide__gemm_matrix){
        .operand = h->workspace, .row = h->classes, .column = 1, .first = h->scores_at / (int64_t)sizeof(float)};
}

static tide__gemm_matrix rows_of(const head *h, uint32_t operand, int64_t first) {
    return (tide__gemm_matrix){.operand = operand, .row = h->width, .column = 1, .first = first * h->width};
}

static tide__gemm_matrix transposed(tide__gemm_matrix m) {
    const int64_t row = m.row;
    m.row = m.column;
    m.column = row;
    return m;
}

/* Rows [first, first + n): their scores. */
static tide_status add_scores(tide__gpu_kernel *k, const head *h, int64_t first, int64_t n) {
    return tide__gpu_gemm(k, &(tide__gemm){.m = n,
                                           .n = h->classes,
                                           .depth = h->width,
                                           .a = rows_of(h, 0, first),
                                           .b = transposed(rows_of(h, 1, 0)),
                                           .c = scores_of(h),
                                           .alpha = 1});
}

/* Scores become probabilities; the rows' losses. */
static tide_status add_losses(tide__gpu_kernel *k, const head *h, int64_t first, int64_t n) {
    const tide__gpu_arg scores = tide__place_at(h->workspace, h->scores_at);
    return TIDE__LAUNCH(k, "softmax", "loss_forward", 1, n, 1, scores, tide__place_at(2, first * 4), scores,
                        tide__place_at(h->workspace, first * WIDE_BYTES), tide__int(h->classes), tide__int(1),
                        tide__int(1));
}

static tide_status add_gradients(tide__gpu_kernel *k, const head *h, float share, int64_t first, int64_t n) {
    const tide__gpu_arg scores = tide__place_at(h->workspace, h->scores_at);
    TIDE_TRY(TIDE__LAUNCH(k, "softmax", "loss_backward", n, 1, 1, scores, tide__place_at(2, first * 4), scores,
                          tide__int(h->classes), tide__int(1), tide__float(share)));
    TIDE_TRY(tide__gpu_gemm(k, &(tide__gemm){.m = n,
                                             .n = h->width,
                                             .depth = h->classes,
                                             .a = scores_of(h),
                                             .b = rows_of(h, 1, 0),
                                             .c = rows_of(h, 3, first),
                                             .alpha = 1}));
    return tide__gpu_gemm(k, &(tide__gemm){.m = h->classes,
                                           .n = h->width,
                                           .depth = n,
                                           .a = transposed(scores_of(h)),
                                           .b = rows_of(h, 0, first),
                                           .c = rows_of(h, 4, 0),
                                           .alpha = 1,
                                           .flags = first > 0 ? TIDE__GEMM_ADD_TO : 0});
}

static tide_status add_chunk(tide__gpu_kernel *k, const head *h, const tide_op_desc *d, int64_t first) {
    const int64_t n = h->rows - first < h->chunk ? h->rows - first : h->chunk;
    const float scale = d->loss_scale != 0 ? d->loss_scale : 1.0f;
    TIDE_TRY(add_scores(k, h, first, n));
    if (d->kind == TIDE_OP_HEAD_LOSS) {
        TIDE_TRY(add_losses(k, h, first, n));
        return add_gradients(k, h, scale / (float)h->rows, first, n);
    }
    TIDE_TRY(TIDE__LAUNCH(k, "softmax", "likeliest", n, 1, 1, tide__place_at(h->workspace, h->scores_at),
                          tide__place_at(3, first * 8), tide__int(h->classes)));
    return add_losses(k, h, first, n);
}

tide_status tide__gpu_build_head(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint64_t x = tide__shape_elements(&d->x), w = (uint64_t)(d->x.c * d->y.c), rows = (uint64_t)d->x.n;
    const bool loss = d->kind == TIDE_OP_HEAD_LOSS;
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, x));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, w));
    TIDE_TRY(tide__gpu_reads(k, TIDE__I32, rows));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, loss ? x : 2 * rows));
    if (loss) TIDE_TRY(tide__gpu_writes(k, TIDE__F32, w));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, 1));
    const head h = head_of(k, d);
    const uint32_t result = loss ? 5 : 4;
    tide__gpu_set_workspace(k, (uint64_t)(h.scores_at + h.chunk * h.classes * (int64_t)sizeof(float)));
    for (int64_t first = 0; first < h.rows; first += h.chunk) TIDE_TRY(add_chunk(k, &h, d, first));
    if (!loss)
        TIDE_TRY(TIDE__LAUNCH(k, "softmax", "score_labels", tide__runs(rows), 1, 1, tide__place(h.workspace),
                              tide__place(3), tide__long(rows)));
    return TIDE__LAUNCH(k, "softmax", "loss_total", 1, 1, 1, tide__place(h.workspace), tide__place(result),
                        tide__long(rows), tide__long(rows));
}
