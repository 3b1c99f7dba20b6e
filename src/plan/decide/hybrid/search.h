/* Search: re-runs, and moves, that keep the load within the target and cost as little as can be found. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_SEARCH_H
#define TIDE_PLAN_DECIDE_HYBRID_SEARCH_H

#include "plan/decide/hybrid/repair.h"
#include "plan/decide/hybrid/transfers.h"

typedef struct tide__search_options {
    uint64_t work; /* events to look at (see tide__repair.work) */
    uint64_t most; /* as long as nothing fits it goes on beyond `work`, up to this */
    uint64_t seed; /* of what it draws */
    bool warm;     /* on from what the sketch has; other starts only if that leads to nothing that fits */
} tide__search_options;

/* Improves the sketch's decisions. Deterministic. If the result is not within the target it is the least above it that was
 * found.
 *
 * moves: where the sketch's moves are from, to be exchanged along with re-runs; synced with the sketch before and after.
 * NULL: the moves stay as they are. *spent: grows by the work it took. */
tide_status tide__search(tide__sketch *s, tide__transfers *moves, const tide__search_options *options, uint64_t *spent);
/* Only walks that drop what is not needed soon (belady.h), and what pruning takes back, within the same. */
tide_status tide__search_by_walks(tide__sketch *s, uint64_t work, bool *fits);

#endif
