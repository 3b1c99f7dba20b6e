/* Max and average pooling, own loops over planes: all pixels of one group of lanes of one image (view.h).
 *
 * The index of max pooling is the position inside the window (row * kernel_w + column), one byte per output, so
 * backward needs neither x nor y. Of equal maxima the first wins. Average pooling divides by the full window, padding
 * included. A plane belongs to one thread: its sums have one order. */
#include <math.h>
#include <string.h>

#include "device/cpu/view.h"

/* One plane of x and the matching one of y. `channels` of its lanes are not padding. When y is a single pixel it is
 * stored plain, without padded channels: then only that many lanes of it exist. */
typedef struct plane {
    const tide_op_desc *d;
    int64_t x_at, y_at; /* first element */
    int lanes, y_lanes, channels;
} plane;

typedef void (*plane_fn)(const plane *p, const tide__call *call);

static plane plane_of(const tide_op_desc *d, const tide__view *x, const tide__view *y, int64_t n, int64_t g) {
    plane p = {d, tide__view_at(x, n, g), tide__view_at(y, n, g), x->lanes, x->lanes, x->lanes};
    if (x->channels - g * x->lanes < x->lanes) p.channels = (int)(x->channels - g * x->lanes);
    if (x->lanes != y->lanes) {
        p.y_at = n * y->channels + g * x->lanes;
        p.y_lanes = p.channels;
    }
    return p;
}

static void for_each_plane(const tide__cpu_kernel *k, const tide__call *call, plane_fn fn) {
    const tide_op_desc *d = &k->desc;
    const tide__view x = tide__view_of(&d->x), y = tide__view_of(&d->y);
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(&x) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < x.n; n++)
        for (int64_t g = 0; g < x.groups; g++) {
            plane p = plane_of(d, &x, &y, n, g);
            fn(&p, call);
        }
}

/* A window over a plane: rows [h0, h1), columns [w0, w1) of it lie inside; (top, left) may lie outside. */
typedef struct window {
    int64_t h0, h1, w0, w1, top, left;
} window;

static inline window window_at(const tide_op_desc *d, int64_t oh, int64_t ow) {
    window a = {.top = oh * d->stride - d->pad_h, .left = ow * d->stride - d->pad_w};
    a.h0 = a.top < 0 ? 0 : a.top;
    a.w0 = a.left < 0 ? 0 : a.left;
    a.h1 = a.top + d->kernel_h < d->x.h ? a.top + d->kernel_h : d->x.h;
    a.w1 = a.left + d->kernel_w < d->x.w ? a.left + d->kernel_w : d->x.w;
    return a;
}

/* ---- max ---- */

/* NaN comes through: it beats everything, and nothing beats it. */
static void max_pixel(const plane *p, const window *a, const float *x, float *y, uint8_t *index) {
    float best = -INFINITY;
    int64_t position = (a->h0 - a->top) * p->d->kernel_w + (a->w0 - a->left);
    for (int64_t h = a->h0; h < a->h1; h++)
        for (int64_t w = a->w0; w < a->w1; w++) {
            float value = x[h * p->d->x.w + w];
            if (!(value > best || isnan(value))) continue;
            best = value;
            position = (h - a->top) * p->d->kernel_w + (w - a->left);
        }
    *y = best;
    *index = (uint8_t)position;
}

/* The same for the 8 lanes of a block, as two vectors of 4; compilers do not find them by themselves. */
typedef float floats4 __attribute__((vector_size(16)));
typedef int32_t ints4 __attribute__((vector_size(16)));

static void max_pixel8(const plane *p, const window *a, const float *x, float *y, uint8_t *index) {
    int32_t first = (int32_t)((a->h0 - a->top) * p->d->kernel_w + (a->w0 - a->left));
    floats4 best[2] = {(floats4){0} - INFINITY, (floats4){0} - INFINITY}, value[2];
    ints4 position[2] = {(ints4){0} + first, (ints4){0} + first};
    for (int64_t h = a->h0; h < a->h1; h++)
        for (int64_t w = a->w0; w < a->w1; w++) {
            ints4 here = (ints4){0} + (int32_t)((h - a->top) * p->d->kernel_w + (w - a->left));
            memcpy(value, x + (h * p->d->x.w + w) * 8, sizeof value);
            for (int i = 0; i < 2; i++) {
                ints4 better = (value[i] > best[i]) | (value[i] != value[i]); /* per lane: all bits or none */
                best[i] = (floats4)((better & (ints4)value[i]) | (~better & (ints4)best[i]));
                position[i] = (better & here) | (~better & position[i]);
            }
        }
    for (int l = 0; l < p->y_lanes; l++) {
        y[l] = best[l / 4][l % 4];
        index[l] = l < p->channels ? (uint8_t)position[l / 4][l % 4] : 0;
    }
}

static void max_forward(const plane *p, const tide__call *call) {
    const float *x = tide__floats(call, 0) + p->x_at;
    float *y = tide__floats(call, 1) + p->y_at;
    uint8_t *index = (uint8_t *)tide__at(call, 2) + p->y_at;
    for (int64_t oh = 0; oh < p->d->y.h; oh++)
        for (int64_t ow = 0; ow < p->d->y.w; ow++) {
            int64_t o = (oh * p->d->y.w + ow) * p->lanes;
            window a = window_at(p->d, oh, ow);
            if (p->lanes == 8)
                max_pixel8(p, &a, x, y + o, index + o);
            else
                max_pixel(p, &a, x, y + o, index + o);
        }
}

