/* Batch normalisation, own loops: the contract keeps 1 / standard deviation, which oneDNN does not.
 *
 * Two sums per channel (forward: x and x^2; backward: dy and dy * x^) are taken in double over at most MAX_CHUNKS
 * ranges of images, one partial result each in the workspace, and then added in order of the ranges. The ranges depend
 * on the shape only, so the bits do not depend on the threads. */
#include <math.h>

#include "device/cpu/view.h"

#define MAX_CHUNKS 16

/* ---- sums ---- */

/* dy, mean and inv_std are NULL in forward. */
typedef struct sums {
    tide__view view;
    int64_t chunks;
    const float *x, *dy, *mean, *inv_std;
    double *partial; /* [chunk][padded channel][2] */
} sums;

static int64_t chunk_count(const tide_shape *x) { return x->n < MAX_CHUNKS ? x->n : MAX_CHUNKS; }

static uint64_t partial_bytes(const tide_shape *x) {
    tide__view v = tide__view_of(x);
    return (uint64_t)(chunk_count(x) * v.groups * v.lanes) * 2 * sizeof(double);
}

/* The values of up to 8 channels; zero where the channel is padding. */
static void load_channels(const tide__view *v, int64_t g, const float *from, float *to) {
    for (int l = 0; l < v->lanes; l++) {
        int64_t c = g * v->lanes + l;
        to[l] = c < v->channels ? from[c] : 0;
    }
}

static inline void add_plane(int lanes, int64_t pixels, const float *x, double *first, double *second) {
    for (int64_t p = 0; p < pixels; p++)
        for (int l = 0; l < lanes; l++) {
            double value = (double)x[p * lanes + l];
            first[l] += value;
            second[l] += value * value;
        }
}

static inline void add_plane_backward(int lanes, int64_t pixels, const float *x, const float *dy, const float *mean,
                                      const float *inv_std, double *first, double *second) {
    for (int64_t p = 0; p < pixels; p++)
        for (int l = 0; l < lanes; l++) {
            float hat = (x[p * lanes + l] - mean[l]) * inv_std[l];
            first[l] += (double)dy[p * lanes + l];
            second[l] += (double)(dy[p * lanes + l] * hat);
        }
}

static inline void sum_chunk(const sums *s, int lanes, int64_t chunk, int64_t g) {
    const tide__view *v = &s->view;
    double first[8] = {0}, second[8] = {0};
    float mean[8], inv_std[8];
    if (s->dy) {
        load_channels(v, g, s->mean, mean);
        load_channels(v, g, s->inv_std, inv_std);
    }
    for (int64_t n = v->n * chunk / s->chunks; n < v->n * (chunk + 1) / s->chunks; n++) {
        int64_t at = tide__view_at(v, n, g);
        if (s->dy)
            add_plane_backward(lanes, v->pixels, s->x + at, s->dy + at, mean, inv_std, first, second);
        else
            add_plane(lanes, v->pixels, s->x + at, first, second);
    }
    double *to = s->partial + (chunk * v->groups + g) * lanes * 2;
    for (int l = 0; l < lanes; l++) {
        to[2 * l] = first[l];
        to[2 * l + 1] = second[l];
    }
}

static void sum_all(const sums *s) {
    const tide__view *v = &s->view;
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(v) > TIDE__PARALLEL_FLOATS)
    for (int64_t chunk = 0; chunk < s->chunks; chunk++)
        for (int64_t g = 0; g < v->groups; g++) {
            if (v->lanes == 8) /* constants, so that the inner loops become vector code */
                sum_chunk(s, 8, chunk, g);
            else
                sum_chunk(s, 1, chunk, g);
        }
}

static void total(const sums *s, int64_t channel, double *first, double *second) {
    int64_t stride = s->view.groups * s->view.lanes * 2;
    *first = *second = 0;
    for (int64_t chunk = 0; chunk < s->chunks; chunk++) {
        *first += s->partial[chunk * stride + channel * 2];
        *second += s->partial[chunk * stride + channel * 2 + 1];
    }
}

static double values_per_channel(const tide_shape *x) { return (double)(x->n * x->h * x->w); }

/* ---- forward and inference: y = (x - mean) * factor + shift ---- */

