/* A tighter bound for swapping without waits (swap_search.h): a circulation of bytes, bisected on the load.
 *
 * Arena contents flow through the slots, at most (load - what never leaves) of them. A gap's bytes enter at `from` and are
 * drawn at `to`; in between they may pass, at the channels' rates, through a node of their own, the tier:
 *
 *   from ─▶ slot k ─▶ slot k+1 ─▶ ... ─▶ slot j ─▶ ... ─▶ to
 *              └▶ out k ─▶ tier of the gap ─▶ in j ┘
 *
 * What went out during op k is gone from slot k + 1 on; what comes in during op j takes room from slot j on. Every schedule
 * is such a flow, so a load without one is out of reach. Looser than schedules: only some slots are watched, the fullest
 * of equal stretches, and what is between two of them is one node; bytes are told apart in tiers only; only the first gap
 * of a value needs a SAVE; latencies do not count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/max_flow.h"
#include "plan/decide/swap_search.h"

enum { ARCS = 400 * 1000, MAX_GAPS = 20 * 1000, MAX_STRETCHES = 512, STEPS = 12 };
enum { SOURCE, SINK, FIRST_STRETCH };

typedef struct circulation {
    const tide__swaps *s;
    tide__flow flow;
    uint32_t slots;           /* n_ops + 1 */
    uint32_t n_watched;       /* there are n_watched + 1 stretches */
    uint32_t *watched;        /* slots, ascending */
    uint32_t *stretch;        /* per slot, and after the last: the watched slots before it */
    uint64_t *out, *in;       /* per stretch: bytes that its ops let pass */
    uint64_t *staying;        /* per slot: bytes that no gap covers; first as changes, modulo 2^64 */
    uint32_t *first_from;     /* per tensor: where its first gap begins */
    uint64_t wanted;          /* bytes of all gaps in the flow */
    double out_rate, in_rate; /* bytes per ns */
} circulation;

/* ---- loads ---- */

static void uncover(circulation *c, uint32_t from, uint32_t to, uint64_t bytes) {
    c->staying[from] -= bytes;
    if (to < c->slots) c->staying[to] += bytes;
}

static void find_staying(circulation *c) {
    const tide__swaps *s = c->s;
    for (size_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        bool across = g->head != TIDE_NONE;
        c->first_from[g->tensor] = g->from < c->first_from[g->tensor] ? g->from : c->first_from[g->tensor];
        if (across || g->from < g->to) uncover(c, g->from, across ? c->slots : g->to, g->size_bytes);
        if (across && g->to != TIDE_NONE && g->to > 0) uncover(c, 0, g->to, g->size_bytes);
    }
    uint64_t sum = 0;
    for (uint32_t k = 0; k < c->slots; k++) c->staying[k] = s->base_loads[k] + (sum += c->staying[k]);
}

/* ---- stretches ---- */

static void watch(circulation *c) {
    uint32_t n = c->n_watched;
    for (uint32_t w = 0; w < n; w++) {
        uint32_t begin = (uint32_t)((uint64_t)c->slots * w / n), end = (uint32_t)((uint64_t)c->slots * (w + 1) / n);
        c->watched[w] = begin;
        for (uint32_t k = begin; k < end; k++)
            if (c->s->base_loads[k] > c->s->base_loads[c->watched[w]]) c->watched[w] = k;
    }
    for (uint32_t k = 0, before = 0; k <= c->slots; k++) {
        c->stretch[k] = before;
        before += before < n && c->watched[before] == k;
    }
}

static void find_rates(circulation *c) {
    const uint64_t *t = c->s->slot_ns;
    for (uint32_t op = 0; op < c->s->n_ops; op++) {
        double ns = (double)(t[op + 1] - t[op]);
        c->out[c->stretch[op + 1]] += (uint64_t)ceil(c->out_rate * ns);
        c->in[c->stretch[op]] += (uint64_t)ceil(c->in_rate * ns);
    }
}

/* ---- nodes and arcs ---- */

static uint32_t stretch_node(uint32_t i) { return FIRST_STRETCH + 5 * i; }
static uint32_t out_node(uint32_t i) { return stretch_node(i) + 1; } /* and the far end, + 1 */
static uint32_t in_node(uint32_t i) { return stretch_node(i) + 3; }
static uint32_t gap_node(const circulation *c, size_t gap) {
    return stretch_node(c->n_watched + 1) + 3 * (uint32_t)gap;
}

