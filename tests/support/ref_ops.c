/* See ref_ops.h. */
#include "support/ref_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/ref_tokens.h"

static uint64_t size_of(const tide_shape *s) { return (uint64_t)(s->n * s->c * s->h * s->w); }

/* ---- operands ---- */

static void add(ref_spec *s, bool write, uint64_t elements) {
    s->elements[s->n_reads + s->n_writes] = elements;
    if (write)
        s->n_writes++;
    else
        s->n_reads++;
}

#define LIST(...) (const uint64_t[]){__VA_ARGS__}, (int)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static ref_spec spec(const uint64_t *reads, int n_reads, const uint64_t *writes, int n_writes) {
    ref_spec s = {0};
    for (int i = 0; i < n_reads; i++) add(&s, false, reads[i]);
    for (int i = 0; i < n_writes; i++) add(&s, true, writes[i]);
    return s;
}

static ref_spec spec_of_update(const tide_op_desc *d) {
    ref_spec s = {0};
    int states = d->kind == TIDE_OP_SGD ? 0 : d->kind == TIDE_OP_MOMENTUM ? 1 : 2;
    for (int i = 0; i < states + 2; i++) add(&s, false, d->elements);
    if (d->clipped) add(&s, false, 1);
    for (int i = 0; i < states + 1; i++) add(&s, true, d->elements);
    return s;
}

typedef enum direction { FORWARD, TO_DATA, TO_WEIGHTS } direction;

static direction direction_of(tide_op_kind kind) {
    switch (kind) {
    case TIDE_OP_CONV_FWD:
    case TIDE_OP_FC_FWD:
    case TIDE_OP_UPCONV_FWD: return FORWARD;
    case TIDE_OP_CONV_BWD_DATA:
    case TIDE_OP_FC_BWD_DATA:
    case TIDE_OP_UPCONV_BWD_DATA: return TO_DATA;
    default: return TO_WEIGHTS;
    }
}

static ref_spec spec_of_linear(const tide_op_desc *d, uint64_t w) {
    uint64_t x = size_of(&d->x), y = size_of(&d->y), bias = (uint64_t)d->y.c;
    direction dir = direction_of(d->kind);
    if (dir == TO_DATA) return spec(LIST(w, y), LIST(x));
    if (dir == FORWARD) return d->bias ? spec(LIST(x, w, bias), LIST(y)) : spec(LIST(x, w), LIST(y));
    return d->bias ? spec(LIST(x, y), LIST(w, bias)) : spec(LIST(x, y), LIST(w));
}

static ref_spec spec_of_concat(const tide_op_desc *d) {
    ref_spec s = {0};
    bool join = d->kind == TIDE_OP_CONCAT_FWD;
    uint64_t per_channel = size_of(&d->y) / (uint64_t)d->y.c;
    if (!join) add(&s, false, size_of(&d->y));
    for (uint32_t i = 0; i < d->n_parts; i++) add(&s, !join, (uint64_t)d->part_channels[i] * per_channel);
    if (join) add(&s, true, size_of(&d->y));
    return s;
}

static ref_spec spec_of_reorder(const tide_op_desc *d) {
    uint64_t elements = ref_spec_of(d->from).elements[d->from_operand];
    return spec(LIST(elements), LIST(elements));
}

static ref_spec spec_of_shape(const tide_op_desc *d) {
    uint64_t x = size_of(&d->x), y = size_of(&d->y), c = (uint64_t)d->x.c, pixels = x / c;
    switch (d->kind) {
    case TIDE_OP_BN_FWD: return spec(LIST(x, c, c), LIST(x, c, c));
    case TIDE_OP_BN_STATS: return spec(LIST(c, c, c, c), LIST(c, c));
    case TIDE_OP_BN_INFER: return spec(LIST(x, c, c, c, c), LIST(x));
    case TIDE_OP_BN_BWD: return spec(LIST(x, x, c, c, c), LIST(x, c, c));
    case TIDE_OP_MAXPOOL_FWD: return spec(LIST(x), LIST(y, y));
    case TIDE_OP_MAXPOOL_BWD: return spec(LIST(y, y), LIST(x));
    case TIDE_OP_AVGPOOL_FWD: return spec(LIST(x), LIST(y));
    case TIDE_OP_AVGPOOL_BWD: return spec(LIST(y), LIST(x));
    case TIDE_OP_SOFTMAX_LOSS_FWD: return spec(LIST(x, pixels), LIST(x, 1));
    case TIDE_OP_SOFTMAX_LOSS_BWD: return spec(LIST(x, pixels), LIST(x));
    case TIDE_OP_DROPOUT_FWD:
    case TIDE_OP_DROPOUT_BWD:
    case TIDE_OP_RELU_FWD:
    case TIDE_OP_LRN_FWD: return spec(LIST(x), LIST(x));
    case TIDE_OP_LRN_BWD: return spec(LIST(x, x, x), LIST(x));
    default: return spec(LIST(x, x), LIST(x)); /* add, relu backward */
    }
}

