/* Batch and layer norm. Batch norm takes two sums per channel over ranges of images, one pair of partial sums each in
 * the workspace ([chunk][channel][2]), then adds them in order of the ranges. */

/* Sums of x and x^2, or, with dy, of dy and dy * x^. Group (channel, chunk). */
KERNEL void batch_sums(ARENA, ulong x_at, ulong dy_at, ulong mean_at, ulong inv_std_at, ulong partial_at, int images,
                       int channels, int pixels, int chunks, int backward) {
    SKIP_AFTER_FAULT;
    const long c = (long)get_group_id(0), chunk = (long)get_group_id(1);
    const float mean = backward ? FLOATS(mean_at)[c] : 0, inv_std = backward ? FLOATS(inv_std_at)[c] : 0;
    local wide scratch[LANES];
    wide8 first = 0, second = 0;
    wide first_rest = 0, second_rest = 0;
    for (long n = images * chunk / chunks; n < images * (chunk + 1) / chunks; n++) {
        global const float *x = FLOATS(x_at) + (n * channels + c) * pixels;
        global const float *dy = FLOATS(dy_at) + (n * channels + c) * pixels;
        if (backward)
            FOR_ROW(pixels,
                    {
                        const float8 d = vload8(0, dy + i);
                        first += WIDE8(d);
                        second += WIDE8(d * ((vload8(0, x + i) - mean) * inv_std));
                    },
                    {
                        first_rest += (wide)dy[i];
                        second_rest += (wide)(dy[i] * ((x[i] - mean) * inv_std));
                    });
        else
            FOR_ROW(pixels,
                    {
                        const wide8 v = WIDE8(vload8(0, x + i));
                        first += v;
                        second += v * v;
                    },
                    {
                        first_rest += (wide)x[i];
                        second_rest += (wide)x[i] * (wide)x[i];
                    });
    }
    const wide a = group_sum(sum8(first) + first_rest, scratch), b = group_sum(sum8(second) + second_rest, scratch);
    global wide *to = (global wide *)(arena + partial_at) + (chunk * channels + c) * 2;
    if (LANE == 0) to[0] = a, to[1] = b;
}

