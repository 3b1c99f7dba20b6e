/* See swap_choice.h. */
#include "plan/decide/swaps/swap_choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/decide/swaps/place_heap.h"
#include "plan/decide/swaps/swap_cover.h"
#include "plan/decide/swaps/swap_tiers.h"

/* ---- prefixes ---- */

typedef struct ranked {
    double score;
    uint32_t gap;
} ranked;

static int by_score(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->gap < y->gap ? -1 : x->gap > y->gap;
}

typedef struct chooser {
    tide__swaps *s;
    uint64_t target_bytes;
    ranked *order;
    uint32_t *gaps; /* the same without the scores */
    size_t n;
    bool *chosen;
    uint64_t *change;    /* scratch: per slot */
    bool is_bounded;     /* tiers have the room they have */
    tide__arrays arrays; /* owns the arrays above */
} chooser;

/* over[k]: slots before k above the target when nothing is absent. */
static bool covers_peak(const tide__swaps *s, const uint32_t *over, const tide__swap_gap *g) {
    if (g->head == TIDE_NONE) return over[tide__swap_gap_end(s, g)] > over[g->from];
    return over[s->n_ops + 1] > over[g->from] || over[g->to == TIDE_NONE ? g->from : g->to] > 0;
}

static tide_status rank(chooser *c, const double *scores) {
    const tide__swaps *s = c->s;
    uint32_t *over;
    tide__array(&c->arrays, over, s->n_ops + (size_t)2);
    tide__array(&c->arrays, c->order, s->gaps.count + 1);
    tide__array(&c->arrays, c->gaps, s->gaps.count + 1);
    tide__array(&c->arrays, c->change, s->n_ops + (size_t)2);
    TIDE_TRY(tide__arrays_check(&c->arrays));
    for (uint32_t k = 0; k <= s->n_ops; k++) over[k + 1] = over[k] + (s->base_loads[k] > c->target_bytes);
    for (uint32_t i = 0; i < s->gaps.count; i++)
        if (!s->gaps.data[i].forced && covers_peak(s, over, &s->gaps.data[i]))
            c->order[c->n++] = (ranked){scores[i], i};
    qsort(c->order, c->n, sizeof *c->order, by_score);
    for (size_t i = 0; i < c->n; i++) c->gaps[i] = c->order[i].gap;
    return TIDE_OK;
}

static void mark_prefix(chooser *c, size_t length) {
    for (size_t i = 0; i < c->s->gaps.count; i++) c->chosen[i] = c->s->gaps.data[i].forced;
    for (size_t i = 0; i < length; i++) c->chosen[c->gaps[i]] = true;
}

/* For the tiers: the higher score has precedence then. */
static bool is_too_much(tide__swaps *s, const bool *chosen, uint64_t target_bytes) {
    if (!s->limited) return false;
    (void)tide__swaps_evaluate(s, chosen, target_bytes);
    return s->n_refused > 0;
}

static tide__swaps_outcome try_prefix(chooser *c, size_t length) {
    mark_prefix(c, length);
    if (c->is_bounded && is_too_much(c->s, c->chosen, c->target_bytes))
        tide__swaps_admit(c->s, c->gaps, length, c->target_bytes, c->chosen);
    return tide__swaps_settle(c->s, c->chosen, c->target_bytes);
}

static bool fits(const tide__swaps_outcome *o) { return o->excess <= 0; }

/* Lengths that are tried one after the other: fewer on large programs, where each takes longer. */
enum { MAX_PREFIXES = 256, MIN_PREFIXES = 16, PREFIX_WORK = 160 * 1000 };
static size_t count_prefixes(const chooser *c) {
    size_t n = PREFIX_WORK / (c->s->n_ops + c->s->gaps.count + 1);
    return n > MAX_PREFIXES ? MAX_PREFIXES : n < MIN_PREFIXES ? MIN_PREFIXES : n;
}

/* None of the tried lengths fits: the one with the least excess, looked for around `best` with smaller and smaller
 * steps. */
static tide__swaps_outcome find_least(chooser *c, size_t step, size_t best, double least) {
    while (step > 1) {
        step = (step + 1) / 2;
        size_t lengths[] = {best > step ? best - step : 0, best + step < c->n ? best + step : c->n};
        for (int k = 0; k < 2; k++) {
            tide__swaps_outcome o = try_prefix(c, lengths[k]);
            if (o.excess < least) least = o.excess, best = lengths[k];
        }
    }
    return try_prefix(c, best);
}

