/* See winograd_math.h. */
#include "device/cpu/winograd_math.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define FMA __attribute__((target("avx2,fma")))
#define INLINE FMA static inline __attribute__((always_inline))
#define SIDE 6 /* of a patch */

bool tide__winograd_works(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

INLINE __m256 add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
INLINE __m256 sub(__m256 a, __m256 b) { return _mm256_sub_ps(a, b); }
INLINE __m256 times(float a, __m256 b) { return _mm256_mul_ps(_mm256_set1_ps(a), b); }
/* a * b + c */
INLINE __m256 fused(float a, __m256 b, __m256 c) { return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c); }

/* ---- in one dimension: `from` and `to` with elements `step` vectors apart ---- */

INLINE void patch_line(const __m256 *d, __m256 *t, int step) {
    const __m256 d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
    const __m256 even4 = fused(-4, d2, d4), odd4 = fused(-4, d1, d3), even1 = sub(d4, d2), odd1 = sub(d3, d1);
    t[0] = fused(4, d0, fused(-5, d2, d4));
    t[step] = add(even4, odd4);
    t[2 * step] = sub(even4, odd4);
    t[3 * step] = fused(2, odd1, even1);
    t[4 * step] = fused(-2, odd1, even1);
    t[5 * step] = fused(4, d1, fused(-5, d3, d5));
}

INLINE void gradient_line(const __m256 *y, __m256 *t, int step) {
    const __m256 y0 = y[0], y1 = y[step], y2 = y[2 * step], y3 = y[3 * step];
    const __m256 even1 = add(y0, y2), odd1 = add(y1, y3), even2 = fused(4, y2, y0), odd2 = fused(4, y3, y1);
    t[0] = y0;
    t[step] = add(even1, odd1);
    t[2 * step] = sub(even1, odd1);
    t[3 * step] = fused(2, odd2, even2);
    t[4 * step] = fused(-2, odd2, even2);
    t[5 * step] = y3;
}

INLINE void tile_line(const __m256 *m, __m256 *y, int step) {
    const __m256 m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step];
    const __m256 sum1 = add(m1, m2), difference1 = sub(m1, m2), sum2 = add(m3, m4), difference2 = sub(m3, m4);
    y[0] = add(add(m[0], sum1), sum2);
    y[step] = fused(2, difference2, difference1);
    y[2 * step] = fused(4, sum2, sum1);
    y[3 * step] = add(fused(8, difference2, difference1), m[5 * step]);
}

INLINE void window_line(const __m256 *g, __m256 *u, int step) {
    const __m256 g0 = g[0], g1 = g[step], g2 = g[2 * step], ends = add(g0, g2), far = fused(4, g2, g0);
    u[0] = times(0.25f, g0);
    u[step] = times(-1.0f / 6, add(ends, g1));
    u[2 * step] = times(-1.0f / 6, sub(ends, g1));
    u[3 * step] = times(1.0f / 24, fused(2, g1, far));
    u[4 * step] = times(1.0f / 24, fused(-2, g1, far));
    u[5 * step] = g2;
}

INLINE void window_gradient_line(const __m256 *s, __m256 *g, int step) {
    const __m256 near = times(-1.0f / 6, add(s[step], s[2 * step])), far = add(s[3 * step], s[4 * step]);
    g[0] = fused(0.25f, s[0], fused(1.0f / 24, far, near));
    g[step] = fused(1.0f / 6, sub(s[2 * step], s[step]), times(1.0f / 12, sub(s[3 * step], s[4 * step])));
    g[2 * step] = add(fused(1.0f / 6, far, near), s[5 * step]);
}

/* ---- in two: lines down, then across; all arrays are 6 wide ---- */

INLINE __m256 widened(const uint16_t *from) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* As tide__bf16_of does. */
INLINE void store_rounded(__m256 x, uint16_t *to) {
    const __m256i bits = _mm256_castps_si256(x),
                  odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i nearest = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(nearest, quiet, nan), 16);
    const __m128i low = _mm256_castsi256_si128(upper), high = _mm256_extracti128_si256(upper, 1);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_packus_epi32(low, high));
}

INLINE __m256 load_values(tide__values v, int64_t i) {
    return v.is_bf16 ? widened((const uint16_t *)(const void *)v.data + i)
                     : _mm256_loadu_ps((const float *)(const void *)v.data + i);
}

INLINE void store_values(__m256 x, tide__values v, int64_t i) {
    if (v.is_bf16)
        store_rounded(x, (uint16_t *)(void *)v.data + i);
    else
        _mm256_storeu_ps((float *)(void *)v.data + i, x);
}

/* rows x columns pixels at (top, left); zeros outside the image. */
INLINE void load_pixels(tide__values plane, const tide__tile *t, int64_t top, int64_t left, int side, __m256 *to) {
    bool inside = top >= 0 && left >= 0 && top + side <= t->h && left + side <= t->w;
    for (int r = 0; r < side; r++)
        for (int c = 0; c < side; c++) {
            bool there = inside || (top + r >= 0 && top + r < t->h && left + c >= 0 && left + c < t->w);
            to[r * SIDE + c] = there ? load_values(plane, ((top + r) * t->w + left + c) * 8) : _mm256_setzero_ps();
        }
}

INLINE void store_places(const __m256 *from, float *to, int64_t apart) {
    for (int i = 0; i < TIDE__WINOGRAD_PLACES; i++) _mm256_storeu_ps(to + i * apart, from[i]);
}

