/* Values stored as bf16, the upper half of a float32: read by widening, which is exact, written by rounding to the nearest, halves
 * to even. Whoever computes does it in float32, on tiles: some of the numbers, in a buffer of the caller's. Where a value is
 * stored as float32 the tile is the value itself.
 *
 * Invariant: what a kernel makes of bf16 values is, before it is rounded, what it makes of the same values in float32. */
#ifndef TIDE_DEVICE_CPU_BF16_H
#define TIDE_DEVICE_CPU_BF16_H

#include <math.h>
#include <string.h>

#include "device/cpu/kernel.h"
#include "device/cpu/rows.h"

#define TIDE__TILE_FLOATS 512 /* of a tile on the stack: three of them stay in the nearest cache */

/* NaN stays NaN: rounding could carry it to infinity. */
static inline uint16_t tide__bf16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t nearest = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;
    return (uint16_t)((isnan(x) ? quiet : nearest) >> 16);
}

static inline float tide__float_of(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* n numbers; the second two on all threads. */
void tide__bf16_widen(const uint16_t *from, int64_t n, float *to);
void tide__bf16_round(const float *from, int64_t n, uint16_t *to);
void tide__bf16_widen_all(const uint16_t *from, int64_t n, float *to);
void tide__bf16_round_all(const float *from, int64_t n, uint16_t *to);

/* Stored numbers. */
typedef struct tide__values {
    char *data;
    bool is_bf16;
} tide__values;

tide__values tide__values_of(const tide__cpu_kernel *k, const tide__call *call, uint32_t operand);
static inline tide__values tide__values_from(tide__values v, int64_t first) {
    return (tide__values){v.data + first * (v.is_bf16 ? 2 : 4), v.is_bf16};
}
/* Numbers of a loop that takes at most `wanted` at a time: as many, or what fits into a tile. */
static inline int64_t tide__tile_of(tide__values v, int64_t wanted) {
    return v.is_bf16 && wanted > TIDE__TILE_FLOATS ? TIDE__TILE_FLOATS : wanted;
}
/* n numbers, to read: where they lie, or in `tile`. */
const float *tide__values_read(tide__values v, int64_t n, float *tile);
/* Where to write n numbers; afterwards they are stored. */
static inline float *tide__values_write(tide__values v, float *tile) {
    return v.is_bf16 ? tile : (float *)(void *)v.data;
}
void tide__values_stored(tide__values v, int64_t n, const float *tile);

/* Ops on single numbers: one or two reads, then a write, which may lie on either. `fn` has a tide__pointwise as its context. Of bf16 it
 * goes over tiles, or `short_fn` does all with a tide__pointwise_bf16 as its context. */
typedef struct tide__pointwise {
    const float *a, *b; /* b: NULL if there is but one */
    float *out;
} tide__pointwise;
typedef struct tide__pointwise_bf16 {
    const uint16_t *a, *b;
    uint16_t *out;
} tide__pointwise_bf16;
void tide__run_pointwise(const tide__cpu_kernel *k, const tide__call *call, tide__range_fn fn,
                         tide__range_fn short_fn /* NULL: none */);

#endif
