/* See heuristics.h. Limits are counted in work rather than time, so that results do not depend on the machine. */
#include "plan/place/heuristics.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "plan/place/orders.h"
#include "plan/place/skyline.h"
#include "plan/place/stack.h"

#define MOST_FIT_ITEMS 4000             /* beyond, the skyline is as good and much faster */
#define MOST_CONFLICTS UINT64_C(300000) /* of one ordered fit: some 0.03 s */

tide_status tide__place_attempt_init(tide__place_attempt *a, const tide__place_problem *p, uint64_t least,
                                     uint64_t enough) {
    *a = (tide__place_attempt){.p = p, .least = least, .enough = enough, .work = TIDE__PLACE_MOST_SKYLINE_WORK};
    a->best = malloc((p->n + 1) * sizeof *a->best);
    a->trial = malloc((p->n + 1) * sizeof *a->trial);
    a->order = malloc((p->n + 1) * sizeof *a->order);
    return a->best && a->trial && a->order ? TIDE_OK : tide__fail_memory();
}

void tide__place_attempt_deinit(tide__place_attempt *a) {
    free(a->best);
    free(a->trial);
    free(a->order);
    *a = (tide__place_attempt){0};
}

bool tide__place_attempt_is_good(const tide__place_attempt *a) { return a->algorithm && a->height <= a->enough; }

void tide__place_attempt_keep_if_lower(tide__place_attempt *a, const char *algorithm) {
    uint64_t height = tide__place_height(a->p, a->trial);
    if (a->algorithm && height >= a->height) return;
    memcpy(a->best, a->trial, a->p->n * sizeof *a->best);
    a->height = height;
    a->algorithm = algorithm;
}

/* ---- skylines ---- */

enum { MOST_LAYERS = 4 };

/* Layers of items: the first share of them, as one order has them, is placed and stays, then what comes up to the next
 * share is placed around it, and so on. Large ones first leaves holes that small ones fill. */
typedef struct recipe {
    const char *name;
    tide__place_order_kind chosen, first,
        rest;                   /* which layer an item is in; the order in layers before the last; in that */
    double shares[MOST_LAYERS]; /* of the items, up to the end of each layer; 0: the last, with the rest */
} recipe;

#define BY(kind) TIDE__PLACE_ORDER_##kind
#define PLAIN(name, kind)                         \
    {                                             \
        name, BY(kind), BY(kind), BY(kind), { 0 } \
    }
static const recipe recipes[] = {
    PLAIN("skyline by peak and duration", PEAK_DURATION),
    {"layers by weight", BY(WEIGHT), BY(PEAK_DURATION), BY(PEAK_DURATION), {.03, .1, .3}},
    {"layers by weight", BY(WEIGHT), BY(PEAK_DURATION), BY(PEAK_DURATION), {.06}},
    PLAIN("skyline by duration", DURATION),
    {"layers by size", BY(SIZE), BY(PEAK_DURATION), BY(PEAK_DURATION), {.25}},
    {"layers by extent", BY(EXTENT), BY(PEAK_DURATION), BY(PEAK_DURATION), {.25}},
    {"layers by weight", BY(WEIGHT), BY(PEAK_DURATION), BY(PEAK_BULK), {.12}},
    {"layers by weight and end", BY(WEIGHT), BY(PEAK_END), BY(PEAK_DURATION), {.25}},
    {"layers by weight and begin", BY(WEIGHT), BY(PEAK_BEGIN), BY(PEAK_DURATION), {.06}},
    {"layers by extent", BY(EXTENT), BY(PEAK_DURATION), BY(PEAK_DURATION), {.06}},
    {"layers by weight", BY(WEIGHT), BY(PEAK_DURATION), BY(PEAK_DURATION), {.5}},
    {"layers by weight", BY(WEIGHT), BY(PEAK_DURATION), BY(PEAK_DURATION), {.25}},
    PLAIN("skyline by peak and area", PEAK_AREA),
    PLAIN("skyline by area", AREA),
    PLAIN("skyline by bulk", BULK),
    PLAIN("skyline by begin", BEGIN),
    PLAIN("skyline by size", SIZE),
    PLAIN("skyline by input", INPUT),
};

#define N_RECIPES (sizeof recipes / sizeof *recipes)
#define LAYERED 3 /* what a run in layers takes, in plain runs */

/* What runs need, whatever the recipe. */
typedef struct kitchen {
    tide__place_skyline *open, *pinned; /* the second, for runs below pins, once it is needed */
    tide__place_order_data data;
    size_t n_fixed;
    double *keys;
    uint64_t *scratch;
} kitchen;

/* No run is wanted any more: nothing is lower, or a quick attempt is low enough. */
static bool is_done(const tide__place_attempt *a) {
    return a->algorithm && a->height <= (a->quick ? a->enough : a->least);
}

static bool is_layered(const recipe *r) { return r->shares[0] > 0; }

static uint64_t runs_of(const recipe *r) { return is_layered(r) ? LAYERED : 1; }

/* Time for one more, by what a plain run took, or work. */
static bool may_run(const tide__place_attempt *a, const recipe *r, uint64_t run_ns) {
    if (a->deadline_ns) return tide__worked_ns() + run_ns * runs_of(r) <= a->deadline_ns;
    return a->work >= a->p->n * runs_of(r);
}

