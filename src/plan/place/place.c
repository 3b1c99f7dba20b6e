/* The entry point: from the caller's items to the best placement found, and what was proved about it. */
#include "plan/place/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "plan/place/exact.h"
#include "plan/place/fit.h"
#include "plan/place/orders.h"
#include "plan/place/refine.h"
#include "plan/place/skyline.h"
#include "plan/place/stack.h"

/* Limits of the heuristics, counted in work rather than time so that results do not depend on the machine. */
#define MOST_SKYLINE_ITEMS UINT64_C(400000) /* of all skyline runs together: some 0.5 s */
#define MOST_FIT_ITEMS 4000                 /* beyond, the skyline is as good and much faster */
#define MOST_CONFLICTS UINT64_C(2000000)    /* of one ordered fit: some 0.2 s */

#define MOST_SECONDS 1e9 /* longer is forever */

typedef enum choice { AUTO, SMARTPOOL, FIRST_FIT, SKYLINE, EXACT, N_CHOICES } choice;

typedef struct search {
    tide__place_problem problem;
    tide__place_options options;
    choice choice;
    uint64_t start_ns;
    uint64_t *best, *trial; /* offsets in units, per item of the problem */
    uint32_t *order;
    uint64_t height; /* of best */
    const char *algorithm;
} search;

static void keep_if_lower(search *s, const char *algorithm) {
    uint64_t height = tide__place_height(&s->problem, s->trial);
    if (s->algorithm && height >= s->height) return;
    memcpy(s->best, s->trial, s->problem.n * sizeof *s->best);
    s->height = height;
    s->algorithm = algorithm;
}

static tide_status try_fit(search *s, tide__fit_rule rule, const char *algorithm) {
    TIDE_TRY(tide__fit(&s->problem, s->order, rule, MOST_CONFLICTS, s->trial));
    keep_if_lower(s, algorithm);
    return TIDE_OK;
}

/* For a heuristic that may be too slow for a problem, or not of its kind, when others follow. */
static tide_status unless_memory(tide_status status) { return status == TIDE_E_MEMORY ? status : TIDE_OK; }

static bool is_optimal(const search *s) { return s->algorithm && s->height == s->problem.lower_bound; }

/* One run per order, until the bound is reached or the work is too much for a heuristic. */
static tide_status run_orders(search *s, tide__skyline *skyline, const tide__order_data *data, double *keys) {
    const tide__place_problem *p = &s->problem;
    uint64_t *scratch = malloc((2 * p->n + 1) * sizeof *scratch), work = 0;
    if (!scratch) return tide__fail_memory();
    for (int kind = 0; kind < TIDE__N_ORDERS && !is_optimal(s); kind++, work += p->n) {
        if (kind > 0 && work + p->n > MOST_SKYLINE_ITEMS) break;
        tide__order_keys(data, (tide__order_kind)kind, keys);
        tide__order_sort(keys, p->n, scratch, s->order);
        tide__skyline_run(skyline, s->order, s->trial);
        keep_if_lower(s, tide__order_name((tide__order_kind)kind));
    }
    free(scratch);
    return TIDE_OK;
}

static tide_status try_skylines(search *s) {
    tide__skyline *skyline = NULL;
    tide__order_data data = {0};
    double *keys = malloc((s->problem.n + 1) * sizeof *keys);
    tide_status status = keys ? tide__skyline_create(&s->problem, &skyline) : tide__fail_memory();
    if (status == TIDE_OK) status = tide__order_data_init(&data, &s->problem);
    if (status == TIDE_OK) status = run_orders(s, skyline, &data, keys);
    tide__order_data_deinit(&data);
    tide__skyline_destroy(skyline);
    free(keys);
    return status;
}

static tide_status try_fits(search *s) {
    if (s->algorithm && s->problem.n > MOST_FIT_ITEMS) return TIDE_OK;
    TIDE_TRY(unless_memory(try_fit(s, TIDE__FIT_BEST, "smartpool")));
    return is_optimal(s) ? TIDE_OK : unless_memory(try_fit(s, TIDE__FIT_FIRST, "first-fit"));
}

/* The stack always answers. */
static tide_status run_heuristics(search *s) {
    TIDE_TRY(unless_memory(try_skylines(s)));
    TIDE_TRY(tide__order_by_size(&s->problem, s->order));
    if (!is_optimal(s)) TIDE_TRY(try_fits(s));
    if (s->algorithm) return TIDE_OK;
    TIDE_TRY(tide__stack(&s->problem, s->trial));
    keep_if_lower(s, "stack");
    return TIDE_OK;
}

/* ---- the exact search ---- */

static uint64_t deadline_of(const search *s) {
    double limit = s->options.time_limit_s;
    if (!(limit > 0)) return 0;
    return s->start_ns + (uint64_t)((limit < MOST_SECONDS ? limit : MOST_SECONDS) * 1e9);
}

/* How much a real size may be below its size in units: what is proved in units holds in bytes up to that. */
static uint64_t most_rounding(const search *s, const tide__place_item *items) {
    uint64_t most = 0;
    for (size_t i = 0; i < s->problem.n; i++)
        most = tide__max_u64(most, s->problem.items[i].size * s->problem.unit - items[s->problem.origin[i]].size);
    return most;
}

