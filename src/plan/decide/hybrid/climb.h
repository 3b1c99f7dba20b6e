/* Climbing the ladder: searches at its rungs, so that a larger budget is never slower (ladder.h says why). */
#ifndef TIDE_PLAN_DECIDE_HYBRID_CLIMB_H
#define TIDE_PLAN_DECIDE_HYBRID_CLIMB_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

/* For n budgets of the arena. out[i] is NULL where nothing fits at the rungs; else the caller owns it, also on failure. */
tide_status tide__hybrid_climb(const tide__policy_input *in, const uint64_t *budgets, size_t n, tide_plan **out);

#endif
