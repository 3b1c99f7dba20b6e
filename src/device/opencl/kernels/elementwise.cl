/* Ops that treat every float alike. A write may lie exactly on a read. */

/* NaN comes through: a diverging run should look like one. */
KERNEL void relu(ARENA, ulong x_at, ulong y_at, ulong n) {
    SKIP_AFTER_FAULT;
    global const float *x = FLOATS(x_at);
    global float *y = FLOATS(y_at);
    FOR_RUN(n,
            {
                float8 v = vload8(0, x + i);
                vstore8(select(v, (float8)(0), v < (float8)(0)), 0, y + i);
            },
            y[i] = x[i] < 0 ? 0 : x[i]);
}

KERNEL void relu_backward(ARENA, ulong y_at, ulong dy_at, ulong dx_at, ulong n) {
    SKIP_AFTER_FAULT;
    global const float *y = FLOATS(y_at), *dy = FLOATS(dy_at);
    global float *dx = FLOATS(dx_at);
    FOR_RUN(n, vstore8(select((float8)(0), vload8(0, dy + i), vload8(0, y + i) > (float8)(0)), 0, dx + i),
            dx[i] = y[i] > 0 ? dy[i] : 0);
}

KERNEL void sum(ARENA, ulong a_at, ulong b_at, ulong y_at, ulong n) {
    SKIP_AFTER_FAULT;
    global const float *a = FLOATS(a_at), *b = FLOATS(b_at);
    global float *y = FLOATS(y_at);
    FOR_RUN(n, vstore8(vload8(0, a + i) + vload8(0, b + i), 0, y + i), y[i] = a[i] + b[i]);
}

KERNEL void zero(ARENA, ulong y_at, ulong n) {
    SKIP_AFTER_FAULT;
    global float *y = FLOATS(y_at);
    FOR_RUN(n, vstore8((float8)(0), 0, y + i), y[i] = 0);
}

/* y = x s, s = 1 / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3);  dy/dx = s + x s (1 - s) 2 du/dx */
#define TWICE_ROOT 1.5957691216f
#define CUBE 0.044715f
#define GELU_SHARE(v) (1 / (1 + exp(-TWICE_ROOT * ((v) + CUBE * (v) * (v) * (v)))))
#define GELU_SLOPE(v, s) ((s) + (v) * (s) * (1 - (s)) * (TWICE_ROOT * (1 + 3 * CUBE * (v) * (v))))

KERNEL void gelu(ARENA, ulong x_at, ulong y_at, ulong n) {
    SKIP_AFTER_FAULT;
    global const float *x = FLOATS(x_at);
    global float *y = FLOATS(y_at);
    FOR_RUN(n,
            {
                float8 v = vload8(0, x + i);
                vstore8(v * GELU_SHARE(v), 0, y + i);
            },
            y[i] = x[i] * GELU_SHARE(x[i]));
}

KERNEL void gelu_backward(ARENA, ulong x_at, ulong dy_at, ulong dx_at, ulong n) {
    SKIP_AFTER_FAULT;
    global const float *x = FLOATS(x_at), *dy = FLOATS(dy_at);
    global float *dx = FLOATS(dx_at);
    FOR_RUN(n,
            {
                float8 v = vload8(0, x + i);
                float8 s = GELU_SHARE(v);
                vstore8(vload8(0, dy + i) * GELU_SLOPE(v, s), 0, dx + i);
            },
            {
                float s = GELU_SHARE(x[i]);
                dx[i] = dy[i] * GELU_SLOPE(x[i], s);
            });
}
