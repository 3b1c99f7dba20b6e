/* Refusals: why no plan fits, what is proved to be needed, and what is known to work. */
#ifndef TIDE_PLAN_REFUSE_H
#define TIDE_PLAN_REFUSE_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

/* Before any search: a budget that is proved to be too small. A policy that heeds no budget is not asked, as it is quick
 * and knows what it needs. */
tide_status tide__refuse_early(const tide__policy *policy, const tide__policy_input *in, tide_fit_report *fit);

/* After it: TIDE_OK if the plan is within the budgets. Else the report, from a plan that is the smallest of those found. */
tide_status tide__refuse_late(const tide__policy *policy, const tide__policy_input *in, const tide_plan *plan,
                              tide_fit_report *fit);

#endif
