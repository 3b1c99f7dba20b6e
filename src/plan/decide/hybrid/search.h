/* Search: re-runs, and moves, that keep the load within the target and cost as little as can be found. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_SEARCH_H
#define TIDE_PLAN_DECIDE_HYBRID_SEARCH_H

#include "plan/decide/hybrid/repair.h"
#include "plan/decide/hybrid/transfers.h"

/* Improves the sketch's decisions within `work` (see tide__repair.work). Deterministic. If the result is not
 * within the target it is the least above it that was found.
 *
 * moves: where the sketch's moves are from, to be exchanged along with re-runs; synced with the sketch before and after.
 * NULL: the moves stay as they are.
 * most: as long as nothing fits it goes on beyond `work`, up to this. *spent: the work it took. */
tide_status tide__search(tide__sketch *s, tide__transfers *moves, uint64_t work, uint64_t most, uint64_t *spent);
/* Only walks that drop what is not needed soon (belady.h), and what pruning takes back, within the same. */
tide_status tide__search_by_walks(tide__sketch *s, uint64_t work, bool *fits);

#endif
