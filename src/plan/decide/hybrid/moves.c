/* See moves.h. Starts from the best prefix by one of AutoSwap's scores, or from the dearest gaps, and lets the search
 * over swaps improve it. */
#include "plan/decide/hybrid/moves.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/autoswap_scores.h"
#include "plan/decide/swap_choice.h"
#include "plan/decide/swap_search.h"

/* Slots above which one score has to do, and ops count as fast as they can be. */
enum { LARGE = 6000 };

typedef struct mover {
    const tide__policy_input *in;
    const tide__model *model;
    tide__swaps swaps;
    uint64_t target_bytes;
    double *scores, *best_scores; /* per gap */
    bool *chosen, *best;          /* per gap */
    uint64_t *op_ns, *base_loads; /* per slot: the step with its re-runs */
    double least;                 /* excess of `best` */
} mover;

/* ---- the step with its re-runs ---- */

static tide_status measure_step(mover *m, const tide__keys *reruns) {
    const tide__model *model = m->model;
    tide__sketch *s;
    TIDE_TRY(tide__sketch_create(model, m->target_bytes, &s));
    tide_status status = tide__keys_copy(reruns, &s->extra);
    if (status == TIDE_OK) status = tide__sketch_build(s);
    for (uint32_t k = 0; status == TIDE_OK && k <= model->n_ops; k++) {
        m->op_ns[k] = m->base_loads[k] = 0;
        for (uint32_t e = s->slot_at[k]; e < s->slot_at[k + 1]; e++) {
            m->op_ns[k] += model->cost_ns[tide__event_id(s->keys[e])];
            m->base_loads[k] = tide__max_u64(m->base_loads[k], s->load[e]);
        }
        if (k == model->n_ops) m->base_loads[k] = tide__max_u64(m->base_loads[k], s->load[s->n_events]);
    }
    tide__sketch_destroy(s);
    return status;
}

/* busy[i]: a re-run reads or writes the gap's value inside it, so that it is no gap any more. */
static void mark_busy(const mover *m, const tide__keys *reruns, const tide__swaps *swaps, bool *busy,
                      uint32_t *first_rerun, uint32_t *last_rerun) {
    const tide__model *model = m->model;
    memset(first_rerun, 0xff, model->n_tensors * sizeof *first_rerun);
    memset(last_rerun, 0, model->n_tensors * sizeof *last_rerun);
    for (size_t i = 0; i < reruns->count; i++) {
        uint32_t slot = tide__event_slot(reruns->data[i]), op = tide__event_id(reruns->data[i]);
        for (uint32_t k = model->read_at[op]; k < model->read_at[op + 1]; k++) {
            tide_id t = model->reads[k];
            if (first_rerun[t] == TIDE_NONE) first_rerun[t] = slot;
            last_rerun[t] = slot;
        }
        for (uint32_t k = model->write_at[op]; k < model->write_at[op + 1]; k++) {
            tide_id t = model->writes[k];
            if (first_rerun[t] == TIDE_NONE) first_rerun[t] = slot;
            last_rerun[t] = slot;
        }
    }
    for (size_t i = 0; i < swaps->gaps.count; i++) {
        const tide__swap_gap *g = &swaps->gaps.data[i];
        uint32_t to = g->head != TIDE_NONE || g->to == TIDE_NONE ? model->n_ops : g->to;
        busy[i] =
            first_rerun[g->tensor] != TIDE_NONE && first_rerun[g->tensor] <= to && last_rerun[g->tensor] >= g->from;
        if (g->head != TIDE_NONE && first_rerun[g->head] != TIDE_NONE) busy[i] = true;
    }
}

/* ---- set up ---- */

