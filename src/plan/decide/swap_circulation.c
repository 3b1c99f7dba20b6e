/* A tighter bound for swapping (swap_search.h): a circulation of bytes, bisected on the load.
 *
 * A value comes and goes as a whole. So its bytes are there until a SAVE, begun as soon as it exists, could have ended, and
 * from where a LOAD has to begin: no choice makes it absent outside of its *window*, slots [leave, back). Arena contents flow
 * through the slots, at most (load - what is there in any case) of them. A gap's bytes enter at `leave` and are drawn at
 * `back`; in between they may pass, at the channels' rates, through a node of their own, the tier:
 *
 *   leave ─▶ slot k ─▶ slot k+1 ─▶ ... ─▶ slot j ─▶ ... ─▶ back
 *              └▶ out k ─▶ tier of the gap ─▶ in j ┘
 *
 * What went out during op k is gone from slot k + 1 on; what comes in during op j takes room from slot j on. Transfers
 * outside of the window, from where the value exists and to where it is needed, pass beside the arena. Waits add to what
 * the channels let pass, wherever that is of use. Every schedule is such a flow, so a load without one is out of reach.
 *
 * Looser than schedules: only some slots are watched, the fullest of equal stretches, and what is between two of them is one
 * node; bytes are told apart in tiers only, and within the window they flow; only the first gap of a value needs a SAVE. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/max_flow.h"
#include "plan/decide/swap_search.h"

enum { ARCS = 400 * 1000, MAX_GAPS = 20 * 1000, MAX_STRETCHES = 512, STEPS = 12 };
enum { SOURCE, SINK, WAIT_OUT, WAIT_IN = WAIT_OUT + 2, FIRST_STRETCH = WAIT_IN + 2 };

/* Where a gap can be absent: [leave, back), over the end of the step for what is carried. */
typedef struct window {
    uint32_t leave, back;
    bool open; /* it can be at all */
} window;

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
    window *windows;          /* per gap */
    uint64_t wanted;          /* bytes of all gaps in the flow */
    uint64_t wait_ns;         /* for which compute may wait in all */
    double out_rate, in_rate; /* bytes per ns: the best that any gap gets, of all tiers together */
} circulation;

/* ---- windows ---- */

/* Of a transfer that has its channel for itself. */
static uint64_t alone_ns(const circulation *c, const tide__swap_gap *g, bool out) {
    const tide_machine *m = c->s->in->machine;
    uint32_t queue = tide_machine_queue(m, g->tier, out);
    uint64_t ns = queue == TIDE_NONE ? 0 : tide_machine_transfer_ns(m, queue - 1, g->size_bytes);
    return tide__min_u64(ns, out ? g->out_ns : g->in_ns);
}

static bool is_saved(const circulation *c, const tide__swap_gap *g) {
    if (g->clean) return true;
    return !c->s->options.always_save && (g->across != TIDE_NONE || c->first_from[g->tensor] < g->from);
}

static uint32_t ready_of(const circulation *c, const tide__swap_gap *g) {
    return c->s->options.late_saves ? g->from : g->ready;
}

