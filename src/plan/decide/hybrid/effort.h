/* Effort: how much hybrid searches, in events looked at, so that a plan is the same on every machine. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_EFFORT_H
#define TIDE_PLAN_DECIDE_HYBRID_EFFORT_H

#include <tidemark/plan.h>

/* What a draft counts for, per action. */
enum { TIDE__DRAFT_WORK = 800 };

/* Ops up to which the search at a budget finds the best there is, or nearly, and rungs have nothing to add; and up to which
 * blocks are so few and large that each rung is searched from scratch. */
enum { TIDE__TINY_OPS = 30, TIDE__SMALL_OPS = 100 };

uint64_t tide__effort_work(tide_effort effort, uint64_t n_ops); /* of one search */
/* Of one search at normal effort where there is only one, for re-runs alone: some 0.7 s. */
uint64_t tide__effort_alone_work(uint64_t n_ops);
uint64_t tide__effort_low_work(uint64_t n_ops);                      /* the same at low effort, off the ladder */
uint64_t tide__effort_rung_work(tide_effort effort, uint64_t n_ops); /* at a rung of the ladder */
uint64_t tide__effort_more(uint64_t n_ops);                          /* of low effort, once there is a plan */
uint64_t tide__effort_limit(tide_effort effort, uint64_t n_ops);     /* of everything together */
uint64_t tide__effort_most(tide_effort effort, uint64_t n_ops);      /* the same, as long as there is no plan */

#endif
