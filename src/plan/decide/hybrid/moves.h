/* Moves: which values to swap so that little of the load is left above the target. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_MOVES_H
#define TIDE_PLAN_DECIDE_HYBRID_MOVES_H

#include "plan/decide/swaps/swaps.h"

typedef enum tide__moves_way {
    TIDE__MOVES_LEAST,      /* those that leave the least excess that was found */
    TIDE__MOVES_DEAREST,    /* first what would cost the most to re-run per byte: for re-runs to take the rest */
    TIDE__MOVES_WAIT,       /* more of them, for which compute waits until the load fits */
    TIDE__MOVES_WAIT_QUICK, /* the same, from a first guess: for one of many sketches */
    TIDE__MOVES_WAIT_FEWEST /* the fewest transfers that make the load fit, for which it waits as well */
} tide__moves_way;

/* Sets `chosen`, one per gap, to swaps that hide behind compute, except where it is to wait; evaluated on the engine's present
 * clock. prices: per gap, for DEAREST. work: slots and gaps to look at for improving the choice. */
tide_status tide__moves_choose(tide__swaps *swaps, const double *prices, tide__moves_way way, uint64_t target_bytes,
                               uint64_t work, bool *chosen);

#endif
