/* The ladder: fixed budgets at which hybrid searches, whatever budgets it was asked for.
 *
 * A search is luck, to a degree: one for a larger budget may end with a slower plan. So a budget B gets the fastest of
 * all drafts that were made at the rungs up to B and whose arena is within B. The rungs depend on the program and the
 * effort alone; a larger budget therefore chooses from the same drafts and more, and is never slower:
 *
 *   time ▲   x              x, o: drafts of the rungs 1 .. 4
 *        │        o  x
 *        │             o         o   ◀ slower than the o before it: nobody gets it
 *        │                 x
 *        └───┼────┼────┼───┼───────▶ arena
 *            1    2    3   4
 *
 * The *cellar* is what lies below the lowest main rung at which something fits. It is searched at points that depend on the
 * program alone, too; what they lead to is there for every budget that it fits.
 *
 * Arenas: a faster draft of a higher rung may by luck need less than what a smaller budget got. Its arena is then
 * made as large as that one's, so that a smaller budget never has the larger arena. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_LADDER_H
#define TIDE_PLAN_DECIDE_HYBRID_LADDER_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

typedef struct tide__rung {
    uint64_t bytes;
    bool main; /* the multiples of ten percent: searched from scratch, those between from their neighbours */
} tide__rung;

typedef struct tide__ladder_draft {
    uint64_t arena_bytes, step_ns, moved_bytes;
    uint64_t rung_bytes; /* at which it was made; 0: in the cellar */
} tide__ladder_draft;

/* One of the budgets that were asked for. */
typedef struct tide__ladder_ask {
    uint64_t budget_bytes;
    TIDE_VEC(tide__ladder_draft) seen; /* that are for it */
    tide_plan *best;                   /* NULL: none */
    uint64_t fastest_ns;               /* at the main rungs that were searched for it */
    bool ended;                        /* lower rungs have nothing for it */
} tide__ladder_ask;

typedef struct tide__ladder {
    const tide__policy_input *in;
    uint64_t whole_bytes; /* the arena of policy liveness */
    uint64_t least_bytes; /* of the largest op: no budget below works */
    TIDE_VEC(tide__rung)
    rungs; /* ascending, from the largest op to the first main one that is not below the largest budget */
    TIDE_VEC(tide__ladder_ask) asks;
} tide__ladder;

/* For n budgets. `in` must outlive it; the budget of its options is not used. */
tide_status tide__ladder_init(const tide__policy_input *in, const uint64_t *budgets, size_t n, tide__ladder *l);
void tide__ladder_deinit(tide__ladder *l);

/* A rung at these bytes, 0: the cellar, would serve somebody. */
bool tide__ladder_is_wanted(const tide__ladder *l, uint64_t rung_bytes);
/* A draft of that rung, placed, synced and simulated: copied for those whose best it is. */
tide_status tide__ladder_offer(tide__ladder *l, uint64_t rung_bytes, const tide_plan *draft);
/* That a search from scratch took place for these bytes: step_ns is of what fits there; UINT64_MAX: nothing does. Says for whom the
 * ladder ends there. */
void tide__ladder_note(tide__ladder *l, uint64_t bytes, uint64_t step_ns);

/* The best for ask i, with its arena as large as that of every smaller budget; NULL if there is none. The caller owns it. */
tide_plan *tide__ladder_take(tide__ladder *l, size_t i);

#endif
