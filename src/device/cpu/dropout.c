/* Dropout with counter-based randomness: element i (its index in plain row-major order, whatever the layout) is kept
 * iff random(seed, hash(step, counter), i) >= drop_rate. A re-run, another thread count or another layout draws the
 * same, and so does backward: nothing is kept for it. Kept values are scaled by 1 / (1 - drop_rate). */
#include "base/rng.h"
#include "device/cpu/bf16.h"
#include "device/cpu/view.h"

typedef struct drop {
    tide__values from, to;
    tide__view view;
    uint64_t seed, stream;
    float rate, scale;
} drop;

/* Whether `n` stored elements from `at` on are kept; padding is not. Both are multiples of the lanes. */
static void draw(const drop *d, int64_t at, int64_t n, bool *kept) {
    const tide__view *v = &d->view;
    for (int64_t i = 0; i < n; i += v->lanes) {
        const int64_t place = (at + i) / v->lanes, pixel = place % v->pixels, group = place / v->pixels;
        const int64_t image = group / v->groups, first = group % v->groups * v->lanes;
        for (int l = 0; l < v->lanes; l++) {
            const int64_t c = first + l, element = (image * v->channels + c) * v->pixels + pixel;
            kept[i + l] = c < v->channels && tide__random_unit(d->seed, d->stream, (uint64_t)element) >= d->rate;
        }
    }
}

/* What is dropped is 0, whatever it was. */
static void drop_range(const void *context, int64_t begin, int64_t end) {
    const drop *d = context;
    float tile[TIDE__TILE_FLOATS];
    bool kept[TIDE__TILE_FLOATS];
    for (int64_t at = begin; at < end; at += TIDE__TILE_FLOATS) {
        const int64_t n = end - at < TIDE__TILE_FLOATS ? end - at : TIDE__TILE_FLOATS;
        const tide__values to = tide__values_from(d->to, at);
        const float *x = tide__values_read(tide__values_from(d->from, at), n, tile);
        float *y = tide__values_write(to, tile);
        draw(d, at, n, kept);
        for (int64_t i = 0; i < n; i++) y[i] = kept[i] ? x[i] * d->scale : 0;
        tide__values_stored(to, n, y);
    }
}

static tide_status run(const tide__cpu_kernel *k, const tide__call *call) {
    const uint64_t stream = tide__hash_word(tide__hash_word(0, call->args->step), call->args->counter);
    const float rate = k->desc.drop_rate;
    const drop d = {.from = tide__values_of(k, call, 0),
                    .to = tide__values_of(k, call, 1),
                    .view = tide__view_of(&k->desc.x),
                    .seed = call->args->seed,
                    .stream = stream,
                    .rate = rate,
                    .scale = 1 / (1 - rate)};
    tide__for_ranges(tide__view_size(&d.view), drop_range, &d);
    return TIDE_OK;
}

tide_status tide__build_dropout(tide__cpu_kernel *k, const tide_op_desc *source) {
    k->run = run;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    return tide__add_activation(k, TIDE__WRITE, source->x);
}
