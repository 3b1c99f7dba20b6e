/* Blocks of matrix products; stands before each family, after common.cl.
 *
 * A work group computes a block of C, mc x nc, over slices of at most kc of the depth: it packs the slice of A into
 * panels of ROWS rows and that of B into panels of COLUMNS columns, then multiplies panel by panel in registers. What
 * sticks out of the matrices is packed as zeros. A slice's sums are added to the block in order of the slices, so bits
 * depend on kc but neither on mc, nc nor on who computes which block.
 *
 *     pack_a [panel][depth][ROWS]     pack_b [panel][depth][COLUMNS]     block [mc][nc]
 *
 * Lanes share the packing, element by element, and then the pairs of panels. */
#if LANES == 1
#define ROWS 6 /* with COLUMNS also in gemm.c */
#define COLUMNS 16
#else
#define ROWS 4
#define COLUMNS 4
#endif
#define MAX_NC 192

#if LANES == 1

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

/* The rows of v become its columns. */
inline void transpose8(float8 *v) {
    const uint8 low = (uint8)(0, 8, 1, 9, 4, 12, 5, 13), high = (uint8)(2, 10, 3, 11, 6, 14, 7, 15);
    const uint8 first = (uint8)(0, 1, 8, 9, 4, 5, 12, 13), second = (uint8)(2, 3, 10, 11, 6, 7, 14, 15);
    const uint8 front = (uint8)(0, 1, 2, 3, 8, 9, 10, 11), back = (uint8)(4, 5, 6, 7, 12, 13, 14, 15);
    const float8 a = shuffle2(v[0], v[1], low), b = shuffle2(v[0], v[1], high);
    const float8 c = shuffle2(v[2], v[3], low), d = shuffle2(v[2], v[3], high);
    const float8 e = shuffle2(v[4], v[5], low), f = shuffle2(v[4], v[5], high);
    const float8 g = shuffle2(v[6], v[7], low), h = shuffle2(v[6], v[7], high);
    const float8 ac = shuffle2(a, c, first), ca = shuffle2(a, c, second);
    const float8 bd = shuffle2(b, d, first), db = shuffle2(b, d, second);
    const float8 eg = shuffle2(e, g, first), ge = shuffle2(e, g, second);
    const float8 fh = shuffle2(f, h, first), hf = shuffle2(f, h, second);
    v[0] = shuffle2(ac, eg, front), v[1] = shuffle2(ca, ge, front);
    v[2] = shuffle2(bd, fh, front), v[3] = shuffle2(db, hf, front);
    v[4] = shuffle2(ac, eg, back), v[5] = shuffle2(ca, ge, back);
    v[6] = shuffle2(bd, fh, back), v[7] = shuffle2(db, hf, back);
}

/* A panel of A whose rows lie in memory: 8 columns at a time are turned round. Stores of 8 write over what follows, which
 * is written later; at the end of a panel there is no room for that. */
inline void pack_panel(local float *to, global const float *a, long row, int depth) {
    int k = 0;
    for (; k + 9 <= depth; k += 8) {
        float8 v[8];
        for (int i = 0; i < ROWS; i++) v[i] = vload8(0, a + i * row + k);
        v[6] = v[7] = (float8)(0);
        transpose8(v);
        for (int i = 0; i < 8; i++) vstore8(v[i], 0, to + (k + i) * ROWS);
    }
    for (; k < depth; k++)
        for (int i = 0; i < ROWS; i++) to[k * ROWS + i] = a[i * row + k];
}

/* A as (row, depth) with any strides; `rows` of the mc are there. */
inline void pack_rows(local float *to, global const float *a, long row, long column, int rows, int mc, int depth) {
    for (int p = 0; p < mc; p += ROWS, to += ROWS * depth) {
        global const float *r = a + p * row;
        if (p + ROWS <= rows && column == 1) {
            pack_panel(to, r, row, depth);
        } else if (p + ROWS <= rows && row == 1) {
            for (int k = 0; k < depth; k++) {
                vstore4(vload4(0, r + k * column), 0, to + k * ROWS);
                vstore2(vload2(0, r + k * column + 4), 0, to + k * ROWS + 4);
            }
        } else {
            for (int k = 0; k < depth; k++)
                for (int i = 0; i < ROWS; i++) to[k * ROWS + i] = p + i < rows ? r[k * column + i * row] : 0;
        }
    }
}

