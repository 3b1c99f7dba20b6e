/* The entry point: from the caller's items to the best placement found, and what was proved about it. */
#include "plan/place/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/place/fit.h"
#include "plan/place/ranks.h"
#include "plan/place/skyline.h"
#include "plan/place/stack.h"

/* Enough for any problem of a few thousand items; larger ones only if few of them are alive together. */
#define MOST_CONFLICTS UINT64_C(2000000)

typedef struct search {
    tide__place_problem problem;
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
    tide_status status = tide__fit(&s->problem, s->order, rule, MOST_CONFLICTS, s->trial);
    if (status == TIDE_OK) keep_if_lower(s, algorithm);
    return status == TIDE_E_MEMORY ? status : TIDE_OK;
}

static bool is_optimal(const search *s) { return s->algorithm && s->height == s->problem.lower_bound; }

static tide_status try_skylines(search *s) {
    tide__skyline *skyline;
    tide_status status = tide__skyline_create(&s->problem, &skyline);
    if (status == TIDE_E_UNSUPPORTED) return TIDE_OK;
    TIDE_TRY(status);
    for (int key = 0; key < TIDE__RANK_KEYS && status == TIDE_OK && !is_optimal(s); key++) {
        status = tide__rank_by(&s->problem, (tide__rank_key)key, s->order);
        if (status != TIDE_OK) break;
        tide__skyline_run(skyline, s->order, s->trial);
        keep_if_lower(s, tide__rank_name((tide__rank_key)key));
    }
    tide__skyline_destroy(skyline);
    return status;
}

static tide_status try_fits(search *s) {
    TIDE_TRY(tide__order_by_size(&s->problem, s->order));
    TIDE_TRY(try_fit(s, TIDE__FIT_BEST, "smartpool"));
    return is_optimal(s) ? TIDE_OK : try_fit(s, TIDE__FIT_FIRST, "first-fit");
}

/* The stack always answers; the others may find a problem too large, or not of their kind. */
static tide_status run_heuristics(search *s) {
    TIDE_TRY(try_skylines(s));
    if (!is_optimal(s)) TIDE_TRY(try_fits(s));
    if (s->algorithm) return TIDE_OK;
    TIDE_TRY(tide__stack(&s->problem, s->trial));
    keep_if_lower(s, "stack");
    return TIDE_OK;
}

static tide_status search_init(search *s, const tide__place_item *items, size_t n) {
    *s = (search){0};
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
    (void)options;
    search s;
    tide_status status;
    TIDE_TRY_GOTO(search_init(&s, items, n), done);
    TIDE_TRY_GOTO(run_heuristics(&s), done);
    TIDE_TRY_GOTO(check_overflow(&s), done);
    write_offsets(&s, items, n, offsets, &result->height);
    result->lower_bound = s.problem.lower_bound_bytes;
    result->optimal = s.height == s.problem.lower_bound || result->height == result->lower_bound;
    result->algorithm = s.algorithm;
done:
    search_deinit(&s);
    return status;
}
