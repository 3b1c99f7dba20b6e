/* Local search over choices of gaps. */
#ifndef TIDE_PLAN_DECIDE_SWAP_SEARCH_H
#define TIDE_PLAN_DECIDE_SWAP_SEARCH_H

#include "plan/decide/swaps/swaps.h"

typedef struct tide__swap_search_options {
    uint64_t target_bytes; /* the search ends when the load is within it; 0: as low as the work reaches */
    uint64_t work;         /* slots and gaps looked at, some 2 ns each */
    uint64_t wait_ns;      /* for which compute may wait in all; the clock is stretched by it */
    uint64_t seed;
} tide__swap_search_options;

/* Improves `chosen` on the clock s->slot_ns: flips and exchanges of gaps, annealed on the excess over a budget that is
 * lowered whenever nothing exceeds it. Waits are cut into equal parts, spread out before the peak at first and moved like
 * gaps. On return `chosen` is the best found, evaluated and settled, and *out its outcome; the clock has its waits. The
 * same for the same arguments on every machine. */
tide_status tide__swap_search(tide__swaps *s, const tide__swap_search_options *options, bool *chosen,
                              tide__swaps_outcome *out);

#endif
