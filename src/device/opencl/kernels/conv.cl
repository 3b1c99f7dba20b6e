/* Convolutions as matrix products whose B is never stored: its slices are gathered from images while they are packed.
 *
 * All weights are (m, q, position): element m * w_row + q * w_group + position, position = row * kw + column of the
 * window, of `window` = kh * kw. That covers the weights of convolutions and of transposed ones, seen from both sides.
 * `wide_*` is the larger image of the two (a convolution's input), `small_*` the other. */

typedef struct {
    int wide_h, wide_w, small_h, small_w, kh, kw, stride, pad_h, pad_w;
} geometry;

#define GEOMETRY_ARGS \
    int wide_h, int wide_w, int small_h, int small_w, int kh, int kw, int stride, int pad_h, int pad_w
#define GEOMETRY {wide_h, wide_w, small_h, small_w, kh, kw, stride, pad_h, pad_w}

/* What window position (r, s) of pixel `at` of the small image sees in the wide image, and the other way round. */
inline float seen_wide(global const float *wide_image, const geometry *g, int r, int s, int at) {
    const int iy = at / g->small_w * g->stride - g->pad_h + r, ix = at % g->small_w * g->stride - g->pad_w + s;
    return iy >= 0 && iy < g->wide_h && ix >= 0 && ix < g->wide_w ? wide_image[iy * g->wide_w + ix] : 0;
}

inline float seen_small(global const float *small_image, const geometry *g, int r, int s, int at) {
    const int ty = at / g->wide_w + g->pad_h - r, tx = at % g->wide_w + g->pad_w - s;
    if (ty < 0 || tx < 0 || ty % g->stride || tx % g->stride) return 0;
    const int y = ty / g->stride, x = tx / g->stride;
    return y < g->small_h && x < g->small_w ? small_image[y * g->small_w + x] : 0;
}

#if LANES > 1

inline void pack_weights(local float *to, global const float *w, long w_row, long w_group, int window, int k0,
                         int rows, int mc, int depth) {
    for (int e = LANE; e < mc * depth; e += LANES) {
        const int k = k0 + e % (ROWS * depth) / ROWS, i = e / (ROWS * depth) * ROWS + e % ROWS;
        to[e] = i < rows ? w[i * w_row + k / window * w_group + k % window] : 0;
    }
}

/* B from an image: depth (q, position) from k0 on, columns are the pixels from `first` on. */
inline void pack_image(local float *to, global const float *image, const geometry *g, int to_small, int in_pixels,
                       int k0, int first, int columns, int nc, int depth) {
    const int window = g->kh * g->kw;
    for (int e = LANE; e < nc * depth; e += LANES) {
        const int k = k0 + e % (COLUMNS * depth) / COLUMNS, j = e / (COLUMNS * depth) * COLUMNS + e % COLUMNS;
        const int r = k % window / g->kw, s = k % window % g->kw;
        global const float *from = image + (long)(k / window) * in_pixels;
        to[e] = j >= columns ? 0
                : to_small   ? seen_wide(from, g, r, s, first + j)
                             : seen_small(from, g, r, s, first + j);
    }
}

#else

/* A from weights: rows m, depth (q, position) from k0 on. */
inline void pack_weights(local float *to, global const float *w, long w_row, long w_group, int window, int k0,
                         int rows, int mc, int depth) {
    if (w_group == window) {
        pack_rows(to, w + k0, w_row, 1, rows, mc, depth);
        return;
    }
    int q = k0 / window, position = k0 % window;
    for (int k = 0; k < depth; k++) {
        global const float *from = w + q * w_group + position;
        for (int p = 0; p < mc; p += ROWS)
            for (int i = 0; i < ROWS; i++)
                to[p * depth + k * ROWS + i] = p + i < rows ? from[(p + i) * w_row] : 0;
        if (++position == window) position = 0, q++;
    }
}

