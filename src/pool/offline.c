/* See offline.h. */
#include "pool/offline.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/place/fit.h"
#include "pool/iteration.h"
#include "program/period.h"

enum { LEAST_TURNS = 2 };

#define MOST_LIVE_BYTES (UINT64_C(1) << 62)
#define MOST_CONFLICTS UINT64_C(50000000) /* of SmartPool's heuristic: some seconds */

/* ---- the iteration ---- */

/* The requests as the pool would watch them. Per event: its symbol, and the distance of a free to its malloc. */
typedef struct watched {
    tide__symbol *symbols;
    uint32_t *distances;
    size_t n;
} watched;

/* Refuses what the pool would refuse: live bytes, and so all sums of them, stay below 2^62. */
static tide_status count_live(uint64_t size, bool is_free, uint64_t *live) {
    if (is_free) {
        *live -= size;
        return TIDE_OK;
    }
    *live = tide__add_capped(*live, size);
    return *live < MOST_LIVE_BYTES ? TIDE_OK : tide__fail(TIDE_E_OVERFLOW, "more than 2^62 bytes are live at once");
}

static tide_status watch(const tide__requests *requests, watched *w) {
    size_t n = requests->list.count;
    size_t *malloced = malloc((requests->n_blocks + (size_t)1) * sizeof *malloced); /* per block: its event */
    *w = (watched){malloc((n + 1) * sizeof *w->symbols), calloc(n + 1, sizeof *w->distances), n};
    tide_status status = malloced && w->symbols && w->distances ? TIDE_OK : tide__fail_memory();
    uint64_t live = 0;
    for (size_t i = 0; status == TIDE_OK && i < n; i++) {
        const tide__online_request *r = &requests->list.data[i];
        bool is_free = r->size == 0;
        if (!is_free) malloced[r->block] = i;
        w->symbols[i] = is_free ? w->symbols[malloced[r->block]] | 1 : tide__malloc_symbol(r->size);
        w->distances[i] = (uint32_t)tide__min_u64(i - malloced[r->block], UINT32_MAX);
        status = count_live(tide__symbol_bytes(w->symbols[i]), is_free, &live);
    }
    free(malloced);
    return status;
}

static void unwatch(watched *w) {
    free(w->symbols);
    free(w->distances);
}

/* Reads the last whole iteration. */
static tide_status read_iteration(const watched *w, const tide__period *period, tide__iteration *out) {
    tide__history history;
    bool steady;
    if (period->length > UINT32_MAX / (2 * TIDE__MAX_COPIES))
        return tide__fail(TIDE_E_UNSUPPORTED, "an iteration of %zu events", period->length);
    TIDE_TRY(tide__history_init(&history, 2 * period->length));
    for (size_t i = period->end - 2 * period->length; i < period->end; i++)
        tide__history_push(&history, (tide__pool_event){.symbol = w->symbols[i], .distance = w->distances[i]});
    tide_status status = tide__iteration_read(&history, (uint32_t)period->length, false, out, &steady);
    tide__history_deinit(&history);
    if (status == TIDE_OK && !steady) {
        tide__iteration_deinit(out);
        status = tide__fail(TIDE_E_REPEAT, "most of the repeating blocks are never freed");
    }
    return status;
}

/* ---- loads ---- */

/* Bytes of the iteration's blocks at its border. */
static uint64_t carried_bytes(const tide__iteration *it) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < it->period; i++) {
        if (tide__symbol_is_free(it->symbols[i])) continue;
        uint64_t copies = ((uint64_t)i + it->life[it->item[i]]) / it->period;
        bytes += copies * tide__symbol_bytes(it->symbols[i]);
    }
    return bytes;
}

/* Live bytes before the last iteration's cut, and the most in the last whole period. */
static void measure_loads(const watched *w, const tide__period *period, const tide__iteration *it,
                          tide_replay_offline *r) {
    size_t first = period->end - period->length, cut = first + (it->period - it->next) % it->period;
    uint64_t live = 0, at_cut = 0;
    r->load_bytes = 0;
    for (size_t i = 0; i < period->end; i++) {
        uint64_t bytes = tide__symbol_bytes(w->symbols[i]);
        if (i == cut) at_cut = live;
        live = tide__symbol_is_free(w->symbols[i]) ? live - bytes : live + bytes;
        if (i >= first) r->load_bytes = tide__max_u64(r->load_bytes, live);
    }
    uint64_t carried = carried_bytes(it);
    r->resident_bytes = at_cut > carried ? at_cut - carried : 0;
}

/* ---- items ---- */

typedef struct placer {
    const tide__iteration *iteration;
    uint64_t alignment;
    tide__place_item *items; /* room for TIDE__MAX_COPIES per block */
    uint64_t *offsets;
    size_t n;
} placer;

static tide__place_item new_item(const placer *p, uint32_t event) {
    return (tide__place_item){
        .size = tide__symbol_bytes(p->iteration->symbols[event]), .align = p->alignment, .fixed = TIDE__PLACE_FREE};
}

static void list_two_slots(placer *p) {
    const tide__iteration *it = p->iteration;
    p->n = 0;
    for (uint32_t i = 0; i < it->period; i++) {
        if (tide__symbol_is_free(it->symbols[i]) || it->life[it->item[i]] == 0) continue;
        tide__place_item item = new_item(p, i);
        bool outlives = (uint64_t)i + it->life[it->item[i]] >= it->period;
        item.begin = outlives ? 0 : i;
        item.end = outlives ? it->period : i + it->life[it->item[i]];
        p->items[p->n++] = item;
        if (outlives) p->items[p->n++] = item;
    }
}