/* Between two lengths, of which the longer one fits, the shortest is found by halving. */
static tide__swaps_outcome find_shortest(chooser *c, size_t fails, size_t length) {
    while (length > fails + 1) {
        size_t middle = fails + (length - fails) / 2;
        tide__swaps_outcome o = try_prefix(c, middle);
        if (fits(&o))
            length = middle;
        else
            fails = middle;
    }
    return try_prefix(c, length);
}

/* May a prefix fit? Not if the load stays above the target with its gaps absent for as long as they last. */
static bool may_fit(chooser *c, size_t length) {
    const tide__swaps *s = c->s;
    uint64_t change = 0; /* as all of c->change: modulo 2^64 */
    memset(c->change, 0, (s->n_ops + (size_t)2) * sizeof *c->change);
    mark_prefix(c, length);
    for (size_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        if (!c->chosen[i]) continue;
        bool is_across = g->head != TIDE_NONE; /* from before the step on, and to after it */
        uint32_t never = is_across ? g->from : s->n_ops + 1;
        c->change[g->from] += g->size_bytes;
        if (is_across) c->change[0] += g->size_bytes;
        c->change[g->to == TIDE_NONE ? never : g->to] -= g->size_bytes;
    }
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        change += c->change[k];
        if (s->base_loads[k] > c->target_bytes && s->base_loads[k] - c->target_bytes > change) return false;
    }
    return true;
}

/* The least of the lengths 0, step, 2 step ... that may fit; 0 where none does. */
static size_t first_that_may_fit(chooser *c, size_t step) {
    size_t low = 0, high = (c->n + step - 1) / step;
    if (!may_fit(c, c->n)) return 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (may_fit(c, tide__min_u64(middle * step, c->n)))
            high = middle;
        else
            low = middle + 1;
    }
    return tide__min_u64(low * step, c->n);
}

static tide__swaps_outcome try_prefixes(chooser *c) {
    size_t step = c->n / count_prefixes(c) + 1, first = first_that_may_fit(c, step), length = first;
    size_t best = length, fails = length ? (length - 1) / step * step : 0;
    tide__swaps_outcome o = try_prefix(c, length);
    double least = o.excess;
    while (!fits(&o) && length < c->n) {
        fails = length;
        length = length + step < c->n ? length + step : c->n;
        o = try_prefix(c, length);
        if (o.excess < least) least = o.excess, best = length;
    }
    if (fits(&o)) return length ? find_shortest(c, fails, length) : o;
    for (length = first; length > 0;) { /* of those that cannot fit, one may have the least excess */
        length = (length - 1) / step * step;
        o = try_prefix(c, length);
        if (o.excess <= least) least = o.excess, best = length;
    }
    return find_least(c, step, best, least);
}

/* As if the best tier had room for all; then values are spread over the tiers there are, and, as slower ones leave more
 * to be chosen, once more. */
static tide_status spread(chooser *c) {
    c->is_bounded = false;
    TIDE_TRY(tide__swaps_gather(c->s));
    for (int i = 0; i < 2; i++) {
        (void)try_prefixes(c);
        TIDE_TRY(tide__swaps_spread(c->s, c->chosen));
        c->is_bounded = true;
    }
    return TIDE_OK;
}

tide_status tide__swaps_choose_prefix(tide__swaps *s, const double *scores, uint64_t target_bytes, bool *chosen,
                                      tide__swaps_outcome *out) {
    chooser c = {.s = s, .target_bytes = target_bytes, .chosen = chosen, .is_bounded = true};
    tide_status status = rank(&c, scores);
    if (status == TIDE_OK && s->limited && !s->spread && s->tiers.n > 1) status = spread(&c);
    if (status == TIDE_OK) *out = try_prefixes(&c);
    tide__arrays_free(&c.arrays);
    return status;
}

/* ---- waiting ---- */

typedef struct tightener {
    tide__swaps *s;
    uint64_t target_bytes;
    uint32_t *loaded; /* stack of gaps whose LOAD has started but whose use has not: the latest on top */
    size_t n_loaded;
    uint32_t *delayed; /* LOADs that this slot puts off */
    size_t n_delayed;
    uint32_t *by_load; /* chosen gaps by ascending load_slot */
    size_t n_by_load, next_load;
    uint32_t *by_from; /* places in save_order, by ascending `from` of their gaps */
    uint32_t next_from;
    uint32_t *saves; /* heap of places in save_order whose bytes somebody could have: the first on top */
    size_t n_saves;
    ranked *keys;    /* scratch */
    int64_t *change; /* per slot: of the load, by what was tightened */
    int64_t now;     /* their sum up to here */
    bool fits;
    tide__arrays arrays; /* owns the arrays above */
} tightener;

