/* Search: re-runs, and moves, that keep the load within the target and cost as little as can be found. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_SEARCH_H
#define TIDE_PLAN_DECIDE_HYBRID_SEARCH_H

#include "plan/decide/hybrid/repair.h"
#include "plan/decide/hybrid/transfers.h"

/* Says whether a sketch that the search has come by, built and within the target, has places in the arena, too, and keeps
 * what is worth keeping. A look counts as `work`. */
typedef struct tide__placer {
    tide_status (*place)(void *self, const tide__sketch *s, bool *placed);
    void *self;
    uint64_t work;
} tide__placer;

/* Improves the sketch's decisions within `work` (see tide__repair.work). Deterministic. If the result is not
 * within the target it is the least above it that was found.
 *
 * moves: where the sketch's moves are from, to be exchanged along with re-runs; synced with the sketch before and after.
 * NULL: the moves stay as they are.
 * most: as long as nothing fits it goes on beyond `work`, up to this. *spent: the work it took.
 * placer: is shown what is faster than all that was placed before, for up to half of the work; the search goes on from
 * what the sketch has, without other starts. NULL: nobody looks. */
tide_status tide__search(tide__sketch *s, tide__transfers *moves, const tide__placer *placer, uint64_t work,
                         uint64_t most, uint64_t *spent);
/* Only walks that drop what is not needed soon (belady.h), and what pruning takes back, within the same. */
tide_status tide__search_by_walks(tide__sketch *s, uint64_t work, bool *fits);

#endif
