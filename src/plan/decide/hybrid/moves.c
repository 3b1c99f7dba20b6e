/* See moves.h. Starts from the best prefix by one of AutoSwap's scores, or from the dearest gaps, and lets the search
 * over swaps improve it. */
#include "plan/decide/hybrid/moves.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"

#include "plan/decide/policies/autoswap_scores.h"
#include "plan/decide/swaps/swap_choice.h"
#include "plan/decide/swaps/swap_search.h"

/* Slots above which one score has to do. */
enum { LARGE = 6000 };

typedef struct mover {
    tide__swaps *swaps;
    uint64_t target_bytes;
    const double *prices;         /* per gap */
    double *scores, *best_scores; /* per gap */
    bool *chosen, *best;          /* per gap; `chosen` is the caller's */
    double least;                 /* excess of `best` */
    tide__arrays arrays;          /* owns the arrays above */
} mover;

static tide_status begin(mover *m) {
    size_t n = m->swaps->gaps.count + 1;
    tide__array(&m->arrays, m->scores, n);
    tide__array(&m->arrays, m->best_scores, n);
    tide__array(&m->arrays, m->best, n);
    return tide__arrays_check(&m->arrays);
}

/* ---- the choice ---- */

static void keep(mover *m, double excess) {
    m->least = excess;
    memcpy(m->best, m->chosen, m->swaps->gaps.count * sizeof *m->best);
}

/* By the best of AutoSwap's scores; by one of them where a first guess is enough. */
static tide_status start(mover *m, bool quick) {
    int first = quick || m->swaps->n_ops > LARGE ? TIDE__SWAP_SWDOA : 0;
    for (int k = first; k < TIDE__SWAP_N_SCORES; k++) {
        tide__swaps_outcome o;
        TIDE_TRY(tide__swap_scores(m->swaps, (tide__swap_score)k, m->scores));
        TIDE_TRY(tide__swaps_choose_prefix(m->swaps, m->scores, m->target_bytes, m->chosen, &o));
        if (k > first && o.excess >= m->least) continue;
        keep(m, o.excess);
        memcpy(m->best_scores, m->scores, m->swaps->gaps.count * sizeof *m->scores);
        if (o.excess <= 0) break;
    }
    return TIDE_OK;
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
    size_t n = m->swaps->gaps.count;
    priced *order = malloc((n + 1) * sizeof *order);
    if (!order) return tide__fail_memory();
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (priced){.price = m->prices[i], .gap = i};
        m->chosen[i] = m->swaps->gaps.data[i].forced;
    }
    qsort(order, n, sizeof *order, dearest_first);
    keep(m, tide__swaps_settle(m->swaps, m->chosen, m->target_bytes).excess);
    size_t step = n / MAX_TRIALS + 1;
    for (size_t i = 0; i < n && m->least > 0; i += step) {
        memcpy(m->chosen, m->best, n * sizeof *m->best);
        for (size_t k = i; k < n && k < i + step; k++) m->chosen[order[k].gap] = true;
        tide__swaps_outcome o = step > 1 ? tide__swaps_settle(m->swaps, m->chosen, m->target_bytes)
                                         : tide__swaps_evaluate(m->swaps, m->chosen, m->target_bytes);
        if (o.n_idle == 0 && o.excess < m->least) keep(m, o.excess);
    }
    free(order);
    return TIDE_OK;
}

static tide_status choose_hidden(mover *m, tide__moves_way way, uint64_t work) {
    tide__swaps_outcome o;
    tide__swap_search_options search = {.target_bytes = m->target_bytes, .work = work};
    if (way == TIDE__MOVES_DEAREST && m->swaps->limited && !m->swaps->spread)
        TIDE_TRY(start(m, true)); /* gives tiers */
    TIDE_TRY(way == TIDE__MOVES_DEAREST ? start_dearest(m) : start(m, way == TIDE__MOVES_WAIT_QUICK));
    memcpy(m->chosen, m->best, m->swaps->gaps.count * sizeof *m->best);
    o = tide__swaps_settle(m->swaps, m->chosen, m->target_bytes);
    if (way != TIDE__MOVES_DEAREST && o.excess > 0) TIDE_TRY(tide__swap_search(m->swaps, &search, m->chosen, &o));
    bool waits = way == TIDE__MOVES_WAIT || way == TIDE__MOVES_WAIT_QUICK;
    if (!waits || o.excess <= 0) return TIDE_OK;
    return tide__swaps_choose_waits(m->swaps, m->best_scores, m->target_bytes, m->chosen);
}

static tide_status choose(mover *m, tide__moves_way way, uint64_t work) {
    TIDE_TRY(begin(m));
    if (way != TIDE__MOVES_WAIT_FEWEST) return choose_hidden(m, way, work);
    TIDE_TRY(tide__swap_scores(m->swaps, TIDE__SWAP_SWDOA, m->scores));
    return tide__swaps_choose_cover(m->swaps, m->scores, m->target_bytes, m->chosen);
}

tide_status tide__moves_choose(tide__swaps *swaps, const double *prices, tide__moves_way way, uint64_t target_bytes,
                               uint64_t work, bool *chosen) {
    mover m = {.swaps = swaps, .prices = prices, .target_bytes = target_bytes, .chosen = chosen};
    tide_status status = choose(&m, way, work);
    tide__arrays_free(&m.arrays);
    return status;
}
