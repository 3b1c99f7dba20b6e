/* Polish: small programs' decisions, edited one or two at a time until nothing is better.
 *
 * The other searches choose moves that hide, or re-runs beside them, or workspaces for what is left. On a program of ten
 * ops one wrong choice of these is a tenth of the time. Here any decision may change: a value that stays is moved, one
 * that is moved stays or comes back in another slot, an op runs again or no more or elsewhere, or takes another variant;
 * and any two of these at once, which exchanges one for the other. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_POLISH_H
#define TIDE_PLAN_DECIDE_HYBRID_POLISH_H

#include "plan/decide/hybrid/ways.h"

/* Ops up to which it pays: edits are some n^2, and pairs of them n^4. */
enum { TIDE__POLISH_OPS = 30 };

/* From the judge's best, from nothing, and from the best with some edits at random. Plans within the budget that are faster go to the judge. */
tide_status tide__polish(tide__hybrid *h);

#endif
