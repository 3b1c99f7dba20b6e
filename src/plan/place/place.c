/* The entry point: from the caller's items to the best placement found, and what was proved about it. */
#include "plan/place/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "plan/place/core.h"
#include "plan/place/exact.h"
#include "plan/place/heuristics.h"
#include "plan/place/refine.h"
#include "plan/place/repair.h"

#define MOST_CONFLICTS UINT64_C(2000000) /* of a fit that was asked for by name: some 0.2 s */
#define MOST_CORE_ITEMS 60000            /* beyond, skylines are what there is time for */
#define FIRST_REPAIR UINT64_C(50000)     /* units of work: what repair has before the exact search, or a tenth of all */
#define REPAIR_WORK 40                   /* of repair, per item, where the exact search is limited by nodes */
#define MOST_SECONDS 1e9                 /* longer is forever */
#define MOST_WORK (UINT64_MAX / 64)      /* likewise */
#define NODES_PER_WORK 50                /* of the exact search: nodes x items per unit of work */

typedef enum choice { AUTO, SMARTPOOL, FIRST_FIT, SKYLINE, EXACT, N_CHOICES } choice;

typedef struct search {
    tide__place_problem problem;
    tide__place_options options;
    choice choice;
    uint64_t deadline_ns; /* 0: none */
    bool quick;           /* the first placement within the capacity is the answer */
    uint64_t work;        /* a quick search: what is left of it */
    uint64_t *offsets;    /* units, per item of the problem */
    uint64_t height;      /* of the offsets */
    const char *algorithm;
} search;

/* Units: a height that needs no search for a lower one. */
static uint64_t enough(const search *s) {
    return tide__max_u64(s->problem.lower_bound, s->options.capacity / s->problem.unit);
}

/* ---- the core: heuristics, then the exact search ---- */

/* How much a real size may be below its size in units: what is proved in units holds in bytes up to that. */
static uint64_t most_rounding(const search *s, const tide__place_item *items) {
    uint64_t most = 0;
    for (size_t i = 0; i < s->problem.n; i++)
        most = tide__max_u64(most, s->problem.items[i].size * s->problem.unit - items[s->problem.origin[i]].size);
    return most;
}

static void raise_bound(search *s, const tide__place_item *items, uint64_t bound) {
    tide__place_problem *p = &s->problem;
    if (bound <= p->lower_bound) return;
    p->lower_bound = bound;
    p->lower_bound_bytes = tide__max_u64(p->lower_bound_bytes, bound * p->unit - most_rounding(s, items));
}

/* A quick search may stay without any node, which the exact search takes as no limit. */
static uint64_t node_limit(const search *s, size_t n) {
    return s->quick ? s->work / 2 * NODES_PER_WORK / (n + 1) + 1 : s->options.node_limit;
}

/* Half of the time that is left; 0: none is set. */
static uint64_t half_time(const search *s) {
    uint64_t now = tide__worked_ns();
    return s->deadline_ns > now ? now + (s->deadline_ns - now) / 2 : s->deadline_ns;
}

/* What is found and proved stays, whatever stops the search. It has half of what is left. */
static void refine(search *s, const tide__place_core *core, tide__place_attempt *a, const tide__place_item *items) {
    uint64_t capacity = s->options.capacity / s->problem.unit, bound = s->problem.lower_bound - core->bottom;
    tide__place_refine_options o = {.capacity = capacity > core->bottom ? capacity - core->bottom : 0,
                                    .seed = s->options.seed,
                                    .node_limit = node_limit(s, a->p->n),
                                    .deadline_ns = half_time(s)};
    memcpy(a->trial, a->best, a->p->n * sizeof *a->trial);
    (void)tide__place_refine(a->p, &o, a->trial, &bound);
    tide__place_attempt_keep_if_lower(a, "exact");
    raise_bound(s, items, bound + core->bottom);
    a->enough = enough(s) - core->bottom;
    s->work /= 2;
}

static bool is_hopeless(const search *s) {
    return s->options.capacity && s->problem.lower_bound_bytes > s->options.capacity;
}

/* Worth a search: limits to search within, and a capacity that is not known to be too small. */
static bool may_search(const search *s) {
    return (s->options.time_limit_s > 0 || s->options.node_limit || s->work) && !is_hopeless(s);
}

static tide_status start_attempt(const search *s, const tide__place_problem *p, uint64_t least, uint64_t enough_of_it,
                                 tide__place_attempt *a) {
    tide_status status = tide__place_attempt_init(a, p, least, enough_of_it);
    a->seed = s->options.seed;
    a->quick = s->quick;
    if (s->quick) a->work = s->work;
    return status;
}

/* Takes over what an attempt on the whole has found. */
static void take(search *s, const tide__place_attempt *a) {
    if (s->quick) s->work = a->work;
    if (!a->algorithm) return;
    memcpy(s->offsets, a->best, s->problem.n * sizeof *s->offsets);
    s->height = a->height;
    s->algorithm = a->algorithm;
}

