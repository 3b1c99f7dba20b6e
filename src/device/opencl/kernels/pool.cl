/* Pooling. Group (channel, image): one plane, so its sums have one order. The index of max pooling is the position in
 * the window; of equal maxima the first wins, NaN beats everything. */
#define POOL_ARGS int channels, int xh, int xw, int yh, int yw, int kh, int kw, int stride, int pad_h, int pad_w
#define PLANE ((long)get_group_id(1) * channels + (long)get_group_id(0))
#define WINDOW                                                                                     \
    const int top = oy * stride - pad_h, left = ox * stride - pad_w;                               \
    const int y0 = max(top, 0), x0 = max(left, 0), y1 = min(top + kh, xh), x1 = min(left + kw, xw)

/* Rows oy0 to oy1 and columns ox0 to ox1 of windows have pixel (r, c) in them. */
#define FIRST(at, pad, size) (((at) + (pad) - (size) + stride) / stride)
#define WINDOWS_OVER(r, c)                                                                                 \
    const int oy0 = r + pad_h < kh ? 0 : FIRST(r, pad_h, kh), oy1 = min((r + pad_h) / stride, yh - 1);    \
    const int ox0 = c + pad_w < kw ? 0 : FIRST(c, pad_w, kw), ox1 = min((c + pad_w) / stride, yw - 1)

KERNEL void max_forward(ARENA, ulong x_at, ulong y_at, ulong index_at, POOL_ARGS) {
    SKIP_AFTER_FAULT;
    global const float *x = FLOATS(x_at) + PLANE * xh * xw;
    global float *y = FLOATS(y_at) + PLANE * yh * yw;
    global uchar *index = BYTES(index_at) + PLANE * yh * yw;
    FOR_PAIRS(oy, ox, yh, yw) {
        WINDOW;
        float best = -INFINITY;
        int position = (y0 - top) * kw + (x0 - left);
        for (int r = y0; r < y1; r++)
            for (int c = x0; c < x1; c++) {
                const float value = x[r * xw + c];
                const int better = value > best || isnan(value);
                best = better ? value : best;
                position = better ? (r - top) * kw + (c - left) : position;
            }
        y[oy * yw + ox] = best;
        index[oy * yw + ox] = (uchar)position;
    }
}

KERNEL void max_backward(ARENA, ulong index_at, ulong dy_at, ulong dx_at, POOL_ARGS) {
    SKIP_AFTER_FAULT;
    global const uchar *index = BYTES(index_at) + PLANE * yh * yw;
    global const float *dy = FLOATS(dy_at) + PLANE * yh * yw;
    global float *dx = FLOATS(dx_at) + PLANE * xh * xw;
#if LANES == 1
    for (int i = 0; i < xh * xw; i++) dx[i] = 0;
    FOR_PAIRS(oy, ox, yh, yw) {
        const int position = index[oy * yw + ox];
        const int r = oy * stride - pad_h + position / kw, c = ox * stride - pad_w + position % kw;
        if (r >= 0 && r < xh && c >= 0 && c < xw && position < kh * kw) dx[r * xw + c] += dy[oy * yw + ox];
    }
#else
    FOR_PAIRS(r, c, xh, xw) {
        WINDOWS_OVER(r, c);
        float sum = 0;
        for (int oy = oy0; oy <= oy1; oy++)
            for (int ox = ox0; ox <= ox1; ox++) {
                const int position = (r - oy * stride + pad_h) * kw + c - ox * stride + pad_w;
                if (index[oy * yw + ox] == position) sum += dy[oy * yw + ox];
            }
        dx[r * xw + c] = sum;
    }
#endif
}

KERNEL void average_forward(ARENA, ulong x_at, ulong y_at, POOL_ARGS) {
    SKIP_AFTER_FAULT;
    global const float *x = FLOATS(x_at) + PLANE * xh * xw;
    global float *y = FLOATS(y_at) + PLANE * yh * yw;
    const float share = 1.0f / (float)(kh * kw);
    FOR_PAIRS(oy, ox, yh, yw) {
        WINDOW;
        float sum = 0;
        for (int r = y0; r < y1; r++)
            for (int c = x0; c < x1; c++) sum += x[r * xw + c];
        y[oy * yw + ox] = sum * share;
    }
}

KERNEL void average_backward(ARENA, ulong dy_at, ulong dx_at, POOL_ARGS) {
    SKIP_AFTER_FAULT;
    global const float *dy = FLOATS(dy_at) + PLANE * yh * yw;
    global float *dx = FLOATS(dx_at) + PLANE * xh * xw;
    const float share = 1.0f / (float)(kh * kw);
#if LANES == 1
    for (int i = 0; i < xh * xw; i++) dx[i] = 0;
    FOR_PAIRS(oy, ox, yh, yw) {
        WINDOW;
        const float part = dy[oy * yw + ox] * share;
        for (int r = y0; r < y1; r++)
            for (int c = x0; c < x1; c++) dx[r * xw + c] += part;
    }
#else
    FOR_PAIRS(r, c, xh, xw) {
        WINDOWS_OVER(r, c);
        float sum = 0;
        for (int oy = oy0; oy <= oy1; oy++)
            for (int ox = ox0; ox <= ox1; ox++) sum += dy[oy * yw + ox] * share;
        dx[r * xw + c] = sum;
    }
#endif
}
