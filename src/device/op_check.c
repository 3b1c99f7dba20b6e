/* See op_check.h. */
#include "device/op_check.h"

#define MAX_WINDOW 256 /* positions of a max pool: they fit in a byte */

/* ---- shapes ---- */

static tide_status check_shape(const tide_shape *s, const char *what) {
    const int64_t dims[4] = {s->n, s->c, s->h, s->w};
    int64_t elements = 1;
    for (int i = 0; i < 4; i++) {
        if (dims[i] < 1 || dims[i] > INT32_MAX || elements > TIDE__MAX_ELEMENTS / dims[i])
            return tide__fail(TIDE_E_ARGUMENT, "%s: bad shape (%lld, %lld, %lld, %lld)", what, (long long)s->n,
                              (long long)s->c, (long long)s->h, (long long)s->w);
        elements *= dims[i];
    }
    return TIDE_OK;
}

/* (N, C, 1, 1) */
static tide_status check_rows(const tide_shape *s, const char *what) {
    TIDE_TRY(check_shape(s, what));
    return s->h == 1 && s->w == 1 ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "%s: not rows (N, C, 1, 1)", what);
}

static tide_status check_both(const tide_op_desc *d) {
    TIDE_TRY(check_shape(&d->x, "x"));
    return check_shape(&d->y, "y");
}

static tide_status check_both_rows(const tide_op_desc *d) {
    TIDE_TRY(check_rows(&d->x, "x"));
    return check_rows(&d->y, "y");
}

static tide_status check_elements(uint64_t n) {
    if (n >= 1 && n <= TIDE__MAX_ELEMENTS) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "an operand of %llu elements", (unsigned long long)n);
}

static tide_status check_update(const tide_op_desc *d) {
    TIDE_TRY(check_elements(d->elements));
    if (d->part_first <= d->elements && d->part_elements <= d->elements - d->part_first) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "%s of %llu elements from %llu on, of %llu", tide_op_kind_name(d->kind),
                      (unsigned long long)d->part_elements, (unsigned long long)d->part_first,
                      (unsigned long long)d->elements);
}

static tide_status check_cut(const tide_op_desc *d) {
    TIDE_TRY(check_update(d));
    return check_elements(d->part_elements);
}

/* ---- windows ---- */

static tide_status check_conv(const tide_op_desc *d) {
    TIDE_TRY(check_both(d));
    if (d->kernel_h < 1 || d->kernel_w < 1 || d->stride < 1 || d->pad_h < 0 || d->pad_w < 0)
        return tide__fail(TIDE_E_ARGUMENT, "window %d x %d, stride %d, padding %d x %d", d->kernel_h, d->kernel_w,
                          d->stride, d->pad_h, d->pad_w);
    int64_t h = d->x.h + 2 * (int64_t)d->pad_h - d->kernel_h, w = d->x.w + 2 * (int64_t)d->pad_w - d->kernel_w;
    if (h < 0 || w < 0 || d->y.h != h / d->stride + 1 || d->y.w != w / d->stride + 1 || d->y.n != d->x.n)
        return tide__fail(TIDE_E_ARGUMENT, "the output (%lld, ., %lld, %lld) does not follow from the input and window",
                          (long long)d->y.n, (long long)d->y.h, (long long)d->y.w);
    return check_shape(&(tide_shape){d->y.c, d->x.c, d->kernel_h, d->kernel_w}, "weights");
}

static tide_status check_fc(const tide_op_desc *d) {
    TIDE_TRY(check_both(d));
    if (d->y.n != d->x.n || d->y.h != 1 || d->y.w != 1)
        return tide__fail(TIDE_E_ARGUMENT, "the output of a fully connected layer must be (N, outputs, 1, 1)");
    return check_shape(&(tide_shape){d->y.c, d->x.c, d->x.h, d->x.w}, "weights");
}

static tide_status check_upconv(const tide_op_desc *d) {
    TIDE_TRY(check_both(d));
    if (d->kernel_h < 1 || d->kernel_w != d->kernel_h || d->stride != d->kernel_h || d->pad_h || d->pad_w ||
        d->y.n != d->x.n || d->y.h != d->x.h * d->kernel_h || d->y.w != d->x.w * d->kernel_w)
        return tide__fail(TIDE_E_ARGUMENT,
                          "window %d x %d, stride %d does not lead from (., ., %lld, %lld) to (., ., %lld, %lld)",
                          d->kernel_h, d->kernel_w, d->stride, (long long)d->x.h, (long long)d->x.w, (long long)d->y.h,
                          (long long)d->y.w);
    return check_shape(&(tide_shape){d->y.c, d->x.c, d->kernel_h, d->kernel_w}, "weights");
}

/* One direction of the picture. Every window must contain a pixel, and there are at most as many windows as pixels. */
static bool fits(int64_t x, int64_t y, int32_t kernel, int32_t stride, int32_t pad) {
    return kernel >= 1 && stride >= 1 && pad >= 0 && pad < kernel && y <= x && (y - 1) * stride - pad < x;
}

