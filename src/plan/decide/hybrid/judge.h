/* The judge of drafts: decisions get workspaces, are placed and simulated, and the fastest that fit are kept.
 *
 * Two are kept. The best is a set of decisions whose draft, placed quickly, is within the budget or a little above it,
 * because placing with care may still make it fit. The strict one is a plan that is within the budgets to the byte. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_JUDGE_H
#define TIDE_PLAN_DECIDE_HYBRID_JUDGE_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

typedef struct tide__judge {
    tide__policy_input in; /* with less room in tiers whose slots came out too large */
    uint64_t spent;        /* work: TIDE__DRAFT_WORK per action of a draft, and what searches add */
    bool care;             /* drafts that would be the fastest, but for a little, are placed with care */
    tide__decisions best;
    bool any, fits;  /* there is a best; its arena is within the target */
    uint32_t n_best; /* how often there was a new one */
    uint64_t best_ns, best_bytes;
    uint64_t last_bytes; /* the arena of the latest draft */
    uint64_t last_ns;    /* its time */
    tide_plan *strict;   /* the fastest draft within the budgets, to the byte; NULL: none */
} tide__judge;

/* For another target; the strict plan of the one before stays. A judge that is all zero may begin. */
void tide__judge_begin(tide__judge *j, const tide__policy_input *in);
void tide__judge_deinit(tide__judge *j);

/* Takes *d over if it is the best so far; empties it in any case. */
tide_status tide__judge_draft(tide__judge *j, tide__decisions *d);

/* A whole plan, but for its proof: takes it over (*plan is NULL then) if it is the fastest that is within the budgets. */
void tide__judge_plan(tide__judge *j, tide_plan **plan);

/* By how many bytes the latest draft is above the budget. */
uint64_t tide__judge_over(const tide__judge *j);

/* The latest draft is no faster than the strict plan. */
bool tide__judge_is_slower(const tide__judge *j);

/* The strict plan, NULL if there is none; the caller owns it. */
tide_plan *tide__judge_take_strict(tide__judge *j);

/* Places the best with care, for a strict plan if that makes it fit. */
tide_status tide__judge_settle(tide__judge *j);

/* The best, placed with care where that makes it fit; else the strict plan, or a shuttle (shuttle.h) where that is
 * faster; NULL: none fits. The caller owns it. */
tide_status tide__judge_finish(tide__judge *j, tide_plan **out);

#endif
