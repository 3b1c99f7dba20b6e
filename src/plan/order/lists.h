/* Orders to begin with, each in one pass over the ops. */
#ifndef TIDE_PLAN_ORDER_LISTS_H
#define TIDE_PLAN_ORDER_LISTS_H

#include "plan/order/curve.h"

/* The program's order, but that an op that leaves fewer bytes behind than it found runs as soon as it can: updates come
 * directly behind their gradients. */
tide_status tide__order_eager(const tide__order_graph *g, tide_id *order);

/* The same, with sums gathered (gather.h), where no small result of a group keeps another part of it waiting. */
tide_status tide__order_gathered(const tide__order_graph *g, tide_id *order);

/* An op runs when one that ends a chain needs it; of the ops that it needs itself, the one whose own needs are larger goes first,
 * as Sethi and Ullman do with the registers of an expression. What frees bytes goes first all the same. */
tide_status tide__order_on_demand(const tide__order_graph *g, tide_id *order);

#endif
