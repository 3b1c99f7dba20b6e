/* Choosing gaps: by descending score, as AutoSwap does, and what to do when that is not enough. */
#ifndef TIDE_PLAN_DECIDE_SWAP_CHOICE_H
#define TIDE_PLAN_DECIDE_SWAP_CHOICE_H

#include "plan/decide/swaps/swaps.h"

/* chosen: the shortest prefix of the gaps by descending score with which the load stays within the target, else the
 * prefix with the least excess. Only gaps that cover a slot above the target are taken. Evaluated and settled. */
tide_status tide__swaps_choose_prefix(tide__swaps *s, const double *scores, uint64_t target_bytes, bool *chosen,
                                      tide__swaps_outcome *out);

/* When no prefix fits without waiting: lets compute wait. Takes longer prefixes until the load fits, or all gaps; bytes
 * count as free before their SAVE ends, or are taken after their LOAD should have started, whichever wait is shorter,
 * slot by slot until the load fits or nothing is left to wait for. The plan waits at those places. */
tide_status tide__swaps_choose_waits(tide__swaps *s, const double *scores, uint64_t target_bytes, bool *chosen);

/* The same from a cover on (swap_cover.h): as few transfers as can be instead of those with the highest scores. */
tide_status tide__swaps_choose_cover(tide__swaps *s, const double *scores, uint64_t target_bytes, bool *chosen);

/* The same for a given choice; what a tier has no room for goes to the next, gaps that come first in `order` last, and what
 * none has room for stays. Changes slots and s->loads of the latest evaluation. *fits: the load is within the target. */
tide_status tide__swaps_wait(tide__swaps *s, const uint32_t *order, size_t n_order, uint64_t target_bytes, bool *chosen,
                             bool *fits);

#endif