static tide_status check_pool(const tide_op_desc *d) {
    TIDE_TRY(check_both(d));
    if (d->x.n != d->y.n || d->x.c != d->y.c || !fits(d->x.h, d->y.h, d->kernel_h, d->stride, d->pad_h) ||
        !fits(d->x.w, d->y.w, d->kernel_w, d->stride, d->pad_w))
        return tide__fail(
            TIDE_E_ARGUMENT,
            "window %d x %d, stride %d, padding %d x %d does not lead from (., ., %lld, %lld) to (., ., %lld, %lld)",
            d->kernel_h, d->kernel_w, d->stride, d->pad_h, d->pad_w, (long long)d->x.h, (long long)d->x.w,
            (long long)d->y.h, (long long)d->y.w);
    return TIDE_OK;
}

static tide_status check_maxpool(const tide_op_desc *d) {
    TIDE_TRY(check_pool(d));
    if ((int64_t)d->kernel_h * d->kernel_w <= MAX_WINDOW) return TIDE_OK;
    return tide__fail(TIDE_E_UNSUPPORTED, "a window of more than %d positions", MAX_WINDOW);
}

/* ---- layers of one shape ---- */

static tide_status check_eps(const tide_op_desc *d) {
    return d->eps > 0 ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "eps must be positive");
}

static tide_status check_dropout(const tide_op_desc *d) {
    if (d->drop_rate >= 0 && d->drop_rate < 1) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "drop rate %g is not in [0, 1)", (double)d->drop_rate);
}

static tide_status check_lrn(const tide_op_desc *d) {
    if (d->lrn_size >= 1 && d->lrn_size <= 1024 && d->lrn_k > 0 && d->lrn_alpha >= 0) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "size must be 1 to 1024, k positive and alpha not negative");
}

static tide_status check_concat(const tide_op_desc *d) {
    int64_t channels = 0;
    TIDE_TRY(check_shape(&d->y, "y"));
    if (d->n_parts < 1 || d->n_parts > TIDE_KERNEL_MAX_OPERANDS || !d->part_channels)
        return tide__fail(TIDE_E_ARGUMENT, "%u parts, not 1 to %d", d->n_parts, TIDE_KERNEL_MAX_OPERANDS);
    for (uint32_t i = 0; i < d->n_parts; i++) {
        if (d->part_channels[i] < 1 || d->part_channels[i] > d->y.c)
            return tide__fail(TIDE_E_ARGUMENT, "part %u has %lld channels", i, (long long)d->part_channels[i]);
        channels += d->part_channels[i];
    }
    if (channels == d->y.c) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "the parts have %lld channels, the whole %lld", (long long)channels,
                      (long long)d->y.c);
}

static tide_status check_grad_norm(const tide_op_desc *d) {
    if (!(d->clip_norm > 0)) return tide__fail(TIDE_E_ARGUMENT, "the norm to clip at must be positive");
    if (d->n_grads == 0 || !d->grad_elements) return tide__fail(TIDE_E_ARGUMENT, "no gradients");
    for (uint32_t i = 0; i < d->n_grads; i++) TIDE_TRY(check_elements(d->grad_elements[i]));
    return TIDE_OK;
}

/* ---- language models ---- */

int64_t tide__position_rows(const tide_op_desc *d) { return d->positions ? d->positions : d->x.c; }

static tide_status check_embedding(const tide_op_desc *d) {
    TIDE_TRY(check_both_rows(d));
    if (d->y.n != d->x.n * d->x.c)
        return tide__fail(TIDE_E_ARGUMENT, "%lld rows for %lld samples of %lld tokens", (long long)d->y.n,
                          (long long)d->x.n, (long long)d->x.c);
    if (d->positions && d->positions < d->x.c)
        return tide__fail(TIDE_E_ARGUMENT, "%lld positions for samples of %lld tokens", (long long)d->positions,
                          (long long)d->x.c);
    TIDE_TRY(check_shape(&(tide_shape){tide__position_rows(d), d->y.c, 1, 1}, "positions"));
    return check_shape(&(tide_shape){d->vocabulary, d->y.c, 1, 1}, "table");
}

static tide_status check_attention(const tide_op_desc *d) {
    TIDE_TRY(check_both_rows(d));
    if (d->heads < 1 || d->context < 1 || d->x.n != d->y.n || d->x.n % d->context != 0 || d->x.c != 3 * d->y.c ||
        d->y.c % d->heads != 0)
        return tide__fail(
            TIDE_E_ARGUMENT,
            "%d heads over %lld rows of %lld (queries, keys and values), %lld rows of %lld out, samples of %d",
            d->heads, (long long)d->x.n, (long long)d->x.c, (long long)d->y.n, (long long)d->y.c, d->context);
    return TIDE_OK;
}

#define CHUNK_FLOATS (INT64_C(16) << 20) /* of scores in a chunk */
#define CHUNK_ROWS 64                    /* of a chunk at least, and what its rows are a multiple of */

int64_t tide__head_rows(const tide_op_desc *d) {
    const int64_t rows = CHUNK_FLOATS / d->y.c / CHUNK_ROWS * CHUNK_ROWS, most = rows > CHUNK_ROWS ? rows : CHUNK_ROWS;
    return d->x.n < most ? d->x.n : most;
}

