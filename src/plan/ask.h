/* Asking a policy for plans within a budget: it decides on a load, and is asked for a smaller one where placement misses the
 * budget. */
#ifndef TIDE_PLAN_ASK_H
#define TIDE_PLAN_ASK_H

#include "plan/plans.h"

/* Offers what the policy decides to the pool, for in->options->budgets, until a plan is within them or nothing helps. */
tide_status tide__ask(const tide__policy *policy, const tide__policy_input *in, tide__plans *plans);

#endif