/* A lifetime on a circle of that many events: one stretch, or two with the border between them. */
static void lay_on_circle(tide__place_item *item, uint32_t begin, uint32_t life, uint32_t circle) {
    if (begin + life <= circle) {
        item->begin = begin;
        item->end = begin + life;
    } else {
        item->end = begin + life - circle;
        item->begin2 = begin;
        item->end2 = circle;
    }
}

static uint32_t turns(const tide__iteration *it) {
    uint32_t most = LEAST_TURNS;
    for (uint32_t i = 0; i < it->n_items; i++)
        if (it->life[i] / it->period + 1 > most) most = it->life[i] / it->period + 1;
    return most;
}

static void list_circle(placer *p) {
    const tide__iteration *it = p->iteration;
    uint32_t n_turns = turns(it), circle = n_turns * it->period;
    p->n = 0;
    for (uint32_t at = 0; at < circle; at++) {
        uint32_t i = at % it->period;
        if (tide__symbol_is_free(it->symbols[i]) || it->life[it->item[i]] == 0) continue;
        p->items[p->n] = new_item(p, i);
        lay_on_circle(&p->items[p->n++], at, it->life[it->item[i]], circle);
    }
}

/* ---- placing ---- */

static int by_size_then_number(const void *a, const void *b) {
    const tide__place_item *const *x = a, *const *y = b;
    if ((*x)->size != (*y)->size) return (*x)->size > (*y)->size ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

/* Size descending, of equals the one that is malloced first: items are in the order of their mallocs. */
static tide_status sort_by_size(const tide__place_problem *problem, uint32_t *order) {
    const tide__place_item **sorted =
        malloc((problem->n + 1) * sizeof *sorted); /* NOLINT(bugprone-sizeof-expression) */
    if (!sorted) return tide__fail_memory();
    for (size_t i = 0; i < problem->n; i++) sorted[i] = &problem->items[i];
    qsort(sorted, problem->n, sizeof *sorted, by_size_then_number); /* NOLINT(bugprone-sizeof-expression) */
    for (size_t i = 0; i < problem->n; i++) order[i] = (uint32_t)(sorted[i] - problem->items);
    free(sorted);
    return TIDE_OK;
}

/* SmartPool's heuristic: by size, each into the smallest hole. */
static tide_status run_smartpool(const placer *p, uint64_t resident_bytes, uint64_t *bytes) {
    tide__place_problem problem;
    uint32_t *order = malloc((p->n + 1) * sizeof *order);
    tide_status status = tide__place_problem_init(&problem, p->items, p->n);
    if (status == TIDE_OK && !order) status = tide__fail_memory();
    if (status == TIDE_OK) status = sort_by_size(&problem, order);
    if (status == TIDE_OK) status = tide__place_fit(&problem, order, TIDE__PLACE_FIT_BEST, MOST_CONFLICTS, p->offsets);
    if (status == TIDE_OK) *bytes = resident_bytes + tide__place_height(&problem, p->offsets) * problem.unit;
    tide__place_problem_deinit(&problem);
    free(order);
    return status == TIDE_E_UNSUPPORTED ? TIDE_OK : status;
}

static tide_status place_all(placer *p, double seconds, tide_replay_offline *r) {
    tide__place_options options = {.time_limit_s = seconds};
    tide__place_result engine;
    list_two_slots(p);
    TIDE_TRY(run_smartpool(p, r->resident_bytes, &r->two_slots_bytes));
    list_circle(p);
    TIDE_TRY(run_smartpool(p, r->resident_bytes, &r->two_turns_bytes));
    TIDE_TRY(tide__place(p->items, p->n, &options, p->offsets, &engine));
    r->engine_bytes = r->resident_bytes + engine.height;
    r->bound_bytes = r->resident_bytes + engine.lower_bound;
    r->engine_optimal = engine.optimal;
    r->engine_algorithm = engine.algorithm;
    return TIDE_OK;
}

static tide_status place_iteration(const tide__iteration *it, uint64_t alignment, double seconds,
                                   tide_replay_offline *r) {
    size_t room = (size_t)TIDE__MAX_COPIES * it->n_items + 1;
    placer p = {.iteration = it,
                .alignment = alignment,
                .items = malloc(room * sizeof *p.items),
                .offsets = malloc(room * sizeof *p.offsets)};
    tide_status status = p.items && p.offsets ? place_all(&p, seconds, r) : tide__fail_memory();
    free(p.items);
    free(p.offsets);
    return status;
}

/* ---- the whole ---- */

tide_status tide__offline_place(const tide__requests *requests, uint64_t alignment, double seconds,
                                tide_replay_offline *result) {
    watched w;
    tide__period period;
    tide__iteration it = {0};
    tide_replay_offline r = {0};
    size_t stops_at;
    tide_status status = watch(requests, &w);
    TIDE_TRY_GOTO(status, done);
    TIDE_TRY_GOTO(tide__period_find(w.symbols, w.n, &period, &stops_at), done);
    TIDE_TRY_GOTO(read_iteration(&w, &period, &it), done);
    measure_loads(&w, &period, &it, &r);
    TIDE_TRY_GOTO(place_iteration(&it, alignment, seconds, &r), iteration);
    r.period_events = it.period;
    r.n_blocks = it.n_items;
    r.end_event = period.end;
    *result = r;
iteration:
    tide__iteration_deinit(&it);
done:
    unwatch(&w);
    return status;
}
