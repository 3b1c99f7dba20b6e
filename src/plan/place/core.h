/* The core of a problem at a capacity: what is left when the items that decide nothing are taken out.
 *
 *   - An item that is alive all the time can be put to the very bottom: shift up what was under it.
 *   - An item finds a place whatever the others do if all of its conflicts together cannot block every offset. One of
 *     `size` blocks at most size + own size - 1 of the capacity - own size + 1 offsets. Such an item is taken out, and
 *     put in after the others; with it gone, the same may be true of more.
 *
 * The problem fits the capacity if and only if its core fits what the bottom leaves of it. */
#ifndef TIDE_PLAN_PLACE_CORE_H
#define TIDE_PLAN_PLACE_CORE_H

#include "plan/place/problem.h"

typedef struct tide__place_core {
    const tide__place_problem *whole;
    tide__place_problem problem; /* the rest: a subset of the whole, in its units */
    uint64_t capacity;           /* for the rest */
    uint64_t bottom;             /* height of what is below the core */
    uint32_t *order;             /* all items of the whole: the bottom, then those left out (the last to be taken out
                                    first), then those of the core */
    size_t n_bottom, n_out;
} tide__place_core;

/* capacity in units, at least the whole's lower bound. The whole must not be huge, and must outlive the core. */
tide_status tide__place_core_init(tide__place_core *core, const tide__place_problem *whole, uint64_t capacity);
void tide__place_core_deinit(tide__place_core *core);

/* From offsets of the core, no higher than its capacity, to offsets of the whole, no higher than the whole's
 * capacity. */
tide_status tide__place_core_complete(const tide__place_core *core, const uint64_t *core_offsets, uint64_t *offsets);

#endif
