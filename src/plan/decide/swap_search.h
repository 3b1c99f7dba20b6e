/* Local search over choices of gaps, and a bound below which no choice can get. */
#ifndef TIDE_PLAN_DECIDE_SWAP_SEARCH_H
#define TIDE_PLAN_DECIDE_SWAP_SEARCH_H

#include "plan/decide/swaps.h"

typedef struct tide__swap_search_options {
    uint64_t target_bytes; /* the search ends when the load is within it; 0: as low as the work reaches */
    uint64_t work;         /* slots and gaps looked at, some 2 ns each */
    uint64_t seed;
} tide__swap_search_options;

/* Improves `chosen` on the clock s->slot_ns, without waits: flips and exchanges of gaps, annealed on the excess over a
 * budget that is lowered whenever nothing exceeds it. On return `chosen` is the best found, evaluated and settled, and
 * *out its outcome. The same for the same arguments on every machine. */
tide_status tide__swap_search(tide__swaps *s, const tide__swap_search_options *options, bool *chosen,
                              tide__swaps_outcome *out);

/* The least load that swapping alone reaches on the clock s->slot_ns: bytes are taken to flow, in and out at the
 * channels' rates, out of any gap and into any other. Linear. */
tide_status tide__swap_bound(const tide__swaps *s, uint64_t *out);

#endif