static tide_status complete(search *s, const tide__place_core *core, const tide__place_attempt *a) {
    uint64_t *offsets = malloc((s->problem.n + 1) * sizeof *offsets);
    if (!offsets) return tide__fail_memory();
    tide_status status = tide__place_core_complete(core, a->best, offsets);
    uint64_t height = status == TIDE_OK ? tide__place_height(&s->problem, offsets) : UINT64_MAX;
    if (status == TIDE_OK && (!s->algorithm || height < s->height)) {
        memcpy(s->offsets, offsets, s->problem.n * sizeof *offsets);
        s->height = height;
        s->algorithm = a->algorithm;
    }
    free(offsets);
    return status;
}

/* What repair may take: all that is left of a quick search, or of the time, or by the items. */
static void repair(search *s, tide__place_attempt *a, bool first) {
    uint64_t now = tide__worked_ns(), deadline = s->deadline_ns;
    if (tide__place_attempt_is_good(a) || !may_search(s)) return;
    uint64_t work = s->deadline_ns ? UINT64_MAX : s->quick ? s->work : REPAIR_WORK * (uint64_t)a->p->n;
    if (first) work = tide__min_u64(work / 10, FIRST_REPAIR);
    if (first && deadline > now) deadline = now + (deadline - now) / 10;
    (void)tide__place_repair(a, work, deadline);
    if (s->quick) s->work = a->work;
}

/* Repair is quick, and goes on where the exact search has no answer; that one knows about problems of some size only. */
static tide_status search_core(search *s, const tide__place_core *core, const tide__place_item *items) {
    tide__place_attempt a;
    tide_status status;
    TIDE_TRY_GOTO(start_attempt(s, &core->problem, core->capacity, enough(s) - core->bottom, &a), done);
    bool is_large = core->problem.n > TIDE__PLACE_EXACT_MOST_ITEMS;
    a.layers = is_large;
    if (is_large) a.deadline_ns = s->deadline_ns;
    (void)tide__place_try_skylines(&a);
    if (!a.algorithm) TIDE_TRY_GOTO(tide__place_try_classics(&a), done);
    if (s->quick) s->work = a.work;
    repair(s, &a, true);
    if (!tide__place_attempt_is_good(&a) && may_search(s)) refine(s, core, &a, items);
    if (s->quick) a.work = s->work;
    repair(s, &a, false);
    if (!s->quick) TIDE_TRY_GOTO(tide__place_try_classics(&a), done);
    TIDE_TRY_GOTO(complete(s, core, &a), done);
done:
    tide__place_attempt_deinit(&a);
    return status;
}

static tide_status improve(search *s, const tide__place_item *items) {
    tide__place_core core;
    TIDE_TRY(tide__place_core_init(&core, &s->problem, s->quick ? enough(s) : s->problem.lower_bound));
    tide_status status = search_core(s, &core, items);
    tide__place_core_deinit(&core);
    return status;
}

/* Large problems, and those that may overflow, end with the heuristics on the whole. For the others skylines are a
 * quick first answer, one of them where there are many items; with one at hand, running out of memory later is no failure. */
static tide_status run_all(search *s, const tide__place_item *items) {
    bool last = s->problem.huge || s->problem.n > MOST_CORE_ITEMS;
    if (s->choice == EXACT && s->problem.huge)
        return tide__fail(TIDE_E_UNSUPPORTED, "exact: the sizes are too large for it");
    tide__place_attempt a;
    tide_status status = start_attempt(s, &s->problem, s->problem.lower_bound, enough(s), &a);
    a.layers = last;
    if (last) a.deadline_ns = s->deadline_ns;
    if (!last && s->problem.n > TIDE__PLACE_EXACT_MOST_ITEMS) a.work = s->problem.n;
    if (status == TIDE_OK && last) status = tide__place_try_heuristics(&a);
    if (status == TIDE_OK && last && s->deadline_ns && !s->problem.huge) repair(s, &a, false);
    if (status == TIDE_OK && !last) (void)tide__place_try_skylines(&a);
    if (status == TIDE_OK) take(s, &a);
    bool good = status == TIDE_OK && tide__place_attempt_is_good(&a);
    tide__place_attempt_deinit(&a);
    if (status != TIDE_OK || last || good) return status;
    status = improve(s, items);
    return s->algorithm ? TIDE_OK : status;
}

/* ---- within a capacity ---- */

static bool is_within(const search *s) { return s->algorithm && s->height <= enough(s); }

