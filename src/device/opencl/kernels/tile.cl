/* Blocks of matrix products; stands before each family, after common.cl.
 *
 * A work item computes a block of C, mc x nc, over slices of at most kc of the depth: it packs the slice of A into
 * panels of 6 rows and that of B into panels of 16 columns, then multiplies panel by panel in registers. What sticks
 * out of the matrices is packed as zeros. A slice's sums are added to the block in order of the slices, so bits depend
 * on kc but neither on mc, nc nor on who computes which block.
 *
 *     pack_a [panel][depth][6]     pack_b [panel][depth][16]     block [mc][nc] */
#define ROWS 6
#define COLUMNS 16
#define MAX_NC 192

/* block += a panel of A times a panel of B; `stride` floats between rows of the block. */
inline void multiply_panels(local const float *a, local const float *b, int depth, local float *block, int stride) {
    float8 c00 = 0, c01 = 0, c10 = 0, c11 = 0, c20 = 0, c21 = 0, c30 = 0, c31 = 0, c40 = 0, c41 = 0, c50 = 0, c51 = 0;
    for (int k = 0; k < depth; k++, a += ROWS, b += COLUMNS) {
        const float8 b0 = vload8(0, b), b1 = vload8(1, b);
        float8 v = (float8)(a[0]);
        c00 = fma(v, b0, c00), c01 = fma(v, b1, c01);
        v = (float8)(a[1]);
        c10 = fma(v, b0, c10), c11 = fma(v, b1, c11);
        v = (float8)(a[2]);
        c20 = fma(v, b0, c20), c21 = fma(v, b1, c21);
        v = (float8)(a[3]);
        c30 = fma(v, b0, c30), c31 = fma(v, b1, c31);
        v = (float8)(a[4]);
        c40 = fma(v, b0, c40), c41 = fma(v, b1, c41);
        v = (float8)(a[5]);
        c50 = fma(v, b0, c50), c51 = fma(v, b1, c51);
    }
#define ADD(row, low, high)                                              \
    vstore8(vload8(0, block + (row) * stride) + low, 0, block + (row) * stride); \
    vstore8(vload8(1, block + (row) * stride) + high, 1, block + (row) * stride)
    ADD(0, c00, c01);
    ADD(1, c10, c11);
    ADD(2, c20, c21);
    ADD(3, c30, c31);
    ADD(4, c40, c41);
    ADD(5, c50, c51);
#undef ADD
}

/* The whole block; columns outside, so that a panel of B stays in the nearest cache. */
inline void multiply_block(local const float *pack_a, local const float *pack_b, int depth, local float *block, int mc,
                           int nc) {
    for (int j = 0; j < nc; j += COLUMNS)
        for (int i = 0; i < mc; i += ROWS)
            multiply_panels(pack_a + i * depth, pack_b + j * depth, depth, block + i * nc + j, nc);
}

inline void clear_block(local float *block, int n) {
    for (int i = 0; i < n; i += 8) vstore8((float8)(0), 0, block + i);
}

/* A as (row, depth) with any strides; `rows` of the mc are there. */
inline void pack_rows(local float *to, global const float *a, long row, long column, int rows, int mc, int depth) {
    for (int p = 0; p < mc; p += ROWS, to += ROWS * depth) {
        if (p + ROWS <= rows) {
            global const float *r = a + p * row;
            for (int k = 0; k < depth; k++)
                for (int i = 0; i < ROWS; i++) to[k * ROWS + i] = r[k * column + i * row];
        } else {
            for (int k = 0; k < depth; k++)
                for (int i = 0; i < ROWS; i++) to[k * ROWS + i] = p + i < rows ? a[k * column + (p + i) * row] : 0;
        }
    }
}

/* B as (depth, column) with any strides; `columns` of the nc are there. */
inline void pack_columns(local float *to, global const float *b, long row, long column, int columns, int nc,
                         int depth) {
    for (int q = 0; q < nc; q += COLUMNS, to += COLUMNS * depth) {
        if (q + COLUMNS <= columns && column == 1) {
            for (int k = 0; k < depth; k++) vstore16(vload16(0, b + k * row + q), 0, to + k * COLUMNS);
        } else if (q + COLUMNS <= columns) {
            global const float *c = b + q * column;
            for (int j = 0; j < COLUMNS; j++)
                for (int k = 0; k < depth; k++) to[k * COLUMNS + j] = c[j * column + k * row];
        } else {
            for (int k = 0; k < depth; k++)
                for (int j = 0; j < COLUMNS; j++)
                    to[k * COLUMNS + j] = q + j < columns ? b[k * row + (q + j) * column] : 0;
        }
    }
}

/* One line of B, `nc` floats in private memory, to depth k of the panels. */
inline void spread_line(local float *to, const float *line, int nc, int depth, int k) {
    for (int q = 0; q < nc; q += COLUMNS) vstore16(vload16(0, line + q), 0, to + q * depth + k * COLUMNS);
}
