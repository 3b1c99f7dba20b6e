/* The exact search: is there a placement no higher than a capacity? Finds one, proves that there is none, or gives up
 * at a limit.
 *
 * Placements are built from the bottom up, in the order of their offsets. The item with the lowest floor (the top of
 * what was placed under it) is either put onto its floor, or made to wait until something else is put under it.
 * Every placement can be pushed down until each item rests on another or on 0, so nothing is missed. What makes it
 * fast: per item the earliest offset that is still possible, per time the test that something can still be the next
 * from below, jumps back over decisions that have no part in a failure, and restarts with other orders: first short
 * runs, the very first in the order of beginnings, which ends the search for most training steps; then long ones. In
 * half of them items of the times that failed most go first.
 *
 * Time is a set of slots to it, so second lifetimes are nothing special; an aligned item has its floor rounded up; a
 * fixed one has its floor at its offset, and cannot wait. */
#ifndef TIDE_PLAN_PLACE_EXACT_H
#define TIDE_PLAN_PLACE_EXACT_H

#include "plan/place/problem.h"

/* More items would take too much memory: it is quadratic, at most about 150 MiB for this many. */
#define TIDE__PLACE_EXACT_MOST_ITEMS 2000

typedef struct tide__place_exact_options {
    uint64_t capacity; /* units */
    uint64_t seed;
    uint64_t node_limit;  /* 0: none */
    uint64_t deadline_ns; /* on the clock of tide__worked_ns; 0: none. At least one of the two limits */
} tide__place_exact_options;

typedef enum tide__place_exact_answer {
    TIDE__PLACE_EXACT_GAVE_UP,
    TIDE__PLACE_EXACT_FOUND,
    TIDE__PLACE_EXACT_NONE_EXISTS
} tide__place_exact_answer;

/* Writes offsets (units) only with TIDE__PLACE_EXACT_FOUND. nodes: how many items were tried on their floor.
 * TIDE_E_UNSUPPORTED if the problem is huge or has too many items. Deterministic for a seed unless the deadline strikes. */
tide_status tide__place_exact(const tide__place_problem *p, const tide__place_exact_options *options, uint64_t *offsets,
                              tide__place_exact_answer *answer, uint64_t *nodes);

#endif