static tide_status open_swaps(mover *m, const tide__keys *reruns) {
    size_t n_ops = m->model->n_ops + (size_t)1, n_tensors = m->model->n_tensors + (size_t)1;
    tide__swaps all = {0};
    tide__swaps_options options = {.fast_ops = m->model->n_ops > LARGE};
    TIDE_TRY(tide__swap_least_bytes(m->in, &options.min_bytes));
    m->op_ns = calloc(n_ops, sizeof *m->op_ns);
    m->base_loads = calloc(n_ops, sizeof *m->base_loads);
    uint32_t *first = malloc(n_tensors * sizeof *first), *last = malloc(n_tensors * sizeof *last);
    tide__swap_gap *gaps = NULL;
    bool *busy = NULL;
    tide_status status = m->op_ns && m->base_loads && first && last ? TIDE_OK : tide__fail_memory();
    if (status != TIDE_OK) goto done;
    if (reruns->count == 0) {
        status = tide__swaps_init(&m->swaps, m->in, &options);
        goto done;
    }
    TIDE_TRY_GOTO(measure_step(m, reruns), done);
    TIDE_TRY_GOTO(tide__swaps_init(&all, m->in, &options), done);
    gaps = malloc((all.gaps.count + 1) * sizeof *gaps);
    busy = calloc(all.gaps.count + 1, sizeof *busy);
    if (!gaps || !busy) {
        status = tide__fail_memory();
        goto done;
    }
    mark_busy(m, reruns, &all, busy, first, last);
    options.n_gaps = 0;
    for (size_t i = 0; i < all.gaps.count; i++) {
        if (all.gaps.data[i].across != TIDE_NONE) busy[i] = true; /* its index would change */
        if (!busy[i] || all.gaps.data[i].forced) gaps[options.n_gaps++] = all.gaps.data[i];
    }
    options.op_ns = m->op_ns;
    options.base_loads = m->base_loads;
    options.gaps = gaps;
    status = tide__swaps_init(&m->swaps, m->in, &options);
done:
    tide__swaps_deinit(&all);
    free(first);
    free(last);
    free(gaps);
    free(busy);
    return status;
}

static tide_status open(mover *m, const tide__keys *reruns) {
    TIDE_TRY(open_swaps(m, reruns));
    size_t n = m->swaps.gaps.count + 1;
    m->scores = calloc(n, sizeof *m->scores);
    m->best_scores = calloc(n, sizeof *m->best_scores);
    m->chosen = calloc(n, sizeof *m->chosen);
    m->best = calloc(n, sizeof *m->best);
    return m->scores && m->best_scores && m->chosen && m->best ? TIDE_OK : tide__fail_memory();
}

static void close(mover *m) {
    tide__swaps_deinit(&m->swaps);
    free(m->scores);
    free(m->best_scores);
    free(m->chosen);
    free(m->best);
    free(m->op_ns);
    free(m->base_loads);
}

/* ---- the choice ---- */

static void keep(mover *m, double excess) {
    m->least = excess;
    memcpy(m->best, m->chosen, m->swaps.gaps.count * sizeof *m->best);
}

static tide_status start(mover *m) {
    int first = m->model->n_ops > LARGE ? TIDE__SWAP_SWDOA : 0;
    for (int k = first; k < TIDE__SWAP_N_SCORES; k++) {
        tide__swaps_outcome o;
        TIDE_TRY(tide__swap_scores(&m->swaps, (tide__swap_score)k, m->scores));
        TIDE_TRY(tide__swaps_choose_prefix(&m->swaps, m->scores, m->target_bytes, m->chosen, &o));
        if (k > first && o.excess >= m->least) continue;
        keep(m, o.excess);
        memcpy(m->best_scores, m->scores, m->swaps.gaps.count * sizeof *m->scores);
        if (o.excess <= 0) break;
    }
    return TIDE_OK;
}

/* ns per byte to make a gap's value again; what cannot be made again comes first. */
static double price(const mover *m, const tide__swap_gap *g) {
    tide_id producer = m->model->producer[g->tensor];
    if (g->head != TIDE_NONE || producer == TIDE_NONE || !m->model->rerunnable[producer]) return 1e18;
    return (double)m->model->cost_ns[producer] / (double)(g->size_bytes + 1);
}

typedef struct priced {
    double price;
    uint32_t gap;
} priced;

static int dearest_first(const void *a, const void *b) {
    const priced *x = a, *y = b;
    if (x->price != y->price) return x->price > y->price ? -1 : 1;
    return x->gap < y->gap ? -1 : x->gap > y->gap;
}

/* One gap after the other, or some at a time where there are many; kept if they hide and relieve. */
enum { MAX_TRIALS = 400 };

