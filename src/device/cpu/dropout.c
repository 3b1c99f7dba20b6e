/* Dropout with counter-based randomness: element i (its index in plain row-major order, whatever the layout) is kept
 * iff random(seed, hash(step, counter), i) >= drop_rate. A re-run, another thread count or another layout draws the
 * same mask. Kept values are scaled by 1 / (1 - drop_rate). The mask is 1 or 0 per stored element, 0 in padding. */
#include "base/rng.h"
#include "device/cpu/view.h"

static float keep_scale(const tide_op_desc *d) { return 1 / (1 - d->drop_rate); }

/* One group of one image. */
static void drop_plane(const tide_op_desc *d, const tide__view *v, int64_t n, int64_t g, const tide__call *call,
                       uint64_t stream) {
    int64_t at = tide__view_at(v, n, g);
    const float *x = tide__floats(call, 0) + at, scale = keep_scale(d);
    float *y = tide__floats(call, 1) + at;
    uint8_t *mask = (uint8_t *)tide__at(call, 2) + at;
    const uint64_t seed = call->args->seed;
    for (int64_t p = 0; p < v->pixels; p++)
        for (int l = 0; l < v->lanes; l++) {
            int64_t c = g * v->lanes + l, i = p * v->lanes + l;
            uint64_t element = (uint64_t)((n * v->channels + c) * v->pixels + p);
            bool keep = c < v->channels && tide__random_unit(seed, stream, element) >= d->drop_rate;
            y[i] = keep ? x[i] * scale : 0;
            mask[i] = keep;
        }
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.x);
    uint64_t stream = tide__hash_word(tide__hash_word(0, call->args->step), call->args->counter);
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t g = 0; g < v.groups; g++) drop_plane(&k->desc, &v, n, g, call, stream);
    return TIDE_OK;
}

static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const uint8_t *mask = tide__at(call, 0);
    const float *dy = tide__floats(call, 1), scale = keep_scale(&k->desc);
    float *dx = tide__floats(call, 2);
    const tide__view v = tide__view_of(&k->desc.x);
    int64_t n = tide__view_size(&v);
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < n; i++) dx[i] = mask[i] ? dy[i] * scale : 0;
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
