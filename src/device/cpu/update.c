/* Optimizers: one pass over the stored floats of a weight, in place. Padding stays zero: its gradient and state are
 * zero, and zero decays to zero.
 *
 *     g = dw * scale (1 without clipping)
 *     sgd        g += decay * w;  w -= lr * g
 *     momentum   g += decay * w;  v = mu * v + g;  w -= lr * v
 *     adam       g += decay * w;  m, v = moving averages of g, g^2;  w -= lr * m^ / (sqrt(v^) + eps)
 *     adamw      w -= lr * decay * w, then as adam without the decay in g
 *
 * with m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t), t = step + 1. */
#include <math.h>

#include "device/cpu/view.h"

#define DEFAULT_ADAM_EPS 1e-8f

/* Reads are w, the state, dw and, with clipping, the scale; writes are w and the state again. */
static float clip_scale(const tide__cpu_kernel *k, const tide__call *call) {
    return k->desc.clipped ? *tide__floats(call, k->n_reads - 1) : 1.0f;
}

static tide_status run_sgd(const tide__cpu_kernel *k, const tide__call *call) {
    const float *w = tide__floats(call, 0), *dw = tide__floats(call, 1);
    float *w_out = tide__floats(call, k->n_reads);
    const float lr = call->args->learning_rate, decay = k->desc.weight_decay, scale = clip_scale(k, call);
    int64_t n = (int64_t)k->desc.elements;
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < n; i++) w_out[i] = w[i] - lr * (dw[i] * scale + decay * w[i]);
    return TIDE_OK;
}

static tide_status run_momentum(const tide__cpu_kernel *k, const tide__call *call) {
    const float *w = tide__floats(call, 0), *v = tide__floats(call, 1), *dw = tide__floats(call, 2);
    float *w_out = tide__floats(call, k->n_reads), *v_out = tide__floats(call, k->n_reads + 1);
    const float lr = call->args->learning_rate, decay = k->desc.weight_decay, mu = k->desc.beta1;
    const float scale = clip_scale(k, call);
    int64_t n = (int64_t)k->desc.elements;
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < n; i++) {
        float moved = mu * v[i] + (dw[i] * scale + decay * w[i]);
        v_out[i] = moved;
        w_out[i] = w[i] - lr * moved;
    }
    return TIDE_OK;
}

static tide_status run_adam(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    const float *w = tide__floats(call, 0), *m = tide__floats(call, 1), *v = tide__floats(call, 2),
                *dw = tide__floats(call, 3);
    float *w_out = tide__floats(call, k->n_reads), *m_out = tide__floats(call, k->n_reads + 1),
          *v_out = tide__floats(call, k->n_reads + 2);
    const double t = (double)call->args->step + 1;
    const float lr = call->args->learning_rate, scale = clip_scale(k, call), beta1 = d->beta1, beta2 = d->beta2;
    const float m_share = (float)(1 / (1 - pow((double)beta1, t))), v_share = (float)(1 / (1 - pow((double)beta2, t)));
    const float l2 = d->kind == TIDE_OP_ADAM ? d->weight_decay : 0, eps = d->eps > 0 ? d->eps : DEFAULT_ADAM_EPS;
    const float keep = d->kind == TIDE_OP_ADAMW ? 1 - lr * d->weight_decay : 1;
    int64_t n = (int64_t)d->elements;
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t i = 0; i < n; i++) {
        float g = dw[i] * scale + l2 * w[i];
        float mean = beta1 * m[i] + (1 - beta1) * g, square = beta2 * v[i] + (1 - beta2) * (g * g);
        m_out[i] = mean;
        v_out[i] = square;
        w_out[i] = keep * w[i] - lr * (mean * m_share) / (sqrtf(square * v_share) + eps);
    }
    return TIDE_OK;
}

static tide_status add_many(tide__cpu_kernel *k, tide__access access, int count) {
    for (int i = 0; i < count; i++) TIDE_TRY(tide__add_floats(k, access, k->desc.elements));
    return TIDE_OK;
}

tide_status tide__build_update(tide__cpu_kernel *k, const tide_op_desc *source) {
    bool sgd = source->kind == TIDE_OP_SGD, momentum = source->kind == TIDE_OP_MOMENTUM;
    int states = sgd ? 0 : momentum ? 1 : 2;
    k->run = sgd ? run_sgd : momentum ? run_momentum : run_adam;
    TIDE_TRY(add_many(k, TIDE__READ, 1 + states + 1));
    if (source->clipped) TIDE_TRY(tide__add_vector(k, TIDE__READ, 1, dnnl_f32));
    return add_many(k, TIDE__WRITE, 1 + states);
}