static tide_status check_head(const tide_op_desc *d) {
    TIDE_TRY(check_both_rows(d));
    return check_fc(d);
}

static tide_status check_steps(const tide_op_desc *d) {
    const bool slice = d->kind == TIDE_OP_SLICE;
    const tide_shape *all = slice ? &d->x : &d->y, *part = slice ? &d->y : &d->x;
    TIDE_TRY(check_rows(all, "all steps"));
    TIDE_TRY(check_rows(part, "one step"));
    if (d->steps < 1 || all->n != part->n * d->steps || all->c != part->c || d->step < 0 || d->step >= d->steps)
        return tide__fail(TIDE_E_ARGUMENT, "step %d of %d: %lld rows of %lld and %lld rows of %lld", d->step, d->steps,
                          (long long)part->n, (long long)part->c, (long long)all->n, (long long)all->c);
    return TIDE_OK;
}

static tide_status check_lstm(const tide_op_desc *d) {
    const tide_shape *x = &d->x, *y = &d->y;
    TIDE_TRY(check_both_rows(d));
    if (x->n != y->n) return tide__fail(TIDE_E_ARGUMENT, "%lld rows in, %lld out", (long long)x->n, (long long)y->n);
    TIDE_TRY(check_shape(&(tide_shape){4 * y->c, x->c + y->c, 1, 1}, "weights"));
    return check_shape(&(tide_shape){y->n, 4 * y->c, 1, 1}, "gates");
}

/* ---- all kinds ---- */

/* Beyond x, which is checked. */
static tide_status check_layer(const tide_op_desc *d) {
    switch (d->kind) {
    case TIDE_OP_BN_FWD:
    case TIDE_OP_BN_STATS:
    case TIDE_OP_BN_INFER:
    case TIDE_OP_BN_BWD: return check_eps(d);
    case TIDE_OP_DROPOUT_FWD:
    case TIDE_OP_DROPOUT_BWD: return check_dropout(d);
    case TIDE_OP_LRN_FWD:
    case TIDE_OP_LRN_BWD: return check_lrn(d);
    case TIDE_OP_LAYERNORM_FWD:
    case TIDE_OP_LAYERNORM_BWD: TIDE_TRY(check_rows(&d->x, "x")); return check_eps(d);
    default: return TIDE_OK;
    }
}

tide_status tide__op_check(const tide_op_desc *d) {
    switch (d->kind) {
    case TIDE_OP_CONV_FWD:
    case TIDE_OP_CONV_BWD_DATA:
    case TIDE_OP_CONV_BWD_WEIGHTS: return check_conv(d);
    case TIDE_OP_FC_FWD:
    case TIDE_OP_FC_BWD_DATA:
    case TIDE_OP_FC_BWD_WEIGHTS: return check_fc(d);
    case TIDE_OP_UPCONV_FWD:
    case TIDE_OP_UPCONV_BWD_DATA:
    case TIDE_OP_UPCONV_BWD_WEIGHTS: return check_upconv(d);
    case TIDE_OP_MAXPOOL_FWD:
    case TIDE_OP_MAXPOOL_BWD: return check_maxpool(d);
    case TIDE_OP_AVGPOOL_FWD:
    case TIDE_OP_AVGPOOL_BWD: return check_pool(d);
    case TIDE_OP_CONCAT_FWD:
    case TIDE_OP_CONCAT_BWD: return check_concat(d);
    case TIDE_OP_REORDER: return TIDE_OK;
    case TIDE_OP_GRAD_NORM: return check_grad_norm(d);
    case TIDE_OP_SGD:
    case TIDE_OP_MOMENTUM:
    case TIDE_OP_ADAM:
    case TIDE_OP_ADAMW: return check_update(d);
    case TIDE_OP_CUT:
    case TIDE_OP_PASTE: return check_cut(d);
    case TIDE_OP_ACCUMULATE:
    case TIDE_OP_ZERO: return check_elements(d->elements);
    case TIDE_OP_EMBEDDING_FWD:
    case TIDE_OP_EMBEDDING_BWD: return check_embedding(d);
    case TIDE_OP_ATTENTION_FWD:
    case TIDE_OP_ATTENTION_BWD: return check_attention(d);
    case TIDE_OP_HEAD_LOSS:
    case TIDE_OP_HEAD_SCORE: return check_head(d);
    case TIDE_OP_SLICE:
    case TIDE_OP_STACK: return check_steps(d);
    case TIDE_OP_LSTM_FWD:
    case TIDE_OP_LSTM_BWD_GATES:
    case TIDE_OP_LSTM_BWD_WEIGHTS:
    case TIDE_OP_LSTM_BWD_DATA: return check_lstm(d);
    default: TIDE_TRY(check_shape(&d->x, "x")); return check_layer(d);
    }
}

tide_op_desc tide__op_desc_own(const tide_op_desc *d) {
    tide_op_desc own = *d;
    own.grad_elements = NULL;
    own.part_channels = NULL;
    own.from = own.to = NULL;
    return own;
}
