/* A lower bound on the step time of any plan inside a byte budget, so that a plan's distance from the best is known.
 *
 * While op k runs for the first time, its operands, the smallest workspace it gets along with and every value that is
 * needed again (bound_gaps.h) are in the arena, or absent. What is absent comes back by a re-run, which takes at least
 * its producer's own time, or by a LOAD (and, once, a SAVE). So a plan is a solution of
 *
 *   least T   such that   T >= all runs,   T >= busy time of each channel,   for each op: load - absent <= budget
 *
 * and the fractional relaxation of that is bounded below by its Lagrangian for any prices: ns per byte at each op, and
 * weights of compute and channels that add up to 1. Good prices are found by ascent; bad ones only make the bound loose.
 * Not counted: that a re-run needs its own operands, and when within the step a transfer can take place. */
#ifndef TIDE_PLAN_DECIDE_BOUND_H
#define TIDE_PLAN_DECIDE_BOUND_H

#include "plan/decide/decide.h"

/* `argument` words "nomove" and "norerun" exclude those. target_bytes is ignored. Deterministic; some tenths of a second
 * at most. */
tide_status tide__bound_step(const tide__policy_input *in, uint64_t budget_bytes, uint64_t *bound_ns);

#endif