/* Pixels [first, first + n) of the small image as one window position (r, s) sees the wide image: `line`. */
inline void gather_wide(float *line, global const float *wide_image, const geometry *g, int r, int s, int first,
                        int n) {
    int y = first / g->small_w, x = first % g->small_w;
    for (int done = 0; done < n; y++, x = 0) {
        const int count = min(g->small_w - x, n - done), iy = y * g->stride - g->pad_h + r;
        const int ix = x * g->stride - g->pad_w + s;
        float *to = line + done;
        done += count;
        if (iy < 0 || iy >= g->wide_h) {
            for (int t = 0; t < count; t++) to[t] = 0;
            continue;
        }
        global const float *from = wide_image + iy * g->wide_w + ix;
        if (g->stride == 1) {
            const int low = clamp(-ix, 0, count), high = clamp(g->wide_w - ix, low, count);
            for (int t = 0; t < low; t++) to[t] = 0;
            for (int t = low; t < high; t++) to[t] = from[t];
            for (int t = high; t < count; t++) to[t] = 0;
        } else {
            for (int t = 0; t < count; t++) {
                const int at = t * g->stride;
                to[t] = ix + at >= 0 && ix + at < g->wide_w ? from[at] : 0;
            }
        }
    }
}

/* Pixels [first, first + n) of the wide image: what of the small image lies at window position (r, s) over them. */
inline void gather_small(float *line, global const float *small_image, const geometry *g, int r, int s, int first,
                         int n) {
    int y = first / g->wide_w, x = first % g->wide_w;
    for (int done = 0; done < n; y++, x = 0) {
        const int count = min(g->wide_w - x, n - done), ty = y + g->pad_h - r, tx = x + g->pad_w - s;
        float *to = line + done;
        done += count;
        if (ty < 0 || ty % g->stride || ty / g->stride >= g->small_h) {
            for (int t = 0; t < count; t++) to[t] = 0;
            continue;
        }
        global const float *from = small_image + ty / g->stride * g->small_w;
        if (g->stride == 1) {
            const int low = clamp(-tx, 0, count), high = clamp(g->small_w - tx, low, count);
            for (int t = 0; t < low; t++) to[t] = 0;
            for (int t = low; t < high; t++) to[t] = from[tx + t];
            for (int t = high; t < count; t++) to[t] = 0;
        } else {
            for (int t = 0; t < count; t++) to[t] = 0;
            int t = tx < 0 ? -tx : (g->stride - tx % g->stride) % g->stride;
            for (; t < count && (tx + t) / g->stride < g->small_w; t += g->stride) to[t] = from[(tx + t) / g->stride];
        }
    }
}

/* B from an image: depth (q, position) from k0 on, columns are the pixels from `first` on. */
inline void pack_image(local float *to, global const float *image, const geometry *g, int to_small, int in_pixels,
                       int k0, int first, int columns, int nc, int depth) {
    const int window = g->kh * g->kw;
    float line[MAX_NC];
    for (int j = columns; j < nc; j++) line[j] = 0;
    for (int t = 0; t < depth; t++) {
        const int q = (k0 + t) / window, position = (k0 + t) % window;
        global const float *from = image + (long)q * in_pixels;
        if (to_small)
            gather_wide(line, from, g, position / g->kw, position % g->kw, first, columns);
        else
            gather_small(line, from, g, position / g->kw, position % g->kw, first, columns);
        spread_line(to, line, nc, depth, t);
    }
}

#endif

inline void store_block(local const float *block, int rows, int columns, int nc, global const float *bias,
                        global float *to, long stride) {
    FOR_PAIRS(i, j, rows, columns) to[i * stride + j] = block[i * nc + j] + (bias ? bias[i] : 0);
}

/* out (m, pixels of `out`) = weights * what the windows see of `in`; group (i, j, image). `to_small`: the windows slide
 * over the wide image, as in a forward convolution; else the result is the wide image, as in backward-data. */
