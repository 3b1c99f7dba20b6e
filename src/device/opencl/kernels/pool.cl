/* Pooling. Item (channel, image): one plane, so its sums have one order. The index of max pooling is the position in
 * the window; of equal maxima the first wins, NaN beats everything. */
#define POOL_ARGS int channels, int xh, int xw, int yh, int yw, int kh, int kw, int stride, int pad_h, int pad_w
#define PLANE ((long)get_global_id(1) * channels + (long)get_global_id(0))
#define WINDOW                                                                                     \
    const int top = oy * stride - pad_h, left = ox * stride - pad_w;                               \
    const int y0 = max(top, 0), x0 = max(left, 0), y1 = min(top + kh, xh), x1 = min(left + kw, xw)

kernel void max_forward(global char *arena, ulong x_at, ulong y_at, ulong index_at, POOL_ARGS) {
    global const float *x = FLOATS(x_at) + PLANE * xh * xw;
    global float *y = FLOATS(y_at) + PLANE * yh * yw;
    global uchar *index = BYTES(index_at) + PLANE * yh * yw;
    for (int oy = 0; oy < yh; oy++)
        for (int ox = 0; ox < yw; ox++) {
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

kernel void max_backward(global char *arena, ulong index_at, ulong dy_at, ulong dx_at, POOL_ARGS) {
    global const uchar *index = BYTES(index_at) + PLANE * yh * yw;
    global const float *dy = FLOATS(dy_at) + PLANE * yh * yw;
    global float *dx = FLOATS(dx_at) + PLANE * xh * xw;
    for (int i = 0; i < xh * xw; i++) dx[i] = 0;
    for (int oy = 0; oy < yh; oy++)
        for (int ox = 0; ox < yw; ox++) {
            const int position = index[oy * yw + ox];
            const int r = oy * stride - pad_h + position / kw, c = ox * stride - pad_w + position % kw;
            if (r >= 0 && r < xh && c >= 0 && c < xw && position < kh * kw) dx[r * xw + c] += dy[oy * yw + ox];
        }
}

kernel void average_forward(global char *arena, ulong x_at, ulong y_at, POOL_ARGS) {
    global const float *x = FLOATS(x_at) + PLANE * xh * xw;
    global float *y = FLOATS(y_at) + PLANE * yh * yw;
    const float share = 1.0f / (float)(kh * kw);
    for (int oy = 0; oy < yh; oy++)
        for (int ox = 0; ox < yw; ox++) {
            WINDOW;
            float sum = 0;
            for (int r = y0; r < y1; r++)
                for (int c = x0; c < x1; c++) sum += x[r * xw + c];
            y[oy * yw + ox] = sum * share;
        }
}

kernel void average_backward(global char *arena, ulong dy_at, ulong dx_at, POOL_ARGS) {
    global const float *dy = FLOATS(dy_at) + PLANE * yh * yw;
    global float *dx = FLOATS(dx_at) + PLANE * xh * xw;
    const float share = 1.0f / (float)(kh * kw);
    for (int i = 0; i < xh * xw; i++) dx[i] = 0;
    for (int oy = 0; oy < yh; oy++)
        for (int ox = 0; ox < yw; ox++) {
            WINDOW;
            const float part = dy[oy * yw + ox] * share;
            for (int r = y0; r < y1; r++)
                for (int c = x0; c < x1; c++) dx[r * xw + c] += part;
        }
}