/* The whole first, without what the core costs; with an answer at hand, running out of memory later is no failure. */
static tide_status run_within(search *s, const tide__place_item *items) {
    tide__place_attempt a;
    tide_status status = start_attempt(s, &s->problem, s->problem.lower_bound, enough(s), &a);
    if (status == TIDE_OK) (void)tide__place_try_skylines(&a);
    if (status == TIDE_OK && !a.algorithm) status = tide__place_try_classics(&a);
    if (status == TIDE_OK) take(s, &a);
    tide__place_attempt_deinit(&a);
    if (status != TIDE_OK || is_within(s) || s->work < s->problem.n || s->problem.huge) return status;
    if (s->problem.n <= MOST_CORE_ITEMS) (void)improve(s, items);
    return TIDE_OK;
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

static tide_status run_one(search *s) {
    tide__place_attempt a;
    tide_status status = tide__place_attempt_init(&a, &s->problem, s->problem.lower_bound, s->problem.lower_bound);
    if (status == TIDE_OK && s->choice == SKYLINE) status = tide__place_try_skylines(&a);
    if (status == TIDE_OK && s->choice == SMARTPOOL)
        status = tide__place_try_fit(&a, TIDE__PLACE_FIT_BEST, MOST_CONFLICTS, "smartpool");
    if (status == TIDE_OK && s->choice == FIRST_FIT)
        status = tide__place_try_fit(&a, TIDE__PLACE_FIT_FIRST, MOST_CONFLICTS, "first-fit");
    if (status == TIDE_OK) take(s, &a);
    tide__place_attempt_deinit(&a);
    return status;
}

static tide_status run_chosen(search *s, const tide__place_item *items) {
    return s->choice == AUTO || s->choice == EXACT ? run_all(s, items) : run_one(s);
}

static uint64_t deadline_of(double limit_s) {
    if (!(limit_s > 0)) return 0;
    return tide__worked_ns() + (uint64_t)((limit_s < MOST_SECONDS ? limit_s : MOST_SECONDS) * 1e9);
}

static tide_status search_init(search *s, const tide__place_item *items, size_t n, const tide__place_options *options) {
    *s = (search){0};
    if (options) s->options = *options;
    s->deadline_ns = deadline_of(s->options.time_limit_s);
    TIDE_TRY(find_choice(s->options.algorithm, &s->choice));
    TIDE_TRY(tide__place_problem_init(&s->problem, items, n));
    s->offsets = malloc((s->problem.n + 1) * sizeof *s->offsets);
    return s->offsets ? TIDE_OK : tide__fail_memory();
}

static void search_deinit(search *s) {
    tide__place_problem_deinit(&s->problem);
    free(s->offsets);
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
        offsets[origin] = s->offsets[i] * s->problem.unit;
        *height = tide__max_u64(*height, offsets[origin] + items[origin].size);
    }
}

static tide_status check_overflow(const search *s) {
    uint64_t bytes;
    if (tide__mul(s->height, s->problem.unit, &bytes)) return TIDE_OK;
    return tide__fail(TIDE_E_OVERFLOW, "the items do not fit below 2^64");
}

static tide_status report(const search *s, const tide__place_item *items, size_t n, uint64_t *offsets,
                          tide__place_result *result) {
    TIDE_TRY(check_overflow(s));
    write_offsets(s, items, n, offsets, &result->height);
    result->lower_bound = s->problem.lower_bound_bytes;
    result->optimal = s->height == s->problem.lower_bound || result->height == result->lower_bound;
    result->algorithm = s->algorithm;
    return TIDE_OK;
}

tide_status tide__place(const tide__place_item *items, size_t n, const tide__place_options *options, uint64_t *offsets,
                        tide__place_result *result) {
    search s;
    tide_status status = search_init(&s, items, n, options);
    if (status == TIDE_OK) status = run_chosen(&s, items);
    if (status == TIDE_OK) status = report(&s, items, n, offsets, result);
    search_deinit(&s);
    return status;
}

tide_status tide__place_within(const tide__place_item *items, size_t n, uint64_t capacity, uint64_t work,
                               uint64_t *offsets, tide__place_result *result, tide__place_answer *answer) {
    search s;
    tide_status status = search_init(&s, items, n, &(tide__place_options){.capacity = capacity});
    bool too_small = status == TIDE_OK && s.problem.lower_bound_bytes > capacity;
    s.quick = true;
    s.work = tide__min_u64(work, MOST_WORK);
    if (too_small) {
        *result =
            (tide__place_result){.height = s.problem.lower_bound_bytes, .lower_bound = s.problem.lower_bound_bytes};
        *answer = TIDE__PLACE_TOO_SMALL;
    } else {
        if (status == TIDE_OK) status = run_within(&s, items);
        if (status == TIDE_OK) status = report(&s, items, n, offsets, result);
        if (status == TIDE_OK) *answer = result->height <= capacity ? TIDE__PLACE_FITS : TIDE__PLACE_TOO_HIGH;
    }
    search_deinit(&s);
    return status;
}
