/* Lowers a placement by exact search: cuts the problem at the times that nothing crosses, and settles part by part
 * between what is proved impossible and the height it has. */
#ifndef TIDE_PLAN_PLACE_REFINE_H
#define TIDE_PLAN_PLACE_REFINE_H

#include "plan/place/problem.h"

typedef struct tide__place_refine_options {
    uint64_t capacity; /* units: low enough; 0: as low as possible */
    uint64_t seed;
    uint64_t node_limit, deadline_ns; /* as in tide__place_exact_options; at least one of them */
} tide__place_refine_options;

/* offsets: a placement, made lower where that succeeds. lower_bound (units): of the problem, raised by what is proved
 * on the way. Parts with more than TIDE__PLACE_EXACT_MOST_ITEMS items are left as they are. On failure both are still
 * true, though perhaps only in part improved. The problem must not be huge. */
tide_status tide__place_refine(const tide__place_problem *p, const tide__place_refine_options *options,
                               uint64_t *offsets, uint64_t *lower_bound);

#endif
