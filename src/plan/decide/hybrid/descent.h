/* The descent: plans for ever smaller budgets, each from the plan of the one above.
 *
 *   load ▲ ──╮   rung 1: what exceeds it leaves: moves that hide first, then re-runs, the most relief per time first
 *        │   ╰──╮    rung 2: only what is above the next rung is left to do, and so on; at each rung some decisions are
 *        │      ╰─────╮   taken back and others made instead, as long as that is faster
 *        └──────────────▶
 *
 * Then the ascent: what is known below a rung goes on there, where it has more room. The rungs that a descent comes by are the
 * program's own: the next is the first below the load that was reached. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_DESCENT_H
#define TIDE_PLAN_DECIDE_HYBRID_DESCENT_H

#include "plan/decide/hybrid/generation.h"

typedef struct tide__descent_options {
    uint32_t fineness;  /* rungs from 0 to the whole */
    uint64_t work;      /* for one rung, in events looked at */
    uint64_t most;      /* the same, as long as nothing fits */
    bool moves, reruns; /* which kinds of decisions it takes */
    bool fresh;         /* at every tenth of the whole it starts from scratch as well */
    bool ascends;       /* with the ascent */
    double stretch;     /* by how much compute may wait for moves: 1, not at all (transfers.h) */
    uint64_t seed;
} tide__descent_options;

tide_status tide__descend(tide__generation *g, const tide__descent_options *options);

#endif
