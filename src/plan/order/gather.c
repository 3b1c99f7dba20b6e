/* See gather.h. */
#include "plan/order/gather.h"

#include <stdlib.h>
#include <string.h>

/* Two that contribute, and what adds them up. */
enum { MIN_MEMBERS = 3 };

/* What an op is run for: others count less than a sixteenth of it together; TIDE_NONE: there is no such write, or it is kept. */
static tide_id main_write(const tide__order_graph *g, const tide_op *op) {
    tide_id main = TIDE_NONE;
    uint64_t all = 0;
    for (uint32_t i = 0; i < op->n_writes; i++) {
        all += g->bytes[op->writes[i]];
        if (main == TIDE_NONE || g->bytes[op->writes[i]] > g->bytes[main]) main = op->writes[i];
    }
    if (main == TIDE_NONE || tide_program_tensor(g->program, main)->keep) return TIDE_NONE;
    return all - g->bytes[main] < all / 16 + 1 ? main : TIDE_NONE;
}

/* An op that runs for one group alone is of that group; else it is the root of its own. */
static void find_roots(const tide__order_graph *g, tide_id *root) {
    for (tide_id o = g->n_ops; o-- > 0;) {
        tide_id main = main_write(g, tide_program_op(g->program, o));
        root[o] = o;
        if (main == TIDE_NONE || g->readers.at[main] == g->readers.at[main + 1]) continue;
        tide_id first = root[g->readers.ids[g->readers.at[main]]];
        bool alone = true;
        for (uint32_t k = g->readers.at[main]; k < g->readers.at[main + 1]; k++)
            alone = alone && root[g->readers.ids[k]] == first;
        if (alone) root[o] = first;
    }
}

static tide_status list_members(const tide__order_graph *g, tide__gathered *x) {
    uint32_t *at = calloc(g->n_ops + (size_t)2, sizeof *at);
    tide_id *ids = malloc((g->n_ops + (size_t)1) * sizeof *ids);
    x->members = (tide__id_lists){at, ids};
    if (!at || !ids) return tide__fail_memory();
    for (tide_id o = 0; o < g->n_ops; o++) at[x->root[o] + 2]++;
    for (uint32_t i = 2; i < g->n_ops + 2; i++) at[i] += at[i - 1];
    for (tide_id o = 0; o < g->n_ops; o++) ids[at[x->root[o] + 1]++] = o;
    return TIDE_OK;
}

/* ---- what is worth it ---- */

/* Bytes that have to wait for the group: values from outside that an op of this step makes, or that come in. seen: per
 * tensor, 1 + the root that looked at it last. */
static uint64_t awaited_bytes(const tide__order_graph *g, const tide__gathered *x, tide_id root, tide_id *seen) {
    uint64_t bytes = 0;
    for (uint32_t m = x->members.at[root]; m < x->members.at[root + 1]; m++) {
        const tide_op *op = tide_program_op(g->program, x->members.ids[m]);
        for (uint32_t i = 0; i < op->n_reads; i++) {
            tide_id t = op->reads[i], producer = tide_program_producer(g->program, t);
            if (seen[t] == root + 1 || tide_program_tensor(g->program, t)->start == TIDE_START_PRESENT) continue;
            seen[t] = root + 1;
            if (producer == TIDE_NONE || x->root[producer] != root) bytes += g->bytes[t];
        }
    }
    return bytes;
}

static uint64_t largest_write(const tide__order_graph *g, const tide__gathered *x, tide_id root) {
    uint64_t largest = 0;
    for (uint32_t m = x->members.at[root]; m < x->members.at[root + 1]; m++) {
        const tide_op *op = tide_program_op(g->program, x->members.ids[m]);
        for (uint32_t i = 0; i < op->n_writes; i++)
            if (g->bytes[op->writes[i]] > largest) largest = g->bytes[op->writes[i]];
    }
    return largest;
}

static void keep_worthwhile(const tide__order_graph *g, tide__gathered *x, tide_id *seen) {
    for (tide_id r = g->n_ops; r-- > 0;) {
        uint32_t begin = x->members.at[r], end = x->members.at[r + 1];
        if (begin == end) continue;
        if (end - begin >= MIN_MEMBERS && awaited_bytes(g, x, r, seen) < largest_write(g, x, r)) continue;
        for (uint32_t m = begin; m < end; m++) x->root[x->members.ids[m]] = TIDE_NONE;
    }
}

static void count_awaited(const tide__order_graph *g, tide__gathered *x) {
    for (tide_id o = 0; o < g->n_ops; o++)
        for (uint32_t k = g->before.at[o]; k < g->before.at[o + 1] && x->root[o] != TIDE_NONE; k++)
            x->n_awaited[x->root[o]] += x->root[g->before.ids[k]] != x->root[o];
}

tide_status tide__gathered_init(const tide__order_graph *g, tide__gathered *out) {
    tide__gathered x = {.root = malloc((g->n_ops + (size_t)1) * sizeof *x.root),
                        .n_awaited = calloc(g->n_ops + (size_t)1, sizeof *x.n_awaited)};
    tide_id *seen = calloc(g->n_tensors + (size_t)1, sizeof *seen);
    tide_status status = x.root && x.n_awaited && seen ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        find_roots(g, x.root);
        status = list_members(g, &x);
    }
    if (status == TIDE_OK) {
        keep_worthwhile(g, &x, seen);
        count_awaited(g, &x);
        *out = x;
    } else {
        tide__gathered_deinit(&x);
    }
    free(seen);
    return status;
}

void tide__gathered_deinit(tide__gathered *x) {
    free(x->root);
    free(x->n_awaited);
    free(x->members.at);
    free(x->members.ids);
    *x = (tide__gathered){0};
}