/* The first arcs are those of the watched slots, in their order. */
static tide_status add_stretches(circulation *c) {
    uint32_t n = c->n_watched;
    const uint64_t all = UINT64_MAX / 4;
    for (uint32_t i = 0; i < n; i++) TIDE_TRY(tide__flow_arc(&c->flow, stretch_node(i), stretch_node(i + 1), 0));
    for (uint32_t i = 0; i <= n; i++) {
        TIDE_TRY(tide__flow_arc(&c->flow, stretch_node(i), out_node(i), all));
        TIDE_TRY(tide__flow_arc(&c->flow, out_node(i), out_node(i) + 1, c->out[i]));
        TIDE_TRY(tide__flow_arc(&c->flow, in_node(i), in_node(i) + 1, c->in[i]));
        TIDE_TRY(tide__flow_arc(&c->flow, in_node(i) + 1, stretch_node(i), all));
    }
    return TIDE_OK;
}

static bool is_saved(const circulation *c, const tide__swap_gap *g) {
    if (g->clean) return true;
    return !c->s->options.always_save && (g->across != TIDE_NONE || c->first_from[g->tensor] < g->from);
}

/* Ways out, from the arena or, while the value is still in use, beside it. */
static tide_status add_saves(circulation *c, const tide__swap_gap *g, uint32_t entry, uint32_t tier) {
    uint32_t ready = c->s->options.late_saves ? g->from : g->ready;
    uint32_t end = g->head == TIDE_NONE ? g->to : c->s->n_ops;
    if (is_saved(c, g)) return tide__flow_arc(&c->flow, entry, tier, g->size_bytes);
    if (ready >= end) return TIDE_OK;
    for (uint32_t i = c->stretch[ready + 1]; i <= c->stretch[end]; i++) {
        if (ready < g->from && i <= c->stretch[g->from])
            TIDE_TRY(tide__flow_arc(&c->flow, entry, out_node(i), g->size_bytes));
        TIDE_TRY(tide__flow_arc(&c->flow, out_node(i) + 1, tier, g->size_bytes));
    }
    return TIDE_OK;
}

/* One that covers no watched slot does not matter; one that never comes back is absent in any case. */
static bool matters(const circulation *c, const tide__swap_gap *g) {
    return g->to != TIDE_NONE && (g->head != TIDE_NONE || c->stretch[g->from] < c->stretch[g->to]);
}

/* Ways from a node into the arena, during the ops [from, to). */
static tide_status add_loads(circulation *c, uint32_t node, uint32_t from, uint32_t to, uint64_t bytes) {
    for (uint32_t i = c->stretch[from]; from < to && i <= c->stretch[to - 1]; i++)
        TIDE_TRY(tide__flow_arc(&c->flow, node, in_node(i), bytes));
    return TIDE_OK;
}

/* From the last use to the end, in the arena or out; from the start, in the arena or not yet in, to the first use. That
 * both are the same bytes is not asked for. */
static tide_status add_across(circulation *c, const tide__swap_gap *g, uint32_t entry) {
    uint32_t end = entry + 1, start = entry + 2, last = stretch_node(c->n_watched);
    c->wanted += 2 * g->size_bytes;
    TIDE_TRY(tide__flow_arc(&c->flow, SOURCE, entry, g->size_bytes));
    TIDE_TRY(tide__flow_arc(&c->flow, entry, stretch_node(c->stretch[g->from]), g->size_bytes));
    TIDE_TRY(add_saves(c, g, entry, end));
    TIDE_TRY(tide__flow_arc(&c->flow, last, end, g->size_bytes));
    TIDE_TRY(tide__flow_arc(&c->flow, end, SINK, g->size_bytes));
    TIDE_TRY(tide__flow_arc(&c->flow, SOURCE, start, g->size_bytes));
    TIDE_TRY(tide__flow_arc(&c->flow, start, stretch_node(0), g->size_bytes));
    TIDE_TRY(add_loads(c, start, 0, g->to, g->size_bytes));
    return tide__flow_arc(&c->flow, stretch_node(c->stretch[g->to]), SINK, g->size_bytes);
}