static void max_backward(const plane *p, const tide__call *call) {
    const tide_op_desc *d = p->d;
    const uint8_t *index = (const uint8_t *)tide__at(call, 0) + p->y_at;
    const float *dy = tide__floats(call, 1) + p->y_at;
    float *dx = tide__floats(call, 2) + p->x_at;
    memset(dx, 0, (size_t)(d->x.h * d->x.w * p->lanes) * sizeof *dx);
    for (int64_t oh = 0; oh < d->y.h; oh++)
        for (int64_t ow = 0; ow < d->y.w; ow++) {
            int64_t o = (oh * d->y.w + ow) * p->lanes;
            window a = window_at(d, oh, ow);
            for (int l = 0; l < p->y_lanes; l++) {
                int64_t h = a.top + index[o + l] / d->kernel_w, w = a.left + index[o + l] % d->kernel_w;
                bool inside = h >= a.h0 && h < a.h1 && w >= a.w0 && w < a.w1;
                if (inside) dx[(h * d->x.w + w) * p->lanes + l] += dy[o + l];
            }
        }
}

/* ---- average ---- */

static inline void average_plane(const plane *p, int lanes, const float *x, float *y) {
    const tide_op_desc *d = p->d;
    const float share = 1.0f / (float)(d->kernel_h * d->kernel_w);
    for (int64_t oh = 0; oh < d->y.h; oh++)
        for (int64_t ow = 0; ow < d->y.w; ow++) {
            float sum[8] = {0};
            window a = window_at(d, oh, ow);
            for (int64_t h = a.h0; h < a.h1; h++)
                for (int64_t w = a.w0; w < a.w1; w++)
                    for (int l = 0; l < lanes; l++) sum[l] += x[(h * d->x.w + w) * lanes + l];
            for (int l = 0; l < p->y_lanes; l++) y[(oh * d->y.w + ow) * lanes + l] = sum[l] * share;
        }
}

static void average_forward(const plane *p, const tide__call *call) {
    const float *x = tide__floats(call, 0) + p->x_at;
    float *y = tide__floats(call, 1) + p->y_at;
    if (p->lanes == 8)
        average_plane(p, 8, x, y);
    else
        average_plane(p, 1, x, y);
}

static void average_backward(const plane *p, const tide__call *call) {
    const tide_op_desc *d = p->d;
    const float *dy = tide__floats(call, 0) + p->y_at, share = 1.0f / (float)(d->kernel_h * d->kernel_w);
    float *dx = tide__floats(call, 1) + p->x_at;
    memset(dx, 0, (size_t)(d->x.h * d->x.w * p->lanes) * sizeof *dx);
    for (int64_t oh = 0; oh < d->y.h; oh++)
        for (int64_t ow = 0; ow < d->y.w; ow++) {
            const float *from = dy + (oh * d->y.w + ow) * p->lanes;
            window a = window_at(d, oh, ow);
            for (int64_t h = a.h0; h < a.h1; h++)
                for (int64_t w = a.w0; w < a.w1; w++)
                    for (int l = 0; l < p->y_lanes; l++) dx[(h * d->x.w + w) * p->lanes + l] += from[l] * share;
        }
}

/* ---- building ---- */

static tide_status run_max_forward(const tide__cpu_kernel *k, const tide__call *call) {
    for_each_plane(k, call, max_forward);
    return TIDE_OK;
}

static tide_status run_max_backward(const tide__cpu_kernel *k, const tide__call *call) {
    for_each_plane(k, call, max_backward);
    return TIDE_OK;
}

static tide_status run_average_forward(const tide__cpu_kernel *k, const tide__call *call) {
    for_each_plane(k, call, average_forward);
    return TIDE_OK;
}

static tide_status run_average_backward(const tide__cpu_kernel *k, const tide__call *call) {
    for_each_plane(k, call, average_backward);
    return TIDE_OK;
}

tide_status tide__build_maxpool(tide__cpu_kernel *k, const tide_op_desc *source) {
    if (source->kind == TIDE_OP_MAXPOOL_FWD) {
        k->run = run_max_forward;
        TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
        TIDE_TRY(tide__add_activation(k, TIDE__WRITE, source->y));
        return tide__add_bytes_like(k, TIDE__WRITE, source->y);
    }
    k->run = run_max_backward;
    TIDE_TRY(tide__add_bytes_like(k, TIDE__READ, source->y));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, source->y));
    return tide__add_activation(k, TIDE__WRITE, source->x);
}

tide_status tide__build_avgpool(tide__cpu_kernel *k, const tide_op_desc *source) {
    bool forward = source->kind == TIDE_OP_AVGPOOL_FWD;
    k->run = forward ? run_average_forward : run_average_backward;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, forward ? source->x : source->y));
    return tide__add_activation(k, TIDE__WRITE, forward ? source->y : source->x);
}