static uint64_t load_now(const tightener *t, uint32_t k) { return (uint64_t)((int64_t)t->s->loads[k] + t->now); }

/* The next SAVE to end among those whose bytes somebody could have now; TIDE_NONE: none. */
static uint32_t pending_save(tightener *t, uint32_t k) {
    const tide__swaps *s = t->s;
    for (; t->next_from < s->n_saves; t->next_from++) {
        if (s->gaps.data[s->save_order[t->by_from[t->next_from]]].from > k) break;
        tide__place_heap_push(t->saves, &t->n_saves, t->by_from[t->next_from]);
    }
    while (t->n_saves > 0 && s->free_slot[s->save_order[t->saves[0]]] <= k)
        (void)tide__place_heap_pop(t->saves, &t->n_saves);
    return t->n_saves > 0 ? s->save_order[t->saves[0]] : TIDE_NONE;
}

/* The last LOAD to start among those that nobody needs yet. */
static uint32_t early_load(tightener *t, uint32_t k) {
    while (t->n_loaded > 0 && t->s->gaps.data[t->loaded[t->n_loaded - 1]].to <= k) t->n_loaded--;
    return t->n_loaded > 0 ? t->loaded[t->n_loaded - 1] : TIDE_NONE;
}

static void wait_for_save(tightener *t, uint32_t gap, uint32_t k) {
    tide__swaps *s = t->s;
    int64_t bytes = (int64_t)s->gaps.data[gap].size_bytes;
    t->now -= bytes;
    t->change[s->free_slot[gap]] += bytes;
    s->save_slot[gap] = s->free_slot[gap] = k;
}

static void put_off_load(tightener *t, uint32_t gap, uint32_t k) {
    int64_t bytes = (int64_t)t->s->gaps.data[gap].size_bytes;
    t->n_loaded--;
    t->delayed[t->n_delayed++] = gap;
    t->now -= bytes;
    t->change[k + 1] += bytes;
    t->s->load_slot[gap] = k + 1;
}

static bool relieve(tightener *t, uint32_t k) {
    const uint64_t *slot_ns = t->s->slot_ns;
    uint32_t save = pending_save(t, k), load = early_load(t, k);
    if (save == TIDE_NONE && load == TIDE_NONE) return false;
    uint64_t save_ns = save == TIDE_NONE ? UINT64_MAX : slot_ns[t->s->free_slot[save]] - slot_ns[k];
    uint64_t load_ns = load == TIDE_NONE ? UINT64_MAX : slot_ns[k + 1] - slot_ns[t->s->load_slot[load]];
    if (save_ns <= load_ns)
        wait_for_save(t, save, k);
    else
        put_off_load(t, load, k);
    return true;
}

static void tighten_slots(tightener *t) {
    tide__swaps *s = t->s;
    for (uint32_t k = 0; k < s->n_ops; k++) {
        t->now += t->change[k];
        while (t->n_delayed > 0) t->loaded[t->n_loaded++] = t->delayed[--t->n_delayed];
        for (; t->next_load < t->n_by_load && s->load_slot[t->by_load[t->next_load]] <= k; t->next_load++)
            t->loaded[t->n_loaded++] = t->by_load[t->next_load];
        while (load_now(t, k) > t->target_bytes && relieve(t, k)) {
        }
        s->loads[k] = load_now(t, k);
        t->fits = t->fits && s->loads[k] <= t->target_bytes;
    }
}

/* LOADs of one slot by need, so that the last needed comes out on top. */
static void sort_loads(tightener *t, const bool *chosen) {
    const tide__swaps *s = t->s;
    ranked *keys = t->keys;
    for (uint32_t i = 0; i < s->gaps.count; i++)
        if (chosen[i] && s->gaps.data[i].to != TIDE_NONE)
            keys[t->n_by_load++] = (ranked){-((double)s->load_slot[i] * 0x1p32 + (double)s->gaps.data[i].to), i};
    qsort(keys, t->n_by_load, sizeof *keys, by_score);
    for (size_t i = 0; i < t->n_by_load; i++) t->by_load[i] = keys[i].gap;
}

static void sort_saves(tightener *t) {
    const tide__swaps *s = t->s;
    ranked *keys = t->keys;
    for (uint32_t i = 0; i < s->n_saves; i++) keys[i] = (ranked){-(double)s->gaps.data[s->save_order[i]].from, i};
    qsort(keys, s->n_saves, sizeof *keys, by_score);
    for (uint32_t i = 0; i < s->n_saves; i++) t->by_from[i] = keys[i].gap;
}

