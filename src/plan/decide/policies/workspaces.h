/* Dynamic workspaces (SuperNeurons): each op runs the fastest of its variants that fits the bytes left free. Only
 * variants of the default one's bits class are taken, unless the options allow any. */
#ifndef TIDE_PLAN_DECIDE_WORKSPACES_H
#define TIDE_PLAN_DECIDE_WORKSPACES_H

#include "plan/decide/decide.h"

/* Index of the fastest variant with at most `room` bytes of workspace; of equally fast ones that with the smaller
 * workspace. The smallest workspace if none has so little. */
uint32_t tide__workspaces_pick(const tide_op *op, bool bits_any, uint64_t room);

/* Sets the variants of all ops to those with the smallest workspace. */
tide_status tide__workspaces_shrink(const tide__policy_input *in, tide__decisions *out);

/* loads: of these decisions, per slot (draft.h). What is left of the target in all slots where an op runs is its;
 * without a target what is left of the peak, so that workspaces alone never make the arena larger. */
tide_status tide__workspaces_fill(const tide__policy_input *in, const uint64_t *loads, tide__decisions *out);

#endif
