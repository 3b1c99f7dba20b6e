/* States: the decisions that searches have come by, by load and time, so that another search can go on from them.
 *
 * Kept are those that no other is both smaller and faster than. Loads and times are those of sketches: without places and
 * without what transfers may make compute wait. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_STATES_H
#define TIDE_PLAN_DECIDE_HYBRID_STATES_H

#include "plan/decide/hybrid/transfers.h"

typedef struct tide__state {
    uint64_t load_bytes, run_ns;
    tide__keys events;
    bool *chosen; /* per gap of the transfers; none without */
} tide__state;

typedef struct tide__states {
    TIDE_VEC(tide__state) items; /* by ascending load, descending time */
} tide__states;

/* What a built sketch has, and the moves it is synced with (NULL: none). */
tide_status tide__state_copy(const tide__sketch *s, const tide__transfers *moves, tide__state *out);
void tide__state_deinit(tide__state *x);

void tide__states_deinit(tide__states *all);

/* What a built sketch has, and the moves it is synced with (NULL: none). *kept: it is worth keeping. */
tide_status tide__states_keep(tide__states *all, const tide__sketch *s, const tide__transfers *moves, bool *kept);
/* Copies of what another search of the same step has come by; n_gaps: of the transfers. */
tide_status tide__states_learn(tide__states *all, const tide__states *from, size_t n_gaps);
/* The fastest with a load of up to `bytes`; NULL: there is none. */
const tide__state *tide__states_find(const tide__states *all, uint64_t bytes);
/* Brings sketch and moves to a state, built and synced. */
tide_status tide__states_restore(const tide__state *from, tide__sketch *s, tide__transfers *moves);

#endif
