/* Drawn digits: a data set made of nothing but numbers, so that a first run needs no download.
 *
 * A digit is a polyline in the unit square (y down). A sample rotates, shears, scales and shifts it, draws it with a
 * pen of some width and adds noise. Invariant: a sample depends on (seed, index) only. */
#include <math.h>
#include <tidemark/train.h>

#include "base/error.h"
#include "base/rng.h"

enum { MAX_POINTS = 13, CLASSES = 10, PIXEL_CLASSES = 2 };

typedef struct point {
    float x, y;
} point;

typedef struct glyph {
    int n;
    point at[MAX_POINTS];
} glyph;

static const glyph glyphs[CLASSES] = {
    {13,
     {{.50f, .10f},
      {.66f, .16f},
      {.74f, .32f},
      {.76f, .50f},
      {.74f, .68f},
      {.66f, .84f},
      {.50f, .90f},
      {.34f, .84f},
      {.26f, .68f},
      {.24f, .50f},
      {.26f, .32f},
      {.34f, .16f},
      {.50f, .10f}}},
    {3, {{.36f, .26f}, {.52f, .10f}, {.52f, .90f}}},
    {8,
     {{.25f, .30f}, {.31f, .15f}, {.50f, .10f}, {.69f, .17f}, {.73f, .34f}, {.60f, .55f}, {.25f, .90f}, {.76f, .90f}}},
    {9,
     {{.27f, .17f},
      {.50f, .10f},
      {.70f, .20f},
      {.67f, .38f},
      {.47f, .48f},
      {.70f, .58f},
      {.73f, .78f},
      {.50f, .90f},
      {.25f, .82f}}},
    {4, {{.62f, .90f}, {.62f, .10f}, {.22f, .65f}, {.80f, .65f}}},
    {8,
     {{.72f, .10f}, {.32f, .10f}, {.28f, .45f}, {.50f, .40f}, {.72f, .52f}, {.73f, .75f}, {.52f, .90f}, {.26f, .83f}}},
    {9,
     {{.66f, .12f},
      {.42f, .25f},
      {.28f, .55f},
      {.30f, .80f},
      {.50f, .90f},
      {.70f, .78f},
      {.70f, .60f},
      {.50f, .50f},
      {.30f, .62f}}},
    {3, {{.25f, .10f}, {.76f, .10f}, {.42f, .90f}}},
    {13,
     {{.50f, .10f},
      {.70f, .20f},
      {.66f, .40f},
      {.50f, .48f},
      {.30f, .62f},
      {.30f, .80f},
      {.50f, .90f},
      {.70f, .80f},
      {.70f, .62f},
      {.50f, .48f},
      {.34f, .40f},
      {.30f, .20f},
      {.50f, .10f}}},
    {9,
     {{.70f, .40f},
      {.50f, .50f},
      {.30f, .40f},
      {.30f, .22f},
      {.50f, .10f},
      {.70f, .22f},
      {.70f, .40f},
      {.66f, .65f},
      {.50f, .90f}}},
};

/* Uniform in [lo, hi): the draw-th random number of this sample. */
static float draw(const tide_digits *d, uint64_t index, uint64_t nth, float lo, float hi) {
    return lo + (hi - lo) * tide__random_unit(d->seed, index, nth);
}

/* The glyph under the sample's own affine map about the middle of the square. */
static glyph jitter(const tide_digits *d, uint64_t index, const glyph *original) {
    float angle = draw(d, index, 1, -.25f, .25f), shear = draw(d, index, 2, -.2f, .2f);
    float sx = draw(d, index, 3, .75f, 1.1f), sy = draw(d, index, 4, .75f, 1.1f);
    float dx = draw(d, index, 5, -.08f, .08f), dy = draw(d, index, 6, -.08f, .08f);
    float c = cosf(angle), s = sinf(angle);
    glyph g = *original;
    for (int i = 0; i < g.n; i++) {
        float y = (g.at[i].y - .5f) * sy, x = (g.at[i].x - .5f) * sx + shear * y;
        g.at[i] = (point){.5f + dx + c * x - s * y, .5f + dy + s * x + c * y};
    }
    return g;
}

static float distance_to_segment(point p, point a, point b) {
    float vx = b.x - a.x, vy = b.y - a.y, wx = p.x - a.x, wy = p.y - a.y;
    float t = (vx * wx + vy * wy) / (vx * vx + vy * vy + 1e-12f);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    wx -= t * vx;
    wy -= t * vy;
    return sqrtf(wx * wx + wy * wy);
}

static float ink(const glyph *g, point p, float pen) {
    float nearest = 1;
    for (int i = 0; i + 1 < g->n; i++) {
        float distance = distance_to_segment(p, g->at[i], g->at[i + 1]);
        if (distance < nearest) nearest = distance;
    }
    float edge = (pen - nearest) / .03f + .5f; /* a soft edge, about a pixel wide */
    return edge < 0 ? 0 : edge > 1 ? 1 : edge;
}

static tide_status sample(void *context, uint64_t index, float *pixels, int32_t *label) {
    const tide_digits *d = context;
    int32_t digit = (int32_t)(tide__random_u64(d->seed, index, 0) % CLASSES);
    glyph g = jitter(d, index, &glyphs[digit]);
    if (!d->by_pixel) *label = digit;
    float pen = draw(d, index, 7, .035f, .065f);
    uint64_t plane = (uint64_t)d->height * d->width;
    for (uint64_t i = 0; i < plane; i++) {
        uint64_t row = i / d->width, column = i % d->width;
        point p = {((float)column + .5f) / (float)d->width, ((float)row + .5f) / (float)d->height};
        float covered = ink(&g, p, pen),
              value = covered * 3 - .5f; /* about a sixth of the square is ink: mean near 0, variance near 1 */
        if (d->by_pixel) label[i] = covered > .5f;
        for (uint32_t c = 0; c < d->channels; c++)
            pixels[c * plane + i] = value + draw(d, index, 8 + c * plane + i, -.4f, .4f);
    }
    return TIDE_OK;
}

tide_status tide_data_digits(tide_digits *digits, uint64_t n_samples, tide_data *out) {
    TIDE_NEED(digits, out);
    if (!digits->channels || !digits->height || !digits->width || !n_samples)
        return tide__fail(TIDE_E_ARGUMENT, "digits need at least one channel, row, column and sample");
    *out = (tide_data){.size = sizeof *out,
                       .name = "digits",
                       .n_samples = n_samples,
                       .channels = digits->channels,
                       .height = digits->height,
                       .width = digits->width,
                       .classes = digits->by_pixel ? PIXEL_CLASSES : CLASSES,
                       .labels = digits->by_pixel ? (uint64_t)digits->height * digits->width : 1,
                       .sample = sample,
                       .context = digits};
    return TIDE_OK;
}
