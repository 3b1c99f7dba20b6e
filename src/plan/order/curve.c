/* See curve.h. */
#include "plan/order/curve.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

tide_status tide__order_walk_init(const tide__order_graph *g, tide__order_walk *w) {
    *w = (tide__order_walk){.graph = g, .left = malloc((g->n_tensors + (size_t)1) * sizeof *w->left)};
    return w->left ? TIDE_OK : tide__fail_memory();
}

void tide__order_walk_deinit(tide__order_walk *w) { free(w->left); }

void tide__order_walk_begin(tide__order_walk *w) {
    const tide__order_graph *g = w->graph;
    memcpy(w->left, g->n_uses, g->n_tensors * sizeof *w->left);
    w->load = 0;
    for (tide_id t = 0; t < g->n_tensors; t++)
        if (g->n_uses[t] && tide_program_tensor(g->program, t)->start == TIDE_START_PRESENT) w->load += g->bytes[t];
}

/* An input that no op has read yet comes in with the first that does. */
static bool comes_in(const tide__order_walk *w, tide_id t) {
    return w->left[t] == w->graph->n_uses[t] && tide_program_tensor(w->graph->program, t)->start == TIDE_START_CLIENT;
}

/* Where a read dies its bytes may be those of one write it is paired with. */
static uint64_t shared_bytes(const tide__order_walk *w, const tide_op *op) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++) again = op->inplace[k].read == op->inplace[i].read;
        tide_id read = op->reads[op->inplace[i].read];
        if (!again && w->left[read] == 1) bytes += w->graph->bytes[read];
    }
    return bytes;
}

uint64_t tide__order_walk_run(tide__order_walk *w, tide_id o) {
    const tide__order_graph *g = w->graph;
    const tide_op *op = tide_program_op(g->program, o);
    for (uint32_t i = 0; i < op->n_reads; i++)
        if (comes_in(w, op->reads[i])) w->load += g->bytes[op->reads[i]];
    for (uint32_t i = 0; i < op->n_writes; i++) w->load += g->bytes[op->writes[i]];
    uint64_t during = w->load + op->variants[0].workspace_bytes - shared_bytes(w, op);
    for (uint32_t i = 0; i < op->n_reads; i++)
        if (--w->left[op->reads[i]] == 0) w->load -= g->bytes[op->reads[i]];
    for (uint32_t i = 0; i < op->n_writes; i++)
        if (g->n_uses[op->writes[i]] == 0) w->load -= g->bytes[op->writes[i]];
    return during;
}

int64_t tide__order_walk_growth(const tide__order_walk *w, tide_id o) {
    const tide__order_graph *g = w->graph;
    const tide_op *op = tide_program_op(g->program, o);
    int64_t growth = 0; /* sums over a program are below 2^62 */
    for (uint32_t i = 0; i < op->n_reads; i++) {
        if (comes_in(w, op->reads[i])) growth += (int64_t)g->bytes[op->reads[i]];
        if (w->left[op->reads[i]] == 1) growth -= (int64_t)g->bytes[op->reads[i]];
    }
    for (uint32_t i = 0; i < op->n_writes; i++)
        if (g->n_uses[op->writes[i]]) growth += (int64_t)g->bytes[op->writes[i]];
    return growth;
}

tide__order_cost tide__order_measure(tide__order_walk *w, const tide_id *order) {
    tide__order_cost cost = {.at = 0};
    uint64_t rest = 0, n = w->graph->n_ops;
    tide__order_walk_begin(w);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t load = tide__order_walk_run(w, order[i]);
        if (load > cost.peak_bytes) {
            cost.peak_bytes = load;
            cost.at = i;
        }
        cost.mean_bytes += load / n;
        rest += load % n;
    }
    cost.mean_bytes += n ? rest / n : 0;
    return cost;
}
