/* Liveness: when each tensor is alive, what is loaded at each op, and lower bounds for budgets. Linear in the program.
 *
 *   op       0    1    2    3    4        first, last
 *   x        w────r─────────r             [0, 3]
 *   y             w────r                  [1, 2]    y shares with z at op 2 (in-place pair, y dies there):
 *   z                  w────────▶ kept    [2, 4]    the load of op 2 counts the pair once
 *
 * Invariant: sums cannot overflow, because the builder holds a program's bytes below 2^62; differences in between may
 * wrap and come back. */
#include "program/program_data.h"

#include <stdlib.h>

#include "base/size.h"

typedef struct work {
    const tide_program *p;
    tide_liveness *l;
    tide_id *heir;     /* per tensor: the write that takes over its bytes when it dies, or TIDE_NONE */
    uint32_t *paired;  /* per tensor: 1 + the newest op that counted it as the read of a pair */
    bool *is_resident; /* per tensor: part of what stays for the whole step */
} work;

/* ---- lifetimes ---- */

static void use(tide_liveness *l, tide_id tensor, uint32_t op) {
    if (l->first[tensor] == TIDE_NONE) l->first[tensor] = op;
    l->last[tensor] = op;
}

/* Before the ops: PRESENT values are there. */
static void live_from_start(work *w) {
    for (tide_id t = 0; t < w->l->n_tensors; t++) {
        w->l->first[t] = w->l->last[t] = TIDE_NONE;
        if (w->l->n_ops > 0 && w->p->tensors.data[t].start == TIDE_START_PRESENT) use(w->l, t, 0);
    }
}

static void live_through_ops(work *w) {
    for (uint32_t i = 0; i < w->l->n_ops; i++) {
        const tide_op *op = &w->p->ops.data[i];
        for (uint32_t k = 0; k < op->n_reads; k++) use(w->l, op->reads[k], i);
        for (uint32_t k = 0; k < op->n_writes; k++) use(w->l, op->writes[k], i);
    }
}

/* After the ops: kept values are still there. */
static void live_to_end(work *w) {
    for (tide_id t = 0; t < w->l->n_tensors; t++)
        if (w->l->n_ops > 0 && w->p->tensors.data[t].keep) use(w->l, t, w->l->n_ops - 1);
}

/* ---- sharing ---- */

static bool dies_at(const work *w, tide_id tensor, uint32_t op) {
    return w->l->last[tensor] == op && !w->p->tensors.data[tensor].keep;
}

/* Of several `may` pairs of one read the first comes true: all its writes have the same size. */
static void find_heirs(work *w) {
    for (tide_id t = 0; t < w->l->n_tensors; t++) w->heir[t] = TIDE_NONE;
    for (uint32_t i = 0; i < w->l->n_ops; i++) {
        const tide_op *op = &w->p->ops.data[i];
        for (uint32_t k = 0; k < op->n_inplace; k++) {
            tide_id read = op->reads[op->inplace[k].read];
            if (w->heir[read] == TIDE_NONE && dies_at(w, read, i)) w->heir[read] = op->writes[op->inplace[k].write];
        }
    }
}

/* ---- loads ---- */

/* load_bytes first holds the change from one op to the next, then the running sum. */
static void sum_loads(work *w) {
    tide_liveness *l = w->l;
    for (tide_id t = 0; t < l->n_tensors; t++) {
        uint64_t size = w->p->tensors.data[t].size_bytes;
        l->total_bytes += size;
        if (l->first[t] == TIDE_NONE) continue;
        l->load_bytes[l->first[t]] += size;
        /* An heir counts from its own first op on; the one who leaves does not count at that op any more. */
        uint32_t end = w->heir[t] == TIDE_NONE ? l->last[t] + 1 : l->last[t];
        if (end < l->n_ops) l->load_bytes[end] -= size;
    }
    for (uint32_t i = 1; i < l->n_ops; i++) l->load_bytes[i] += l->load_bytes[i - 1];
}

static void find_peak(work *w) {
    tide_liveness *l = w->l;
    for (uint32_t i = 0; i < l->n_ops; i++) {
        l->load_bytes[i] += w->p->ops.data[i].variants[0].workspace_bytes;
        if (l->peak_op != TIDE_NONE && l->load_bytes[i] <= l->peak_bytes) continue;
        l->peak_bytes = l->load_bytes[i];
        l->peak_op = i;
    }
}

/* ---- lower bounds ---- */

/* Follows the bytes of a PRESENT tensor from heir to heir; they are resident if a kept value has them at the end.
 * A write has one predecessor at most, so all chains together are no longer than the list of tensors. */
