/* Unwinding: a lower bound on the bytes that any plan without moves needs, however much it re-runs.
 *
 * Before an op runs, its reads are there together. Of values that are there together one came last, by a run of its
 * producer; at that moment the others were there beside the producer's operands. So a set of values can be there only
 * if it can be unwound by one of them: the others and the producer's operands fit, and the others and the producer's
 * reads can be there in turn. A set is unwound when no run has made any of it.
 *
 *     {dy, x}   x by relu(z)  ─▶  {dy, z}   z by conv(y)  ─▶  {dy, y}   ...
 *               dy by ...     ─▶  {x, ...}                              every way is looked at
 *
 * It is tight where few large values fit, which is where budgets end. Small values are left out of the sets. */
#ifndef TIDE_PLAN_DECIDE_UNWIND_H
#define TIDE_PLAN_DECIDE_UNWIND_H

#include "plan/decide/hybrid/model.h"

/* *bytes: no plan without moves has a smaller arena. *op: whose operands need it; TIDE_NONE: what is kept at the end
 * does. Where `enough` bytes are not proved to be too few, it looks no further, and *bytes is what is kept at the end:
 * that is quick, as nearly every set can be unwound then. Some tenths of a second at most; deterministic. */
tide_status tide__unwind(const tide__model *m, uint64_t enough, uint64_t *bytes, tide_id *op);

#endif
