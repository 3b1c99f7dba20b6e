/* C = alpha A B (+ bias) (+ C) for matrices with any strides, and batches of them.
 *
 * Group (i, j, b) computes block (i, j) of product b. A batch is (sample, head): sample b / heads and head b % heads are
 * `*_sample` and `*_head` floats apart. */
#define BIAS 1      /* one float per column */
#define ADD_TO 2    /* C is added to */
#define LOWER_C 4   /* C is zero above the diagonal */
#define LOWER_A 8   /* A is zero above the diagonal: depth ends with the block's rows */
#define ROW_BIAS 32 /* one float per row */
#define UPPER_A 16  /* A is zero below the diagonal: depth begins with the block's rows */

KERNEL void multiply(ARENA, ulong a_at, ulong b_at, ulong c_at, ulong bias_at, local float *pack_a,
                     local float *pack_b, local float *block, int m, int n, int depth, int mc, int nc, int kc,
                     int flags, float alpha, long a_row, long a_column, long b_row, long b_column, long c_row,
                     int heads, long a_sample, long a_head, long b_sample, long b_head, long c_sample, long c_head) {
    SKIP_AFTER_FAULT;
    const int i0 = (int)get_group_id(0) * mc, j0 = (int)get_group_id(1) * nc;
    const long sample = (long)get_group_id(2) / heads, head = (long)get_group_id(2) % heads;
    global const float *a = FLOATS(a_at) + sample * a_sample + head * a_head + i0 * a_row;
    global const float *b = FLOATS(b_at) + sample * b_sample + head * b_head + j0 * b_column;
    global float *c = FLOATS(c_at) + sample * c_sample + head * c_head;
    const int rows = min(mc, m - i0), columns = min(nc, n - j0);
    const int begin = flags & UPPER_A ? i0 / kc * kc : 0, end = flags & LOWER_A ? min(depth, i0 + mc) : depth;
    const int skip = (flags & LOWER_C) && j0 > i0 + rows - 1;
    clear_block(block, mc * nc);
    for (int k = begin; k < end && !skip; k += kc) {
        const int d = min(kc, end - k);
        pack_rows(pack_a, a + k * a_column, a_row, a_column, rows, mc, d);
        pack_columns(pack_b, b + k * b_row, b_row, b_column, columns, nc, d);
        multiply_block(pack_a, pack_b, d, block, mc, nc);
    }
    FOR_PAIRS(i, j, rows, columns) {
        global float *to = c + (i0 + i) * c_row + j0 + j;
        float v = skip || begin >= end ? 0 : alpha * block[i * nc + j]; /* lanes have met only if they multiplied */
        if (flags & BIAS) v += FLOATS(bias_at)[j0 + j];
        if (flags & ROW_BIAS) v += FLOATS(bias_at)[i0 + i];
        if (flags & ADD_TO) v += *to;
        *to = (flags & LOWER_C) && j0 + j > i0 + i ? 0 : v;
    }
}

/* C = a bias, before something is added to it; `by_row`: one float per row. Group (run, row). */
KERNEL void spread_bias(ARENA, ulong bias_at, ulong c_at, long n, long c_row, int by_row) {
    SKIP_AFTER_FAULT;
    const long row = (long)get_group_id(1);
    global const float *bias = FLOATS(bias_at);
    global float *c = FLOATS(c_at) + row * c_row;
    FOR_RUN(n, vstore8(by_row ? (float8)(bias[row]) : vload8(0, bias + i), 0, c + i), c[i] = bias[by_row ? row : i]);
}

/* One sum per column of (rows, columns): the gradient of a bias. An item has 8 columns, a lane one. */
KERNEL void sum_rows(ARENA, ulong x_at, ulong y_at, int rows, int columns) {
    SKIP_AFTER_FAULT;
#if LANES == 1
    const int j = (int)get_group_id(0) * 8, width = min(8, columns - j);
    global const float *x = FLOATS(x_at) + j;
    global float *y = FLOATS(y_at) + j;
    wide sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int i = 0; i < rows; i++)
        for (int l = 0; l < width; l++) sum[l] += (wide)x[(long)i * columns + l];
    for (int l = 0; l < width; l++) y[l] = (float)sum[l];
#else
    const int j = (int)get_global_id(0);
    wide sum = 0;
    if (j >= columns) return;
    for (int i = 0; i < rows; i++) sum += (wide)FLOATS(x_at)[(long)i * columns + j];
    FLOATS(y_at)[j] = (float)sum;
#endif
}
