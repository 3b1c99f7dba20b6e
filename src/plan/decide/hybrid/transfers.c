/* See transfers.h. */
#include "plan/decide/hybrid/transfers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/rng.h"
#include "base/size.h"

/* ---- life ---- */

static double own_price(const tide__model *m, const tide__swap_gap *g) {
    tide_id producer = m->producer[g->tensor];
    if (g->head != TIDE_NONE || producer == TIDE_NONE || !m->rerunnable[producer]) return -1;
    return (double)m->cost_ns[producer] / (double)(g->size_bytes + 1);
}

/* What cannot be made again is as dear as the dearest. */
static void set_prices(tide__transfers *t) {
    double most = 0;
    size_t n = t->swaps.gaps.count;
    for (size_t i = 0; i < n; i++) {
        t->price[i] = own_price(t->model, &t->swaps.gaps.data[i]);
        most = t->price[i] > most ? t->price[i] : most;
    }
    for (size_t i = 0; i < n; i++) t->price[i] = t->price[i] < 0 || most <= 0 ? 1 : t->price[i] / most;
}

tide_status tide__transfers_init(const tide__policy_input *in, const tide__model *model, tide__transfers *t) {
    tide__swaps_options options = {.fast_ops = true};
    *t = (tide__transfers){.model = model, .stretch = 1};
    TIDE_TRY(tide__swap_least_bytes(in, &options.min_bytes));
    TIDE_TRY(tide__swaps_init(&t->swaps, in, &options));
    size_t n = t->swaps.gaps.count + 1;
    tide__array(&t->arrays, t->chosen, n);
    tide__array(&t->arrays, t->price, n);
    tide__array(&t->arrays, t->order, n);
    tide__array(&t->arrays, t->first_touch, model->n_tensors + (size_t)1);
    tide_status status = tide__arrays_check(&t->arrays);
    if (status != TIDE_OK) {
        tide__transfers_deinit(t);
        return status;
    }
    for (size_t i = 0; i + 1 < n; i++) t->chosen[i] = t->swaps.gaps.data[i].forced;
    set_prices(t);
    return TIDE_OK;
}

void tide__transfers_deinit(tide__transfers *t) {
    tide__swaps_deinit(&t->swaps);
    tide__arrays_free(&t->arrays);
    tide__vec_free(&t->touches);
    tide__vec_free(&t->reruns);
    tide__vec_free(&t->moves);
    *t = (tide__transfers){0};
}

/* ---- into the sketch ---- */

static int by_key(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static tide_status add_event(tide__transfers *t, uint32_t slot, tide__event_kind kind, tide_id tensor) {
    return slot == TIDE_NONE ? TIDE_OK : tide__vec_push(&t->moves, tide__event_key(slot, kind, tensor));
}

static tide_status add_gap(tide__transfers *t, tide__sketch *s, uint32_t i) {
    const tide__swap_gap *g = &t->swaps.gaps.data[i];
    TIDE_TRY(add_event(t, t->swaps.save_slot[i], TIDE__EVENT_SAVE, g->tensor));
    if (g->head == TIDE_NONE) {
        if (g->to == TIDE_NONE) s->away_last[g->tensor] = true;
        if (g->from == 0) s->away_first[g->tensor] = s->model->present[g->tensor];
        return add_event(t, t->swaps.load_slot[i], TIDE__EVENT_LOAD, g->tensor);
    }
    s->away_last[g->tensor] = s->model->keep[g->tensor];
    s->away_first[g->head] = s->model->present[g->head];
    return g->to == TIDE_NONE ? TIDE_OK : add_event(t, t->swaps.load_slot[i], TIDE__EVENT_LOAD, g->head);
}

static tide_status merge(tide__transfers *t, tide__sketch *s) {
    const tide__keys *a = &t->reruns, *b = &t->moves;
    s->extra.count = 0;
    TIDE_TRY(tide__vec_reserve(&s->extra, a->count + b->count));
    for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
        bool from_a = k == b->count || (i < a->count && a->data[i] < b->data[k]);
        s->extra.data[s->extra.count++] = from_a ? a->data[i++] : b->data[k++];
    }
    return TIDE_OK;
}

static tide_status note_reruns(tide__transfers *t, const tide__sketch *s) {
    t->reruns.count = 0;
    for (size_t i = 0; i < s->extra.count; i++)
        if (tide__event_kind_of(s->extra.data[i]) == TIDE__EVENT_RUN)
            TIDE_TRY(tide__vec_push(&t->reruns, s->extra.data[i]));
    return TIDE_OK;
}

