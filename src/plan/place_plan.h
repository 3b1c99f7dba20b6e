/* Plans and the placement engine: whether a scheduled plan goes into its budgets, and what policy liveness has to place. */
#ifndef TIDE_PLAN_PLACE_PLAN_H
#define TIDE_PLAN_PLACE_PLAN_H

#include <tidemark/plan.h>

#include "plan/place/place.h"

/* Does a scheduled plan go into the budgets? `work` says how much that is worth to the caller, in units of about a
 * microsecond (tide__place_within): the arena may take that much, and each tier again.
 *
 *   TIDE__PLACE_FITS       all offsets, arena_bytes and tier_bytes are there, and within the budgets
 *   TIDE__PLACE_TOO_HIGH   likewise, but the arena, or a tier, is above its budget: the lowest that was found
 *   TIDE__PLACE_TOO_SMALL  the load of the arena is above its budget: arena_bytes is that load, there are no offsets
 *
 * Takes some 100 microseconds and a microsecond per block where the first heuristic fits. */
tide_status tide__place_plan_within(const tide_program *program, const tide_machine *machine, bool keep_everything,
                                    const tide_budgets *budgets, uint64_t work, tide_plan *plan,
                                    tide__place_answer *answer);

/* *items and *tensors (the tensor each item is called after; TIDE_NONE: a workspace) are freed with free(). */
tide_status tide__place_items(const tide_program *program, const tide_machine *machine, tide__place_item **items,
                              tide_id **tensors, size_t *n);

#endif
