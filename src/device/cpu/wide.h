/* Inner loops that are worth wide vectors: compiled for any x86-64, for AVX2 and for AVX-512, and chosen when the program is
 * loaded. Sanitizers do not like code that runs so early, so their builds have the plain version only; so have clang's,
 * whose callers in other files do not find such functions before version 16.
 *
 * Loops marked TIDE__WIDE contain no OpenMP but `simd` (the outlined bodies of others would not be cloned): a parallel
 * loop outside hands ranges to them. `simd` is for writes that may lie exactly on a read: element i depends on element i
 * only, which compilers cannot know. All versions give the same bits: contraction to fused multiply-add is off, and no sum is reordered. */
#ifndef TIDE_DEVICE_CPU_WIDE_H
#define TIDE_DEVICE_CPU_WIDE_H

#include <stdint.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TIDE__SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TIDE__SANITIZED 1
#endif

#if defined(__x86_64__) && !defined(TIDE__SANITIZED) && !defined(__clang__)
#if __GNUC__ >= 12 /* earlier ones do not know that name */
#define TIDE__WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define TIDE__WIDE __attribute__((target_clones("avx2", "default")))
#endif
#else
#define TIDE__WIDE
#endif

/* e^x within 2 ulp, branch-free, so that loops over it become vector code. Underflows to about 1e-38, overflows to
 * infinity; NaN stays NaN. x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial, 2^n in two halves. */
static inline float tide__exp(float x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, in the low bits */
    x = x < -87.3f ? -87.3f : x;
    x = x > 89.0f ? 89.0f : x;
    float shifted = x * 1.44269504f + magic, n = shifted - magic;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = (p * r * r + r) + 1;
    int32_t power, half;
    memcpy(&power, &shifted, sizeof power);
    power -= INT32_C(0x4b400000);
    half = power / 2;
    uint32_t first = (uint32_t)(half + 127) << 23, second = (uint32_t)(power - half + 127) << 23;
    float a, b;
    memcpy(&a, &first, sizeof a);
    memcpy(&b, &second, sizeof b);
    return p * a * b;
}

static inline float tide__sigmoid(float x) { return 1 / (1 + tide__exp(-x)); }

/* Near 0, where 1 - 2 / (e^2x + 1) would lose digits, by a polynomial with the same ends at 0.625. */
static inline float tide__tanh(float x) {
    float square = x * x, p = -5.70498872745e-3f;
    p = p * square + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    float near = p * square * x + x, far = 1 - 2 / (tide__exp(2 * x) + 1);
    return square < 0.390625f ? near : far;
}

#endif
