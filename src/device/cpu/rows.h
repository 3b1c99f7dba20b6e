/* Loops over one row of floats, as wide as the machine allows (wide.h), and ranges of long ones in parallel.
 *
 * Sums go to 8 partial sums in double, element i to sum i % 8 as far as whole groups of 8 go, and are then added in
 * order: one result whatever the vectors' width and the number of threads. */
#ifndef TIDE_DEVICE_CPU_ROWS_H
#define TIDE_DEVICE_CPU_ROWS_H

#include <stdint.h>

float tide__row_max(const float *x, int64_t n); /* n >= 1; a NaN may be passed over */
double tide__row_sum(const float *x, int64_t n);
double tide__row_dot(const float *x, const float *y, int64_t n);
/* y may lie on x. */
void tide__row_exp(const float *x, int64_t n, float shift, float *y); /* e^(x - shift) */
void tide__row_scale(const float *x, int64_t n, float factor, float *y);
void tide__row_add(const float *x, int64_t n, float *y); /* y += x */

/* Calls fn for ranges that make up [0, n), on all threads if n is worth it. */
typedef void (*tide__range_fn)(const void *context, int64_t begin, int64_t end);
void tide__for_ranges(int64_t n, tide__range_fn fn, const void *context);

#endif
