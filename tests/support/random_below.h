/* Random numbers for generators of test input: the same sequence for the same start, on every machine. */
#ifndef TIDE_TESTS_RANDOM_BELOW_H
#define TIDE_TESTS_RANDOM_BELOW_H

#include <stdint.h>

#include "base/hash.h"

/* Uniform in [0, n), n > 0; `state` starts anywhere. */
static inline uint64_t random_below(uint64_t *state, uint64_t n) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return tide__mix(*state) % n;
}

#endif