ref_spec ref_spec_of(const tide_op_desc *d) {
    uint64_t e = d->elements, inputs = (uint64_t)(d->x.c * d->x.h * d->x.w), outputs = (uint64_t)d->y.c;
    switch (d->kind) {
    case TIDE_OP_CONV_FWD:
    case TIDE_OP_CONV_BWD_DATA:
    case TIDE_OP_CONV_BWD_WEIGHTS:
    case TIDE_OP_UPCONV_FWD:
    case TIDE_OP_UPCONV_BWD_DATA:
    case TIDE_OP_UPCONV_BWD_WEIGHTS: return spec_of_linear(d, (uint64_t)(d->y.c * d->x.c * d->kernel_h * d->kernel_w));
    case TIDE_OP_FC_FWD:
    case TIDE_OP_FC_BWD_DATA:
    case TIDE_OP_FC_BWD_WEIGHTS: return spec_of_linear(d, outputs * inputs);
    case TIDE_OP_REORDER: return spec_of_reorder(d);
    case TIDE_OP_CONCAT_FWD:
    case TIDE_OP_CONCAT_BWD: return spec_of_concat(d);
    case TIDE_OP_SGD:
    case TIDE_OP_MOMENTUM:
    case TIDE_OP_ADAM:
    case TIDE_OP_ADAMW: return spec_of_update(d);
    case TIDE_OP_GRAD_NORM: return spec(d->grad_elements, (int)d->n_grads, LIST(1));
    case TIDE_OP_ACCUMULATE: return spec(LIST(e, e), LIST(e));
    case TIDE_OP_ZERO: return spec(NULL, 0, LIST(e));
    case TIDE_OP_CUT: return spec(LIST(e), LIST(d->part_elements));
    default: return d->kind >= TIDE_OP_LAYERNORM_FWD ? ref_token_spec(d) : spec_of_shape(d);
    }
}

/* ---- linear ops: one loop nest, three directions ---- */

static void touch(direction dir, double *x, double *w, double *y) {
    if (dir == FORWARD)
        *y += *x * *w;
    else if (dir == TO_DATA)
        *x += *w * *y;
    else
        *w += *x * *y;
}

static void conv_pixel(const tide_op_desc *d, direction dir, double *x, double *w, double *y, int64_t oh, int64_t ow) {
    for (int64_t c = 0; c < d->x.c; c++)
        for (int64_t kh = 0; kh < d->kernel_h; kh++)
            for (int64_t kw = 0; kw < d->kernel_w; kw++) {
                int64_t h = oh * d->stride - d->pad_h + kh, v = ow * d->stride - d->pad_w + kw;
                if (h < 0 || v < 0 || h >= d->x.h || v >= d->x.w) continue;
                touch(dir, &x[(c * d->x.h + h) * d->x.w + v], &w[(c * d->kernel_h + kh) * d->kernel_w + kw], y);
            }
}

static void conv(const tide_op_desc *d, direction dir, double *x, double *w, double *y) {
    int64_t per_filter = d->x.c * d->kernel_h * d->kernel_w, per_image = d->x.c * d->x.h * d->x.w;
    for (int64_t n = 0; n < d->y.n; n++)
        for (int64_t o = 0; o < d->y.c; o++)
            for (int64_t oh = 0; oh < d->y.h; oh++)
                for (int64_t ow = 0; ow < d->y.w; ow++, y++)
                    conv_pixel(d, dir, x + n * per_image, w + o * per_filter, y, oh, ow);
}

