/* See swap_search.h. Simulated annealing; a move is judged by one evaluation of the whole choice.
 *
 * A gap is worth turning on only where the load is above the budget, so half of the moves start from a slot there. */
#include "plan/decide/swaps/swap_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/rng.h"
#include "base/size.h"

typedef struct searcher {
    tide__swaps *s;
    uint64_t seed, drawn;    /* of the random numbers */
    uint64_t work, per_move; /* left, and what a move costs */
    bool *chosen, *best;
    uint32_t *pool; /* gaps that may be flipped */
    size_t n_pool;
    uint32_t *waits, *best_waits; /* per part of the waiting: the slot that it is before */
    uint32_t n_waits;
    uint64_t wait_ns; /* of one part */
    uint64_t budget_bytes;
    double cost, scale;  /* of the choice; what counts as a small difference */
    tide__arrays arrays; /* owns the arrays above */
} searcher;

static uint64_t draw(searcher *r, uint64_t n) { return tide__random_u64(r->seed, 1, r->drawn++) % n; }

static double draw_unit(searcher *r) {
    return ((double)(tide__random_u64(r->seed, 2, r->drawn++) >> 11) + 0.5) * 0x1p-53;
}

/* Reaching over the ends of the step costs as if a part of the budget were in excess for that time. */
static double cost_of(const searcher *r, const tide__swaps_outcome *o) {
    return o->excess + (double)o->late_ns * ((double)r->budget_bytes / 8);
}

static double evaluate(searcher *r, tide__swaps_outcome *o) {
    *o = tide__swaps_evaluate(r->s, r->chosen, r->budget_bytes);
    r->work -= tide__min_u64(r->work, r->per_move);
    return cost_of(r, o);
}

/* ---- waits ---- */

enum { MAX_WAITS = 64 };

/* Part i is before `slot` from now on. */
static void put_wait(searcher *r, uint32_t i, uint32_t slot) {
    tide__swaps *s = r->s;
    uint32_t was = r->waits[i];
    for (uint32_t k = slot; k < was; k++) s->slot_ns[k] += r->wait_ns;
    for (uint32_t k = was; k < slot; k++) s->slot_ns[k] -= r->wait_ns;
    s->wait_ns[was] -= r->wait_ns;
    s->wait_ns[slot] += r->wait_ns;
    r->waits[i] = slot;
}

/* Evenly over the slots up to the last of the fullest. */
static void spread_waits(searcher *r, uint64_t wait_ns) {
    tide__swaps *s = r->s;
    uint32_t peak = 0;
    r->n_waits = wait_ns ? MAX_WAITS : 0;
    r->wait_ns = wait_ns / MAX_WAITS;
    for (uint32_t k = 0; k <= s->n_ops; k++)
        if (s->base_loads[k] >= s->base_loads[peak]) peak = k;
    for (uint32_t i = 0; i < r->n_waits; i++) {
        r->waits[i] = s->n_ops;
        s->slot_ns[s->n_ops] += r->wait_ns;
        s->wait_ns[s->n_ops] += r->wait_ns;
        put_wait(r, i, (uint32_t)((uint64_t)peak * (i + 1) / r->n_waits));
    }
    memcpy(r->best_waits, r->waits, sizeof *r->waits * MAX_WAITS);
}

/* ---- moves ---- */

typedef struct move {
    uint32_t gap[3];
    uint32_t n;
    uint32_t wait, slot; /* a part of the waiting, and the slot that it changes places with; TIDE_NONE: none */
} move;

static void flip(searcher *r, move *m) {
    for (uint32_t i = 0; i < m->n; i++) r->chosen[m->gap[i]] = !r->chosen[m->gap[i]];
    if (m->wait == TIDE_NONE) return;
    uint32_t was = r->waits[m->wait];
    put_wait(r, m->wait, m->slot);
    m->slot = was;
}

static bool covers(const tide__swap_gap *g, uint32_t slot) {
    if (g->head == TIDE_NONE) return g->from <= slot && slot < g->to;
    return slot >= g->from || slot < g->to;
}

/* One of `tries` random gaps that is in this state and, when turned on, covers the slot; TIDE_NONE: none was met. */
static uint32_t pick(searcher *r, bool on, uint32_t slot, int tries) {
    while (tries-- > 0) {
        uint32_t gap = r->pool[draw(r, r->n_pool)];
        if (r->chosen[gap] != on) continue;
        if (slot == TIDE_NONE || covers(&r->s->gaps.data[gap], slot)) return gap;
    }
    return TIDE_NONE;
}

/* A slot above the budget, if one is met soon; s->loads is of the present choice or of one next to it. */
static uint32_t pick_slot(searcher *r) {
    uint32_t n = r->s->n_ops + 1, from = (uint32_t)draw(r, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = from + i < n ? from + i : from + i - n;
        if (r->s->loads[k] > r->budget_bytes) return k;
    }
    return TIDE_NONE;
}

static void add(move *m, uint32_t gap) {
    for (uint32_t i = 0; i < m->n; i++)
        if (m->gap[i] == gap) return;
    if (gap != TIDE_NONE) m->gap[m->n++] = gap;
}

/* Not far from a slot; there the change is small. */
static uint32_t near(searcher *r, uint32_t slot) {
    uint64_t reach = r->s->n_ops / 64 + 1, drawn = slot + draw(r, 2 * reach + 1);
    return drawn < reach ? 0 : (uint32_t)tide__min_u64(drawn - reach, r->s->n_ops);
}