static inline void normalise_plane(int lanes, int64_t pixels, const float *x, const float *mean, const float *factor,
                                   const float *shift, float *y) {
    for (int64_t p = 0; p < pixels; p++)
        for (int l = 0; l < lanes; l++) y[p * lanes + l] = (x[p * lanes + l] - mean[l]) * factor[l] + shift[l];
}

/* inv_std may be NULL: then it is 1 / sqrt(variance + eps). */
typedef struct affine {
    const float *scale, *shift, *mean, *inv_std, *variance;
    double eps;
} affine;

static void load_affine(const tide__view *v, int64_t g, const affine *a, float *mean, float *factor, float *shift) {
    load_channels(v, g, a->mean, mean);
    load_channels(v, g, a->scale, factor);
    load_channels(v, g, a->shift, shift);
    for (int l = 0; l < v->lanes && g * v->lanes + l < v->channels; l++) {
        int64_t c = g * v->lanes + l;
        factor[l] *= a->inv_std ? a->inv_std[c] : (float)(1 / sqrt((double)a->variance[c] + a->eps));
    }
}

static void normalise(const tide_shape *shape, const float *x, const affine *a, float *y) {
    const tide__view v = tide__view_of(shape);
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t g = 0; g < v.groups; g++) {
            float mean[8], factor[8], shift[8];
            int64_t at = tide__view_at(&v, n, g);
            load_affine(&v, g, a, mean, factor, shift);
            if (v.lanes == 8)
                normalise_plane(8, v.pixels, x + at, mean, factor, shift, y + at);
            else
                normalise_plane(1, v.pixels, x + at, mean, factor, shift, y + at);
        }
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_shape *shape = &k->desc.x;
    float *y = tide__floats(call, 3), *mean = tide__floats(call, 4), *inv_std = tide__floats(call, 5);
    const affine a = {tide__floats(call, 1), tide__floats(call, 2), mean, inv_std, NULL, 0};
    const sums s = {.view = tide__view_of(shape),
                    .chunks = chunk_count(shape),
                    .x = tide__floats(call, 0),
                    .partial = tide__at(call, 6)};
    double first, second, m = values_per_channel(shape);
    sum_all(&s);
    for (int64_t c = 0; c < shape->c; c++) {
        total(&s, c, &first, &second);
        double variance = second / m - (first / m) * (first / m);
        mean[c] = (float)(first / m);
        inv_std[c] = (float)(1 / sqrt((variance < 0 ? 0 : variance) + (double)k->desc.eps));
    }
    normalise(shape, s.x, &a, y);
    return TIDE_OK;
}

static tide_status run_infer(const tide__cpu_kernel *k, const tide__call *call) {
    const affine a = {tide__floats(call, 1), tide__floats(call, 2), tide__floats(call, 3), NULL,
                      tide__floats(call, 4), (double)k->desc.eps};
    normalise(&k->desc.x, tide__floats(call, 0), &a, tide__floats(call, 5));
    return TIDE_OK;
}

/* ---- running statistics: momentum is the share of the new value; the variance is made unbiased ---- */

static tide_status run_stats(const tide__cpu_kernel *k, const tide__call *call) {
    const float *mean = tide__floats(call, 0), *inv_std = tide__floats(call, 1), *run_mean = tide__floats(call, 2),
                *run_var = tide__floats(call, 3), share = k->desc.momentum;
    float *mean_out = tide__floats(call, 4), *var_out = tide__floats(call, 5);
    const double m = values_per_channel(&k->desc.x), unbias = m > 1 ? m / (m - 1) : 1;
    for (int64_t c = 0; c < k->desc.x.c; c++) {
        double variance = 1 / ((double)inv_std[c] * (double)inv_std[c]) - (double)k->desc.eps;
        float fresh = (float)((variance < 0 ? 0 : variance) * unbias);
        mean_out[c] = (1 - share) * run_mean[c] + share * mean[c];
        var_out[c] = (1 - share) * run_var[c] + share * fresh;
    }
    return TIDE_OK;
}

/* ---- backward: dx = factor * (dy - a - x^ * b), a and b the means of dy and dy * x^ ---- */

typedef struct slope {
    float mean[8], inv_std[8], factor[8], a[8], b[8];
} slope;

