/* A program as a search for an order sees it: flat lists of what ops read, write and take over, and which ops have to come
 * before which.
 *
 * An op comes after the ops that write what it reads, after those that read what it destroys (`must` pairs), and, where the
 * value that it writes is carried on to the place of another, after the last use of that one. Ops whose effects are not in values keep
 * their order (tide_op.rerunnable says which). The program's own order is one of those that are allowed. */
#ifndef TIDE_PLAN_ORDER_GRAPH_H
#define TIDE_PLAN_ORDER_GRAPH_H

#include <tidemark/program.h>

#include "base/vec.h"

/* Lists of ids, one per op or tensor: list i is ids[at[i]] to ids[at[i + 1] - 1]. */
typedef struct tide__id_lists {
    uint32_t *at;
    tide_id *ids;
} tide__id_lists;

typedef struct tide__order_graph {
    const tide_program *program;
    uint32_t n_ops, n_tensors;
    uint64_t *bytes;              /* per tensor */
    uint32_t *n_uses;             /* per tensor: reads, and one more if it is kept */
    tide__id_lists readers;       /* per tensor: ops */
    tide__id_lists before, after; /* per op: ops that have to be before it, after it; some twice */
} tide__order_graph;

tide_status tide__order_graph_init(const tide_program *program, tide__order_graph *g);
void tide__order_graph_deinit(tide__order_graph *g); /* of a zeroed one, too */

#endif
