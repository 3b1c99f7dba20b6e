/* Shuttle: a plan in the fewest bytes there can be, where tiers have room. Nothing is run again.
 *
 * Values live in tiers and come to the arena for their ops. What fits stays beyond that; where room is short, what costs
 * the least leaves: few bytes, a copy in a tier already, a next use that is far. Addresses are part of it (floor.h):
 * values that lie so that an op's operands find no room beside each other go out and come back elsewhere. So it works in
 * every budget that holds the operands of the largest op, the bound that no plan can go below.
 *
 * It is slow, as compute waits for most of the transfers: what is left where nothing better fits. */
#ifndef TIDE_PLAN_DECIDE_SHUTTLE_H
#define TIDE_PLAN_DECIDE_SHUTTLE_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

/* The whole plan but its proof, within the budgets of the input's options; NULL: it does not fit. Milliseconds for a
 * thousand ops. */
tide_status tide__shuttle(const tide__policy_input *in, tide_plan **out);

#endif
