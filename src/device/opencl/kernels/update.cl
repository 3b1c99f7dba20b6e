/* Optimizers: one pass over a weight, in place. g = dw * scale (1 without clipping; where the scale is NaN,
 * everything stays as it is); see ops.h. */
#define SCALE (clipped ? FLOATS(scale_at)[0] : 1.0f)

KERNEL void sgd(ARENA, ulong w_at, ulong dw_at, ulong scale_at, ulong w_out_at, ulong n, int clipped,
                float rate, float decay) {
    SKIP_AFTER_FAULT;
    global const float *w = FLOATS(w_at), *dw = FLOATS(dw_at);
    global float *w_out = FLOATS(w_out_at);
    const float scale = SCALE;
    if (isnan(scale)) return;
    FOR_RUN(n,
            {
                float8 v = vload8(0, w + i);
                vstore8(v - rate * (vload8(0, dw + i) * scale + decay * v), 0, w_out + i);
            },
            w_out[i] = w[i] - rate * (dw[i] * scale + decay * w[i]));
}

KERNEL void momentum(ARENA, ulong w_at, ulong v_at, ulong dw_at, ulong scale_at, ulong w_out_at,
                     ulong v_out_at, ulong n, int clipped, float rate, float decay, float mu) {
    SKIP_AFTER_FAULT;
    global const float *w = FLOATS(w_at), *v = FLOATS(v_at), *dw = FLOATS(dw_at);
    global float *w_out = FLOATS(w_out_at), *v_out = FLOATS(v_out_at);
    const float scale = SCALE;
    if (isnan(scale)) return;
    FOR_RUN(n,
            {
                float8 old = vload8(0, w + i);
                float8 moved = mu * vload8(0, v + i) + (vload8(0, dw + i) * scale + decay * old);
                vstore8(moved, 0, v_out + i);
                vstore8(old - rate * moved, 0, w_out + i);
            },
            {
                float moved = mu * v[i] + (dw[i] * scale + decay * w[i]);
                v_out[i] = moved;
                w_out[i] = w[i] - rate * moved;
            });
}

/* adamw has decay 0 here and shrinks w by `keep`. */
KERNEL void adam(ARENA, ulong w_at, ulong m_at, ulong v_at, ulong dw_at, ulong scale_at, ulong w_out_at,
                 ulong m_out_at, ulong v_out_at, ulong n, int clipped, float rate, float decay, float keep, float beta1,
                 float beta2, float eps, float m_share, float v_share) {
    SKIP_AFTER_FAULT;
    global const float *w = FLOATS(w_at), *m = FLOATS(m_at), *v = FLOATS(v_at), *dw = FLOATS(dw_at);
    global float *w_out = FLOATS(w_out_at), *m_out = FLOATS(m_out_at), *v_out = FLOATS(v_out_at);
    const float scale = SCALE;
    if (isnan(scale)) return;
    FOR_RUN(n,
            {
                float8 old = vload8(0, w + i);
                float8 g = vload8(0, dw + i) * scale + decay * old;
                float8 mean = beta1 * vload8(0, m + i) + (1 - beta1) * g;
                float8 square = beta2 * vload8(0, v + i) + (1 - beta2) * (g * g);
                vstore8(mean, 0, m_out + i);
                vstore8(square, 0, v_out + i);
                vstore8(keep * old - rate * (mean * m_share) / (sqrt(square * v_share) + eps), 0, w_out + i);
            },
            {
                float g = dw[i] * scale + decay * w[i];
                float mean = beta1 * m[i] + (1 - beta1) * g;
                float square = beta2 * v[i] + (1 - beta2) * (g * g);
                m_out[i] = mean;
                v_out[i] = square;
                w_out[i] = keep * w[i] - rate * (mean * m_share) / (sqrt(square * v_share) + eps);
            });
}

/* ---- the norm of all gradients: one sum of squares per run, then all of them in order ---- */

KERNEL void squares(ARENA, ulong x_at, ulong partial_at, ulong n) {
    SKIP_AFTER_FAULT;
    global const float *x = FLOATS(x_at);
    wide8 lanes = 0;
    wide rest = 0;
    FOR_RUN(n,
            {
                wide8 v = WIDE8(vload8(0, x + i));
                lanes += v * v;
            },
            rest += (wide)x[i] * (wide)x[i]);
    local wide scratch[LANES];
    const wide sum = group_sum(sum8(lanes) + rest, scratch);
    if (LANE == 0) ((global wide *)(arena + partial_at))[get_group_id(0)] = sum;
}

KERNEL void clip_factor(ARENA, ulong partial_at, ulong scale_at, ulong n, float clip) {
    SKIP_AFTER_FAULT;
    global const wide *partial = (global const wide *)(arena + partial_at);
    local wide scratch[LANES];
    wide sum = 0;
    for (ulong i = LANE; i < n; i += LANES) sum += partial[i];
    sum = group_sum(sum, scratch);
    wide factor = (wide)clip / (sqrt(sum) + (wide)1e-6f);
    if (LANE == 0) FLOATS(scale_at)[0] = !isfinite(sum) ? NAN : factor < 1 ? (float)factor : 1;
}
