/* Checked size arithmetic. All sums and products of sizes that come from outside go through these. */
#ifndef TIDE_BASE_SIZE_H
#define TIDE_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* false on overflow; *out is then unspecified. */
static inline bool tide__add(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool tide__mul(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }

/* a + b, or UINT64_MAX if that does not fit. */
static inline uint64_t tide__add_capped(uint64_t a, uint64_t b) {
    uint64_t sum;
    return tide__add(a, b, &sum) ? sum : UINT64_MAX;
}

/* a rounded up to a multiple of `align` (a power of two); false on overflow. */
static inline bool tide__align_up(uint64_t a, uint64_t align, uint64_t *out) {
    if (!tide__add(a, align - 1, out)) return false;
    *out &= ~(align - 1);
    return true;
}

static inline bool tide__is_power_of_two(uint64_t a) { return a != 0 && (a & (a - 1)) == 0; }

/* ns to do `work` units at `rate` units per second, rounded up; UINT64_MAX if it does not fit. rate > 0. */
static inline uint64_t tide__work_ns(uint64_t work, uint64_t rate) {
    __extension__ typedef unsigned __int128 wide;
    wide ns = ((wide)work * 1000000000u + rate - 1) / rate;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static inline uint64_t tide__max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t tide__min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

#endif
