/* See resample.h. A triangle is moved along the rows, then along the columns: as wide as two pixels of the picture, or of the
 * result where those are the larger ones. */
#include "nn/resample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

enum { COLOURS = 3 };

/* Which pixels of a side make one of the result, and how much each counts. */
typedef struct tap {
    uint32_t first, n;
    float *weight; /* they add up to 1 */
} tap;

typedef struct taps {
    tap *at;
    float *weights;
} taps;

static void free_taps(taps *t) {
    free(t->at);
    free(t->weights);
}

static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* Of `size` results along a side of `length` pixels, from `from` on. */
static tide_status make_taps(uint32_t length, double from, double extent, uint32_t size, taps *out) {
    double scale = extent / size, reach = scale > 1 ? scale : 1;
    uint32_t most = (uint32_t)(2 * reach) + 3;
    out->at = calloc(size, sizeof *out->at);
    out->weights = calloc((size_t)size * most, sizeof *out->weights);
    if (!out->at || !out->weights) return tide__fail_memory();
    for (uint32_t i = 0; i < size; i++) {
        double centre = from + (i + 0.5) * scale, sum = 0;
        tap *t = &out->at[i];
        t->weight = out->weights + (size_t)i * most;
        t->first = (uint32_t)clamp(floor(centre - reach), 0, length - 1);
        uint32_t end = (uint32_t)clamp(ceil(centre + reach), t->first + 1, length);
        t->n = end - t->first < most ? end - t->first : most;
        for (uint32_t k = 0; k < t->n; k++) sum += triangle((t->first + k + 0.5 - centre) / reach);
        for (uint32_t k = 0; k < t->n; k++)
            t->weight[k] = (float)(sum > 0 ? triangle((t->first + k + 0.5 - centre) / reach) / sum : 1.0 / t->n);
    }
    return TIDE_OK;
}

/* A row of the picture, resized: three floats per pixel. */
static void resize_row(const unsigned char *rgb, const taps *x, uint32_t width, float *out) {
    for (uint32_t i = 0; i < width; i++) {
        const tap *t = &x->at[i];
        float sum[COLOURS] = {0};
        for (uint32_t k = 0; k < t->n; k++)
            for (int c = 0; c < COLOURS; c++)
                sum[c] += t->weight[k] * (float)rgb[((size_t)t->first + k) * COLOURS + (size_t)c];
        for (int c = 0; c < COLOURS; c++) out[(size_t)i * COLOURS + (size_t)c] = sum[c];
    }
}

/* ImageNet's, as torchvision's published weights expect them; grey is their mean. */
static void put_pixel(const float rgb[COLOURS], uint32_t channels, size_t plane, float *out) {
    static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
    if (channels == 1) {
        out[0] = ((0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]) / 255 - 0.449f) / 0.226f;
        return;
    }
    for (int c = 0; c < COLOURS; c++) out[(size_t)c * plane] = (rgb[c] / 255 - mean[c]) / deviation[c];
}

typedef struct result {
    uint32_t channels, height, width;
    bool flip;
    float *pixels;
} result;

/* rows: those of the picture from `first` on, resized. */
static void resize_column(const float *rows, uint32_t first, const taps *y, const result *r, uint32_t column) {
    size_t plane = (size_t)r->height * r->width, stride = (size_t)r->width * COLOURS;
    uint32_t to = r->flip ? r->width - 1 - column : column;
    for (uint32_t i = 0; i < r->height; i++) {
        const tap *t = &y->at[i];
        float sum[COLOURS] = {0};
        for (uint32_t k = 0; k < t->n; k++)
            for (int c = 0; c < COLOURS; c++)
                sum[c] += t->weight[k] * rows[(t->first - first + k) * stride + (size_t)column * COLOURS + (size_t)c];
        put_pixel(sum, r->channels, plane, r->pixels + (size_t)i * r->width + to);
    }
}

static tide_status resize(const tide__picture *p, const taps *x, const taps *y, const result *r) {
    const tap *last = &y->at[r->height - 1];
    uint32_t first = y->at[0].first, n = last->first + last->n - first;
    float *rows = malloc((size_t)n * r->width * COLOURS * sizeof *rows);
    if (!rows) return tide__fail_memory();
    for (uint32_t i = 0; i < n; i++)
        resize_row(p->rgb + (size_t)(first + i) * p->width * COLOURS, x, r->width,
                   rows + (size_t)i * r->width * COLOURS);
    for (uint32_t i = 0; i < r->width; i++) resize_column(rows, first, y, r, i);
    free(rows);
    return TIDE_OK;
}

tide_status tide__resample(const tide__picture *p, const tide__box *box, bool flip, uint32_t channels, uint32_t height,
                           uint32_t width, float *pixels) {
    const result r = {channels, height, width, flip, pixels};
    taps x = {0}, y = {0};
    tide_status status = make_taps(p->width, box->x, box->width, width, &x);
    if (status == TIDE_OK) status = make_taps(p->height, box->y, box->height, height, &y);
    if (status == TIDE_OK) status = resize(p, &x, &y, &r);
    free_taps(&x);
    free_taps(&y);
    return status;
}
