/* Dropout with counter-based randomness: element i (its index in plain row-major order, whatever the layout) is kept
 * iff random(seed, hash(step, counter), i) >= drop_rate. A re-run, another thread count or another layout draws the
 * same mask. Kept values are scaled by 1 / (1 - drop_rate). The mask is 1 or 0 per stored element, 0 in padding. */
#include "base/rng.h"
#include "device/cpu/bf16.h"
#include "device/cpu/view.h"

/* What is dropped is 0, whatever it was. */
typedef struct drop {
    tide__values from, to;
    const uint8_t *mask;
    float scale;
} drop;

static drop drop_of(const tide__cpu_kernel *k, const tide__call *call) {
    const bool forward = k->desc.kind == TIDE_OP_DROPOUT_FWD;
    return (drop){tide__values_of(k, call, forward ? 0 : 1), tide__values_of(k, call, forward ? 1 : 2),
                  tide__at(call, forward ? 2 : 0), 1 / (1 - k->desc.drop_rate)};
}

static void apply_range(const void *context, int64_t begin, int64_t end) {
    const drop *d = context;
    float tile[TIDE__TILE_FLOATS];
    for (int64_t at = begin, n; at < end; at += n) {
        const tide__values to = tide__values_from(d->to, at);
        n = tide__tile_of(d->from, end - at);
        const float *x = tide__values_read(tide__values_from(d->from, at), n, tile);
        float *y = tide__values_write(to, tile);
        for (int64_t i = 0; i < n; i++) y[i] = d->mask[at + i] ? x[i] * d->scale : 0;
        tide__values_stored(to, n, y);
    }
}

static void apply(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.x);
    const drop d = drop_of(k, call);
    tide__for_ranges(tide__view_size(&v), apply_range, &d);
}

/* One group of one image. */
static void draw_plane(const tide_op_desc *d, const tide__view *v, int64_t n, int64_t g, uint64_t seed, uint64_t stream,
                       uint8_t *mask) {
    mask += tide__view_at(v, n, g);
    for (int64_t p = 0; p < v->pixels; p++)
        for (int l = 0; l < v->lanes; l++) {
            int64_t c = g * v->lanes + l;
            uint64_t element = (uint64_t)((n * v->channels + c) * v->pixels + p);
            mask[p * v->lanes + l] = c < v->channels && tide__random_unit(seed, stream, element) >= d->drop_rate;
        }
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.x);
    uint64_t stream = tide__hash_word(tide__hash_word(0, call->args->step), call->args->counter);
    uint8_t *mask = tide__at(call, 2);
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t g = 0; g < v.groups; g++) draw_plane(&k->desc, &v, n, g, call->args->seed, stream, mask);
    apply(k, call);
    return TIDE_OK;
}

static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    apply(k, call);
    return TIDE_OK;
}

tide_status tide__build_dropout(tide__cpu_kernel *k, const tide_op_desc *source) {
    if (source->kind == TIDE_OP_DROPOUT_FWD) {
        k->run = run_forward;
        TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
        TIDE_TRY(tide__add_activation(k, TIDE__WRITE, source->x));
        return tide__add_bytes_like(k, TIDE__WRITE, source->x);
    }
    k->run = run_backward;
    TIDE_TRY(tide__add_bytes_like(k, TIDE__READ, source->x));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    return tide__add_activation(k, TIDE__WRITE, source->x);
}