static void sort(kitchen *k, tide__place_order_kind kind, uint32_t *items, size_t n) {
    tide__place_order_keys(&k->data, kind, k->keys);
    tide__place_order_sort(k->keys, items, n, k->scratch);
}

/* The fixed items first. */
static void list_items(const tide__place_attempt *a, kitchen *k) {
    size_t at = 0;
    for (uint32_t i = 0; i < a->p->n; i++) {
        a->trial[i] = a->p->items[i].fixed;
        if (a->p->items[i].fixed != TIDE__PLACE_FREE) a->order[at++] = i;
    }
    k->n_fixed = at;
    for (uint32_t i = 0; i < a->p->n; i++)
        if (a->p->items[i].fixed == TIDE__PLACE_FREE) a->order[at++] = i;
}

/* Items from `from` to `to` of the order, around those before. */
static tide_status place_part(tide__place_attempt *a, kitchen *k, tide__place_order_kind kind, size_t from, size_t to,
                              uint64_t *height) {
    if (from > 0 && !k->pinned) TIDE_TRY(tide__place_skyline_create(a->p, true, &k->pinned));
    if (from > 0) TIDE_TRY(tide__place_skyline_pin(k->pinned, a->order, from, a->trial));
    sort(k, kind, a->order + from, to - from);
    *height = tide__place_skyline_run(from > 0 ? k->pinned : k->open, a->order + from, to - from, a->trial);
    return TIDE_OK;
}

/* A layer that is no lower than the best ends it. */
static tide_status run_recipe(tide__place_attempt *a, kitchen *k, const recipe *r) {
    list_items(a, k);
    size_t n_free = a->p->n - k->n_fixed, from = k->n_fixed;
    a->work -= tide__min_u64(a->work, a->p->n * runs_of(r));
    if (is_layered(r)) sort(k, r->chosen, a->order + from, n_free);
    bool last = false;
    for (int layer = 0; !last; layer++) {
        last = r->shares[layer] <= 0;
        size_t to = last ? a->p->n : k->n_fixed + (size_t)(r->shares[layer] * (double)n_free);
        uint64_t height;
        TIDE_TRY(place_part(a, k, last ? r->rest : r->first, from, to, &height));
        if (a->algorithm && height >= a->height) return TIDE_OK;
        from = to;
    }
    tide__place_attempt_keep_if_lower(a, r->name);
    return TIDE_OK;
}

/* One after the other, until nothing is lower or the work is too much; the first in any case. */
static tide_status run_recipes(tide__place_attempt *a, kitchen *k) {
    uint64_t run_ns = 0;
    for (const recipe *r = recipes; r < recipes + N_RECIPES && !is_done(a); r++) {
        uint64_t start_ns = a->deadline_ns ? tide__worked_ns() : 0;
        if (is_layered(r) && !a->layers) continue;
        if (r > recipes && !may_run(a, r, run_ns)) break;
        TIDE_TRY(run_recipe(a, k, r));
        if (r == recipes && a->deadline_ns) run_ns = tide__worked_ns() - start_ns;
    }
    return TIDE_OK;
}

tide_status tide__place_try_skylines(tide__place_attempt *a) {
    size_t n = a->p->n;
    kitchen k = {0};
    tide_status status = tide__place_skyline_create(a->p, false, &k.open);
    if (status == TIDE_OK) status = tide__place_order_data_init(&k.data, a->p);
    k.keys = malloc((n + 1) * sizeof *k.keys);
    k.scratch = malloc((2 * n + 1) * sizeof *k.scratch);
    if (status == TIDE_OK && (!k.keys || !k.scratch)) status = tide__fail_memory();
    if (status == TIDE_OK) status = run_recipes(a, &k);
    free(k.keys);
    free(k.scratch);
    tide__place_order_data_deinit(&k.data);
    tide__place_skyline_destroy(k.open);
    tide__place_skyline_destroy(k.pinned);
    return status;
}

/* ---- fits ---- */

tide_status tide__place_try_fit(tide__place_attempt *a, tide__place_fit_rule rule, uint64_t most_conflicts,
                                const char *algorithm) {
    TIDE_TRY(tide__place_order_by_size(a->p, a->order));
    TIDE_TRY(tide__place_fit(a->p, a->order, rule, most_conflicts, a->trial));
    tide__place_attempt_keep_if_lower(a, algorithm);
    return TIDE_OK;
}

/* Without a skyline (huge sizes) fits are all there is, and may take longer. */
static void try_fits(tide__place_attempt *a) {
    if (a->algorithm && a->p->n > MOST_FIT_ITEMS) return;
    uint64_t most = a->algorithm ? MOST_CONFLICTS : 10 * MOST_CONFLICTS;
    if (!tide__place_attempt_is_good(a)) (void)tide__place_try_fit(a, TIDE__PLACE_FIT_BEST, most, "smartpool");
    if (!tide__place_attempt_is_good(a)) (void)tide__place_try_fit(a, TIDE__PLACE_FIT_FIRST, most, "first-fit");
}

tide_status tide__place_try_classics(tide__place_attempt *a) {
    try_fits(a);
    if (a->algorithm) return TIDE_OK;
    TIDE_TRY(tide__place_stack(a->p, a->trial));
    tide__place_attempt_keep_if_lower(a, "stack");
    return TIDE_OK;
}

tide_status tide__place_try_heuristics(tide__place_attempt *a) {
    (void)tide__place_try_skylines(a);
    return tide__place_try_classics(a);
}
