/* Tiers that moves may go to: which there are, in which order they are tried, and how much of each is left.
 *
 * One rule for every policy: RAM before what other ranks lend, that before disk, each in the machine's order; a tier without a channel each way, or without a
 * byte of budget, is none. What does not fit into one goes to the next; what fits into none stays. */
#ifndef TIDE_PLAN_DECIDE_TIERS_H
#define TIDE_PLAN_DECIDE_TIERS_H

#include "plan/decide/decide.h"

typedef struct tide__tiers {
    uint32_t n;
    uint32_t tier[TIDE_MACHINE_MAX_TIERS]; /* best first */
} tide__tiers;

/* Those that have both channels, whatever their budgets. */
tide__tiers tide__tiers_of(const tide_machine *machine);

/* Bytes of a tier that decisions may take: capacity and budget, less what placement has missed that by. */
uint64_t tide__tier_room(const tide__policy_input *in, uint32_t tier);
/* Those of the machine that have room at all. */
tide__tiers tide__tiers_with_room(const tide__policy_input *in);

/* Has any value a way out of the arena and back: to a tier with room, or because the client still has it? */
bool tide__tiers_allow_moves(const tide__policy_input *in);

/* After placement: every tier is within its budget and capacity. */
bool tide__tiers_hold(const tide__policy_input *in, const uint64_t *tier_bytes);
/* After placement: is a tier above its room? Then the next decisions get less of it, by as much. */
bool tide__tiers_shrink(tide__policy_input *in, const uint64_t *tier_bytes);

#endif
