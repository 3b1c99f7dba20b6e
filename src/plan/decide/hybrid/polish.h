/* Polish: the pool's own decisions, edited one or two at a time.
 *
 * Searches choose moves that hide, or re-runs beside them, or workspaces for what is left. On a program of ten ops one wrong
 * choice of these is a tenth of the time. Here any decision of any entry may change: a value that stays is moved, one that is
 * moved stays or comes back in another slot, an op runs again or no more or elsewhere, or takes another variant. What comes of
 * it is offered to the pool, and what the pool keeps is edited in turn. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_POLISH_H
#define TIDE_PLAN_DECIDE_HYBRID_POLISH_H

#include "plan/decide/hybrid/generation.h"

/* *candidates: how many edits to evaluate, at most; less those that were. */
tide_status tide__polish(tide__generation *g, uint64_t *candidates);

#endif
