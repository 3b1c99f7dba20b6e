/* A load below which no choice of gaps can get. */
#ifndef TIDE_BENCH_PLAN_SWAP_BOUND_H
#define TIDE_BENCH_PLAN_SWAP_BOUND_H

#include "plan/decide/swaps/swaps.h"

/* Less than this load swapping alone does not reach on the clock s->slot_ns when compute waits for up to wait_ns in all,
 * wherever that is best. Any order of transfers counts, not only that of swaps.h; what tiers have room for does not. The
 * options of `s` say what swapping is: so every way of it has a bound of its own. About a second or two, at most. */
tide_status swap_bound(const tide__swaps *s, uint64_t wait_ns, uint64_t *out);

#endif
