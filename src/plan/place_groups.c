/* See place_groups.h. */
#include "plan/place_groups.h"

#include <stdlib.h>
#include <string.h>

typedef tide__span_ends span;
typedef tide__groups groups;

void tide__groups_deinit(groups *g) {
    free(g->parent);
    free(g->spans);
    free(g->carried);
    free(g->joined);
}

tide_status tide__groups_init(groups *g, size_t n) {
    *g = (groups){.count = n};
    g->parent = malloc((n + 1) * sizeof *g->parent);
    g->spans = calloc(n + 1, sizeof *g->spans);
    g->carried = calloc(n + 1, sizeof *g->carried);
    g->joined = calloc(n + 1, sizeof *g->joined);
    if (!g->parent || !g->spans || !g->carried || !g->joined) return tide__fail_memory();
    for (size_t i = 0; i < n; i++) g->parent[i] = (uint32_t)i;
    return TIDE_OK;
}

/* The root of the two groups' union; spans are the caller's business. */
static uint32_t join(groups *g, uint32_t a, uint32_t b) {
    a = tide__groups_find(g, a);
    b = tide__groups_find(g, b);
    uint32_t root = a < b ? a : b;
    g->carried[root] = g->carried[a] || g->carried[b];
    g->joined[root] = g->joined[root] || a != b;
    g->parent[a] = g->parent[b] = root;
    return root;
}

/* NULL without memory. */
static tide_id *nones(size_t n) {
    tide_id *ids = malloc((n ? n : 1) * sizeof *ids);
    if (ids) memset(ids, 0xff, n * sizeof *ids);
    return ids;
}

/* ---- which residencies share an offset ---- */

typedef struct joiner {
    const tide_program *program;
    const tide_plan *plan;
    groups *groups;
    bool *gave, *took; /* per residency: handed its bytes over / took them over; each at most once */
} joiner;

/* Residencies are numbered by their beginnings, so one pass each way finds the two ends of a carried group. */
static void measure_groups(joiner *j) {
    groups *g = j->groups;
    size_t n = g->count;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t root = tide__groups_find(g, i);
        if (root == i)
            g->spans[i] = (span){.head = g->carried[i] ? 0 : UINT32_MAX, .tail = g->carried[i] ? UINT32_MAX : 0};
    }
    for (uint32_t i = 0; i < n; i++) {
        const tide_residency *r = &j->plan->residencies.data[i];
        span *s = &g->spans[tide__groups_find(g, i)];
        if (!g->carried[tide__groups_find(g, i)]) {
            if (r->begin < s->head) s->head = r->begin;
            if (r->end > s->tail) s->tail = r->end;
        } else if (r->begin <= s->head && r->end > s->head) {
            s->head = r->end;
        }
    }
    for (uint32_t i = (uint32_t)n; i-- > 0;) {
        const tide_residency *r = &j->plan->residencies.data[i];
        span *s = &g->spans[tide__groups_find(g, i)];
        if (g->carried[tide__groups_find(g, i)] && (r->at_end || r->end >= s->tail) && r->begin < s->tail)
            s->tail = r->begin;
    }
}

/* `may`: the read dies here, and neither of two carried values would lose its place to the other. */
static bool may_join(joiner *j, uint32_t i, tide_id read, tide_id write) {
    const tide_residency *r = &j->plan->residencies.data[read], *w = &j->plan->residencies.data[write];
    if (j->gave[read] || j->took[write] || r->end != i + 1 || r->at_end || r->size_bytes != w->size_bytes) return false;
    groups *g = j->groups;
    uint32_t a = tide__groups_find(g, read), b = tide__groups_find(g, write);
    if (a == b) return true;
    if (g->carried[a] && g->carried[b]) return false;
    if (g->carried[a]) return g->spans[b].tail <= g->spans[a].tail;
    if (g->carried[b]) return g->spans[a].head >= g->spans[b].head;
    return true;
}

