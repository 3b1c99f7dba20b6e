/* Maximum flow from one node to another, by blocking flows on shortest paths (Dinic). For graphs of up to some hundred
 * thousand arcs.
 *
 *   tide__flow f = {.n_nodes = n};
 *   TIDE_TRY(tide__flow_arc(&f, from, to, capacity)); ...     // arc i is the i-th added
 *   TIDE_TRY(tide__flow_solve(&f, source, sink, &flow));      // again after tide__flow_set: from zero
 *   tide__flow_free(&f); */
#ifndef TIDE_PLAN_DECIDE_MAX_FLOW_H
#define TIDE_PLAN_DECIDE_MAX_FLOW_H

#include <stdint.h>

#include "base/vec.h"

typedef struct tide__flow_edge {
    uint32_t to;
    uint32_t next; /* of the same node; UINT32_MAX: none */
    uint64_t capacity, left;
} tide__flow_edge;

typedef struct tide__flow {
    uint32_t n_nodes;
    TIDE_VEC(tide__flow_edge) edges; /* arc i is edge 2 i, its reverse 2 i + 1 */
    /* per node, while solving */
    uint32_t *first, *level, *current, *path, *queue;
} tide__flow;

tide_status tide__flow_arc(tide__flow *f, uint32_t from, uint32_t to, uint64_t capacity);
void tide__flow_set(tide__flow *f, uint32_t arc, uint64_t capacity);
tide_status tide__flow_solve(tide__flow *f, uint32_t source, uint32_t sink, uint64_t *flow);
void tide__flow_free(tide__flow *f);

#endif
