/* Rooms: what swaps take of tiers with a budget, and which value goes to which tier.
 *
 * A value, and what it is carried to, has one tier for all its gaps. Its copy is there from its SAVE to its last LOAD;
 * what is absent over the end of the step, at both ends of it. Where the best tier could not hold all values at once,
 * an evaluation goes through the step and refuses what finds its tier full when it comes; and values are spread:
 *
 *   RAM    ▐▐ short absences: a byte of RAM serves many of them, and they need its speed ▐▐
 *   disk   ▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐ long ones: slow transfers hide there ▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐▐
 */
#ifndef TIDE_PLAN_DECIDE_SWAP_TIERS_H
#define TIDE_PLAN_DECIDE_SWAP_TIERS_H

#include "plan/decide/swaps/swaps.h"

/* Sets s->limited, and s->rooms if it is, which s->arrays owns. */
tide_status tide__swap_rooms_create(tide__swaps *s);

/* Of the evaluation at hand, when its transfers are known: fills s->refused. */
void tide__swaps_refuse(tide__swaps *s, const bool *chosen);

/* Puts every value to the best tier, and takes that tier for large enough until the next call of spread. */
tide_status tide__swaps_gather(tide__swaps *s);
/* Gives every value its tier, by the latest evaluation: those of the choice first, by the time they are away, the
 * shortest in the best tier as long as that has room, then the next; then all others likewise. To be evaluated anew. */
tide_status tide__swaps_spread(tide__swaps *s, const bool *chosen);

/* Takes back what its tier has no room for, not by time: gaps that come first in `order` have precedence. Only where
 * s->limited. */
void tide__swaps_admit(tide__swaps *s, const uint32_t *order, size_t n_order, uint64_t target_bytes, bool *chosen);
/* The same, but what one tier has no room for goes to the next. */
tide_status tide__swaps_fall_through(tide__swaps *s, const uint32_t *order, size_t n_order, uint64_t target_bytes,
                                     bool *chosen);

#endif
