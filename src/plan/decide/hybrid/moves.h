/* Moves: which values to swap, beside a given set of re-runs, so that little of the load is left above the target. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_MOVES_H
#define TIDE_PLAN_DECIDE_HYBRID_MOVES_H

#include "plan/decide/hybrid/sketch.h"

typedef enum tide__moves_way {
    TIDE__MOVES_LEAST,   /* those that leave the least excess that was found */
    TIDE__MOVES_DEAREST, /* first what would cost the most to re-run per byte: for re-runs to take the rest */
    TIDE__MOVES_WAIT,    /* more of them, for which compute waits until the load fits */
} tide__moves_way;

/* Swaps that hide behind compute, except where it is to wait. `reruns` is what else is decided: it stretches the step, and its reads and
 * writes break gaps. Appends to out->swaps; work: evaluations to spend on improving the choice. */
tide_status tide__moves_choose(const tide__policy_input *in, const tide__model *model, const tide__keys *reruns,
                               tide__moves_way way, uint64_t work, tide__decisions *out);

/* Sets the sketch's decisions to these swaps and re-runs; not built. */
tide_status tide__moves_apply(tide__sketch *s, const tide__decisions *d, const tide__keys *reruns);

#endif
