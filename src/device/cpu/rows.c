/* See rows.h. */
#include "device/cpu/rows.h"

#include "device/cpu/view.h"
#include "device/cpu/wide.h"

#define LANES 8
#define RANGE_FLOATS 8192 /* of a range: 32 KiB each of a few operands stay in cache */

TIDE__WIDE float tide__row_max(const float *x, int64_t n) {
    float lane[LANES], largest;
    int64_t whole = n - n % LANES;
    for (int l = 0; l < LANES; l++) lane[l] = x[0];
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
    largest = lane[0];
    for (int l = 1; l < LANES; l++) largest = lane[l] > largest ? lane[l] : largest;
    for (int64_t i = whole; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

TIDE__WIDE double tide__row_sum(const float *x, int64_t n) {
    double lane[LANES] = {0}, sum = 0;
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l];
    for (int l = 0; l < LANES; l++) sum += lane[l];
    for (int64_t i = whole; i < n; i++) sum += (double)x[i];
    return sum;
}

TIDE__WIDE double tide__row_dot(const float *x, const float *y, int64_t n) {
    double lane[LANES] = {0}, sum = 0;
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l] * (double)y[i + l];
    for (int l = 0; l < LANES; l++) sum += lane[l];
    for (int64_t i = whole; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

TIDE__WIDE void tide__row_exp(const float *x, int64_t n, float shift, float *y) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = tide__exp(x[i] - shift);
}

TIDE__WIDE void tide__row_scale(const float *x, int64_t n, float factor, float *y) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * factor;
}

TIDE__WIDE void tide__row_add(const float *x, int64_t n, float *y) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

void tide__for_ranges(int64_t n, tide__range_fn fn, const void *context) {
    int64_t ranges = (n + RANGE_FLOATS - 1) / RANGE_FLOATS;
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t r = 0; r < ranges; r++) {
        int64_t begin = r * RANGE_FLOATS, end = n - begin < RANGE_FLOATS ? n : begin + RANGE_FLOATS;
        fn(context, begin, end);
    }
}
