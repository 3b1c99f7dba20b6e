/* Brings a placement under a ceiling by moving few items: what sticks out goes where it displaces least, then what it
 * has displaced, and so on (ejection chains). The lower the ceiling, the longer the chains: it comes down in steps.
 *
 *     ceiling ┄┄┄┄┄┄┄┄┌───┐┄┄┄        x sticks out; at the arrow it displaces b only, which is short and finds a hole
 *              ┌──────┤ x ├──┐
 *              │   a  └─┬─┘  │  ◀─
 *              ├────┬───┤ b  │
 *
 * A step takes time in proportion to the items, some nanoseconds each, however many conflicts there are. */
#ifndef TIDE_PLAN_PLACE_REPAIR_H
#define TIDE_PLAN_PLACE_REPAIR_H

#include "plan/place/heuristics.h"

/* Lowers the attempt's best towards what is enough for it, with at most so much of the attempt's work, or until a deadline
 * (0: none). There has to be a best, and the problem must not be huge. */
tide_status tide__place_repair(tide__place_attempt *a, uint64_t work, uint64_t deadline_ns);

#endif
