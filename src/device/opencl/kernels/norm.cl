/* Batch and layer norm. Batch norm takes two sums per channel over ranges of images, one pair of partial sums each in
 * the workspace ([chunk][channel][2]), then adds them in order of the ranges. */

/* Sums of x and x^2, or, with dy, of dy and dy * x^. Item (channel, chunk). */
kernel void batch_sums(global char *arena, ulong x_at, ulong dy_at, ulong mean_at, ulong inv_std_at, ulong partial_at,
                       int images, int channels, int pixels, int chunks, int backward) {
    const long c = (long)get_global_id(0), chunk = (long)get_global_id(1);
    const float mean = backward ? FLOATS(mean_at)[c] : 0, inv_std = backward ? FLOATS(inv_std_at)[c] : 0;
    wide8 first = 0, second = 0;
    wide first_rest = 0, second_rest = 0;
    for (long n = images * chunk / chunks; n < images * (chunk + 1) / chunks; n++) {
        global const float *x = FLOATS(x_at) + (n * channels + c) * pixels;
        global const float *dy = FLOATS(dy_at) + (n * channels + c) * pixels;
        int i = 0;
        for (; i + 8 <= pixels && !backward; i += 8) {
            wide8 v = WIDE8(vload8(0, x + i));
            first += v;
            second += v * v;
        }
        for (; i + 8 <= pixels; i += 8) {
            float8 d = vload8(0, dy + i), hat = (vload8(0, x + i) - mean) * inv_std;
            first += WIDE8(d);
            second += WIDE8(d * hat);
        }
        for (; i < pixels; i++) {
            first_rest += backward ? (wide)dy[i] : (wide)x[i];
            second_rest += backward ? (wide)(dy[i] * ((x[i] - mean) * inv_std)) : (wide)x[i] * (wide)x[i];
        }
    }
    global wide *to = (global wide *)(arena + partial_at) + (chunk * channels + c) * 2;
    to[0] = sum8(first) + first_rest;
    to[1] = sum8(second) + second_rest;
}

/* Item: a channel. Forward: a, b are mean and inv_std; backward: dshift and dscale. */
kernel void batch_totals(global char *arena, ulong partial_at, ulong a_at, ulong b_at, int channels, int chunks,
                         float count, float eps, int backward) {
    const long c = (long)get_global_id(0);
    global const wide *partial = (global const wide *)(arena + partial_at);
    wide first = 0, second = 0;
    for (long chunk = 0; chunk < chunks; chunk++) {
        first += partial[(chunk * channels + c) * 2];
        second += partial[(chunk * channels + c) * 2 + 1];
    }
    if (!backward) {
        wide mean = first / (wide)count, variance = second / (wide)count - mean * mean;
        first = mean;
        second = 1 / sqrt((variance < 0 ? 0 : variance) + (wide)eps);
    }
    FLOATS(a_at)[c] = (float)first;
    FLOATS(b_at)[c] = (float)second;
}

/* y = (x - mean) * factor + shift, factor = scale * inv_std; with `variance` inv_std is made of a variance. Item
 * (channel, image). */
kernel void batch_normalise(global char *arena, ulong x_at, ulong scale_at, ulong shift_at, ulong mean_at,
                            ulong spread_at, ulong y_at, int channels, int pixels, float eps, int variance) {
    const long c = (long)get_global_id(0), at = ((long)get_global_id(1) * channels + c) * pixels;
    global const float *x = FLOATS(x_at) + at;
    global float *y = FLOATS(y_at) + at;
    const float spread = FLOATS(spread_at)[c], mean = FLOATS(mean_at)[c], shift = FLOATS(shift_at)[c];
    const float factor = FLOATS(scale_at)[c] * (variance ? (float)(1 / sqrt((wide)spread + (wide)eps)) : spread);
    int i = 0;
    for (; i + 8 <= pixels; i += 8) vstore8((vload8(0, x + i) - mean) * factor + shift, 0, y + i);
    for (; i < pixels; i++) y[i] = (x[i] - mean) * factor + shift;
}

/* dx = factor * (dy - a - x^ * b), a and b the means of dy and dy * x^. Item (channel, image). */
kernel void batch_backward(global char *arena, ulong x_at, ulong dy_at, ulong scale_at, ulong mean_at, ulong inv_std_at,
                           ulong dx_at, ulong dscale_at, ulong dshift_at, int channels, int pixels, float count) {
    const long c = (long)get_global_id(0), at = ((long)get_global_id(1) * channels + c) * pixels;
    global const float *x = FLOATS(x_at) + at, *dy = FLOATS(dy_at) + at;
    global float *dx = FLOATS(dx_at) + at;
    const float mean = FLOATS(mean_at)[c], inv_std = FLOATS(inv_std_at)[c], factor = FLOATS(scale_at)[c] * inv_std;
    const float a = FLOATS(dshift_at)[c] / count, b = FLOATS(dscale_at)[c] / count;
    int i = 0;
    for (; i + 8 <= pixels; i += 8) {
        float8 hat = (vload8(0, x + i) - mean) * inv_std;
        vstore8(factor * (vload8(0, dy + i) - a - hat * b), 0, dx + i);
    }
    for (; i < pixels; i++) dx[i] = factor * (dy[i] - a - (x[i] - mean) * inv_std * b);
}

