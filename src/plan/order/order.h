/* An order of ops as a decision: the program with its ops permuted is planned like any other, and the plan is then told in the
 * ops of the original.
 *
 * The pool (plan/plans.h) gets the plans of the program's own order first, then those of orders with a lower peak where
 * there are any: so an order never makes a budget slower, whatever it does to transfers. */
#ifndef TIDE_PLAN_ORDER_ORDER_H
#define TIDE_PLAN_ORDER_ORDER_H

#include "plan/plans.h"

/* Op i of `program` is op ops[i] of the original. */
struct tide__order {
    tide_program *program;
    tide_id *ops;
    tide__order *next; /* of a list; NULL: the last */
};
void tide__order_destroy(tide__order *o); /* with those behind it; NULL is fine */

/* Orders whose peaks, when nothing moves, are lower than the program's by a hundredth or more: the one of the lowest peak, and the
 * one that grew from running what frees bytes as soon as it can. Below their peaks neither is always the faster: what is used up
 * early is seldom moved, what is gathered is moved at once. *out NULL: none was found. Deterministic; some tenths of a second at most. */
tide_status tide__order_find(const tide_program *program, tide__order **out);

/* A plan for o->program becomes one for the original. */
void tide__order_restore(const tide__order *o, const tide_program *original, tide_plan *plan);

/* Fills the pool with what a policy finds: in the program's order, and in others where options->order allows it. */
tide_status tide__order_generate(const tide__policy *policy, const tide__policy_input *in, tide__plans *plans);

#endif