static inline void backward_plane(int lanes, int64_t pixels, const float *x, const float *dy, const slope *s,
                                  float *dx) {
    for (int64_t p = 0; p < pixels; p++)
        for (int l = 0; l < lanes; l++) {
            int64_t i = p * lanes + l;
            float hat = (x[i] - s->mean[l]) * s->inv_std[l];
            dx[i] = s->factor[l] * (dy[i] - s->a[l] - hat * s->b[l]);
        }
}

static slope load_slope(const sums *s, int64_t g, const float *scale, const float *dscale, const float *dshift) {
    slope t = {0};
    const float m = (float)(s->view.n * s->view.pixels);
    load_channels(&s->view, g, s->mean, t.mean);
    load_channels(&s->view, g, s->inv_std, t.inv_std);
    load_channels(&s->view, g, scale, t.factor);
    load_channels(&s->view, g, dshift, t.a);
    load_channels(&s->view, g, dscale, t.b);
    for (int l = 0; l < s->view.lanes; l++) {
        t.factor[l] *= t.inv_std[l];
        t.a[l] /= m;
        t.b[l] /= m;
    }
    return t;
}

/* dx may lie on dy: each is read before it is written, element by element. */
static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_shape *shape = &k->desc.x;
    const float *scale = tide__floats(call, 2);
    float *dx = tide__floats(call, 5), *dscale = tide__floats(call, 6), *dshift = tide__floats(call, 7);
    const sums s = {tide__view_of(shape),  chunk_count(shape),    tide__floats(call, 0), tide__floats(call, 1),
                    tide__floats(call, 3), tide__floats(call, 4), tide__at(call, 8)};
    const tide__view v = s.view;
    double first, second;
    sum_all(&s);
    for (int64_t c = 0; c < shape->c; c++) {
        total(&s, c, &first, &second);
        dshift[c] = (float)first;
        dscale[c] = (float)second;
    }
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t g = 0; g < v.groups; g++) {
            int64_t at = tide__view_at(&v, n, g);
            slope t = load_slope(&s, g, scale, dscale, dshift);
            if (v.lanes == 8)
                backward_plane(8, v.pixels, s.x + at, s.dy + at, &t, dx + at);
            else
                backward_plane(1, v.pixels, s.x + at, s.dy + at, &t, dx + at);
        }
    return TIDE_OK;
}

/* ---- building ---- */

static tide_status add_vectors(tide__cpu_kernel *k, tide__access access, int count) {
    for (int i = 0; i < count; i++) TIDE_TRY(tide__add_vector(k, access, k->desc.x.c, dnnl_f32));
    return TIDE_OK;
}

static tide_status build_forward(tide__cpu_kernel *k) {
    k->run = run_forward;
    k->workspace_bytes = partial_bytes(&k->desc.x);
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.x));
    TIDE_TRY(add_vectors(k, TIDE__READ, 2));
    TIDE_TRY(tide__add_activation(k, TIDE__WRITE, k->desc.x));
    return add_vectors(k, TIDE__WRITE, 2);
}

static tide_status build_infer(tide__cpu_kernel *k) {
    k->run = run_infer;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.x));
    TIDE_TRY(add_vectors(k, TIDE__READ, 4));
    return tide__add_activation(k, TIDE__WRITE, k->desc.x);
}

static tide_status build_stats(tide__cpu_kernel *k) {
    k->run = run_stats;
    TIDE_TRY(add_vectors(k, TIDE__READ, 4));
    return add_vectors(k, TIDE__WRITE, 2);
}

static tide_status build_backward(tide__cpu_kernel *k) {
    k->run = run_backward;
    k->workspace_bytes = partial_bytes(&k->desc.x);
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.x));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.x));
    TIDE_TRY(add_vectors(k, TIDE__READ, 3));
    TIDE_TRY(tide__add_activation(k, TIDE__WRITE, k->desc.x));
    return add_vectors(k, TIDE__WRITE, 2);
}

tide_status tide__build_bn(tide__cpu_kernel *k, const tide_op_desc *source) {
    switch (source->kind) {
    case TIDE_OP_BN_FWD: return build_forward(k);
    case TIDE_OP_BN_INFER: return build_infer(k);
    case TIDE_OP_BN_STATS: return build_stats(k);
    default: return build_backward(k);
    }
}