/* A panel of B whose columns lie in memory. */
inline void turn_panel(local float *to, global const float *b, long column, int depth) {
    int k = 0;
    for (; k + 8 <= depth; k += 8)
        for (int j = 0; j < COLUMNS; j += 8) {
            float8 v[8];
            for (int i = 0; i < 8; i++) v[i] = vload8(0, b + (j + i) * column + k);
            transpose8(v);
            for (int i = 0; i < 8; i++) vstore8(v[i], 0, to + (k + i) * COLUMNS + j);
        }
    for (; k < depth; k++)
        for (int j = 0; j < COLUMNS; j++) to[k * COLUMNS + j] = b[j * column + k];
}

/* B as (depth, column) with any strides; `columns` of the nc are there. */
inline void pack_columns(local float *to, global const float *b, long row, long column, int columns, int nc,
                         int depth) {
    for (int q = 0; q < nc; q += COLUMNS, to += COLUMNS * depth) {
        if (q + COLUMNS <= columns && column == 1) {
            for (int k = 0; k < depth; k++) vstore16(vload16(0, b + k * row + q), 0, to + k * COLUMNS);
        } else if (q + COLUMNS <= columns && row == 1) {
            turn_panel(to, b + q * column, column, depth);
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

#else

/* Pairs of panels in turn: neighbours have neighbouring columns. Before and after it lanes meet. */
inline void multiply_block(local const float *pack_a, local const float *pack_b, int depth, local float *block, int mc,
                           int nc) {
    const int across = nc / COLUMNS;
    MEET;
    for (int t = LANE; t < mc / ROWS * across; t += LANES) {
        const int i = t / across * ROWS, j = t % across * COLUMNS;
        local const float *a = pack_a + i * depth, *b = pack_b + j * depth;
        float4 c0 = 0, c1 = 0, c2 = 0, c3 = 0;
        for (int k = 0; k < depth; k++, a += ROWS, b += COLUMNS) {
            const float4 v = vload4(0, b);
            c0 = fma((float4)(a[0]), v, c0), c1 = fma((float4)(a[1]), v, c1);
            c2 = fma((float4)(a[2]), v, c2), c3 = fma((float4)(a[3]), v, c3);
        }
        local float *to = block + i * nc + j;
        vstore4(vload4(0, to) + c0, 0, to), vstore4(vload4(0, to + nc) + c1, 0, to + nc);
        vstore4(vload4(0, to + 2 * nc) + c2, 0, to + 2 * nc), vstore4(vload4(0, to + 3 * nc) + c3, 0, to + 3 * nc);
    }
    MEET;
}

inline void clear_block(local float *block, int n) {
    for (int i = LANE; i < n; i += LANES) block[i] = 0;
}

inline void pack_rows(local float *to, global const float *a, long row, long column, int rows, int mc, int depth) {
    for (int e = LANE; e < mc * depth; e += LANES) {
        const int panel = e / (ROWS * depth), k = e % (ROWS * depth) / ROWS, i = panel * ROWS + e % ROWS;
        to[e] = i < rows ? a[k * column + i * row] : 0;
    }
}

inline void pack_columns(local float *to, global const float *b, long row, long column, int columns, int nc,
                         int depth) {
    for (int e = LANE; e < nc * depth; e += LANES) {
        const int panel = e / (COLUMNS * depth), k = e % (COLUMNS * depth) / COLUMNS, j = panel * COLUMNS + e % COLUMNS;
        to[e] = j < columns ? b[k * row + j * column] : 0;
    }
}

#endif