KERNEL void convolve(ARENA, ulong w_at, ulong in_at, ulong out_at, ulong bias_at, local float *pack_a,
                     local float *pack_b, local float *block, int m, int groups, long w_row, long w_group, int mc,
                     int nc, int kc, int has_bias, int to_small, GEOMETRY_ARGS) {
    SKIP_AFTER_FAULT;
    const geometry g = GEOMETRY;
    const int window = kh * kw, depth = groups * window;
    const int in_pixels = to_small ? wide_h * wide_w : small_h * small_w;
    const int n = to_small ? small_h * small_w : wide_h * wide_w;
    const int i0 = (int)get_group_id(0) * mc, j0 = (int)get_group_id(1) * nc;
    const long image = (long)get_group_id(2);
    const int rows = min(mc, m - i0), columns = min(nc, n - j0);
    const int direct = window == 1 && stride == 1 && pad_h == 0 && pad_w == 0;
    global const float *in = FLOATS(in_at) + image * groups * in_pixels;
    clear_block(block, mc * nc);
    for (int k = 0; k < depth; k += kc) {
        const int d = min(kc, depth - k);
        pack_weights(pack_a, FLOATS(w_at) + i0 * w_row, w_row, w_group, window, k, rows, mc, d);
        if (direct)
            pack_columns(pack_b, in + (long)k * in_pixels + j0, in_pixels, 1, columns, nc, d);
        else
            pack_image(pack_b, in, &g, to_small, in_pixels, k, j0, columns, nc, d);
        multiply_block(pack_a, pack_b, d, block, mc, nc);
    }
    global const float *bias = has_bias ? FLOATS(bias_at) + i0 : 0;
    store_block(block, rows, columns, nc, bias, FLOATS(out_at) + (image * m + i0) * n + j0, n);
}

/* The variants with a workspace: an image's matrix of windows is stored, (channels * positions, pixels of the small
 * image). Group: one of its rows. */
KERNEL void gather_windows(ARENA, ulong wide_at, ulong windows_at, GEOMETRY_ARGS) {
    SKIP_AFTER_FAULT;
    const geometry g = GEOMETRY;
    const int window = kh * kw, pixels = small_h * small_w, position = (int)get_group_id(0) % window;
    global const float *wide_image = FLOATS(wide_at) + (long)get_group_id(0) / window * wide_h * wide_w;
    global float *to = FLOATS(windows_at) + (long)get_group_id(0) * pixels;
#if LANES == 1
    float line[MAX_NC];
    for (int first = 0; first < pixels; first += MAX_NC) {
        const int n = min(MAX_NC, pixels - first);
        gather_wide(line, wide_image, &g, position / kw, position % kw, first, n);
        for (int i = 0; i < n; i++) to[first + i] = line[i];
    }
#else
    for (int i = LANE; i < pixels; i += LANES) to[i] = seen_wide(wide_image, &g, position / kw, position % kw, i);
#endif
}

/* The other way: every pixel of the wide image is the sum of what windows have for it, position by position. Group: a
 * channel. */
KERNEL void add_windows(ARENA, ulong windows_at, ulong wide_at, GEOMETRY_ARGS) {
    SKIP_AFTER_FAULT;
    const long c = (long)get_group_id(0);
    const int window = kh * kw, pixels = small_h * small_w;
    global float *to = FLOATS(wide_at) + c * wide_h * wide_w;
#if LANES == 1
    for (int i = 0; i < wide_h * wide_w; i++) to[i] = 0;
    for (int position = 0; position < window; position++) {
        global const float *from = FLOATS(windows_at) + (c * window + position) * pixels;
        const int r = position / kw, s = position % kw;
        for (int y = 0; y < small_h; y++) {
            const int iy = y * stride - pad_h + r;
            if (iy < 0 || iy >= wide_h) continue;
            for (int x = 0; x < small_w; x++) {
                const int ix = x * stride - pad_w + s;
                if (ix >= 0 && ix < wide_w) to[iy * wide_w + ix] += from[y * small_w + x];
            }
        }
    }
#else
    const geometry g = GEOMETRY;
    for (int i = LANE; i < wide_h * wide_w; i += LANES) {
        float sum = 0;
        for (int position = 0; position < window; position++)
            sum += seen_small(FLOATS(windows_at) + (c * window + position) * pixels, &g, position / kw, position % kw, i);
        to[i] = sum;
    }
#endif
}

