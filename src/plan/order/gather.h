/* Sums that are gathered: where many ops contribute to one value (the gradient of a weight, over micro-batches) and what they
 * contribute is larger than what they read, they run one behind the other when all ops that do not need them have run.
 *
 *   by micro-batch    ... dW0 .......... dW1 s01 .......... dW2 .......... dW3 s23 s0123 update     sums of all weights wait
 *   gathered          ............................................ dW0 dW1 s01 dW2 dW3 s23 s0123 update
 *
 * That is breadth first through layers whose weights outweigh their activations, and depth first through all others. A group is
 * an op and all that runs for it alone, but for small results beside the main one (the gradient of a bias). */
#ifndef TIDE_PLAN_ORDER_GATHER_H
#define TIDE_PLAN_ORDER_GATHER_H

#include "plan/order/graph.h"

typedef struct tide__gathered {
    tide_id *root;          /* per op: that of its group; TIDE_NONE: it is in none */
    uint32_t *n_awaited;    /* per root: entries of `before` of its members that come from outside */
    tide__id_lists members; /* per root: ops, ascending */
} tide__gathered;

tide_status tide__gathered_init(const tide__order_graph *g, tide__gathered *out);
void tide__gathered_deinit(tide__gathered *x); /* of a zeroed one, too */

#endif
