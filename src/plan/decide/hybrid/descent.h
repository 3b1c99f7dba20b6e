/* The descent: plans for ever smaller budgets, each from the plan of the one above.
 *
 *   load ▲ ──╮   rung 1: what exceeds it leaves: moves that hide first, then re-runs, the most relief per time first
 *        │   ╰──╮    rung 2: only what is above the next rung is left to do, and so on; at each rung some decisions are
 *        │      ╰─────╮   taken back and others made instead, as long as that is faster
 *        └──────────────▶
 *
 * It goes on where it stopped, from one part of the budgets to the next (hybrid.c). In each it then ascends: what is known below
 * a rung goes on there, where it has more room. The rungs that a descent comes by are the program's own: the next is the first
 * below the load that was reached. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_DESCENT_H
#define TIDE_PLAN_DECIDE_HYBRID_DESCENT_H

#include "plan/decide/hybrid/generation.h"

typedef struct tide__descent_options {
    uint32_t fineness; /* rungs from 0 to the whole */
    uint64_t work;     /* for one rung, in events looked at */
    uint64_t most;     /* the same, as long as nothing fits */
    bool fresh;        /* at every tenth of the whole it starts from scratch as well */
    bool ascends;      /* with the ascent */
    double stretch;    /* by how much compute may wait for moves: 1, not at all (transfers.h) */
    uint64_t seed;
} tide__descent_options;

typedef struct tide__descent {
    tide__descent_options options;
    tide__states states;      /* what it has come by */
    tide__state now;          /* where it stopped */
    TIDE_VEC(uint64_t) rungs; /* that were visited and fit, downwards, and may be visited again */
    uint64_t load_bytes;      /* the next rung is below; 0: it has not begun */
    uint64_t last_bytes;      /* the last rung that was visited */
    uint64_t wait_bytes;      /* the next rung for which compute waits, whatever it takes; 0: none */
    int misses, wait_misses;  /* rungs in a row that nothing fits */
    bool is_down;             /* nothing fits below */
} tide__descent;

void tide__descent_init(const tide__descent_options *options, tide__descent *d);
void tide__descent_deinit(tide__descent *d);

/* Down the rungs from floor_bytes up that it has not visited (0: all), and up again to those below ceiling_bytes. */
tide_status tide__descent_go(tide__generation *g, uint64_t floor_bytes, uint64_t ceiling_bytes, tide__descent *d);

#endif
