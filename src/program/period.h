/* Finding the iteration in a stream of symbols: warm-up, then the same stretch over and over, then a ragged end.
 *
 *      symbols   s t u v │ A B C D E │ A B C D E │ A B C D E │ A B │ x y
 *                        begin         length                      end
 *
 * Linear time. The idea of planning a step from its repetition, and the address-free symbols a stream is turned into
 * (import/stream.h), are SmartPool's (Zhang et al. 2019, arXiv 1903.06631); the search is the crossing step of Main
 * and Lorentz's algorithm for repetitions (1984). */
#ifndef TIDE_PROGRAM_PERIOD_H
#define TIDE_PROGRAM_PERIOD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* symbols[i] == symbols[i + length] for begin <= i < end - length; end - begin >= 2 * length; not extensible. */
typedef struct tide__period {
    size_t begin, end, length;
} tide__period;

/* The longest repetition, with its smallest period. Symbols are compared exactly; UINT64_MAX is not a symbol.
 *
 * TIDE_E_REPEAT, with *stops_at = the symbol where it stops repeating, when the repetition covers no more than a
 * quarter of the stream, when as much as a whole iteration follows it (so it broke off), or when the whole iteration
 * already occurred before it (so it was interrupted). Otherwise *stops_at is untouched. */
tide_status tide__period_find(const uint64_t *symbols, size_t n, tide__period *out, size_t *stops_at);

#endif
