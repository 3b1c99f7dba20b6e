/* See waits.h. */
#include "plan/decide/hybrid/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/evaluate.h"
#include "plan/decide/policies/workspaces.h"

typedef struct builder {
    const tide__policy_input *in;
    const tide__sketch *s;
    const tide__model *m;
    uint64_t *loads, *op_ns;       /* per slot, per op */
    tide__touch *touches;          /* by re-runs */
    uint32_t n_touches, *first;    /* first: per tensor, its earliest; TIDE_NONE */
    TIDE_VEC(tide__swap_gap) gaps; /* that are left */
    uint32_t *place;               /* per gap of the program: in gaps; TIDE_NONE: it is not left */
} builder;

static bool is_rerun(uint64_t key) { return tide__event_kind_of(key) == TIDE__EVENT_RUN; }

/* ---- what the re-runs do ---- */

static void touch(builder *b, tide_id tensor, uint32_t slot, bool writes) {
    b->touches[b->n_touches] = (tide__touch){.slot = slot, .next = b->first[tensor], .writes = writes};
    b->first[tensor] = b->n_touches++;
}

static void note_touches(builder *b) {
    const tide__model *m = b->m;
    memset(b->first, 0xff, m->n_tensors * sizeof *b->first);
    for (size_t i = b->s->extra.count; i-- > 0;) {
        uint32_t slot = tide__event_slot(b->s->extra.data[i]);
        tide_id op = tide__event_id(b->s->extra.data[i]);
        if (!is_rerun(b->s->extra.data[i])) continue;
        for (uint32_t k = m->read_at[op]; k < m->read_at[op + 1]; k++) touch(b, m->reads[k], slot, false);
        for (uint32_t k = m->write_at[op]; k < m->write_at[op + 1]; k++) touch(b, m->writes[k], slot, true);
    }
}

static size_t count_touches(const builder *b) {
    size_t n = 0;
    for (size_t i = 0; i < b->s->extra.count; i++) {
        tide_id op = tide__event_id(b->s->extra.data[i]);
        if (is_rerun(b->s->extra.data[i]))
            n += b->m->read_at[op + 1] - b->m->read_at[op] + b->m->write_at[op + 1] - b->m->write_at[op];
    }
    return n;
}

static tide_status measure(builder *b) {
    tide__decisions d = {0};
    tide_status status = TIDE_OK;
    for (tide_id o = 0; o < b->m->n_ops; o++) b->op_ns[o] = b->m->cost_ns[o];
    for (size_t i = 0; i < b->s->extra.count && status == TIDE_OK; i++) {
        tide__rerun rerun = {.slot = tide__event_slot(b->s->extra.data[i]), .op = tide__event_id(b->s->extra.data[i])};
        if (!is_rerun(b->s->extra.data[i])) continue;
        status = tide__vec_push(&d.reruns, rerun);
        uint32_t slot = rerun.slot < b->m->n_ops ? rerun.slot : b->m->n_ops - 1;
        b->op_ns[slot] = tide__add_capped(b->op_ns[slot], b->m->cost_ns[rerun.op]);
    }
    if (status == TIDE_OK) status = tide__workspaces_shrink(b->in, &d);
    if (status == TIDE_OK) status = tide__evaluate_loads(b->in, &d, b->loads);
    tide__decisions_free(&d);
    return status;
}

/* ---- the gaps that are left ---- */

/* Up to the first re-run that reads the value; none where one makes it. */
static bool shorten_inside(const builder *b, tide__swap_gap *g) {
    if (g->forced) return true;
    for (uint32_t i = b->first[g->tensor]; i != TIDE_NONE; i = b->touches[i].next) {
        const tide__touch *t = &b->touches[i];
        if (t->slot < g->from && t->writes) g->ready = t->slot + 1 > g->ready ? t->slot + 1 : g->ready;
        if (t->slot < g->from || t->slot > g->to) continue;
        if (g->to == TIDE_NONE) {
            g->from = t->slot + 1; /* it leaves behind all of them */
            continue;
        }
        if (t->writes) return false;
        g->to = t->slot;
    }
    return g->to > g->from && g->from < b->m->n_ops;
}

