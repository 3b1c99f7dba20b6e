/* Kicks: re-runs that nothing asks for, to see what they make needless.
 *
 * Repair adds a re-run where a value is needed again, and only where the load is above the target. Some good plans are
 * not reached like that, step by step: a value that everybody has room for is dropped as well, so that others need not be;
 * or an op is re-run long before its value is needed, because its inputs are there at that time for another reason:
 *
 *     slot      12            30                  12              30
 *               a, b          a, b, c     ->      a, b, c ───────▶        c is held instead of making a and b again
 *
 * A kick adds such re-runs; the caller repairs, and prunes all others before these. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_KICK_H
#define TIDE_PLAN_DECIDE_HYBRID_KICK_H

#include "plan/decide/hybrid/repair.h"

/* Adds a few re-runs, drawn with r->seed and r->draws, to the sketch of r, which must be built and is not any more.
 * reruns: those that the sketch has. fresh: those that were added, emptied before; none where no place was met. */
tide_status tide__kick(tide__repair *r, const tide__keys *reruns, tide__keys *fresh);

#endif