static tide_status add_inside(circulation *c, const tide__swap_gap *g, uint32_t entry) {
    uint32_t tier = entry + 1, from = c->stretch[g->from], to = c->stretch[g->to];
    c->wanted += g->size_bytes;
    TIDE_TRY(tide__flow_arc(&c->flow, SOURCE, entry, g->size_bytes));
    TIDE_TRY(tide__flow_arc(&c->flow, entry, stretch_node(from), g->size_bytes));
    TIDE_TRY(add_saves(c, g, entry, tier));
    TIDE_TRY(tide__flow_arc(&c->flow, tier, tier + 1, g->size_bytes));
    TIDE_TRY(add_loads(c, tier + 1, g->from, g->to, g->size_bytes));
    return tide__flow_arc(&c->flow, stretch_node(to), SINK, g->size_bytes);
}

static tide_status add_gap(circulation *c, size_t i) {
    const tide__swap_gap *g = &c->s->gaps.data[i];
    if (!matters(c, g)) return TIDE_OK;
    return g->head == TIDE_NONE ? add_inside(c, g, gap_node(c, i)) : add_across(c, g, gap_node(c, i));
}

/* ---- bisection ---- */

static tide_status is_reachable(circulation *c, uint64_t load, bool *yes) {
    uint64_t flow;
    *yes = false;
    for (uint32_t i = 0; i < c->n_watched; i++) {
        int64_t room = (int64_t)load - (int64_t)c->staying[c->watched[i]];
        if (room < 0) return TIDE_OK;
        tide__flow_set(&c->flow, i, (uint64_t)room);
    }
    TIDE_TRY(tide__flow_solve(&c->flow, SOURCE, SINK, &flow));
    *yes = flow == c->wanted;
    return TIDE_OK;
}

/* *low is a bound, and stays one. */
static tide_status bisect(circulation *c, uint64_t high, uint64_t *low) {
    for (int i = 0; i < STEPS && high > *low + 1; i++) {
        uint64_t middle = *low + (high - *low) / 2;
        bool yes;
        TIDE_TRY(is_reachable(c, middle, &yes));
        if (yes)
            high = middle;
        else
            *low = middle + 1;
    }
    return TIDE_OK;
}

static tide_status tighten(circulation *c, uint64_t *bound) {
    uint64_t peak = 0;
    memset(c->first_from, 0xff, tide_program_tensor_count(c->s->in->program) * sizeof *c->first_from);
    find_staying(c);
    watch(c);
    find_rates(c);
    TIDE_TRY(add_stretches(c));
    for (size_t i = 0; i < c->s->gaps.count; i++) TIDE_TRY(add_gap(c, i));
    for (uint32_t k = 0; k < c->slots; k++) peak = tide__max_u64(peak, c->s->base_loads[k]);
    return bisect(c, peak, bound);
}

static tide_status allocate(circulation *c) {
    size_t stretches = c->n_watched + (size_t)1;
    c->watched = calloc(stretches, sizeof *c->watched);
    c->stretch = calloc(c->slots + (size_t)1, sizeof *c->stretch);
    c->out = calloc(stretches, sizeof *c->out);
    c->in = calloc(stretches, sizeof *c->in);
    c->staying = calloc(c->slots, sizeof *c->staying);
    c->first_from = calloc(tide_program_tensor_count(c->s->in->program) + (size_t)1, sizeof *c->first_from);
    bool ok = c->watched && c->stretch && c->out && c->in && c->staying && c->first_from;
    return ok ? TIDE_OK : tide__fail_memory();
}

static void release(circulation *c) {
    free(c->watched);
    free(c->stretch);
    free(c->out);
    free(c->in);
    free(c->staying);
    free(c->first_from);
    tide__flow_free(&c->flow);
}

tide_status tide__swap_circulation(const tide__swaps *s, double out_rate, double in_rate, uint64_t *bound) {
    if (s->gaps.count > MAX_GAPS) return TIDE_OK;
    circulation c = {.s = s, .slots = s->n_ops + 1, .out_rate = out_rate, .in_rate = in_rate};
    uint64_t n = tide__min_u64(MAX_STRETCHES, ARCS / (s->gaps.count + 1));
    c.n_watched = (uint32_t)tide__min_u64(n, c.slots);
    c.flow.n_nodes = gap_node(&c, s->gaps.count);
    tide_status status = allocate(&c);
    if (status == TIDE_OK) status = tighten(&c, bound);
    release(&c);
    return status;
}
