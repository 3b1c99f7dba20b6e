/* Optimizers: one pass over the stored floats of a weight, in place. Padding stays zero: its gradient and state are
 * zero, and zero decays to zero.
 *
 *     g = dw * scale (1 without clipping; where the scale is NaN, everything stays as it is)
 *     sgd        g += decay * w;  w -= lr * g
 *     momentum   g += decay * w;  v = mu * v + g;  w -= lr * v
 *     adam       g += decay * w;  m, v = moving averages of g, g^2;  w -= lr * m^ / (sqrt(v^) + eps)
 *     adamw      w -= lr * decay * w, then as adam without the decay in g
 *
 * with m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t), t = step + 1. */
#include <math.h>

#include "device/cpu/rows.h"
#include "device/cpu/wide.h"
#include "device/cpu/view.h"

#define DEFAULT_ADAM_EPS 1e-8f

/* One call, unpacked. Not every optimizer has all of it. */
typedef struct update {
    const float *w, *m, *v, *dw;
    float *w_out, *m_out, *v_out;
    float rate, scale, decay, beta1, beta2, eps;
    float keep;             /* adamw: what its decay leaves of w */
    float m_share, v_share; /* adam: 1 / (1 - beta^t) */
} update;

TIDE__WIDE static void sgd_range(const void *context, int64_t begin, int64_t end) {
    const update u = *(const update *)context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) u.w_out[i] = u.w[i] - u.rate * (u.dw[i] * u.scale + u.decay * u.w[i]);
}

TIDE__WIDE static void momentum_range(const void *context, int64_t begin, int64_t end) {
    const update u = *(const update *)context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float moved = u.beta1 * u.m[i] + (u.dw[i] * u.scale + u.decay * u.w[i]);
        u.m_out[i] = moved;
        u.w_out[i] = u.w[i] - u.rate * moved;
    }
}

TIDE__WIDE static void adam_range(const void *context, int64_t begin, int64_t end) {
    const update u = *(const update *)context;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float g = u.dw[i] * u.scale + u.decay * u.w[i];
        float mean = u.beta1 * u.m[i] + (1 - u.beta1) * g, square = u.beta2 * u.v[i] + (1 - u.beta2) * (g * g);
        u.m_out[i] = mean;
        u.v_out[i] = square;
        u.w_out[i] = u.keep * u.w[i] - u.rate * (mean * u.m_share) / (sqrtf(square * u.v_share) + u.eps);
    }
}

static void fill_adam(const tide_op_desc *d, const tide_step_args *args, update *u) {
    const double t = (double)args->step + 1;
    u->m_share = (float)(1 / (1 - pow((double)d->beta1, t)));
    u->v_share = (float)(1 / (1 - pow((double)d->beta2, t)));
    u->eps = d->eps > 0 ? d->eps : DEFAULT_ADAM_EPS;
    u->keep = 1;
    if (d->kind != TIDE_OP_ADAMW) return;
    u->keep = 1 - u->rate * d->weight_decay;
    u->decay = 0;
}

/* Reads are w, the state, dw and, with clipping, the scale; writes are w and the state again. */
static tide_status run_update(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    const uint32_t states = (uint32_t)k->operands.count - k->n_reads - 1, out = k->n_reads;
    update u = {.w = tide__floats(call, 0), .dw = tide__floats(call, states + 1), .w_out = tide__floats(call, out)};
    u.rate = call->args->learning_rate;
    u.scale = d->clipped ? *tide__floats(call, k->n_reads - 1) : 1;
    if (isnan(u.scale)) return TIDE_OK;
    u.decay = d->weight_decay;
    u.beta1 = d->beta1;
    u.beta2 = d->beta2;
    if (states > 0) u.m = tide__floats(call, 1), u.m_out = tide__floats(call, out + 1);
    if (states > 1) u.v = tide__floats(call, 2), u.v_out = tide__floats(call, out + 2);
    if (states > 1) fill_adam(d, call->args, &u);
    const uint64_t n = d->part_elements ? d->part_elements : d->elements;
    u.w += d->part_first;
    u.dw += d->part_first;
    u.w_out += d->part_first;
    tide__for_ranges((int64_t)n, states > 1 ? adam_range : states > 0 ? momentum_range : sgd_range, &u);
    return TIDE_OK;
}

/* w, then its state, of which there may be no more than a part. */
static tide_status add_values(tide__cpu_kernel *k, tide__access access, int states) {
    const uint64_t part = k->desc.part_elements ? k->desc.part_elements : k->desc.elements;
    TIDE_TRY(tide__add_floats(k, access, k->desc.elements));
    for (int i = 0; i < states; i++) TIDE_TRY(tide__add_floats(k, access, part));
    return TIDE_OK;
}

tide_status tide__build_update(tide__cpu_kernel *k, const tide_op_desc *source) {
    bool sgd = source->kind == TIDE_OP_SGD, momentum = source->kind == TIDE_OP_MOMENTUM;
    int states = sgd ? 0 : momentum ? 1 : 2;
    k->run = run_update;
    TIDE_TRY(add_values(k, TIDE__READ, states));
    TIDE_TRY(tide__add_floats(k, TIDE__READ, source->elements));
    if (source->clipped) TIDE_TRY(tide__add_vector(k, TIDE__READ, 1, dnnl_f32));
    return add_values(k, TIDE__WRITE, states);
}
