/* Layer norm over the rows of (N, C, 1, 1), own loops: oneDNN's backward is slow.
 *
 * Backward sums dy and dy * x^ per column over at most MAX_CHUNKS ranges of rows, one pair of partial sums each in the
 * workspace, then adds them in order of the ranges; these depend on the shape only, so bits do not depend on threads. */
#include <math.h>

#include "device/cpu/rows.h"
#include "device/cpu/view.h"
#include "device/cpu/wide.h"

#define MAX_CHUNKS 16
#define LANES 8

/* ---- forward ---- */

TIDE__WIDE static double squares_around(const float *x, int64_t n, float mean) {
    double lane[LANES] = {0}, sum = 0;
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += (double)((x[i + l] - mean) * (x[i + l] - mean));
    for (int l = 0; l < LANES; l++) sum += lane[l];
    for (int64_t i = whole; i < n; i++) sum += (double)((x[i] - mean) * (x[i] - mean));
    return sum;
}

TIDE__WIDE static void normalise(const float *x, int64_t n, float mean, float inv_std, const float *scale,
                                 const float *shift, float *y) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * inv_std * scale[i] + shift[i];
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const int64_t rows = k->desc.x.n, width = k->desc.x.c;
    const float *x = tide__floats(call, 0), *scale = tide__floats(call, 1), *shift = tide__floats(call, 2);
    float *y = tide__floats(call, 3), *mean = tide__floats(call, 4), *inv_std = tide__floats(call, 5);
    const double eps = (double)k->desc.eps;
#pragma omp parallel for schedule(static) if (rows * width > TIDE__PARALLEL_FLOATS)
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * width;
        mean[r] = (float)(tide__row_sum(row, width) / (double)width);
        inv_std[r] = (float)(1 / sqrt(squares_around(row, width, mean[r]) / (double)width + eps));
        normalise(row, width, mean[r], inv_std[r], scale, shift, y + r * width);
    }
    return TIDE_OK;
}

/* ---- backward: dx = inv_std * (g - a - x^ * b), g = dy * scale, a and b the means of g and g * x^ ---- */

typedef struct slopes {
    int64_t rows, width, chunks;
    const float *x, *dy, *scale, *mean, *inv_std;
    float *dx;
    double *partial; /* [chunk][dscale or dshift][column] */
} slopes;

/* Adds the row to the columns' sums, and gives its own two. */
TIDE__WIDE static void add_row(const slopes *s, int64_t row, double *dscale, double *dshift, double sum[2]) {
    const float *x = s->x + row * s->width, *dy = s->dy + row * s->width, *scale = s->scale;
    const float mean = s->mean[row], inv_std = s->inv_std[row];
    const int64_t whole = s->width - s->width % LANES;
    double first[LANES] = {0}, second[LANES] = {0};
#pragma omp simd
    for (int64_t i = 0; i < s->width; i++) {
        dscale[i] += (double)(dy[i] * ((x[i] - mean) * inv_std));
        dshift[i] += (double)dy[i];
    }
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float g = dy[i + l] * scale[i + l];
            first[l] += (double)g;
            second[l] += (double)(g * ((x[i + l] - mean) * inv_std));
        }
    for (int64_t i = whole; i < s->width; i++) {
        first[0] += (double)(dy[i] * scale[i]);
        second[0] += (double)(dy[i] * scale[i] * ((x[i] - mean) * inv_std));
    }
    sum[0] = sum[1] = 0;
    for (int l = 0; l < LANES; l++) sum[0] += first[l];
    for (int l = 0; l < LANES; l++) sum[1] += second[l];
}

/* dx may lie on dy. */
TIDE__WIDE static void finish_row(const slopes *s, int64_t row, float a, float b) {
    const float *x = s->x + row * s->width, *dy = s->dy + row * s->width, *scale = s->scale;
    const float mean = s->mean[row], inv_std = s->inv_std[row];
    float *dx = s->dx + row * s->width;
#pragma omp simd
    for (int64_t i = 0; i < s->width; i++) dx[i] = inv_std * (dy[i] * scale[i] - a - (x[i] - mean) * inv_std * b);
}

static void run_chunk(const slopes *s, int64_t chunk) {
    double *dscale = s->partial + chunk * 2 * s->width, *dshift = dscale + s->width, sum[2];
    memset(dscale, 0, (size_t)s->width * 2 * sizeof *dscale);
    for (int64_t r = s->rows * chunk / s->chunks; r < s->rows * (chunk + 1) / s->chunks; r++) {
        add_row(s, r, dscale, dshift, sum);
        finish_row(s, r, (float)(sum[0] / (double)s->width), (float)(sum[1] / (double)s->width));
    }
}

static int64_t chunk_count(const tide_op_desc *d) { return d->x.n < MAX_CHUNKS ? d->x.n : MAX_CHUNKS; }

static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const slopes s = {k->desc.x.n,           k->desc.x.c,           chunk_count(&k->desc), tide__floats(call, 0),
                      tide__floats(call, 1), tide__floats(call, 2), tide__floats(call, 3), tide__floats(call, 4),
                      tide__floats(call, 5), tide__at(call, 8)};
    float *dscale = tide__floats(call, 6), *dshift = tide__floats(call, 7);
#pragma omp parallel for schedule(static) if (s.rows * s.width > TIDE__PARALLEL_FLOATS)
    for (int64_t c = 0; c < s.chunks; c++) run_chunk(&s, c);
    for (int64_t i = 0; i < s.width; i++) {
        double scale = 0, shift = 0;
        for (int64_t c = 0; c < s.chunks; c++) {
            scale += s.partial[c * 2 * s.width + i];
            shift += s.partial[(c * 2 + 1) * s.width + i];
        }
        dscale[i] = (float)scale;
        dshift[i] = (float)shift;
    }
    return TIDE_OK;
}

/* ---- building ---- */

static tide_status add_vectors(tide__cpu_kernel *k, tide__access access, int count, int64_t n) {
    for (int i = 0; i < count; i++) TIDE_TRY(tide__add_vector(k, access, n, dnnl_f32));
    return TIDE_OK;
}

tide_status tide__build_layernorm(tide__cpu_kernel *k, const tide_op_desc *source) {
    const tide_shape *x = &source->x;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *x));
    if (source->kind == TIDE_OP_LAYERNORM_FWD) {
        k->run = run_forward;
        TIDE_TRY(add_vectors(k, TIDE__READ, 2, x->c));
        TIDE_TRY(tide__add_activation(k, TIDE__WRITE, *x));
        return add_vectors(k, TIDE__WRITE, 2, x->n);
    }
    k->run = run_backward;
    k->workspace_bytes = (uint64_t)(chunk_count(source) * 2 * x->c) * sizeof(double);
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *x));
    TIDE_TRY(add_vectors(k, TIDE__READ, 1, x->c));
    TIDE_TRY(add_vectors(k, TIDE__READ, 2, x->n));
    TIDE_TRY(tide__add_activation(k, TIDE__WRITE, *x));
    return add_vectors(k, TIDE__WRITE, 2, x->c);
}