static void follow_chain(work *w, tide_id start) {
    tide_id end = start;
    while (w->heir[end] != TIDE_NONE) end = w->heir[end];
    if (!w->p->tensors.data[end].keep) return;
    w->l->resident_bytes += w->p->tensors.data[start].size_bytes;
    for (tide_id t = start; t != TIDE_NONE; t = w->heir[t]) w->is_resident[t] = true;
}

static void find_resident(work *w) {
    if (w->l->n_ops == 0) return;
    for (tide_id t = 0; t < w->l->n_tensors; t++)
        if (w->p->tensors.data[t].start == TIDE_START_PRESENT) follow_chain(w, t);
}

typedef struct need {
    uint64_t all, without_resident; /* bytes of one op's operands and its smallest workspace */
} need;

static void need_more(const work *w, need *n, tide_id tensor) {
    uint64_t size = w->p->tensors.data[tensor].size_bytes;
    n->all += size;
    if (!w->is_resident[tensor]) n->without_resident += size;
}

/* A pair may need its bytes once only, even if the read lives on in a tier. */
static void need_less(work *w, need *n, const tide_op *op, tide_inplace pair, uint32_t mark) {
    tide_id read = op->reads[pair.read], write = op->writes[pair.write];
    if (w->paired[read] == mark) return;
    w->paired[read] = mark;
    uint64_t size = w->p->tensors.data[read].size_bytes;
    n->all -= size;
    if (!w->is_resident[read] && !w->is_resident[write]) n->without_resident -= size;
}

static need need_of_op(work *w, uint32_t i) {
    const tide_op *op = &w->p->ops.data[i];
    uint64_t workspace = op->variants[0].workspace_bytes;
    for (uint32_t k = 1; k < op->n_variants; k++) workspace = tide__min_u64(workspace, op->variants[k].workspace_bytes);
    need n = {workspace, workspace};
    for (uint32_t k = 0; k < op->n_reads; k++) need_more(w, &n, op->reads[k]);
    for (uint32_t k = 0; k < op->n_writes; k++) need_more(w, &n, op->writes[k]);
    for (uint32_t k = 0; k < op->n_inplace; k++) need_less(w, &n, op, op->inplace[k], i + 1);
    return n;
}

static void find_bounds(work *w) {
    tide_liveness *l = w->l;
    for (uint32_t i = 0; i < l->n_ops; i++) {
        need n = need_of_op(w, i);
        if (l->largest_op == TIDE_NONE || n.all > l->largest_op_bytes) {
            l->largest_op = i;
            l->largest_op_bytes = n.all;
        }
        if (l->floor_op == TIDE_NONE || l->resident_bytes + n.without_resident > l->floor_bytes) {
            l->floor_op = i;
            l->floor_bytes = l->resident_bytes + n.without_resident;
        }
    }
}

/* ---- the whole ---- */

static tide_liveness *new_liveness(const tide_program *p) {
    tide_liveness *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->n_tensors = (uint32_t)p->tensors.count;
    l->n_ops = (uint32_t)p->ops.count;
    l->peak_op = l->largest_op = l->floor_op = TIDE_NONE;
    l->first = malloc(((size_t)l->n_tensors + 1) * sizeof *l->first);
    l->last = malloc(((size_t)l->n_tensors + 1) * sizeof *l->last);
    l->load_bytes = calloc((size_t)l->n_ops + 1, sizeof *l->load_bytes);
    if (l->first && l->last && l->load_bytes) return l;
    tide_liveness_destroy(l);
    return NULL;
}

static void analyse(work *w) {
    live_from_start(w);
    live_through_ops(w);
    live_to_end(w);
    find_heirs(w);
    sum_loads(w);
    find_peak(w);
    find_resident(w);
    find_bounds(w);
}

tide_status tide_liveness_create(const tide_program *p, tide_liveness **out) {
    TIDE_NEED(p, out);
    size_t n = p->tensors.count + 1;
    work w = {.p = p, .l = new_liveness(p)};
    w.heir = malloc(n * sizeof *w.heir);
    w.paired = calloc(n, sizeof *w.paired);
    w.is_resident = calloc(n, sizeof *w.is_resident);
    tide_status status = TIDE_OK;
    if (w.l && w.heir && w.paired && w.is_resident) {
        analyse(&w);
        *out = w.l;
    } else {
        tide_liveness_destroy(w.l);
        status = tide__fail_memory();
    }
    free(w.heir);
    free(w.paired);
    free(w.is_resident);
    return status;
}

void tide_liveness_destroy(tide_liveness *l) {
    if (!l) return;
    free(l->first);
    free(l->last);
    free(l->load_bytes);
    free(l);
}