/* The first slot that starts at t_ns or later; `slots` if none does. */
static uint32_t slot_from(const circulation *c, uint64_t t_ns) {
    uint32_t low = 0, high = c->slots;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->s->slot_ns[middle] < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* All of the waiting may fall into one transfer. */
static uint64_t less_waits(const circulation *c, uint64_t ns) { return ns - tide__min_u64(ns, c->wait_ns); }

static window window_of(const circulation *c, const tide__swap_gap *g) {
    bool across = g->head != TIDE_NONE;
    window w = {.leave = g->from, .back = g->to, .open = true};
    if (g->to == TIDE_NONE) return w;
    if (!is_saved(c, g)) {
        uint64_t end_ns = c->s->slot_ns[ready_of(c, g)] + less_waits(c, alone_ns(c, g, true));
        w.leave = (uint32_t)tide__max_u64(w.leave, slot_from(c, end_ns));
    }
    uint64_t need_ns = c->s->slot_ns[g->to], in_ns = less_waits(c, alone_ns(c, g, false));
    if (in_ns > need_ns && !g->forced) w.open = false;
    w.back = slot_from(c, need_ns - tide__min_u64(in_ns, need_ns) + 1);
    w.back = (uint32_t)tide__min_u64(g->to, w.back ? w.back - 1 : 0);
    if (across ? w.leave >= c->slots : w.leave >= w.back) w.open = false;
    return w;
}

static void find_windows(circulation *c) {
    const tide__swaps *s = c->s;
    for (size_t i = 0; i < s->gaps.count; i++) {
        uint32_t *first = &c->first_from[s->gaps.data[i].tensor];
        *first = (uint32_t)tide__min_u64(*first, s->gaps.data[i].from);
    }
    for (size_t i = 0; i < s->gaps.count; i++) c->windows[i] = window_of(c, &s->gaps.data[i]);
}

/* ---- loads ---- */

static void uncover(circulation *c, uint32_t from, uint32_t to, uint64_t bytes) {
    if (from >= to) return;
    c->staying[from] -= bytes;
    if (to < c->slots) c->staying[to] += bytes;
}

static void find_staying(circulation *c) {
    const tide__swaps *s = c->s;
    for (size_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        const window *w = &c->windows[i];
        bool across = g->head != TIDE_NONE;
        if (!w->open) continue;
        uncover(c, w->leave, across ? c->slots : w->back, g->size_bytes);
        if (across && g->to != TIDE_NONE) uncover(c, 0, w->back, g->size_bytes);
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

/* The best bytes per ns that a gap of each tier gets, latency included; a channel is never faster. */
static double best_rate(const circulation *c, bool out) {
    double best[TIDE_MACHINE_MAX_TIERS] = {0}, sum = 0;
    for (size_t i = 0; i < c->s->gaps.count; i++) {
        const tide__swap_gap *g = &c->s->gaps.data[i];
        uint64_t ns = alone_ns(c, g, out);
        if (ns > 0) best[g->tier] = fmax(best[g->tier], (double)g->size_bytes / (double)ns);
    }
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) sum += best[t];
    return sum;
}

/* ---- nodes and arcs ---- */

static uint32_t stretch_node(uint32_t i) { return FIRST_STRETCH + 5 * i; }
static uint32_t out_node(uint32_t i) { return stretch_node(i) + 1; } /* and the far end, + 1 */
static uint32_t in_node(uint32_t i) { return stretch_node(i) + 3; }
/* The first of four. */
static uint32_t gap_node(const circulation *c, size_t gap) {
    return stretch_node(c->n_watched + 1) + 4 * (uint32_t)gap;
}

static tide_status arc(circulation *c, uint32_t from, uint32_t to, uint64_t bytes) {
    return tide__flow_arc(&c->flow, from, to, bytes);
}

/* A second way from end to end of every channel: while compute waits. */
static tide_status add_waits(circulation *c) {
    const uint64_t all = UINT64_MAX / 4;
    if (c->wait_ns == 0) return TIDE_OK;
    TIDE_TRY(arc(c, WAIT_OUT, WAIT_OUT + 1, (uint64_t)ceil(c->out_rate * (double)c->wait_ns)));
    TIDE_TRY(arc(c, WAIT_IN, WAIT_IN + 1, (uint64_t)ceil(c->in_rate * (double)c->wait_ns)));
    for (uint32_t i = 0; i <= c->n_watched; i++) {
        TIDE_TRY(arc(c, out_node(i), WAIT_OUT, all));
        TIDE_TRY(arc(c, WAIT_OUT + 1, out_node(i) + 1, all));
        TIDE_TRY(arc(c, in_node(i), WAIT_IN, all));
        TIDE_TRY(arc(c, WAIT_IN + 1, in_node(i) + 1, all));
    }
    return TIDE_OK;
}

/* The first arcs are those of the watched slots, in their order. */
static tide_status add_stretches(circulation *c) {
    uint32_t n = c->n_watched;
    const uint64_t all = UINT64_MAX / 4;
    for (uint32_t i = 0; i < n; i++) TIDE_TRY(arc(c, stretch_node(i), stretch_node(i + 1), 0));
    for (uint32_t i = 0; i <= n; i++) {
        TIDE_TRY(arc(c, stretch_node(i), out_node(i), all));
        TIDE_TRY(arc(c, out_node(i), out_node(i) + 1, c->out[i]));
        TIDE_TRY(arc(c, in_node(i), in_node(i) + 1, c->in[i]));
        TIDE_TRY(arc(c, in_node(i) + 1, stretch_node(i), all));
    }
    return add_waits(c);
}

/* Ways out, from the arena or, before the window, beside it. */
static tide_status add_saves(circulation *c, size_t gap, uint32_t entry, uint32_t tier) {
    const tide__swap_gap *g = &c->s->gaps.data[gap];
    const window *w = &c->windows[gap];
    uint32_t ready = ready_of(c, g), end = g->head == TIDE_NONE ? w->back : c->s->n_ops;
    if (is_saved(c, g)) return arc(c, entry, tier, g->size_bytes);
    if (ready >= end) return TIDE_OK;
    for (uint32_t i = c->stretch[ready + 1]; i <= c->stretch[end]; i++) {
        if (ready < w->leave && i <= c->stretch[w->leave]) TIDE_TRY(arc(c, entry, out_node(i), g->size_bytes));
        TIDE_TRY(arc(c, out_node(i) + 1, tier, g->size_bytes));
    }
    return TIDE_OK;
}

/* One that covers no watched slot does not matter; one that never comes back is absent in any case. */
static bool matters(const circulation *c, size_t gap) {
    const tide__swap_gap *g = &c->s->gaps.data[gap];
    const window *w = &c->windows[gap];
    if (g->to == TIDE_NONE || !w->open) return false;
    return g->head != TIDE_NONE || c->stretch[w->leave] < c->stretch[w->back];
}

/* Ways from a node to where a gap's bytes are drawn: through the arena during the ops [from, back), then beside it. */
static tide_status add_loads(circulation *c, size_t gap, uint32_t node, uint32_t from, uint32_t drawn) {
    uint32_t back = c->windows[gap].back, to = c->s->gaps.data[gap].to;
    uint64_t bytes = c->s->gaps.data[gap].size_bytes;
    for (uint32_t i = c->stretch[from]; from < to && i <= c->stretch[to - 1]; i++)
        TIDE_TRY(arc(c, node, in_node(i), bytes));
    for (uint32_t i = c->stretch[back]; back < to && i <= c->stretch[to - 1]; i++)
        TIDE_TRY(arc(c, in_node(i) + 1, drawn, bytes));
    TIDE_TRY(arc(c, stretch_node(c->stretch[back]), drawn, bytes));
    return arc(c, drawn, SINK, bytes);
}

/* From the last use to the end, in the arena or out; from the start, in the arena or not yet in, to the first use. That
 * both are the same bytes is not asked for. */
static tide_status add_across(circulation *c, size_t gap, uint32_t entry) {
    uint32_t end = entry + 1, start = entry + 2;
    uint64_t bytes = c->s->gaps.data[gap].size_bytes;
    c->wanted += 2 * bytes;
    TIDE_TRY(arc(c, SOURCE, entry, bytes));
    TIDE_TRY(arc(c, entry, stretch_node(c->stretch[c->windows[gap].leave]), bytes));
    TIDE_TRY(add_saves(c, gap, entry, end));
    TIDE_TRY(arc(c, stretch_node(c->n_watched), end, bytes));
    TIDE_TRY(arc(c, end, SINK, bytes));
    TIDE_TRY(arc(c, SOURCE, start, bytes));
    TIDE_TRY(arc(c, start, stretch_node(0), bytes));
    return add_loads(c, gap, start, 0, entry + 3);
}

static tide_status add_inside(circulation *c, size_t gap, uint32_t entry) {
    uint32_t tier = entry + 1;
    uint64_t bytes = c->s->gaps.data[gap].size_bytes;
    c->wanted += bytes;
    TIDE_TRY(arc(c, SOURCE, entry, bytes));
    TIDE_TRY(arc(c, entry, stretch_node(c->stretch[c->windows[gap].leave]), bytes));
    TIDE_TRY(add_saves(c, gap, entry, tier));
    TIDE_TRY(arc(c, tier, tier + 1, bytes));
    return add_loads(c, gap, tier + 1, c->windows[gap].leave, entry + 3);
}

static tide_status add_gap(circulation *c, size_t i) {
    if (!matters(c, i)) return TIDE_OK;
    return c->s->gaps.data[i].head == TIDE_NONE ? add_inside(c, i, gap_node(c, i)) : add_across(c, i, gap_node(c, i));
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
    find_windows(c);
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
    c->windows = calloc(c->s->gaps.count + 1, sizeof *c->windows);
    c->first_from = calloc(tide_program_tensor_count(c->s->in->program) + (size_t)1, sizeof *c->first_from);
    bool ok = c->watched && c->stretch && c->out && c->in && c->staying && c->windows && c->first_from;
    return ok ? TIDE_OK : tide__fail_memory();
}

static void release(circulation *c) {
    free(c->watched);
    free(c->stretch);
    free(c->out);
    free(c->in);
    free(c->staying);
    free(c->windows);
    free(c->first_from);
    tide__flow_free(&c->flow);
}

tide_status tide__swap_circulation(const tide__swaps *s, uint64_t wait_ns, uint64_t *bound) {
    if (s->gaps.count > MAX_GAPS) return TIDE_OK;
    circulation c = {.s = s, .slots = s->n_ops + 1, .wait_ns = wait_ns};
    c.out_rate = best_rate(&c, true);
    c.in_rate = best_rate(&c, false);
    uint64_t n = tide__min_u64(MAX_STRETCHES, ARCS / (s->gaps.count + 1));
    c.n_watched = (uint32_t)tide__min_u64(n, c.slots);
    c.flow.n_nodes = gap_node(&c, s->gaps.count);
    tide_status status = allocate(&c);
    if (status == TIDE_OK) status = tighten(&c, bound);
    release(&c);
    return status;
}
