/* The pipeline's inner calls, in the order in which plan.c makes them. Each completes the plan of the one before. */
#ifndef TIDE_PLAN_SCHEDULE_H
#define TIDE_PLAN_SCHEDULE_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

/* Decisions -> actions in issue order, residencies and copies with intervals, start and end maps; no offsets, no
 * waits. Decisions that cannot be carried out (a use of what is not there) are TIDE_E_ARGUMENT. */
tide_status tide__schedule(const tide_program *program, const tide_machine *machine, const tide__decisions *decisions,
                           tide_plan *plan);

/* Offsets of residencies and copies; arena_bytes and tier_bytes. In-place pairs share bytes where the read dies, and
 * carried values keep their place over the step's end. keep_everything: values stay for the whole step, and only
 * those share bytes that have to. budgets: what is tried to be kept; NULL: as little as possible. */
tide_status tide__place_plan(const tide_program *program, const tide_machine *machine, bool keep_everything,
                             const tide_budgets *budgets, tide_plan *plan);
/* The copies alone, where the residencies have their offsets. */
tide_status tide__place_tiers(const tide_program *program, const tide_machine *machine, const tide_budgets *budgets,
                              tide_plan *plan);

/* loads[action] of a scheduled plan: the bytes that placement has to find room for while the action runs, each place
 * that several share counted once. The largest is what the arena cannot be smaller than. */
tide_status tide__plan_load(const tide_program *program, const tide_machine *machine, tide_plan *plan, uint64_t *loads);

/* The waits: data dependencies across queues, and what address reuse needs; none that others imply. */
tide_status tide__sync(tide_plan *plan);
/* The waits for data alone, before anything has a place: what the plan takes then, it takes at least. */
tide_status tide__sync_data(tide_plan *plan);

#endif