static void join_pair(joiner *j, tide_id read, tide_id write) {
    groups *g = j->groups;
    span a = g->spans[tide__groups_find(g, read)], b = g->spans[tide__groups_find(g, write)], joined;
    bool read_carried = g->carried[tide__groups_find(g, read)], write_carried = g->carried[tide__groups_find(g, write)];
    if (tide__groups_find(g, read) == tide__groups_find(g, write))
        joined = a;
    else if (read_carried) /* the written group follows the head */
        joined = (span){.head = b.tail > a.head ? b.tail : a.head, .tail = a.tail};
    else if (write_carried) /* the read group precedes the tail */
        joined = (span){.head = b.head, .tail = a.head < b.tail ? a.head : b.tail};
    else
        joined = (span){.head = a.head < b.head ? a.head : b.head, .tail = a.tail > b.tail ? a.tail : b.tail};
    g->spans[join(g, read, write)] = joined;
    j->gave[read] = j->took[write] = true;
}

static void join_run(joiner *j, uint32_t i, bool must) {
    tide_action a = tide_plan_action(j->plan, i);
    const tide_op *op = tide_program_op(j->program, a.op);
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        tide_id read = a.uses[op->inplace[k].read], write = a.uses[op->n_reads + op->inplace[k].write];
        if (op->inplace[k].must != must) continue;
        if (must || may_join(j, i, read, write)) join_pair(j, read, write);
    }
}

static void join_runs(joiner *j, bool must) {
    for (uint32_t i = 0; i < j->plan->actions.count; i++)
        if (j->plan->actions.data[i].kind == TIDE_RUN) join_run(j, i, must);
}

/* Per tensor: its residency in the start map, or in the end map. */
static tide_id *map_residencies(const tide_program *program, const tide_plan *plan, bool end) {
    tide_id *map = nones(tide_program_tensor_count(program));
    for (size_t i = 0; map && i < plan->residencies.count; i++) {
        const tide_residency *r = &plan->residencies.data[i];
        if (end ? r->at_end : r->at_start) map[r->tensor] = (tide_id)i;
    }
    return map;
}

static tide_status join_carries(joiner *j) {
    tide_id *starts = map_residencies(j->program, j->plan, false), *ends = map_residencies(j->program, j->plan, true);
    tide_status status = starts && ends ? TIDE_OK : tide__fail_memory();
    for (uint32_t i = 0; status == TIDE_OK && i < tide_program_carry_count(j->program); i++) {
        const tide_carry *c = tide_program_carry(j->program, i);
        tide_id from = ends[c->from], to = starts[c->to];
        if (from == TIDE_NONE || to == TIDE_NONE) continue; /* carried through a tier */
        join(j->groups, from, to);
        j->groups->carried[tide__groups_find(j->groups, from)] = true;
    }
    free(starts);
    free(ends);
    return status;
}

tide_status tide__join_residencies(const tide_program *program, const tide_plan *plan, bool share, groups *g,
                                   bool *gave) {
    joiner j = {.program = program, .plan = plan, .groups = g, .gave = gave};
    j.took = calloc(plan->residencies.count + 1, sizeof *j.took);
    tide_status status = j.took ? join_carries(&j) : tide__fail_memory();
    if (status == TIDE_OK) {
        join_runs(&j, true);
        measure_groups(&j);
        if (share) join_runs(&j, false);
    }
    free(j.took);
    return status;
}

/* ---- which copies do ---- */

tide_status tide__join_copies(const tide_program *program, const tide_plan *plan, groups *g) {
    size_t n = tide_program_tensor_count(program);
    tide_id *end_copy = nones(n * TIDE_MACHINE_MAX_TIERS); /* [tensor][tier] */
    tide_id *from = nones(n);                              /* per carried-to tensor: what it is carried from */
    tide_status status = end_copy && from ? TIDE_OK : tide__fail_memory();
    for (uint32_t i = 0; status == TIDE_OK && i < plan->copies.count; i++) {
        const tide_copy *c = &plan->copies.data[i];
        if (c->at_end) end_copy[(size_t)c->tensor * TIDE_MACHINE_MAX_TIERS + c->tier] = i;
    }
    for (uint32_t i = 0; status == TIDE_OK && i < tide_program_carry_count(program); i++)
        from[tide_program_carry(program, i)->to] = tide_program_carry(program, i)->from;
    for (uint32_t i = 0; status == TIDE_OK && i < plan->copies.count; i++) {
        const tide_copy *c = &plan->copies.data[i];
        if (!c->at_start || from[c->tensor] == TIDE_NONE) continue;
        tide_id end = end_copy[(size_t)from[c->tensor] * TIDE_MACHINE_MAX_TIERS + c->tier];
        if (end != TIDE_NONE) join(g, i, end);
    }
    free(from);
    free(end_copy);
    return status;
}