/* A gap shorter than its transfers is as tight as can be from the start. */
static void tighten_idle(tightener *t) {
    tide__swaps *s = t->s;
    for (uint32_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        if (!s->idle[i] || g->head != TIDE_NONE || g->to == TIDE_NONE) continue;
        if (s->save_slot[i] != TIDE_NONE) s->save_slot[i] = g->from;
        s->free_slot[i] = g->from;
        s->load_slot[i] = g->to;
        s->idle[i] = false;
        t->change[g->from] -= (int64_t)g->size_bytes;
        t->change[g->to] += (int64_t)g->size_bytes;
    }
}

static tide_status tighten(tightener *t, const bool *chosen) {
    size_t n = t->s->gaps.count + 1;
    tide__array(&t->arrays, t->loaded, n);
    tide__array(&t->arrays, t->delayed, n);
    tide__array(&t->arrays, t->by_load, n);
    tide__array(&t->arrays, t->by_from, n);
    tide__array(&t->arrays, t->saves, n);
    tide__array(&t->arrays, t->change, t->s->n_ops + (size_t)2);
    tide__array(&t->arrays, t->keys, n);
    TIDE_TRY(tide__arrays_check(&t->arrays));
    tighten_idle(t);
    sort_loads(t, chosen);
    sort_saves(t);
    tighten_slots(t);
    return TIDE_OK;
}

static tide_status tighten_all(tide__swaps *s, const bool *chosen, uint64_t target_bytes, bool *fits) {
    tightener t = {.s = s, .target_bytes = target_bytes, .fits = true};
    tide_status status = tighten(&t, chosen);
    *fits = t.fits;
    tide__arrays_free(&t.arrays);
    return status;
}

tide_status tide__swaps_wait(tide__swaps *s, const uint32_t *order, size_t n_order, uint64_t target_bytes, bool *chosen,
                             bool *fits) {
    if (is_too_much(s, chosen, target_bytes))
        TIDE_TRY(tide__swaps_fall_through(s, order, n_order, target_bytes, chosen));
    tide__swaps_drop_refused(s, chosen, target_bytes);
    return tighten_all(s, chosen, target_bytes, fits);
}

/* ---- longer prefixes ---- */

/* Geometrically longer ones, from the one with the least excess on. */
static tide_status try_waiting(chooser *c, size_t length) {
    for (bool fits = false; !fits; length += length / 4 + 1) {
        if (length > c->n) length = c->n;
        mark_prefix(c, length);
        TIDE_TRY(tide__swaps_wait(c->s, c->gaps, length, c->target_bytes, c->chosen, &fits));
        if (length == c->n) break;
    }
    return TIDE_OK;
}

/* A cover first, then the others. */
static tide_status put_cover_first(chooser *c, size_t *length) {
    const tide__swaps *s = c->s;
    uint32_t *all = malloc((s->gaps.count + 1) * sizeof *all);
    bool *is_first = calloc(s->gaps.count + 1, sizeof *is_first);
    tide_status status = all && is_first ? tide__swaps_cover(s, c->target_bytes, all, length) : tide__fail_memory();
    if (status == TIDE_OK) {
        size_t n = *length;
        for (size_t i = 0; i < n; i++) is_first[all[i]] = true;
        for (size_t i = 0; i < c->n; i++)
            if (!is_first[c->gaps[i]]) all[n++] = c->gaps[i];
        memcpy(c->gaps, all, n * sizeof *all);
        c->n = n;
    }
    free(all);
    free(is_first);
    return status;
}

tide_status tide__swaps_choose_cover(tide__swaps *s, const double *scores, uint64_t target_bytes, bool *chosen) {
    chooser c = {.s = s, .target_bytes = target_bytes, .chosen = chosen, .is_bounded = true};
    size_t length = 0;
    tide_status status = rank(&c, scores);
    if (status == TIDE_OK) status = put_cover_first(&c, &length);
    if (status == TIDE_OK) status = try_waiting(&c, length);
    tide__arrays_free(&c.arrays);
    return status;
}

tide_status tide__swaps_choose_waits(tide__swaps *s, const double *scores, uint64_t target_bytes, bool *chosen) {
    chooser c = {.s = s, .target_bytes = target_bytes, .chosen = chosen, .is_bounded = true};
    size_t length = 0;
    for (size_t i = 0; i < s->gaps.count; i++) length += chosen[i] && !s->gaps.data[i].forced;
    tide_status status = rank(&c, scores);
    if (status == TIDE_OK) status = try_waiting(&c, length);
    tide__arrays_free(&c.arrays);
    return status;
}
