/* A generation: one filling of the pool of plans by hybrid's generators.
 *
 * Generators propose decisions for budgets of their own, the *rungs*, which depend on the program, the machine and the tiers
 * alone. Nothing here knows the budget that was asked for: that is why the pool answers every budget alike (plans.h). It only
 * says how far down the rungs go. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_GENERATION_H
#define TIDE_PLAN_DECIDE_HYBRID_GENERATION_H

#include "plan/decide/hybrid/states.h"
#include "plan/plans.h"

typedef struct tide__generation {
    tide__policy_input in; /* the target changes from rung to rung */
    tide__plans *plans;
    tide__model *model;
    tide__transfers transfers; /* without gaps where nothing can move */
    tide__sketch *sketch;
    bool moves, reruns;   /* which kinds of decisions there may be */
    bool has_variants;    /* an op has more than one that may be chosen */
    uint64_t whole_bytes; /* the arena of policy liveness */
    uint64_t floor_bytes; /* proved: no budget below works */
    uint64_t least_ns;    /* proved: no plan is faster */
    uint64_t slowest_ns;  /* all ops once, with the smallest workspaces */
    uint64_t place_work;  /* what a place within a rung is worth (evaluate.h) */
    uint64_t work;        /* events that searches looked at */
    const char *phase;    /* for whoever watches: what runs, */
    double share;         /* and how much of all has */
    bool stopped;         /* whoever watches wants no more */
} tide__generation;

tide_status tide__generation_init(const tide__policy_input *in, tide__plans *plans, tide__generation *g);
void tide__generation_deinit(tide__generation *g);

/* Tells whoever watches; between two searches. */
void tide__generation_tell(tide__generation *g);
/* The budgets that are asked for have the fastest plan there can be, or a plan, and whoever watches wants no more. */
bool tide__generation_is_over(const tide__generation *g);

/* Sets the model to variants with workspaces of up to a part of the whole; whether that is another model. */
bool tide__generation_want(tide__generation *g, uint32_t percent);

/* The largest rung below `bytes`; 0: there is none. `fineness` rungs to the whole, closer together where budgets are small. */
uint64_t tide__generation_rung(const tide__generation *g, uint64_t bytes, uint32_t fineness);

/* Decisions without variants get the fastest that fit below the capacity. Offered to the pool; emptied in any case. */
tide_status tide__generation_propose(tide__generation *g, tide__decisions *d, uint64_t capacity_bytes,
                                     tide__plans_outcome *out);
/* The model's variants, for decisions that have none. */
tide_status tide__generation_add_variants(const tide__generation *g, tide__decisions *d);
/* A sketch's re-runs as decisions. */
tide_status tide__generation_add_reruns(const tide__sketch *s, tide__decisions *d);
/* The sketch's re-runs, with the moves of the latest sync if `moves`. */
tide_status tide__generation_propose_sketch(tide__generation *g, const tide__sketch *s, const tide__transfers *moves,
                                            uint64_t capacity_bytes, tide__plans_outcome *out);

/* The same in as few bytes as its load, without relocations and with the default variants. */
tide_status tide__generation_try_load(tide__generation *g, const tide__sketch *s, const tide__transfers *moves,
                                      tide__plans_outcome *out);

#endif