tide_status tide__transfers_apply(tide__transfers *t, tide__sketch *s) {
    memset(s->away_first, 0, s->model->n_tensors * sizeof *s->away_first);
    memset(s->away_last, 0, s->model->n_tensors * sizeof *s->away_last);
    t->moves.count = 0;
    TIDE_TRY(note_reruns(t, s));
    for (uint32_t i = 0; i < t->swaps.gaps.count; i++)
        if (t->chosen[i]) TIDE_TRY(add_gap(t, s, i));
    if (t->moves.count) qsort(t->moves.data, t->moves.count, sizeof *t->moves.data, by_key);
    return merge(t, s);
}

/* Every slot takes longer by one factor; what that adds is waiting, at its end. */
static void stretch_clock(tide__transfers *t) {
    uint64_t was = t->swaps.slot_ns[0], now = was;
    for (uint32_t k = 1; k <= t->model->n_ops; k++) {
        uint64_t took = t->swaps.slot_ns[k] - was;
        uint64_t wait = (uint64_t)((t->stretch - 1) * (double)took);
        was = t->swaps.slot_ns[k];
        now = tide__add_capped(now, tide__add_capped(took, wait));
        t->swaps.slot_ns[k] = now;
        t->swaps.wait_ns[k] = wait;
    }
}

/* The engine's own clock, and what the re-runs before each slot add. */
static void set_clock(tide__transfers *t, const tide__sketch *s) {
    const tide__model *m = t->model;
    uint64_t added = 0;
    size_t i = 0;
    tide__swaps_reset_times(&t->swaps);
    for (uint32_t k = 0; k < m->n_ops; k++) {
        for (; i < s->extra.count && tide__event_slot(s->extra.data[i]) <= k; i++)
            if (tide__event_kind_of(s->extra.data[i]) == TIDE__EVENT_RUN)
                added = tide__add_capped(added, m->cost_ns[tide__event_id(s->extra.data[i])]);
        t->swaps.slot_ns[k + 1] = tide__add_capped(t->swaps.slot_ns[k + 1], added);
    }
    if (t->stretch > 1) stretch_clock(t);
}

/* ---- what re-runs touch ---- */

static tide_status note_touch(tide__transfers *t, tide_id tensor, uint32_t slot, bool writes) {
    tide__touch touch = {.slot = slot, .writes = writes, .next = t->first_touch[tensor]};
    t->first_touch[tensor] = (uint32_t)t->touches.count;
    return tide__vec_push(&t->touches, touch);
}

static tide_status note_touches(tide__transfers *t, const tide__sketch *s) {
    const tide__model *m = t->model;
    memset(t->first_touch, 0xff, m->n_tensors * sizeof *t->first_touch);
    t->touches.count = 0;
    for (size_t i = s->extra.count; i-- > 0;) {
        tide_id op = tide__event_id(s->extra.data[i]);
        uint32_t slot = tide__event_slot(s->extra.data[i]);
        if (tide__event_kind_of(s->extra.data[i]) != TIDE__EVENT_RUN) continue;
        for (uint32_t k = m->read_at[op]; k < m->read_at[op + 1]; k++)
            TIDE_TRY(note_touch(t, m->reads[k], slot, false));
        for (uint32_t k = m->write_at[op]; k < m->write_at[op + 1]; k++)
            TIDE_TRY(note_touch(t, m->writes[k], slot, true));
    }
    return TIDE_OK;
}

/* The first touch from a slot on; NULL: none. */
static const tide__touch *touch_from(const tide__transfers *t, tide_id tensor, uint32_t slot) {
    for (uint32_t i = t->first_touch[tensor]; i != TIDE_NONE; i = t->touches.data[i].next)
        if (t->touches.data[i].slot >= slot) return &t->touches.data[i];
    return NULL;
}

/* A re-run that reads a value while its LOAD is on the way needs it sooner; one that makes it makes the LOAD needless. */
static bool heed_touch(tide__transfers *t, uint32_t gap) {
    tide__swaps *w = &t->swaps;
    const tide__swap_gap *g = &w->gaps.data[gap];
    if (!t->chosen[gap] || g->to == TIDE_NONE) return false;
    const tide__touch *touch = touch_from(t, g->head == TIDE_NONE ? g->tensor : g->head, w->load_slot[gap]);
    if (!touch || touch->slot > w->need_slot[gap] || (!touch->writes && touch->slot == w->need_slot[gap])) return false;
    if (touch->writes && !g->forced)
        t->chosen[gap] = false;
    else
        w->need_slot[gap] = touch->slot;
    return true;
}

