/* Belady: re-runs by a walk through the step that drops values when memory is short.
 *
 * Greedy repair looks at one gap at a time, and near the smallest budget no single gap helps any more. This walk always
 * goes on: what it dropped it makes again, from as far back as need be. So it reaches small budgets, at a high price;
 * pruning and the search then take back what they can. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_BELADY_H
#define TIDE_PLAN_DECIDE_HYBRID_BELADY_H

#include "plan/decide/hybrid/sketch.h"

/* What leaves first: the most bytes, times the slots to the next use, per time to make it again. */
typedef enum tide__belady_way {
    TIDE__BELADY_BYTES_TIME_COST,
    TIDE__BELADY_BYTES_COST,
    TIDE__BELADY_BYTES_TIME,
    TIDE__N_BELADY_WAYS
} tide__belady_way;

/* Adds re-runs to the sketch, whose moves it does not look at, for a load of the target; not built. At most `most` of
 * them: beyond that it stops in the middle. */
tide_status tide__belady(tide__sketch *s, tide__belady_way way, size_t most);

#endif
