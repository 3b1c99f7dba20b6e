/* Asking a policy for plans within a budget: it decides on a load, and is asked for a smaller one where placement misses the
 * budget. */
#ifndef TIDE_PLAN_ASK_H
#define TIDE_PLAN_ASK_H

#include "plan/plans.h"

/* What a place within the budget is worth: about 0.1 s. */
enum { TIDE__ASK_PLACE_WORK = 100 * 1000 };

/* Offers what the policy decides to the pool, for in->options->budgets, until a plan is within them or nothing helps. */
tide_status tide__ask(const tide__policy *policy, const tide__policy_input *in, tide__plans *plans);

/* What is asked for next, after decisions whose arena is above the budget: less by what it is over, and twice as much less as the
 * last time when that did not help. Begins with last_bytes UINT64_MAX. */
typedef struct tide__narrowing {
    uint64_t last_bytes, step;
    int stalls;
} tide__narrowing;

/* false: it is no use to ask for less. */
bool tide__narrow(tide__narrowing *n, uint64_t budget_bytes, uint64_t arena_bytes, uint64_t *target_bytes);

#endif
