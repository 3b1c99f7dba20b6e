/* What an order of ops costs: the bytes in the arena while each op runs, when nothing moves and nothing runs again; as
 * tide_liveness has them for the program's own order. */
#ifndef TIDE_PLAN_ORDER_CURVE_H
#define TIDE_PLAN_ORDER_CURVE_H

#include "plan/order/graph.h"

/* A walk through an order, op by op. */
typedef struct tide__order_walk {
    const tide__order_graph *graph;
    uint32_t *left; /* per tensor: uses that are still to come */
    uint64_t load;  /* bytes that are there between two ops */
} tide__order_walk;

tide_status tide__order_walk_init(const tide__order_graph *g, tide__order_walk *w);
void tide__order_walk_deinit(tide__order_walk *w);

/* Back to the start of the step. */
void tide__order_walk_begin(tide__order_walk *w);
/* Runs an op: the bytes that are there while it does. */
uint64_t tide__order_walk_run(tide__order_walk *w, tide_id op);
/* By how much the bytes that are there would grow with the op, once it is done. */
int64_t tide__order_walk_growth(const tide__order_walk *w, tide_id op);

typedef struct tide__order_cost {
    uint64_t peak_bytes, mean_bytes; /* over the ops; mean: of equal peaks the lower curve leaves more room */
    uint32_t at;                     /* the first position of the peak */
} tide__order_cost;

tide__order_cost tide__order_measure(tide__order_walk *w, const tide_id *order);

static inline bool tide__order_is_better(const tide__order_cost *a, const tide__order_cost *b) {
    return a->peak_bytes != b->peak_bytes ? a->peak_bytes < b->peak_bytes : a->mean_bytes < b->mean_bytes;
}

#endif