/* Every input pixel fills a window of its own. */
static void upconv(const tide_op_desc *d, direction dir, double *x, double *w, double *y) {
    int64_t k = d->kernel_h;
    for (int64_t n = 0; n < d->y.n; n++)
        for (int64_t o = 0; o < d->y.c; o++)
            for (int64_t h = 0; h < d->y.h; h++)
                for (int64_t v = 0; v < d->y.w; v++, y++)
                    for (int64_t c = 0; c < d->x.c; c++)
                        touch(dir, &x[((n * d->x.c + c) * d->x.h + h / k) * d->x.w + v / k],
                              &w[((o * d->x.c + c) * k + h % k) * k + v % k], y);
}

static void fc(const tide_op_desc *d, direction dir, double *x, double *w, double *y) {
    int64_t inputs = d->x.c * d->x.h * d->x.w;
    for (int64_t n = 0; n < d->y.n; n++)
        for (int64_t o = 0; o < d->y.c; o++)
            for (int64_t i = 0; i < inputs; i++) touch(dir, &x[n * inputs + i], &w[o * inputs + i], &y[n * d->y.c + o]);
}

static void zero(double *p, uint64_t n) { memset(p, 0, n * sizeof *p); }

static void linear(const tide_op_desc *d, double *const *v,
                   void (*op)(const tide_op_desc *, direction, double *, double *, double *)) {
    ref_spec s = ref_spec_of(d);
    int64_t pixels = d->y.h * d->y.w;
    for (uint32_t i = s.n_reads; i < s.n_reads + s.n_writes; i++) zero(v[i], s.elements[i]);
    if (direction_of(d->kind) == FORWARD) {
        double *y = v[d->bias ? 3 : 2];
        op(d, FORWARD, v[0], v[1], y);
        for (int64_t i = 0; d->bias && i < (int64_t)size_of(&d->y); i++) y[i] += v[2][i / pixels % d->y.c];
    } else if (direction_of(d->kind) == TO_DATA) {
        op(d, TO_DATA, v[2], v[0], v[1]);
    } else {
        op(d, TO_WEIGHTS, v[0], v[2], v[1]);
        for (int64_t i = 0; d->bias && i < (int64_t)size_of(&d->y); i++) v[3][i / pixels % d->y.c] += v[1][i];
    }
}

/* ---- batch norm ---- */

static int64_t channel_of(const tide_shape *s, int64_t i) { return i / (s->h * s->w) % s->c; }

static void bn_forward(const tide_op_desc *d, double *const *v) {
    double *x = v[0], *mean = v[4], *inv_std = v[5];
    int64_t size = (int64_t)size_of(&d->x);
    double m = (double)(d->x.n * d->x.h * d->x.w);
    zero(mean, (uint64_t)d->x.c);
    zero(inv_std, (uint64_t)d->x.c);
    for (int64_t i = 0; i < size; i++) mean[channel_of(&d->x, i)] += x[i] / m;
    for (int64_t i = 0; i < size; i++) inv_std[channel_of(&d->x, i)] += pow(x[i] - mean[channel_of(&d->x, i)], 2) / m;
    for (int64_t c = 0; c < d->x.c; c++) inv_std[c] = 1 / sqrt(inv_std[c] + (double)d->eps);
    for (int64_t i = 0; i < size; i++) {
        int64_t c = channel_of(&d->x, i);
        v[3][i] = (x[i] - mean[c]) * inv_std[c] * v[1][c] + v[2][c];
    }
}

static void bn_stats(const tide_op_desc *d, double *const *v) {
    double m = (double)(d->x.n * d->x.h * d->x.w), share = (double)d->momentum;
    for (int64_t c = 0; c < d->x.c; c++) {
        double variance = 1 / (v[1][c] * v[1][c]) - (double)d->eps;
        v[4][c] = (1 - share) * v[2][c] + share * v[0][c];
        v[5][c] = (1 - share) * v[3][c] + share * variance * (m > 1 ? m / (m - 1) : 1);
    }
}

static void bn_infer(const tide_op_desc *d, double *const *v) {
    for (int64_t i = 0; i < (int64_t)size_of(&d->x); i++) {
        int64_t c = channel_of(&d->x, i);
        v[5][i] = (v[0][i] - v[3][c]) / sqrt(v[4][c] + (double)d->eps) * v[1][c] + v[2][c];
    }
}

