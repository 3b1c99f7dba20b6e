/* Waits: moves beside given re-runs, for which compute waits where they do not hide.
 *
 * Weights and optimizer state cannot be made again. Where they are most of what is there, moves that hide do not get
 * below a small budget, and re-runs cannot; then the rest is moved all the same, on the clock and the loads that the
 * re-runs make. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_WAITS_H
#define TIDE_PLAN_DECIDE_HYBRID_WAITS_H

#include "plan/decide/hybrid/transfers.h"

/* All gaps that the sketch's re-runs leave, on their clock; only the forced ones chosen. For tide__moves_choose and the
 * engine's own functions, not to be synced with a sketch. `in` must outlive it. */
tide_status tide__waits_init(const tide__policy_input *in, const tide__sketch *s, tide__transfers *t);

#endif