/* To where the load is above the budget, or not far from where it is, or anywhere. */
static void move_wait(searcher *r, move *m) {
    uint32_t over = draw(r, 2) ? pick_slot(r) : TIDE_NONE;
    m->wait = (uint32_t)draw(r, r->n_waits);
    if (over != TIDE_NONE)
        m->slot = near(r, over);
    else
        m->slot = draw(r, 2) ? near(r, r->waits[m->wait]) : (uint32_t)draw(r, r->s->n_ops + (uint64_t)1);
}

static move propose(searcher *r) {
    move m = {.n = 0, .wait = TIDE_NONE};
    uint32_t slot = draw(r, 2) ? pick_slot(r) : TIDE_NONE;
    if (r->n_waits && draw(r, 3) == 0) {
        move_wait(r, &m);
        return m;
    }
    switch (draw(r, 4)) {
    case 0: add(&m, pick(r, false, slot, 32)); break;
    case 1: add(&m, pick(r, true, TIDE_NONE, 32)); break;
    case 2:
        add(&m, pick(r, true, TIDE_NONE, 32));
        add(&m, pick(r, false, slot, 32));
        break;
    default:
        add(&m, pick(r, true, TIDE_NONE, 32));
        add(&m, pick(r, draw(r, 2), TIDE_NONE, 32));
        add(&m, pick(r, false, slot, 32));
    }
    return m;
}

/* ---- annealing ---- */

enum { COOLING_MOVES = 4000 }; /* of one descent from hot to cold */

static void try_move(searcher *r, double temperature) {
    move m = propose(r);
    tide__swaps_outcome o;
    if (m.n == 0 && m.wait == TIDE_NONE) {
        r->work -= tide__min_u64(r->work, r->per_move);
        return;
    }
    flip(r, &m);
    double cost = evaluate(r, &o);
    if (cost <= r->cost || draw_unit(r) < exp((r->cost - cost) / temperature))
        r->cost = cost;
    else
        flip(r, &m);
}

/* From hot to cold, again and again, until nothing exceeds the budget or no work is left. */
static bool reach(searcher *r) {
    tide__swaps_outcome o;
    r->cost = evaluate(r, &o);
    for (uint64_t i = 0; r->cost > 0 && r->work > 0; i++) {
        double phase = (double)(i % COOLING_MOVES) / COOLING_MOVES;
        try_move(r, r->scale * pow(0.001, phase));
    }
    return r->cost <= 0;
}

/* ---- the whole ---- */

static tide__swaps_outcome settle_best(searcher *r, uint64_t target_bytes) {
    memcpy(r->best, r->chosen, r->s->gaps.count * sizeof *r->best);
    return tide__swaps_settle(r->s, r->best, target_bytes);
}

/* A step down of 1/400, but never past the target. */
static uint64_t lower(uint64_t peak, uint64_t target) {
    uint64_t next = peak - tide__min_u64(peak, peak / 400 + 1);
    return tide__max_u64(next, target);
}

static void descend(searcher *r, uint64_t target_bytes, bool *chosen, tide__swaps_outcome *out) {
    size_t n = r->s->gaps.count;
    while (r->work > 0 && out->peak_bytes > target_bytes) {
        r->budget_bytes = lower(out->peak_bytes, target_bytes);
        r->scale = ((double)r->budget_bytes / 100) * (double)r->s->slot_ns[r->s->n_ops] / 50;
        if (!reach(r)) break;
        tide__swaps_outcome o = settle_best(r, r->budget_bytes);
        memcpy(r->chosen, r->best, n * sizeof *chosen);
        if (o.peak_bytes >= out->peak_bytes) continue; /* what settling took away was of use: on from there */
        *out = o;
        memcpy(chosen, r->best, n * sizeof *chosen);
        memcpy(r->best_waits, r->waits, sizeof *r->waits * MAX_WAITS);
    }
}

static void fill_pool(searcher *r) {
    for (uint32_t i = 0; i < r->s->gaps.count; i++)
        if (!r->s->gaps.data[i].forced) r->pool[r->n_pool++] = i;
}

tide_status tide__swap_search(tide__swaps *s, const tide__swap_search_options *options, bool *chosen,
                              tide__swaps_outcome *out) {
    size_t n = s->gaps.count;
    searcher r = {.s = s, .seed = options->seed, .work = options->work, .per_move = s->n_ops + n + 1};
    tide__array(&r.arrays, r.chosen, n + 1);
    tide__array(&r.arrays, r.best, n + 1);
    tide__array(&r.arrays, r.pool, n + 1);
    tide__array(&r.arrays, r.waits, MAX_WAITS);
    tide__array(&r.arrays, r.best_waits, MAX_WAITS);
    tide_status status = tide__arrays_check(&r.arrays);
    if (status == TIDE_OK) {
        fill_pool(&r);
        spread_waits(&r, options->wait_ns);
        memcpy(r.chosen, chosen, n * sizeof *chosen);
        *out = tide__swaps_settle(s, chosen, options->target_bytes);
        if (r.n_pool > 0) descend(&r, options->target_bytes, chosen, out);
        for (uint32_t i = 0; i < r.n_waits; i++) put_wait(&r, i, r.best_waits[i]);
        *out = tide__swaps_settle(s, chosen, options->target_bytes);
    }
    tide__arrays_free(&r.arrays);
    return status;
}
