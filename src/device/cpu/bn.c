/* Batch normalisation, own loops: the contract keeps 1 / standard deviation, which oneDNN does not.
 *
 * Two sums per channel (forward: x and x^2; backward: dy and dy * x^) are taken in double over at most MAX_CHUNKS
 * ranges of images, one partial result each, and then added in order of the ranges. The ranges depend on the shape only,
 * so the bits do not depend on the threads.
 *
 * Everything goes group by group, all images of it: what the sums have read is still in a cache when the second pass
 * reads it again. With too few groups for the threads, the ranges and then the images of each are shared out instead. */
#include <math.h>
#include <string.h>

#include "device/cpu/bf16.h"
#include "device/cpu/view.h"
#include "device/cpu/wide.h"

#define MAX_CHUNKS 16

/* ---- sums ---- */

/* dy, mean and inv_std are NULL in forward. */
typedef struct sums {
    tide__view view;
    int64_t chunks;
    tide__values x, dy;
    const float *mean, *inv_std;
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

/* Loops over a plane come for 8 lanes, where sums of all lanes become vector code, and for one. */

TIDE__WIDE static void add_plane_8(int64_t pixels, const float *x, double *first, double *second) {
    double a[8], b[8];
    memcpy(a, first, sizeof a);
    memcpy(b, second, sizeof b);
    for (int64_t p = 0; p < pixels; p++)
        for (int l = 0; l < 8; l++) {
            double value = (double)x[p * 8 + l];
            a[l] += value;
            b[l] += value * value;
        }
    memcpy(first, a, sizeof a);
    memcpy(second, b, sizeof b);
}

static void add_plane_1(int64_t pixels, const float *x, double *first, double *second) {
    for (int64_t p = 0; p < pixels; p++) {
        double value = (double)x[p];
        *first += value;
        *second += value * value;
    }
}

TIDE__WIDE static void add_plane_backward_8(int64_t pixels, const float *x, const float *dy, const float *mean,
                                            const float *inv_std, double *first, double *second) {
    double a[8], b[8];
    memcpy(a, first, sizeof a);
    memcpy(b, second, sizeof b);
    for (int64_t p = 0; p < pixels; p++)
        for (int l = 0; l < 8; l++) {
            float hat = (x[p * 8 + l] - mean[l]) * inv_std[l];
            a[l] += (double)dy[p * 8 + l];
            b[l] += (double)(dy[p * 8 + l] * hat);
        }
    memcpy(first, a, sizeof a);
    memcpy(second, b, sizeof b);
}

static void add_plane_backward_1(int64_t pixels, const float *x, const float *dy, const float *mean,
                                 const float *inv_std, double *first, double *second) {
    for (int64_t p = 0; p < pixels; p++) {
        float hat = (x[p] - *mean) * *inv_std;
        *first += (double)dy[p];
        *second += (double)(dy[p] * hat);
    }
}

/* Of one image: at `at`. */
static void add_image(const sums *s, int64_t at, const float *mean, const float *inv_std, double *first,
                      double *second) {
    const int64_t lanes = s->view.lanes, end = at + s->view.pixels * lanes;
    const bool wide = lanes == 8;
    float x_tile[TIDE__TILE_FLOATS], dy_tile[TIDE__TILE_FLOATS];
    for (int64_t n; at < end; at += n) {
        n = tide__tile_of(s->x, end - at);
        const float *x = tide__values_read(tide__values_from(s->x, at), n, x_tile);
        if (s->dy.data)
            (wide ? add_plane_backward_8
                  : add_plane_backward_1)(n / lanes, x, tide__values_read(tide__values_from(s->dy, at), n, dy_tile),
                                          mean, inv_std, first, second);
        else
            (wide ? add_plane_8 : add_plane_1)(n / lanes, x, first, second);
    }
}

static void sum_chunk(const sums *s, int64_t chunk, int64_t g) {
    const tide__view *v = &s->view;
    double first[8] = {0}, second[8] = {0};
    float mean[8], inv_std[8];
    if (s->dy.data) {
        load_channels(v, g, s->mean, mean);
        load_channels(v, g, s->inv_std, inv_std);
    }
    for (int64_t n = v->n * chunk / s->chunks; n < v->n * (chunk + 1) / s->chunks; n++)
        add_image(s, tide__view_at(v, n, g), mean, inv_std, first, second);
    double *to = s->partial + (chunk * v->groups + g) * v->lanes * 2;
    for (int l = 0; l < v->lanes; l++) {
        to[2 * l] = first[l];
        to[2 * l + 1] = second[l];
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

/* Channels of group g that are not padding: from *first on. */
static int64_t channels_of(const tide__view *v, int64_t g, int64_t *first) {
    *first = g * v->lanes;
    return v->channels - *first < v->lanes ? v->channels - *first : v->lanes;
}

/* ---- the order of the work ---- */

/* What a pass does: the sums of a range of images of a group; with the sums of a group what its channels have in
 * common; and the values of one image of it. */
typedef struct pass {
    const sums *s;
    const void *context;
    void (*settle)(const sums *s, const void *context, int64_t g);
    void (*apply)(const sums *s, const void *context, int64_t n, int64_t g);
} pass;

static void run_group(const pass *p, int64_t g) {
    for (int64_t chunk = 0; chunk < p->s->chunks; chunk++) sum_chunk(p->s, chunk, g);
    p->settle(p->s, p->context, g);
    for (int64_t n = p->s->view.n; n-- > 0;) p->apply(p->s, p->context, n, g); /* what was read last comes first */
}

static void run_pass(const pass *p, uint32_t threads) {
    const tide__view *v = &p->s->view;
    if (v->groups >= threads) {
#pragma omp parallel for schedule(static) if (tide__view_size(v) > TIDE__PARALLEL_FLOATS)
        for (int64_t g = 0; g < v->groups; g++) run_group(p, g);
        return;
    }
    for (int64_t g = 0; g < v->groups; g++) {
#pragma omp parallel for schedule(static) if (tide__view_size(v) > TIDE__PARALLEL_FLOATS)
        for (int64_t chunk = 0; chunk < p->s->chunks; chunk++) sum_chunk(p->s, chunk, g);
        p->settle(p->s, p->context, g);
#pragma omp parallel for schedule(static) if (tide__view_size(v) > TIDE__PARALLEL_FLOATS)
        for (int64_t n = 0; n < v->n; n++) p->apply(p->s, p->context, n, g);
    }
}

static uint32_t threads_of(const tide__cpu_kernel *k) { return ((const tide__cpu *)k->base.device)->threads; }

static double values_per_channel(const tide_shape *x) { return (double)(x->n * x->h * x->w); }

/* ---- forward and inference: y = (x - mean) * factor + shift ---- */

TIDE__WIDE static void normalise_plane_8(int64_t pixels, const float *x, const float *mean, const float *factor,
                                         const float *shift, float *y) {
    float m[8], f[8], s[8];
    memcpy(m, mean, sizeof m);
    memcpy(f, factor, sizeof f);
    memcpy(s, shift, sizeof s);
    for (int64_t p = 0; p < pixels; p++)
#pragma omp simd
        for (int l = 0; l < 8; l++) y[p * 8 + l] = (x[p * 8 + l] - m[l]) * f[l] + s[l];
}

static void normalise_plane_1(int64_t pixels, const float *x, const float *mean, const float *factor,
                              const float *shift, float *y) {
    const float m = *mean, f = *factor, s = *shift;
    for (int64_t p = 0; p < pixels; p++) y[p] = (x[p] - m) * f + s;
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

static void normalise_image(const tide__view *v, tide__values x, const affine *a, int64_t image, int64_t g,
                            tide__values y) {
    float mean[8], factor[8], shift[8], tile[TIDE__TILE_FLOATS];
    const int64_t first = tide__view_at(v, image, g), end = first + v->pixels * v->lanes;
    load_affine(v, g, a, mean, factor, shift);
    for (int64_t at = first, n; at < end; at += n) {
        const tide__values to = tide__values_from(y, at);
        n = tide__tile_of(x, end - at);
        const float *from = tide__values_read(tide__values_from(x, at), n, tile);
        float *out = tide__values_write(to, tile);
        (v->lanes == 8 ? normalise_plane_8 : normalise_plane_1)(n / v->lanes, from, mean, factor, shift, out);
        tide__values_stored(to, n, out);
    }
}

typedef struct forward {
    affine a;
    tide__values y;
    float *mean, *inv_std; /* written, and y; a reads mean and inv_std */
    double values, eps;    /* values per channel */
} forward;

static void settle_forward(const sums *s, const void *context, int64_t g) {
    const forward *f = context;
    int64_t first_channel, count = channels_of(&s->view, g, &first_channel);
    for (int64_t c = first_channel; c < first_channel + count; c++) {
        double first, second;
        total(s, c, &first, &second);
        double variance = second / f->values - (first / f->values) * (first / f->values);
        f->mean[c] = (float)(first / f->values);
        f->inv_std[c] = (float)(1 / sqrt((variance < 0 ? 0 : variance) + f->eps));
    }
}

static void apply_forward(const sums *s, const void *context, int64_t n, int64_t g) {
    const forward *f = context;
    normalise_image(&s->view, s->x, &f->a, n, g, f->y);
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_shape *shape = &k->desc.x;
    float *mean = tide__floats(call, 4), *inv_std = tide__floats(call, 5);
    const forward f = {.a = {tide__floats(call, 1), tide__floats(call, 2), mean, inv_std, NULL, 0},
                       .y = tide__values_of(k, call, 3),
                       .mean = mean,
                       .inv_std = inv_std,
                       .values = values_per_channel(shape),
                       .eps = (double)k->desc.eps};
    const sums s = {.view = tide__view_of(shape),
                    .chunks = chunk_count(shape),
                    .x = tide__values_of(k, call, 0),
                    .partial = tide__at(call, 6)};
    run_pass(&(pass){&s, &f, settle_forward, apply_forward}, threads_of(k));
    return TIDE_OK;
}

static tide_status run_infer(const tide__cpu_kernel *k, const tide__call *call) {
    const affine a = {tide__floats(call, 1), tide__floats(call, 2), tide__floats(call, 3), NULL,
                      tide__floats(call, 4), (double)k->desc.eps};
    const tide__view v = tide__view_of(&k->desc.x);
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t g = 0; g < v.groups; g++)
            normalise_image(&v, tide__values_of(k, call, 0), &a, n, g, tide__values_of(k, call, 5));
    return TIDE_OK;
}

/* ---- running statistics: momentum is the share of the new value; the variance is made unbiased; a
 * batch that is not finite leaves them as they are ---- */

static tide_status run_stats(const tide__cpu_kernel *k, const tide__call *call) {
    const float *mean = tide__floats(call, 0), *inv_std = tide__floats(call, 1), *run_mean = tide__floats(call, 2),
                *run_var = tide__floats(call, 3), share = k->desc.momentum;
    float *mean_out = tide__floats(call, 4), *var_out = tide__floats(call, 5);
    const double m = values_per_channel(&k->desc.x), unbias = m > 1 ? m / (m - 1) : 1;
    for (int64_t c = 0; c < k->desc.x.c; c++) {
        double variance = 1 / ((double)inv_std[c] * (double)inv_std[c]) - (double)k->desc.eps;
        float fresh = (float)((variance < 0 ? 0 : variance) * unbias);
        bool finite = isfinite(mean[c]) && isfinite(fresh);
        mean_out[c] = finite ? (1 - share) * run_mean[c] + share * mean[c] : run_mean[c];
        var_out[c] = finite ? (1 - share) * run_var[c] + share * fresh : run_var[c];
    }
    return TIDE_OK;
}

/* ---- backward: dx = factor * (dy - a - x^ * b), a and b the means of dy and dy * x^ ---- */

typedef struct slope {
    float mean[8], inv_std[8], factor[8], a[8], b[8];
} slope;

/* dx may lie on dy. */
TIDE__WIDE static void backward_plane_8(int64_t pixels, const float *x, const float *dy, const slope *slopes,
                                        float *dx) {
    const slope s = *slopes;
    for (int64_t p = 0; p < pixels; p++)
#pragma omp simd
        for (int l = 0; l < 8; l++) {
            int64_t i = p * 8 + l;
            float hat = (x[i] - s.mean[l]) * s.inv_std[l];
            dx[i] = s.factor[l] * (dy[i] - s.a[l] - hat * s.b[l]);
        }
}

static void backward_plane_1(int64_t pixels, const float *x, const float *dy, const slope *s, float *dx) {
    for (int64_t i = 0; i < pixels; i++) {
        float hat = (x[i] - s->mean[0]) * s->inv_std[0];
        dx[i] = s->factor[0] * (dy[i] - s->a[0] - hat * s->b[0]);
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

typedef struct backward {
    const float *scale;
    tide__values dx;
    float *dscale, *dshift;
} backward;

static void settle_backward(const sums *s, const void *context, int64_t g) {
    const backward *b = context;
    int64_t first_channel, count = channels_of(&s->view, g, &first_channel);
    for (int64_t c = first_channel; c < first_channel + count; c++) {
        double first, second;
        total(s, c, &first, &second);
        b->dshift[c] = (float)first;
        b->dscale[c] = (float)second;
    }
}

static void apply_backward(const sums *s, const void *context, int64_t image, int64_t g) {
    const backward *b = context;
    const int64_t lanes = s->view.lanes, first = tide__view_at(&s->view, image, g),
                  end = first + s->view.pixels * lanes;
    const slope t = load_slope(s, g, b->scale, b->dscale, b->dshift);
    float x_tile[TIDE__TILE_FLOATS], dy_tile[TIDE__TILE_FLOATS];
    for (int64_t at = first, n; at < end; at += n) {
        const tide__values to = tide__values_from(b->dx, at);
        n = tide__tile_of(s->x, end - at);
        const float *x = tide__values_read(tide__values_from(s->x, at), n, x_tile);
        const float *dy = tide__values_read(tide__values_from(s->dy, at), n, dy_tile);
        float *dx = tide__values_write(to, dy_tile);
        (lanes == 8 ? backward_plane_8 : backward_plane_1)(n / lanes, x, dy, &t, dx);
        tide__values_stored(to, n, dx);
    }
}

/* dx may lie on dy: each is read before it is written, element by element, and by the sums of its group before that. */
static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_shape *shape = &k->desc.x;
    const backward b = {tide__floats(call, 2), tide__values_of(k, call, 5), tide__floats(call, 6),
                        tide__floats(call, 7)};
    const sums s = {tide__view_of(shape),
                    chunk_count(shape),
                    tide__values_of(k, call, 0),
                    tide__values_of(k, call, 1),
                    tide__floats(call, 3),
                    tide__floats(call, 4),
                    tide__at(call, 8)};
    run_pass(&(pass){&s, &b, settle_backward, apply_backward}, threads_of(k));
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