/* B of a gradient of weights: columns are (q, position) from `first` on, its depth pixels of the small image from k0
 * on. */
inline void pack_windows(local float *to, global const float *wide_image, long wide_pixels, const geometry *g, int k0,
                         int first, int columns, int nc, int depth) {
    const int window = g->kh * g->kw;
#if LANES == 1
    float line[256]; /* kc at most */
    for (int j = 0; j < nc; j++) {
        local float *panel = to + j / COLUMNS * COLUMNS * depth + j % COLUMNS;
        const int q = (first + j) / window, position = (first + j) % window;
        if (j < columns)
            gather_wide(line, wide_image + q * wide_pixels, g, position / g->kw, position % g->kw, k0, depth);
        for (int t = 0; t < depth; t++) panel[t * COLUMNS] = j < columns ? line[t] : 0;
    }
#else
    for (int e = LANE; e < nc * depth; e += LANES) {
        const int k = e % (COLUMNS * depth) / COLUMNS, j = e / (COLUMNS * depth) * COLUMNS + e % COLUMNS;
        const int q = (first + j) / window, r = (first + j) % window / g->kw, s = (first + j) % window % g->kw;
        to[e] = j < columns ? seen_wide(wide_image + q * wide_pixels, g, r, s, k0 + k) : 0;
    }
#endif
}

/* Gradient of weights: (m, (q, position)) = sum over images and pixels of small (m, pixel) * wide as windows see it.
 * Group (i, j). */
KERNEL void weights_gradient(ARENA, ulong small_at, ulong wide_at, ulong dw_at, local float *pack_a,
                             local float *pack_b, local float *block, int images, int m, int groups, long w_row,
                             long w_group, int mc, int nc, int kc, GEOMETRY_ARGS) {
    SKIP_AFTER_FAULT;
    const geometry g = GEOMETRY;
    const int window = kh * kw, n = groups * window, pixels = small_h * small_w;
    const long wide_pixels = (long)wide_h * wide_w;
    const int i0 = (int)get_group_id(0) * mc, j0 = (int)get_group_id(1) * nc;
    const int rows = min(mc, m - i0), columns = min(nc, n - j0);
    clear_block(block, mc * nc);
    for (int image = 0; image < images; image++)
        for (int k = 0; k < pixels; k += kc) {
            const int d = min(kc, pixels - k);
            global const float *small_image = FLOATS(small_at) + ((long)image * m + i0) * pixels + k;
            global const float *wide_image = FLOATS(wide_at) + (long)image * groups * wide_pixels;
            pack_rows(pack_a, small_image, pixels, 1, rows, mc, d);
            pack_windows(pack_b, wide_image, wide_pixels, &g, k, j0, columns, nc, d);
            multiply_block(pack_a, pack_b, d, block, mc, nc);
        }
    global float *dw = FLOATS(dw_at);
    FOR_PAIRS(i, j, rows, columns)
        dw[(i0 + i) * w_row + (j0 + j) / window * w_group + (j0 + j) % window] = block[i * nc + j];
}

/* Gradient of a bias: one sum per channel over images and pixels. Group: a channel. */
KERNEL void sum_channels(ARENA, ulong x_at, ulong y_at, int images, int channels, int pixels) {
    SKIP_AFTER_FAULT;
    const long c = (long)get_group_id(0);
    local wide scratch[LANES];
    wide8 lanes = 0;
    wide rest = 0;
    for (int n = 0; n < images; n++) {
        global const float *x = FLOATS(x_at) + ((long)n * channels + c) * pixels;
        FOR_ROW(pixels, lanes += WIDE8(vload8(0, x + i)), rest += (wide)x[i]);
    }
    const wide sum = group_sum(sum8(lanes) + rest, scratch);
    if (LANE == 0) FLOATS(y_at)[c] = (float)sum;
}