/* Item: a channel. Forward: a, b are mean and inv_std; backward: dshift and dscale. */
KERNEL void batch_totals(ARENA, ulong partial_at, ulong a_at, ulong b_at, int channels, int chunks, float count,
                         float eps, int backward) {
    SKIP_AFTER_FAULT;
    const long c = (long)get_global_id(0);
    global const wide *partial = (global const wide *)(arena + partial_at);
    wide first = 0, second = 0;
    if (c >= channels) return;
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

/* y = (x - mean) * factor + shift, factor = scale * inv_std; with `variance` inv_std is made of a variance. Group
 * (channel, image). */
KERNEL void batch_normalise(ARENA, ulong x_at, ulong scale_at, ulong shift_at, ulong mean_at, ulong spread_at,
                            ulong y_at, int channels, int pixels, float eps, int variance) {
    SKIP_AFTER_FAULT;
    const long c = (long)get_group_id(0), at = ((long)get_group_id(1) * channels + c) * pixels;
    global const float *x = FLOATS(x_at) + at;
    global float *y = FLOATS(y_at) + at;
    const float spread = FLOATS(spread_at)[c], mean = FLOATS(mean_at)[c], shift = FLOATS(shift_at)[c];
    const float factor = FLOATS(scale_at)[c] * (variance ? (float)(1 / sqrt((wide)spread + (wide)eps)) : spread);
    FOR_ROW(pixels, vstore8((vload8(0, x + i) - mean) * factor + shift, 0, y + i),
            y[i] = (x[i] - mean) * factor + shift);
}

/* dx = factor * (dy - a - x^ * b), a and b the means of dy and dy * x^. Group (channel, image). */
KERNEL void batch_backward(ARENA, ulong x_at, ulong dy_at, ulong scale_at, ulong mean_at, ulong inv_std_at, ulong dx_at,
                           ulong dscale_at, ulong dshift_at, int channels, int pixels, float count) {
    SKIP_AFTER_FAULT;
    const long c = (long)get_group_id(0), at = ((long)get_group_id(1) * channels + c) * pixels;
    global const float *x = FLOATS(x_at) + at, *dy = FLOATS(dy_at) + at;
    global float *dx = FLOATS(dx_at) + at;
    const float mean = FLOATS(mean_at)[c], inv_std = FLOATS(inv_std_at)[c], factor = FLOATS(scale_at)[c] * inv_std;
    const float a = FLOATS(dshift_at)[c] / count, b = FLOATS(dscale_at)[c] / count;
    FOR_ROW(pixels,
            {
                const float8 hat = (vload8(0, x + i) - mean) * inv_std;
                vstore8(factor * (vload8(0, dy + i) - a - hat * b), 0, dx + i);
            },
            dx[i] = factor * (dy[i] - a - (x[i] - mean) * inv_std * b));
}

/* Running statistics, in place; the variance unbiased. A batch that is not finite leaves them. Item: a channel. */
KERNEL void batch_statistics(ARENA, ulong mean_at, ulong inv_std_at, ulong run_mean_at, ulong run_var_at,
                             ulong mean_out_at, ulong var_out_at, int channels, float share, float unbias, float eps) {
    SKIP_AFTER_FAULT;
    const long c = (long)get_global_id(0);
    if (c >= channels) return;
    const wide inv_std = (wide)FLOATS(inv_std_at)[c], variance = 1 / (inv_std * inv_std) - (wide)eps;
    const float fresh = (float)((variance < 0 ? 0 : variance) * (wide)unbias);
    if (!isfinite(FLOATS(mean_at)[c]) || !isfinite(fresh)) return;
    FLOATS(mean_out_at)[c] = (1 - share) * FLOATS(run_mean_at)[c] + share * FLOATS(mean_at)[c];
    FLOATS(var_out_at)[c] = (1 - share) * FLOATS(run_var_at)[c] + share * fresh;
}

/* ---- layer norm: over the rows of (rows, width) ---- */

/* A lane's part of a sum; all of it where there is one lane. */
inline wide row_sum(global const float *x, int n) {
    wide8 lanes = 0;
    wide rest = 0;
    FOR_ROW(n, lanes += WIDE8(vload8(0, x + i)), rest += (wide)x[i]);
    return sum8(lanes) + rest;
}

inline wide row_squares(global const float *x, int n, float mean) {
    wide8 lanes = 0;
    wide rest = 0;
    FOR_ROW(n,
            {
                const float8 v = vload8(0, x + i) - mean;
                lanes += WIDE8(v * v);
            },
            rest += (wide)((x[i] - mean) * (x[i] - mean)));
    return sum8(lanes) + rest;
}

/* Group: a row. */
KERNEL void layer_forward(ARENA, ulong x_at, ulong scale_at, ulong shift_at, ulong y_at, ulong mean_at,
                          ulong inv_std_at, int width, float eps) {
    SKIP_AFTER_FAULT;
    const long row = (long)get_group_id(0);
    global const float *x = FLOATS(x_at) + row * width, *scale = FLOATS(scale_at), *shift = FLOATS(shift_at);
    global float *y = FLOATS(y_at) + row * width;
    local wide scratch[LANES];
    const float mean = (float)(group_sum(row_sum(x, width), scratch) / (wide)width);
    const float inv_std =
        (float)(1 / sqrt(group_sum(row_squares(x, width, mean), scratch) / (wide)width + (wide)eps));
    FOR_ROW(width, vstore8((vload8(0, x + i) - mean) * inv_std * vload8(0, scale + i) + vload8(0, shift + i), 0, y + i),
            y[i] = (x[i] - mean) * inv_std * scale[i] + shift[i]);
    if (LANE == 0) FLOATS(mean_at)[row] = mean, FLOATS(inv_std_at)[row] = inv_std;
}

/* dx = inv_std * (g - a - x^ * b), g = dy * scale, a and b the means of g and g * x^; dx may lie on dy. Group: a range
 * of rows, whose columns' sums of dy * x^ and dy go to the workspace, [chunk][2][width]. */
KERNEL void layer_backward(ARENA, ulong x_at, ulong dy_at, ulong scale_at, ulong mean_at, ulong inv_std_at, ulong dx_at,
                           ulong partial_at, int rows, int width, int chunks) {
    SKIP_AFTER_FAULT;
    const long chunk = (long)get_group_id(0);
    global wide *dscale = (global wide *)(arena + partial_at) + chunk * 2 * width, *dshift = dscale + width;
    global const float *scale = FLOATS(scale_at);
    local wide scratch[LANES];
    FOR_ROW(width,
            {
                vstore8((wide8)(0), 0, dscale + i);
                vstore8((wide8)(0), 0, dshift + i);
            },
            dscale[i] = dshift[i] = 0);
    for (long row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; row++) {
        global const float *x = FLOATS(x_at) + row * width, *dy = FLOATS(dy_at) + row * width;
        global float *dx = FLOATS(dx_at) + row * width;
        const float mean = FLOATS(mean_at)[row], inv_std = FLOATS(inv_std_at)[row];
        wide8 first = 0, second = 0;
        wide first_rest = 0, second_rest = 0;
        FOR_ROW(width,
                {
                    const float8 d = vload8(0, dy + i);
                    const float8 hat = (vload8(0, x + i) - mean) * inv_std;
                    const float8 g = d * vload8(0, scale + i);
                    vstore8(vload8(0, dscale + i) + WIDE8(d * hat), 0, dscale + i);
                    vstore8(vload8(0, dshift + i) + WIDE8(d), 0, dshift + i);
                    first += WIDE8(g);
                    second += WIDE8(g * hat);
                },
                {
                    const float hat = (x[i] - mean) * inv_std;
                    const float g = dy[i] * scale[i];
                    dscale[i] += (wide)(dy[i] * hat);
                    dshift[i] += (wide)dy[i];
                    first_rest += (wide)g;
                    second_rest += (wide)(g * hat);
                });
        const float a = (float)(group_sum(sum8(first) + first_rest, scratch) / (wide)width);
        const float b = (float)(group_sum(sum8(second) + second_rest, scratch) / (wide)width);
        FOR_ROW(width,
                {
                    const float8 g = vload8(0, dy + i) * vload8(0, scale + i);
                    const float8 hat = (vload8(0, x + i) - mean) * inv_std;
                    vstore8(inv_std * (g - a - hat * b), 0, dx + i);
                },
                dx[i] = inv_std * (dy[i] * scale[i] - a - (x[i] - mean) * inv_std * b));
    }
}

/* Item: a column. */
KERNEL void layer_totals(ARENA, ulong partial_at, ulong dscale_at, ulong dshift_at, int width, int chunks) {
    SKIP_AFTER_FAULT;
    const long i = (long)get_global_id(0);
    global const wide *partial = (global const wide *)(arena + partial_at);
    wide scale = 0, shift = 0;
    if (i >= width) return;
    for (long c = 0; c < chunks; c++) {
        scale += partial[c * 2 * width + i];
        shift += partial[(c * 2 + 1) * width + i];
    }
    FLOATS(dscale_at)[i] = (float)scale;
    FLOATS(dshift_at)[i] = (float)shift;
}