static bool heed_touches(tide__transfers *t) {
    bool changed = false;
    for (uint32_t i = 0; i < t->swaps.gaps.count; i++) changed = heed_touch(t, i) || changed;
    if (changed) tide__swaps_reorder(&t->swaps);
    return changed;
}

static void forget_needs(tide__transfers *t) {
    for (size_t i = 0; i < t->swaps.gaps.count; i++) t->swaps.need_slot[i] = t->swaps.gaps.data[i].to;
    tide__swaps_reorder(&t->swaps);
}

/* Idle gaps that are left count. LOADs that start earlier may meet earlier re-runs; after some rounds that is enough. */
enum { MAX_NEEDS = 6 };

static uint32_t evaluate(tide__transfers *t, const tide__sketch *s, bool settle) {
    tide__swaps_outcome o;
    int rounds = 0;
    do {
        o = settle ? tide__swaps_settle(&t->swaps, t->chosen, s->target_bytes)
                   : tide__swaps_evaluate(&t->swaps, t->chosen, s->target_bytes);
        t->work += t->model->n_ops + t->swaps.gaps.count;
    } while (o.n_idle == 0 && t->touches.count && rounds++ < MAX_NEEDS && heed_touches(t));
    return o.n_idle;
}

static tide_status apply_and_build(tide__transfers *t, tide__sketch *s) {
    t->work += 4 * (uint64_t)s->n_events;
    TIDE_TRY(tide__transfers_apply(t, s));
    return tide__sketch_build(s);
}

tide_status tide__transfers_sync(tide__transfers *t, tide__sketch *s) {
    set_clock(t, s);
    TIDE_TRY(note_touches(t, s));
    forget_needs(t);
    evaluate(t, s, true);
    return apply_and_build(t, s);
}

/* ---- more of them ---- */

static int by_score(const void *a, const void *b) {
    const tide__gap_rank *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->gap < y->gap ? -1 : x->gap > y->gap;
}

/* Events above the target that an absence could cover. */
static uint32_t covered(const tide__sketch *s, const tide__swap_gap *g) {
    uint32_t n = s->model->n_ops, all = s->over[s->n_events];
    if (g->head == TIDE_NONE && g->to != TIDE_NONE) return s->over[s->slot_at[g->to]] - s->over[s->slot_at[g->from]];
    return all - s->over[s->slot_at[g->from]] + (g->to == TIDE_NONE ? 0 : s->over[s->slot_at[g->to < n ? g->to : n]]);
}

/* Relief per transfer time; all transfers have about one rate, so that leaves the length. */
static size_t rank(tide__transfers *t, const tide__sketch *s, tide__transfers_taste taste) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->swaps.gaps.count; i++) {
        const tide__swap_gap *g = &t->swaps.gaps.data[i];
        uint32_t length = t->chosen[i] ? 0 : covered(s, g);
        if (length == 0) continue;
        double rate = (double)g->size_bytes / (double)(g->in_ns + (g->clean ? 0 : g->out_ns) + 1);
        double noise = 1 + taste.noise * (double)tide__random_unit(taste.seed, 3, i);
        t->order[n++] = (tide__gap_rank){.score = rate * length * noise * pow(t->price[i], taste.power), .gap = i};
    }
    qsort(t->order, n, sizeof *t->order, by_score);
    return n;
}

/* Adds one gap and looks; it stays if it hides and lowers the excess. */
static tide_status try_gap(tide__transfers *t, tide__sketch *s, uint32_t gap, bool *stays) {
    double before = s->excess;
    t->chosen[gap] = true;
    *stays = evaluate(t, s, false) == 0;
    if (*stays) {
        TIDE_TRY(apply_and_build(t, s));
        *stays = s->excess < before;
    }
    t->chosen[gap] = *stays;
    return TIDE_OK;
}

/* Failures after which the channel counts as full. */
enum { MAX_FAILURES = 6 };

tide_status tide__transfers_fill(tide__transfers *t, tide__sketch *s, tide__transfers_taste taste) {
    int failures = 0;
    bool stays = true;
    size_t n = rank(t, s, taste);
    for (size_t i = 0; i < n && failures < MAX_FAILURES && !tide__sketch_fits(s); i++) {
        double excess = s->excess;
        TIDE_TRY(try_gap(t, s, t->order[i].gap, &stays));
        if (stays) continue;
        failures++;
        if (s->excess != excess) TIDE_TRY(tide__transfers_sync(t, s)); /* as it was before the trial */
    }
    return stays ? TIDE_OK : tide__transfers_sync(t, s);
}