static void bn_backward(const tide_op_desc *d, double *const *v) {
    double *x = v[0], *dy = v[1], *scale = v[2], *mean = v[3], *inv_std = v[4], *dx = v[5], *dscale = v[6],
           *dshift = v[7];
    int64_t size = (int64_t)size_of(&d->x);
    double m = (double)(d->x.n * d->x.h * d->x.w);
    zero(dscale, (uint64_t)d->x.c);
    zero(dshift, (uint64_t)d->x.c);
    for (int64_t i = 0; i < size; i++) {
        int64_t c = channel_of(&d->x, i);
        dscale[c] += dy[i] * (x[i] - mean[c]) * inv_std[c];
        dshift[c] += dy[i];
    }
    for (int64_t i = 0; i < size; i++) {
        int64_t c = channel_of(&d->x, i);
        double hat = (x[i] - mean[c]) * inv_std[c];
        dx[i] = scale[c] * inv_std[c] * (dy[i] - dshift[c] / m - hat * dscale[c] / m);
    }
}

/* ---- pooling ---- */

static void pool_pixel(const tide_op_desc *d, double *const *v, int64_t plane, int64_t oh, int64_t ow, int64_t o) {
    double best = -INFINITY, sum = 0, area = d->kernel_h * d->kernel_w;
    int64_t at = 0;
    for (int64_t kh = 0; kh < d->kernel_h; kh++)
        for (int64_t kw = 0; kw < d->kernel_w; kw++) {
            int64_t h = oh * d->stride - d->pad_h + kh, w = ow * d->stride - d->pad_w + kw;
            if (h < 0 || w < 0 || h >= d->x.h || w >= d->x.w) continue;
            int64_t i = (plane * d->x.h + h) * d->x.w + w, here = kh * d->kernel_w + kw;
            if (d->kind == TIDE_OP_AVGPOOL_BWD) v[1][i] += v[0][o] / area;
            if (d->kind == TIDE_OP_MAXPOOL_BWD && v[0][o] == (double)here) v[2][i] += v[1][o];
            if (d->kind != TIDE_OP_AVGPOOL_FWD && d->kind != TIDE_OP_MAXPOOL_FWD) continue;
            sum += v[0][i];
            if (v[0][i] > best) best = v[0][i], at = here;
        }
    if (d->kind == TIDE_OP_AVGPOOL_FWD) v[1][o] = sum / area;
    if (d->kind == TIDE_OP_MAXPOOL_FWD) v[1][o] = best, v[2][o] = (double)at;
}

static void pool(const tide_op_desc *d, double *const *v) {
    int64_t o = 0;
    if (d->kind == TIDE_OP_AVGPOOL_BWD) zero(v[1], size_of(&d->x));
    if (d->kind == TIDE_OP_MAXPOOL_BWD) zero(v[2], size_of(&d->x));
    for (int64_t plane = 0; plane < d->x.n * d->x.c; plane++)
        for (int64_t oh = 0; oh < d->y.h; oh++)
            for (int64_t ow = 0; ow < d->y.w; ow++) pool_pixel(d, v, plane, oh, ow, o++);
}

/* ---- softmax and loss ---- */

/* Pixel i, class c. */
static int64_t score_at(const tide_shape *s, int64_t i, int64_t c) {
    int64_t pixels = s->h * s->w;
    return (i / pixels * s->c + c) * pixels + i % pixels;
}

static void softmax_forward(const tide_op_desc *d, double *const *v) {
    int64_t pixels = d->x.n * d->x.h * d->x.w;
    v[3][0] = 0;
    for (int64_t i = 0; i < pixels; i++) {
        double sum = 0;
        for (int64_t c = 0; c < d->x.c; c++) sum += exp(v[0][score_at(&d->x, i, c)]);
        for (int64_t c = 0; c < d->x.c; c++) v[2][score_at(&d->x, i, c)] = exp(v[0][score_at(&d->x, i, c)]) / sum;
        v[3][0] -= log(v[2][score_at(&d->x, i, (int64_t)v[1][i])]) / (double)pixels;
    }
}

static void softmax_backward(const tide_op_desc *d, double *const *v) {
    double scale = d->loss_scale != 0 ? (double)d->loss_scale : 1.0;
    int64_t pixels = d->x.n * d->x.h * d->x.w;
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < d->x.c; c++) {
            double hit = (int64_t)v[1][i] == c;
            v[2][score_at(&d->x, i, c)] = scale * (v[0][score_at(&d->x, i, c)] - hit) / (double)pixels;
        }
}

