/* The skyline heuristic: fill the address × time map from the bottom up.
 *
 * The skyline is the upper edge of what is placed, a ring of flat segments over cyclic time. Take the lowest one; of
 * the items whose lifetime lies within it put the best-ranked on it; if there is none, raise the segment to its lower
 * neighbour, giving up the bytes in between.
 *
 *      height ▲ ▄▄▄▄            ▄▄▄
 *             │ ████   ▄▄▄▄▄▄▄▄ ███       the lowest segment is a; b is next once a is filled or raised
 *             │ ████ a ████████b███
 *             └─────────────────────▶ time
 *
 * About one microsecond per item and run, whatever the number of conflicts: no conflict is ever listed. An item
 * alive at the end and at the start of the step is one arc of the ring; other pairs of lifetimes are taken as if the
 * item lived in between, too. Items at fixed offsets are to be pinned. */
#ifndef TIDE_PLAN_PLACE_SKYLINE_H
#define TIDE_PLAN_PLACE_SKYLINE_H

#include "plan/place/problem.h"

typedef struct tide__place_skyline tide__place_skyline; /* the workspace of any number of runs on one problem */

/* TIDE_E_UNSUPPORTED for a problem that is huge. below_pins: whether items may be pinned. The problem must outlive it. */
tide_status tide__place_skyline_create(const tide__place_problem *p, bool below_pins, tide__place_skyline **out);
void tide__place_skyline_destroy(tide__place_skyline *s);

/* These items lie at their offsets in all runs that follow, in place of what was pinned before; they must not overlap. */
tide_status tide__place_skyline_pin(tide__place_skyline *s, const uint32_t *items, size_t n, const uint64_t *offsets);

/* order: n items, best first, none of them pinned. Writes their offsets; returns the height of them and of the pins. */
uint64_t tide__place_skyline_run(tide__place_skyline *s, const uint32_t *order, size_t n, uint64_t *offsets);

#endif