static tide_status start_dearest(mover *m) {
    size_t n = m->swaps.gaps.count;
    priced *order = malloc((n + 1) * sizeof *order);
    if (!order) return tide__fail_memory();
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (priced){.price = price(m, &m->swaps.gaps.data[i]), .gap = i};
        m->chosen[i] = m->swaps.gaps.data[i].forced;
    }
    qsort(order, n, sizeof *order, dearest_first);
    keep(m, tide__swaps_settle(&m->swaps, m->chosen, m->target_bytes).excess);
    size_t step = n / MAX_TRIALS + 1;
    for (size_t i = 0; i < n && m->least > 0; i += step) {
        memcpy(m->chosen, m->best, n * sizeof *m->best);
        for (size_t k = i; k < n && k < i + step; k++) m->chosen[order[k].gap] = true;
        tide__swaps_outcome o = step > 1 ? tide__swaps_settle(&m->swaps, m->chosen, m->target_bytes)
                                         : tide__swaps_evaluate(&m->swaps, m->chosen, m->target_bytes);
        if (o.n_idle == 0 && o.excess < m->least) keep(m, o.excess);
    }
    free(order);
    return TIDE_OK;
}

static tide_status choose(mover *m, const tide__keys *reruns, tide__moves_way way, uint64_t work,
                          tide__decisions *out) {
    tide__swaps_outcome o;
    tide__swap_search_options search = {.target_bytes = m->target_bytes, .work = work};
    TIDE_TRY(open(m, reruns));
    TIDE_TRY(way == TIDE__MOVES_DEAREST ? start_dearest(m) : start(m));
    memcpy(m->chosen, m->best, m->swaps.gaps.count * sizeof *m->best);
    o = tide__swaps_settle(&m->swaps, m->chosen, m->target_bytes);
    if (way != TIDE__MOVES_DEAREST && o.excess > 0) TIDE_TRY(tide__swap_search(&m->swaps, &search, m->chosen, &o));
    if (way == TIDE__MOVES_WAIT && o.excess > 0)
        TIDE_TRY(tide__swaps_choose_waits(&m->swaps, m->best_scores, m->target_bytes, m->chosen));
    return tide__swaps_decide(&m->swaps, m->chosen, out);
}

tide_status tide__moves_choose(const tide__policy_input *in, const tide__model *model, const tide__keys *reruns,
                               tide__moves_way way, uint64_t work, tide__decisions *out) {
    if (tide__swap_tier(in->machine) == TIDE_NONE) return TIDE_OK;
    mover m = {.in = in, .model = model, .target_bytes = in->target_bytes};
    tide_status status = choose(&m, reruns, way, work, out);
    close(&m);
    return status;
}

/* ---- into the sketch ---- */

static void note_away(tide__sketch *s, const tide__swap *w) {
    if (w->load_slot == TIDE_NONE) s->away_last[w->tensor] = s->model->keep[w->tensor];
    if (w->save_slot == TIDE_NONE && s->model->present[w->tensor]) s->away_first[w->tensor] = true;
}

/* A PRESENT value that an op uses before its first LOAD was there all the time: the tier has a clean copy beside it. */
static void correct_away(tide__sketch *s, const tide__decisions *d) {
    const tide__model *m = s->model;
    for (size_t i = 0; i < d->swaps.count; i++) {
        const tide__swap *w = &d->swaps.data[i];
        if (!s->away_first[w->tensor] || w->load_slot == TIDE_NONE) continue;
        for (uint32_t o = 0; o < w->load_slot && o < m->n_ops && s->away_first[w->tensor]; o++)
            for (uint32_t k = m->read_at[o]; k < m->read_at[o + 1]; k++)
                if (m->reads[k] == w->tensor) s->away_first[w->tensor] = false;
    }
}

tide_status tide__moves_apply(tide__sketch *s, const tide__decisions *d, const tide__keys *reruns) {
    memset(s->away_first, 0, s->model->n_tensors * sizeof *s->away_first);
    memset(s->away_last, 0, s->model->n_tensors * sizeof *s->away_last);
    TIDE_TRY(tide__keys_copy(reruns, &s->extra));
    for (size_t i = 0; i < d->swaps.count; i++) {
        const tide__swap *w = &d->swaps.data[i];
        if (w->save_slot != TIDE_NONE)
            TIDE_TRY(tide__sketch_add(s, tide__event_key(w->save_slot, TIDE__EVENT_SAVE, w->tensor)));
        if (w->load_slot != TIDE_NONE)
            TIDE_TRY(tide__sketch_add(s, tide__event_key(w->load_slot, TIDE__EVENT_LOAD, w->tensor)));
        note_away(s, w);
    }
    correct_away(s, d);
    return TIDE_OK;
}
