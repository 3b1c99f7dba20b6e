/* Asking a policy: decide, schedule, place, and again for a smaller load where placement misses a budget. */
#ifndef TIDE_PLAN_ASK_H
#define TIDE_PLAN_ASK_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

/* Fills the plan, which knows its queues and tiers; it may still miss the budgets of in->options. The target and the
 * missed bytes of tiers in *in are what was asked for last. */
tide_status tide__ask(const tide__policy *policy, tide__policy_input *in, tide_plan *plan);

/* The whole plan that a policy of this name would give, but for its proof; NULL: it does not fit. The caller owns it.
 * Budgets are those of in->options. */
tide_status tide__ask_by_name(const char *name, const tide__policy_input *in, tide_plan **out);

#endif
