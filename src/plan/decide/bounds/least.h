/* The least: a budget below which there is no plan, whoever searches; proved, and found in milliseconds.
 *
 *   operands     an op's operands are in the arena together, whatever moves and is run again
 *   everything   without moves, what is kept and what leads to an op's operands is there, too (unwind.h). With moves a part
 *                of it can be in tiers, but no more than these hold:  arena + tiers >= what is needed without moves */
#ifndef TIDE_PLAN_DECIDE_LEAST_H
#define TIDE_PLAN_DECIDE_LEAST_H

#include "plan/decide/decide.h"

typedef struct tide__least {
    uint64_t bytes;      /* no smaller arena works */
    tide_id op;          /* that decides it; TIDE_NONE: what is kept at the end does */
    bool is_whole;       /* not for its operands alone */
    uint64_t tier_bytes; /* is_whole: what the tiers hold beside it */
} tide__least;

/* For a budgeted policy, with the tiers' budgets of the input's options. Of interest is what lies above the input's target:
 * 0 is the whole truth. */
tide_status tide__policy_least(const tide__policy *policy, const tide__policy_input *in, tide__least *out);
/* Does it move values to tiers? */
bool tide__policy_moves(const tide__policy *policy, const char *argument);

#endif
