/* Drafts: what decisions would come to, for policies that try before they decide. */
#ifndef TIDE_PLAN_DECIDE_DRAFT_H
#define TIDE_PLAN_DECIDE_DRAFT_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

/* An empty plan for the input's program and machine. */
tide_status tide__draft_new(const tide__policy_input *in, tide_plan **out);
/* The prediction of a plan that is placed and synced. */
tide_status tide__draft_simulate(const tide__policy_input *in, tide_plan *plan);

/* The whole plan but its proof: schedule, place, sync, simulate. Costs some 10 us per op. */
tide_status tide__draft(const tide__policy_input *in, const tide__decisions *decisions, tide_plan **out);
/* The same, placed as tightly as a plan is. */
tide_status tide__draft_with_care(const tide__policy_input *in, const tide__decisions *decisions, tide_plan **out);
/* The same for whoever knows where things lie: the offsets of all n residencies, in the order in which the schedule makes
 * them. */
tide_status tide__draft_at(const tide__policy_input *in, const tide__decisions *decisions, const uint64_t *offsets,
                           size_t n, tide_plan **out);

/* Schedule only. loads[k], n_ops + 1 entries: the most bytes in the arena while something of slot k runs; slot
 * n_ops holds what comes after the last op. */
tide_status tide__draft_loads(const tide__policy_input *in, const tide__decisions *decisions, uint64_t *loads);

#endif