static tide_status refine(search *s, const tide__place_item *items) {
    tide__place_problem *p = &s->problem;
    tide__refine_options o = {.capacity = s->options.capacity / p->unit,
                              .seed = s->options.seed,
                              .node_limit = s->options.node_limit,
                              .deadline_ns = deadline_of(s)};
    uint64_t bound = p->lower_bound;
    memcpy(s->trial, s->best, p->n * sizeof *s->trial);
    tide_status status = tide__refine(p, &o, s->trial, &bound);
    keep_if_lower(s, "exact");
    if (bound > p->lower_bound) {
        p->lower_bound = bound;
        p->lower_bound_bytes = tide__max_u64(p->lower_bound_bytes, bound * p->unit - most_rounding(s, items));
    }
    return status;
}

/* Worth a search: limits to search within, a height above the bound, and a capacity that is missed but may exist. */
static bool is_open(const search *s) {
    const tide__place_options *o = &s->options;
    if (!(o->time_limit_s > 0 || o->node_limit) || is_optimal(s)) return false;
    return !o->capacity || (s->height > o->capacity / s->problem.unit && s->problem.lower_bound_bytes <= o->capacity);
}

static tide_status run_all(search *s, const tide__place_item *items) {
    if (s->choice == EXACT && s->problem.huge)
        return tide__fail(TIDE_E_UNSUPPORTED, "exact: the sizes are too large for it");
    TIDE_TRY(run_heuristics(s));
    return !s->problem.huge && is_open(s) ? refine(s, items) : TIDE_OK;
}

/* ---- by name ---- */

static tide_status find_choice(const char *name, choice *out) {
    static const char *const names[N_CHOICES] = {"auto", "smartpool", "first-fit", "skyline", "exact"};
    for (int k = 0; k < N_CHOICES; k++)
        if (!name || strcmp(name, names[k]) == 0) {
            *out = (choice)k;
            return TIDE_OK;
        }
    return tide__fail(TIDE_E_ARGUMENT, "unknown algorithm \"%.40s\"; known: " TIDE__PLACE_ALGORITHMS, name);
}

static tide_status run_chosen(search *s, const tide__place_item *items) {
    switch (s->choice) {
    case SKYLINE: return try_skylines(s);
    case SMARTPOOL:
    case FIRST_FIT: break;
    case AUTO:
    case EXACT:
    case N_CHOICES: return run_all(s, items);
    }
    TIDE_TRY(tide__order_by_size(&s->problem, s->order));
    return s->choice == SMARTPOOL ? try_fit(s, TIDE__FIT_BEST, "smartpool") : try_fit(s, TIDE__FIT_FIRST, "first-fit");
}

static tide_status search_init(search *s, const tide__place_item *items, size_t n, const tide__place_options *options) {
    *s = (search){.start_ns = tide__now_ns()};
    if (options) s->options = *options;
    TIDE_TRY(find_choice(s->options.algorithm, &s->choice));
    TIDE_TRY(tide__place_problem_init(&s->problem, items, n));
    s->best = malloc((s->problem.n + 1) * sizeof *s->best);
    s->trial = malloc((s->problem.n + 1) * sizeof *s->trial);
    s->order = malloc((s->problem.n + 1) * sizeof *s->order);
    return s->best && s->trial && s->order ? TIDE_OK : tide__fail_memory();
}

static void search_deinit(search *s) {
    tide__place_problem_deinit(&s->problem);
    free(s->best);
    free(s->trial);
    free(s->order);
}

/* Offsets in bytes for all of the caller's items. The height is that of the real sizes, which may end below the
 * rounded ones. */
static void write_offsets(const search *s, const tide__place_item *items, size_t n, uint64_t *offsets,
                          uint64_t *height) {
    for (size_t i = 0; i < n; i++)
        offsets[i] = items[i].fixed == TIDE__PLACE_FREE || items[i].size == 0 ? 0 : items[i].fixed;
    *height = s->problem.idle_height_bytes;
    for (size_t i = 0; i < s->problem.n; i++) {
        uint32_t origin = s->problem.origin[i];
        offsets[origin] = s->best[i] * s->problem.unit;
        *height = tide__max_u64(*height, offsets[origin] + items[origin].size);
    }
}

static tide_status check_overflow(const search *s) {
    uint64_t bytes;
    if (tide__mul(s->height, s->problem.unit, &bytes)) return TIDE_OK;
    return tide__fail(TIDE_E_OVERFLOW, "the items do not fit below 2^64");
}

tide_status tide__place(const tide__place_item *items, size_t n, const tide__place_options *options, uint64_t *offsets,
                        tide__place_result *result) {
    search s;
    tide_status status;
    TIDE_TRY_GOTO(search_init(&s, items, n, options), done);
    TIDE_TRY_GOTO(run_chosen(&s, items), done);
    TIDE_TRY_GOTO(check_overflow(&s), done);
    write_offsets(&s, items, n, offsets, &result->height);
    result->lower_bound = s.problem.lower_bound_bytes;
    result->optimal = s.height == s.problem.lower_bound || result->height == result->lower_bound;
    result->algorithm = s.algorithm;
done:
    search_deinit(&s);
    return status;
}
