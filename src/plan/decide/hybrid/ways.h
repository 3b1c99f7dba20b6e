/* Ways to a plan: each is a search that hands drafts to the judge. hybrid.c says which are gone, and in what order. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_WAYS_H
#define TIDE_PLAN_DECIDE_HYBRID_WAYS_H

#include "plan/decide/hybrid/judge.h"
#include "plan/decide/hybrid/moves.h"

/* Ops above which the search over re-runs takes too long for normal effort. */
enum { TIDE__LARGE_OPS = 20000 };

/* What a search has ended with, to go on from. */
typedef struct tide__warm_start {
    tide__sketch *sketch; /* NULL: nothing */
    tide__transfers moves;
} tide__warm_start;

typedef struct tide__hybrid {
    tide__judge judge;
    tide__model *model;
    tide__sketch *sketch; /* of the present search */
    uint64_t work;        /* for one search */
    uint64_t limit;       /* of what is spent in all, once there is a plan */
    uint64_t most;        /* the same before; at low effort in any case */
    bool moves, reruns;
    bool extra;            /* there are other ways: a search that finds nothing ends with its work */
    bool found;            /* a search has led to a draft within the budget */
    bool keeps;            /* on a ladder: what becomes the best is kept, to go on from */
    tide__warm_start warm; /* it */
} tide__hybrid;

/* Searches for the input's target, by `try`; the best is with the judge. */
tide_status tide__hybrid_search(tide__hybrid *h, const tide__policy_input *in, tide_status (*try)(tide__hybrid *));

bool tide__hybrid_is_spent(const tide__hybrid *h); /* no work is left: for a better plan, or for one at all */
bool tide__hybrid_is_ideal(const tide__hybrid *h); /* nothing can be faster */

/* Slower than the ops alone by so much that moves which compute waits for, or none, may be better. */
bool tide__hybrid_is_slow(const tide__hybrid *h);

/* Moves, chosen by `way`; re-runs for what they leave; then both exchanged together. */
tide_status tide__try_from(tide__hybrid *h, tide__moves_way way);
/* Moves alone, for which compute waits, or re-runs alone. */
tide_status tide__try_alone(tide__hybrid *h, bool moves);
/* Everything that cannot be made again is moved, whatever that takes; re-runs for the rest; and then moves for which
 * compute waits beside those re-runs. Where weights are most of what is there, this is what fits. */
tide_status tide__try_waiting(tide__hybrid *h);
/* The searches again, with faster variants of the ops: what workspaces need is then not left over but part of the load, for
 * which more moves and re-runs make room. On large programs it is too little a part of that to pay. */
tide_status tide__try_rooms(tide__hybrid *h);
/* Where nothing else fits because of what is kept: several passes. How much room they need beside it is tried. */
tide_status tide__try_passes(tide__hybrid *h);
/* On from what the rung below has found: it fits, and there is more room now. */
tide_status tide__try_warm(tide__hybrid *h);
void tide__warm_drop(tide__warm_start *f);

/* Which of the papers' policies to ask: those that fit small budgets; others that take a few drafts; the rest. */
typedef enum tide__peer_kind {
    TIDE__PEERS_FIRST,
    TIDE__PEERS_SECOND,
    TIDE__PEERS_QUICK,
    TIDE__PEERS_SLOW
} tide__peer_kind;

/* What the papers would do; now and then that is better than what the search finds (peers.c). */
tide_status tide__try_policies(tide__hybrid *h, tide__peer_kind from, tide__peer_kind to);
/* All of them, placed with care where that decides. */
tide_status tide__try_others(tide__hybrid *h);
/* As the pipeline would ask for them, in the budgets of in->options: the fastest takes the place of *best (NULL: there is none)
 * if it is faster, with an arena that is not smaller. But for those that are slower by far at the first attempt. */
tide_status tide__ask_peers(const tide__policy_input *in, tide_plan **best);

#endif
