/* Counter-based randomness: a pure function of (key, counter), so that a re-run replays what the first run drew. */
#ifndef TIDE_BASE_RNG_H
#define TIDE_BASE_RNG_H

#include <stdint.h>

#include "base/hash.h"

/* 64 random bits for one (seed, stream, index). */
static inline uint64_t tide__random_u64(uint64_t seed, uint64_t stream, uint64_t index) {
    return tide__hash_word(tide__hash_word(tide__mix(seed ^ UINT64_C(0x7469646573)), stream), index);
}

/* Uniform in [0, 1), 24 bits. */
static inline float tide__random_unit(uint64_t seed, uint64_t stream, uint64_t index) {
    return (float)(tide__random_u64(seed, stream, index) >> 40) * 0x1p-24f;
}

#endif
