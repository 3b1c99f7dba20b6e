/* The ladder: fixed budgets at which hybrid searches, whatever budget it was asked for.
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
    uint32_t rung; /* at which it was made */
} tide__ladder_draft;

typedef struct tide__ladder {
    const tide__policy_input *in; /* its budget is what was asked for */
    uint64_t whole_bytes;         /* the arena of policy liveness */
    TIDE_VEC(tide__rung) rungs;   /* ascending, from the largest op up to the budget */
    TIDE_VEC(tide__ladder_draft) seen;
    uint32_t rung;   /* that is being searched */
    tide_plan *best; /* of those within the budget; NULL: none */
} tide__ladder;

/* `in` must outlive it. */
tide_status tide__ladder_init(const tide__policy_input *in, tide__ladder *l);
void tide__ladder_deinit(tide__ladder *l);

/* A draft of the present rung: placed, synced and simulated. Takes it over (*draft is NULL then) if it is the best. */
tide_status tide__ladder_offer(tide__ladder *l, tide_plan **draft);

/* The best, with its arena as large as that of every smaller budget; NULL if there is none. The caller owns it. */
tide_plan *tide__ladder_take(tide__ladder *l);

#endif