static bool shorten_across(const builder *b, tide__swap_gap *g) {
    for (uint32_t i = b->first[g->tensor]; i != TIDE_NONE; i = b->touches[i].next)
        if (b->touches[i].slot >= g->from) g->from = b->touches[i].slot + 1;
    uint32_t first = b->first[g->head];
    if (first != TIDE_NONE && b->touches[first].slot < g->to) g->to = b->touches[first].slot;
    return g->from < b->m->n_ops;
}

/* Inputs count from the start, as swaps.h wants it. */
static void count_early(builder *b, const tide__swap_gap *g) {
    if (!g->forced || g->head != TIDE_NONE) return;
    for (uint32_t k = 0; k < g->to; k++) b->loads[k] += g->size_bytes;
}

/* Those over the end and from the start come first, so that the others find them. */
static tide_status keep_gaps(builder *b, const tide__swaps *all) {
    for (size_t i = 0; i < all->gaps.count; i++) {
        tide__swap_gap g = all->gaps.data[i];
        bool stays = g.head == TIDE_NONE ? shorten_inside(b, &g) : shorten_across(b, &g);
        b->place[i] = stays ? (uint32_t)b->gaps.count : TIDE_NONE;
        if (!stays) continue;
        if (g.across != TIDE_NONE) g.across = b->place[g.across];
        count_early(b, &g);
        TIDE_TRY(tide__vec_push(&b->gaps, g));
    }
    return TIDE_OK;
}

/* ---- the whole ---- */

static tide_status begin(builder *b, const tide__swaps *all) {
    size_t n_ops = b->m->n_ops + (size_t)1;
    b->loads = calloc(n_ops, sizeof *b->loads);
    b->op_ns = calloc(n_ops, sizeof *b->op_ns);
    b->first = malloc((b->m->n_tensors + (size_t)1) * sizeof *b->first);
    b->touches = malloc((count_touches(b) + 1) * sizeof *b->touches);
    b->place = malloc((all->gaps.count + 1) * sizeof *b->place);
    if (!b->loads || !b->op_ns || !b->first || !b->touches || !b->place) return tide__fail_memory();
    note_touches(b);
    TIDE_TRY(measure(b));
    return keep_gaps(b, all);
}

static void end(builder *b) {
    free(b->loads);
    free(b->op_ns);
    free(b->first);
    free(b->touches);
    free(b->place);
    tide__vec_free(&b->gaps);
}

static tide_status fill(const builder *b, tide__transfers *t) {
    size_t n = t->swaps.gaps.count + 1;
    t->model = b->m;
    t->chosen = calloc(n, sizeof *t->chosen);
    t->price = calloc(n, sizeof *t->price);
    return t->chosen && t->price ? TIDE_OK : tide__fail_memory();
}

tide_status tide__waits_init(const tide__policy_input *in, const tide__sketch *s, tide__transfers *t) {
    tide__swaps all;
    tide__swaps_options options = {.fast_ops = true};
    builder b = {.in = in, .s = s, .m = s->model};
    *t = (tide__transfers){0};
    if (b.m->n_ops == 0) return tide__fail(TIDE_E_ARGUMENT, "a program without ops");
    TIDE_TRY(tide__swap_least_bytes(in, &options.min_bytes));
    TIDE_TRY(tide__swaps_init(&all, in, &options));
    tide_status status = begin(&b, &all);
    options.op_ns = b.op_ns;
    options.base_loads = b.loads;
    options.gaps = b.gaps.data;
    options.n_gaps = b.gaps.count;
    if (status == TIDE_OK) status = tide__swaps_init(&t->swaps, in, &options);
    if (status == TIDE_OK) status = fill(&b, t);
    if (status != TIDE_OK) tide__transfers_deinit(t);
    tide__swaps_deinit(&all);
    end(&b);
    return status;
}