/* ---- concatenation ---- */

static void concat(const tide_op_desc *d, double *const *v) {
    bool join = d->kind == TIDE_OP_CONCAT_FWD;
    int64_t pixels = d->y.h * d->y.w, first = 0;
    double *whole = v[join ? d->n_parts : 0];
    for (uint32_t k = 0; k < d->n_parts; k++) {
        double *part = v[join ? k : k + 1];
        int64_t run = d->part_channels[k] * pixels;
        for (int64_t i = 0; i < d->y.n * run; i++) {
            double *there = &whole[i / run * d->y.c * pixels + first * pixels + i % run];
            if (join)
                *there = part[i];
            else
                part[i] = *there;
        }
        first += d->part_channels[k];
    }
}

/* ---- dropout, local response normalisation ---- */

/* Forward and backward. */
static void dropout(const tide_op_desc *d, const tide_step_args *args, double *const *v) {
    uint64_t stream = tide__hash_word(tide__hash_word(0, args->step), args->counter);
    for (uint64_t i = 0; i < size_of(&d->x); i++) {
        const bool kept = tide__random_unit(args->seed, stream, i) >= d->drop_rate;
        v[1][i] = kept ? v[0][i] / (1 - (double)d->drop_rate) : 0;
    }
}

/* k + alpha / size * sum of x^2 over the window of channels around element i. */
static double lrn_scale(const tide_op_desc *d, const double *x, int64_t i) {
    int64_t pixels = d->x.h * d->x.w, c = channel_of(&d->x, i), half = (d->lrn_size - 1) / 2;
    double sum = 0;
    for (int64_t k = c - half; k < c - half + d->lrn_size; k++)
        if (k >= 0 && k < d->x.c) sum += pow(x[i + (k - c) * pixels], 2);
    return (double)d->lrn_k + (double)d->lrn_alpha / d->lrn_size * sum;
}

static void lrn_forward(const tide_op_desc *d, double *const *v) {
    for (int64_t i = 0; i < (int64_t)size_of(&d->x); i++)
        v[1][i] = v[0][i] * pow(lrn_scale(d, v[0], i), -(double)d->lrn_beta);
}

static void lrn_backward(const tide_op_desc *d, double *const *v) {
    int64_t pixels = d->x.h * d->x.w, half = (d->lrn_size - 1) / 2;
    double *x = v[0], *dy = v[2], *dx = v[3], factor = 2 * (double)d->lrn_alpha * (double)d->lrn_beta / d->lrn_size;
    for (int64_t i = 0; i < (int64_t)size_of(&d->x); i++) {
        int64_t c = channel_of(&d->x, i);
        dx[i] = dy[i] * pow(lrn_scale(d, x, i), -(double)d->lrn_beta);
        for (int64_t k = c + half - d->lrn_size + 1; k <= c + half; k++) { /* channels whose window contains c */
            if (k < 0 || k >= d->x.c) continue;
            int64_t j = i + (k - c) * pixels;
            dx[i] -= factor * x[i] * dy[j] * x[j] * pow(lrn_scale(d, x, j), -(double)d->lrn_beta - 1);
        }
    }
}

/* ---- optimizers ---- */

static void update(const tide_op_desc *d, const tide_step_args *args, double *const *v) {
    ref_spec s = ref_spec_of(d);
    uint32_t states = s.n_writes - 1;
    double lr = (double)args->learning_rate, t = (double)args->step + 1, clip = d->clipped ? v[s.n_reads - 1][0] : 1;
    double b1 = (double)d->beta1, b2 = (double)d->beta2, decay = (double)d->weight_decay;
    double eps = d->eps > 0 ? (double)d->eps : 1e-8;
    for (uint64_t i = 0; i < d->elements; i++) {
        double w = v[0][i], g = v[1 + states][i] * clip;
        if (d->kind == TIDE_OP_ADAMW)
            w -= lr * decay * w;
        else
            g += decay * w;
        if (d->kind == TIDE_OP_MOMENTUM) g = v[s.n_reads + 1][i] = b1 * v[1][i] + g;
        if (states == 2) {
            double m = v[s.n_reads + 1][i] = b1 * v[1][i] + (1 - b1) * g;
            double q = v[s.n_reads + 2][i] = b2 * v[2][i] + (1 - b2) * g * g;
            g = m / (1 - pow(b1, t)) / (sqrt(q / (1 - pow(b2, t))) + eps);
        }
        v[s.n_reads][i] = w - lr * g;
    }
}

