/* Search: re-runs that keep the load within the target and cost as little as can be found. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_SEARCH_H
#define TIDE_PLAN_DECIDE_HYBRID_SEARCH_H

#include "plan/decide/hybrid/repair.h"

/* Improves the sketch's decisions within `work` (see tide__repair.work). Deterministic. *fits: whether the result is
 * within the target; if not it is the least above it that was found. */
tide_status tide__search(tide__sketch *s, uint64_t work, bool *fits);

#endif
