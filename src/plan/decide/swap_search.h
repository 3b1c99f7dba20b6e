/* Local search over choices of gaps, and a bound below which no choice can get. */
#ifndef TIDE_PLAN_DECIDE_SWAP_SEARCH_H
#define TIDE_PLAN_DECIDE_SWAP_SEARCH_H

#include "plan/decide/swaps.h"

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

/* Less than this load swapping alone does not reach on the clock s->slot_ns when compute waits for up to wait_ns in all,
 * wherever that is best. Any order of transfers counts, not only that of swaps.h; what tiers have room for does not. The
 * options of `s` say what swapping is: so every way of it has a bound of its own. About a second or two, at most. */
tide_status tide__swap_bound(const tide__swaps *s, uint64_t wait_ns, uint64_t *out);

#endif