/* Running statistics; the variance unbiased. Item: a channel. */
kernel void batch_statistics(global char *arena, ulong mean_at, ulong inv_std_at, ulong run_mean_at, ulong run_var_at,
                             ulong mean_out_at, ulong var_out_at, float share, float unbias, float eps) {
    const long c = (long)get_global_id(0);
    const wide inv_std = (wide)FLOATS(inv_std_at)[c], variance = 1 / (inv_std * inv_std) - (wide)eps;
    const float fresh = (float)((variance < 0 ? 0 : variance) * (wide)unbias);
    FLOATS(mean_out_at)[c] = (1 - share) * FLOATS(run_mean_at)[c] + share * FLOATS(mean_at)[c];
    FLOATS(var_out_at)[c] = (1 - share) * FLOATS(run_var_at)[c] + share * fresh;
}

/* ---- layer norm: over the rows of (rows, width) ---- */

inline wide row_sum(global const float *x, int n) {
    wide8 lanes = 0;
    wide rest = 0;
    int i = 0;
    for (; i + 8 <= n; i += 8) lanes += WIDE8(vload8(0, x + i));
    for (; i < n; i++) rest += (wide)x[i];
    return sum8(lanes) + rest;
}

inline wide row_squares(global const float *x, int n, float mean) {
    wide8 lanes = 0;
    wide rest = 0;
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        float8 v = vload8(0, x + i) - mean;
        lanes += WIDE8(v * v);
    }
    for (; i < n; i++) rest += (wide)((x[i] - mean) * (x[i] - mean));
    return sum8(lanes) + rest;
}

/* Item: a row. */
kernel void layer_forward(global char *arena, ulong x_at, ulong scale_at, ulong shift_at, ulong y_at, ulong mean_at,
                          ulong inv_std_at, int width, float eps) {
    const long row = (long)get_global_id(0);
    global const float *x = FLOATS(x_at) + row * width, *scale = FLOATS(scale_at), *shift = FLOATS(shift_at);
    global float *y = FLOATS(y_at) + row * width;
    const float mean = (float)(row_sum(x, width) / (wide)width);
    const float inv_std = (float)(1 / sqrt(row_squares(x, width, mean) / (wide)width + (wide)eps));
    int i = 0;
    for (; i + 8 <= width; i += 8)
        vstore8((vload8(0, x + i) - mean) * inv_std * vload8(0, scale + i) + vload8(0, shift + i), 0, y + i);
    for (; i < width; i++) y[i] = (x[i] - mean) * inv_std * scale[i] + shift[i];
    FLOATS(mean_at)[row] = mean;
    FLOATS(inv_std_at)[row] = inv_std;
}

/* dx = inv_std * (g - a - x^ * b), g = dy * scale, a and b the means of g and g * x^; dx may lie on dy. Item: a range
 * of rows, whose columns' sums of dy * x^ and dy go to the workspace, [chunk][2][width]. */
kernel void layer_backward(global char *arena, ulong x_at, ulong dy_at, ulong scale_at, ulong mean_at, ulong inv_std_at,
                           ulong dx_at, ulong partial_at, int rows, int width, int chunks) {
    const long chunk = (long)get_global_id(0);
    global wide *dscale = (global wide *)(arena + partial_at) + chunk * 2 * width, *dshift = dscale + width;
    global const float *scale = FLOATS(scale_at);
    for (int i = 0; i < 2 * width; i++) dscale[i] = 0;
    for (long row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; row++) {
        global const float *x = FLOATS(x_at) + row * width, *dy = FLOATS(dy_at) + row * width;
        global float *dx = FLOATS(dx_at) + row * width;
        const float mean = FLOATS(mean_at)[row], inv_std = FLOATS(inv_std_at)[row];
        wide8 first = 0, second = 0;
        wide first_rest = 0, second_rest = 0;
        int i = 0;
        for (; i + 8 <= width; i += 8) {
            const float8 d = vload8(0, dy + i), hat = (vload8(0, x + i) - mean) * inv_std;
            const float8 g = d * vload8(0, scale + i);
            vstore8(vload8(0, dscale + i) + WIDE8(d * hat), 0, dscale + i);
            vstore8(vload8(0, dshift + i) + WIDE8(d), 0, dshift + i);
            first += WIDE8(g);
            second += WIDE8(g * hat);
        }
        for (; i < width; i++) {
            const float hat = (x[i] - mean) * inv_std, g = dy[i] * scale[i];
            dscale[i] += (wide)(dy[i] * hat);
            dshift[i] += (wide)dy[i];
            first_rest += (wide)g;
            second_rest += (wide)(g * hat);
        }
        const float a = (float)((sum8(first) + first_rest) / (wide)width);
        const float b = (float)((sum8(second) + second_rest) / (wide)width);
        for (i = 0; i + 8 <= width; i += 8) {
            const float8 g = vload8(0, dy + i) * vload8(0, scale + i), hat = (vload8(0, x + i) - mean) * inv_std;
            vstore8(inv_std * (g - a - hat * b), 0, dx + i);
        }
        for (; i < width; i++) dx[i] = inv_std * (dy[i] * scale[i] - a - (x[i] - mean) * inv_std * b);
    }
}

/* Item: a column. */
kernel void layer_totals(global char *arena, ulong partial_at, ulong dscale_at, ulong dshift_at, int width,
                         int chunks) {
    const long i = (long)get_global_id(0);
    global const wide *partial = (global const wide *)(arena + partial_at);
    wide scale = 0, shift = 0;
    for (long c = 0; c < chunks; c++) {
        scale += partial[c * 2 * width + i];
        shift += partial[(c * 2 + 1) * width + i];
    }
    FLOATS(dscale_at)[i] = (float)scale;
    FLOATS(dshift_at)[i] = (float)shift;
}
