/* Dropout and local response normalisation. */

/* Counter-based randomness, the same as in src/base/rng.h: a pure function of (seed, stream, index). */
inline ulong mix(ulong x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9UL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebUL;
    return x ^ (x >> 31);
}
inline ulong hash_word(ulong hash, ulong word) { return mix(hash * 0x9e3779b97f4a7c15UL + word + 1); }
inline float random_unit(ulong key, ulong index) { return (float)(hash_word(key, index) >> 40) * 0x1p-24f; }

KERNEL void dropout(ARENA, ulong x_at, ulong y_at, ulong mask_at, ulong n, ulong seed, ulong stream,
                    float rate, float scale) {
    SKIP_AFTER_FAULT;
    global const float *x = FLOATS(x_at);
    global float *y = FLOATS(y_at);
    global uchar *mask = BYTES(mask_at);
    const ulong key = hash_word(mix(seed ^ 0x7469646573UL), stream), begin = get_group_id(0) * (ulong)RUN;
    const ulong end = begin + RUN < n ? begin + RUN : n;
    for (ulong i = begin + LANE; i < end; i += LANES) {
        const int keep = random_unit(key, i) >= rate;
        y[i] = keep ? x[i] * scale : 0;
        mask[i] = (uchar)keep;
    }
}

KERNEL void dropout_backward(ARENA, ulong mask_at, ulong dy_at, ulong dx_at, ulong n, float scale) {
    SKIP_AFTER_FAULT;
    global const uchar *mask = BYTES(mask_at);
    global const float *dy = FLOATS(dy_at);
    global float *dx = FLOATS(dx_at);
    FOR_RUN(n,
            {
                int8 dropped = convert_int8(vload8(0, mask + i)) == 0;
                vstore8(select(vload8(0, dy + i) * scale, (float8)(0), dropped), 0, dx + i);
            },
            dx[i] = mask[i] ? dy[i] * scale : 0);
}

/* ---- local response normalisation: s = k + share * sum of x^2 over the channels around, y = x s^-beta ---- */

#define BLOCK 16 /* pixels of a group, whose lanes take the channels; also in layers.c */

inline float inverse_power(float s, float beta) {
    return beta == 0.75f ? 1 / (sqrt(s) * sqrt(sqrt(s))) : pow(s, -beta);
}

/* s of `count` pixels at channel c. */
inline void response(global const float *x, int c, int channels, int pixels, int count, int size, float k, float share,
                     float *s) {
    const int before = (size - 1) / 2, from = max(c - before, 0), to = min(c - before + size, channels);
    for (int p = 0; p < count; p++) s[p] = 0;
    for (int j = from; j < to; j++)
        for (int p = 0; p < count; p++) s[p] += x[(long)j * pixels + p] * x[(long)j * pixels + p];
    for (int p = 0; p < count; p++) s[p] = k + share * s[p];
}

KERNEL void lrn(ARENA, ulong x_at, ulong y_at, int channels, int pixels, int size, float share, float beta,
                float k) {
    SKIP_AFTER_FAULT;
    const int first = (int)get_group_id(0) * BLOCK, count = min(BLOCK, pixels - first);
    const long at = (long)get_group_id(1) * channels * pixels + first;
    global const float *x = FLOATS(x_at) + at;
    global float *y = FLOATS(y_at) + at;
    float s[BLOCK];
    for (int c = LANE; c < channels; c += LANES) {
        response(x, c, channels, pixels, count, size, k, share, s);
        for (int p = 0; p < count; p++)
            y[(long)c * pixels + p] = x[(long)c * pixels + p] * inverse_power(s[p], beta);
    }
}

/* dx_c = dy_c s_c^-beta - 2 share beta x_c * sum of ratio_j over j whose window has c, ratio = dy x s^(-beta - 1).
 * The ratios of a group's pixels are in the workspace before they are summed. */
KERNEL void lrn_backward(ARENA, ulong x_at, ulong dy_at, ulong dx_at, ulong ratio_at, int channels,
                         int pixels, int size, float share, float beta, float k) {
    SKIP_AFTER_FAULT;
    const int first = (int)get_group_id(0) * BLOCK, count = min(BLOCK, pixels - first);
    const int before = (size - 1) / 2, after = size - 1 - before;
    const long at = (long)get_group_id(1) * channels * pixels + first;
    global const float *x = FLOATS(x_at) + at, *dy = FLOATS(dy_at) + at;
    global float *dx = FLOATS(dx_at) + at, *ratio = FLOATS(ratio_at) + at;
    const float factor = 2 * share * beta;
    float s[BLOCK];
    for (int c = LANE; c < channels; c += LANES) {
        response(x, c, channels, pixels, count, size, k, share, s);
        for (int p = 0; p < count; p++) {
            const long i = (long)c * pixels + p;
            const float power = inverse_power(s[p], beta);
            ratio[i] = dy[i] * x[i] * power / s[p];
            dx[i] = dy[i] * power;
        }
    }
    MEET; /* ratios of other channels */
    for (int c = LANE; c < channels; c += LANES)
        for (int j = max(c - after, 0); j <= min(c + before, channels - 1); j++)
            for (int p = 0; p < count; p++)
                dx[(long)c * pixels + p] -= factor * x[(long)c * pixels + p] * ratio[(long)j * pixels + p];
}