FMA void tide__winograd_patch(tide__values plane, tide__tile t, float *to, int64_t apart) {
    __m256 d[SIDE * SIDE], half[SIDE * SIDE];
    load_pixels(plane, &t, t.top - 1, t.left - 1, SIDE, d);
    for (int c = 0; c < SIDE; c++) patch_line(d + c, half + c, SIDE);
    for (int r = 0; r < SIDE; r++) patch_line(half + r * SIDE, d + r * SIDE, 1);
    store_places(d, to, apart);
}

FMA void tide__winograd_gradient(tide__values plane, tide__tile t, float *to, int64_t apart) {
    __m256 d[SIDE * SIDE], half[SIDE * SIDE];
    load_pixels(plane, &t, t.top, t.left, TIDE__WINOGRAD_TILE, d);
    for (int c = 0; c < TIDE__WINOGRAD_TILE; c++) gradient_line(d + c, half + c, SIDE);
    for (int r = 0; r < SIDE; r++) gradient_line(half + r * SIDE, d + r * SIDE, 1);
    store_places(d, to, apart);
}

FMA void tide__winograd_tile(const float *from, int64_t apart, const float *bias, tide__tile t, tide__values plane) {
    __m256 m[SIDE * SIDE], half[SIDE * SIDE];
    const __m256 more = bias ? _mm256_loadu_ps(bias) : _mm256_setzero_ps();
    for (int i = 0; i < TIDE__WINOGRAD_PLACES; i++) m[i] = _mm256_loadu_ps(from + i * apart);
    for (int c = 0; c < SIDE; c++) tile_line(m + c, half + c, SIDE);
    for (int r = 0; r < TIDE__WINOGRAD_TILE; r++) tile_line(half + r * SIDE, m + r * SIDE, 1);
    for (int r = 0; r < TIDE__WINOGRAD_TILE && t.top + r < t.h; r++)
        for (int c = 0; c < TIDE__WINOGRAD_TILE && t.left + c < t.w; c++)
            store_values(add(m[r * SIDE + c], more), plane, ((t.top + r) * t.w + t.left + c) * 8);
}

FMA void tide__winograd_window(const float *window, bool turned, float *to, int64_t apart) {
    __m256 g[SIDE * SIDE], half[SIDE * SIDE];
    for (int i = 0; i < 9; i++) g[i / 3 * SIDE + i % 3] = _mm256_loadu_ps(window + (turned ? 8 - i : i) * 64);
    for (int c = 0; c < 3; c++) window_line(g + c, half + c, SIDE);
    for (int r = 0; r < SIDE; r++) window_line(half + r * SIDE, g + r * SIDE, 1);
    store_places(g, to, apart);
}

FMA void tide__winograd_window_gradient(const float *from, int64_t apart, float *window) {
    __m256 s[SIDE * SIDE], half[SIDE * SIDE];
    for (int i = 0; i < TIDE__WINOGRAD_PLACES; i++) s[i] = _mm256_loadu_ps(from + i * apart);
    for (int c = 0; c < SIDE; c++) window_gradient_line(s + c, half + c, SIDE);
    for (int r = 0; r < 3; r++) window_gradient_line(half + r * SIDE, s + r * SIDE, 1);
    for (int i = 0; i < 9; i++) _mm256_storeu_ps(window + i * 64, s[i / 3 * SIDE + i % 3]);
}

/* ---- products ---- */

/* Sums of row i, by name: compilers may leave an array of them in memory. */
#define ROW_START(i) __m256 low##i = _mm256_setzero_ps(), high##i = _mm256_setzero_ps()
#define ROW_ADD(i)                                                   \
    do {                                                             \
        const __m256 value = _mm256_broadcast_ss(row##i + k * step); \
        low##i = _mm256_fmadd_ps(value, b_low, low##i);              \
        high##i = _mm256_fmadd_ps(value, b_high, high##i);           \
    } while (0)
#define ROW_END(i)                                                                                  \
    do {                                                                                            \
        float *to = c + (i)*stride;                                                                 \
        if ((i) >= s->n_rows) break;                                                                \
        _mm256_storeu_ps(to, more ? _mm256_add_ps(_mm256_loadu_ps(to), low##i) : low##i);           \
        _mm256_storeu_ps(to + 8, more ? _mm256_add_ps(_mm256_loadu_ps(to + 8), high##i) : high##i); \
    } while (0)
#define EACH_ROW(DO) \
    DO(0);           \
    DO(1);           \
    DO(2);           \
    DO(3);           \
    DO(4);           \
    DO(5)

FMA void tide__winograd_multiply(const tide__strip *s, bool more, float *c, int64_t stride) {
    const float *row0 = s->row[0], *row1 = s->row[1], *row2 = s->row[2], *row3 = s->row[3], *row4 = s->row[4],
                *row5 = s->row[5], *b = s->b;
    const int64_t step = s->step;
    EACH_ROW(ROW_START);
    for (int64_t k = 0; k < s->depth; k++, b += TIDE__WINOGRAD_COLUMNS) {
        const __m256 b_low = _mm256_load_ps(b), b_high = _mm256_load_ps(b + 8);
        EACH_ROW(ROW_ADD);
    }
    EACH_ROW(ROW_END);
}

#else

bool tide__winograd_works(void) { return false; }
void tide__winograd_patch(tide__values plane, tide__tile t, float *to, int64_t apart) {}
void tide__winograd_gradient(tide__values plane, tide__tile t, float *to, int64_t apart) {}
void tide__winograd_tile(const float *from, int64_t apart, const float *bias, tide__tile t, tide__values plane) {}
void tide__winograd_window(const float *window, bool turned, float *to, int64_t apart) {}
void tide__winograd_window_gradient(const float *from, int64_t apart, float *window) {}
void tide__winograd_multiply(const tide__strip *s, bool more, float *c, int64_t stride) {}

#endif