static void grad_norm(const tide_op_desc *d, double *const *v) {
    double sum = 0;
    for (uint32_t k = 0; k < d->n_grads; k++)
        for (uint64_t i = 0; i < d->grad_elements[k]; i++) sum += v[k][i] * v[k][i];
    double factor = (double)d->clip_norm / (sqrt(sum) + 1e-6);
    v[d->n_grads][0] = factor < 1 ? factor : 1;
}

static void elementwise(const tide_op_desc *d, double *const *v, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) switch (d->kind) {
        case TIDE_OP_RELU_FWD: v[1][i] = v[0][i] > 0 ? v[0][i] : 0; break;
        case TIDE_OP_RELU_BWD: v[2][i] = v[0][i] > 0 ? v[1][i] : 0; break;
        case TIDE_OP_ADD:
        case TIDE_OP_ACCUMULATE: v[2][i] = v[0][i] + v[1][i]; break;
        case TIDE_OP_REORDER: v[1][i] = v[0][i]; break;
        default: v[0][i] = 0; break;
        }
}

static void cut(const tide_op_desc *d, double *const *v) {
    for (uint64_t i = 0; i < d->part_elements; i++) v[1][i] = v[0][d->part_first + i];
}

void ref_run(const tide_op_desc *d, const tide_step_args *args, double *const *v) {
    switch (d->kind) {
    case TIDE_OP_CONV_FWD:
    case TIDE_OP_CONV_BWD_DATA:
    case TIDE_OP_CONV_BWD_WEIGHTS: linear(d, v, conv); break;
    case TIDE_OP_FC_FWD:
    case TIDE_OP_FC_BWD_DATA:
    case TIDE_OP_FC_BWD_WEIGHTS: linear(d, v, fc); break;
    case TIDE_OP_UPCONV_FWD:
    case TIDE_OP_UPCONV_BWD_DATA:
    case TIDE_OP_UPCONV_BWD_WEIGHTS: linear(d, v, upconv); break;
    case TIDE_OP_CONCAT_FWD:
    case TIDE_OP_CONCAT_BWD: concat(d, v); break;
    case TIDE_OP_BN_FWD: bn_forward(d, v); break;
    case TIDE_OP_BN_STATS: bn_stats(d, v); break;
    case TIDE_OP_BN_INFER: bn_infer(d, v); break;
    case TIDE_OP_BN_BWD: bn_backward(d, v); break;
    case TIDE_OP_MAXPOOL_FWD:
    case TIDE_OP_MAXPOOL_BWD:
    case TIDE_OP_AVGPOOL_FWD:
    case TIDE_OP_AVGPOOL_BWD: pool(d, v); break;
    case TIDE_OP_SOFTMAX_LOSS_FWD: softmax_forward(d, v); break;
    case TIDE_OP_SOFTMAX_LOSS_BWD: softmax_backward(d, v); break;
    case TIDE_OP_DROPOUT_FWD:
    case TIDE_OP_DROPOUT_BWD: dropout(d, args, v); break;
    case TIDE_OP_LRN_FWD: lrn_forward(d, v); break;
    case TIDE_OP_LRN_BWD: lrn_backward(d, v); break;
    case TIDE_OP_SGD:
    case TIDE_OP_MOMENTUM:
    case TIDE_OP_ADAM:
    case TIDE_OP_ADAMW: update(d, args, v); break;
    case TIDE_OP_GRAD_NORM: grad_norm(d, v); break;
    case TIDE_OP_CUT: cut(d, v); break;
    case TIDE_OP_RELU_FWD:
    case TIDE_OP_RELU_BWD:
    case TIDE_OP_ADD:
    case TIDE_OP_ACCUMULATE:
    case TIDE_OP_REORDER:
    case TIDE_OP_ZERO: elementwise(d, v, ref_spec_of(d).elements[0]); break;
    default: ref_token_run(d, v); break;
    }
}
