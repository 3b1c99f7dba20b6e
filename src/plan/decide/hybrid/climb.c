/* See climb.h. */
#include "plan/decide/hybrid/climb.h"

#include "base/size.h"
#include "plan/decide/hybrid/effort.h"
#include "plan/decide/hybrid/ladder.h"
#include "plan/decide/hybrid/ways.h"
#include "plan/decide/workspaces.h"

/* From scratch. */
static tide_status try_main(tide__hybrid *h) {
    bool both = h->moves && h->reruns;
    TIDE_TRY(tide__try_from(h, TIDE__MOVES_LEAST));
    if (both && !tide__hybrid_is_ideal(h)) TIDE_TRY(tide__try_from(h, TIDE__MOVES_DEAREST));
    TIDE_TRY(tide__try_rooms(h));
    if (both && tide__hybrid_is_slow(h)) TIDE_TRY(tide__try_alone(h, false));
    if (h->moves && tide__hybrid_is_slow(h)) TIDE_TRY(tide__try_alone(h, true));
    if (!tide__hybrid_is_ideal(h)) TIDE_TRY(tide__try_others(h));
    bool both_ways = both && h->judge.strict && !tide__hybrid_is_ideal(h);
    return both_ways ? tide__ask_peers(&h->judge.in, &h->judge.strict) : TIDE_OK;
}

/* A climb: the searches, and the input for the present one. */
typedef struct climb {
    tide__hybrid h;
    tide__ladder ladder;
    tide_plan_options options;
    tide__policy_input in;
} climb;

/* rung: what the ladder calls it. From scratch what is found is placed with care. *step_ns: of the plan; UINT64_MAX: there is
 * none. */
static tide_status search_at(climb *c, uint64_t bytes, uint64_t rung, bool from_scratch, uint64_t *step_ns) {
    tide_plan *plan = NULL;
    c->options.budgets.arena_bytes = c->in.target_bytes = bytes;
    TIDE_TRY(tide__hybrid_search(&c->h, &c->in, from_scratch ? try_main : tide__try_warm));
    if (from_scratch) TIDE_TRY(tide__judge_finish(&c->h.judge, &plan));
    if (!from_scratch) plan = tide__judge_take_strict(&c->h.judge);
    *step_ns = plan ? plan->prediction.step_ns : UINT64_MAX;
    tide_status status = plan ? tide__ladder_offer(&c->ladder, rung, plan) : TIDE_OK;
    tide_plan_destroy(plan);
    return status;
}

/* From a main rung to the next, not included. There is a little more room each time, so some re-runs go and others are
 * exchanged. What is found depends on the main rung alone. */
static tide_status ascend(climb *c, size_t main) {
    const tide__ladder *l = &c->ladder;
    uint64_t step_ns;
    for (size_t r = main + 1; r < l->rungs.count && !l->rungs.data[r].main; r++) {
        uint64_t bytes = l->rungs.data[r].bytes;
        if (c->h.warm.sketch && c->h.reruns && !tide__hybrid_is_ideal(&c->h) && tide__ladder_is_wanted(l, bytes))
            TIDE_TRY(search_at(c, bytes, bytes, false, &step_ns));
    }
    return TIDE_OK;
}

static tide_status search_main(climb *c, size_t r, bool *fits) {
    uint64_t bytes = c->ladder.rungs.data[r].bytes, step_ns;
    TIDE_TRY(search_at(c, bytes, bytes, true, &step_ns));
    *fits = step_ns != UINT64_MAX;
    if (*fits) tide__ladder_note(&c->ladder, bytes, step_ns);
    tide_status status = *fits ? ascend(c, r) : TIDE_OK;
    tide__warm_drop(&c->h.warm);
    return status;
}

/* Between bytes that are too few and those of a main rung that fits: half-way, and on in the half in which the smallest that
 * works must be. */
enum { CELLAR_STEPS = 5, CELLAR_PART = 400 };

static tide_status search_cellar(climb *c, uint64_t low, uint64_t high) {
    for (int i = 0; i < CELLAR_STEPS && high - low > c->ladder.whole_bytes / CELLAR_PART; i++) {
        uint64_t middle = low + (high - low) / 2, step_ns;
        if (!tide__ladder_is_wanted(&c->ladder, 0)) break;
        tide_status status = search_at(c, middle, 0, true, &step_ns);
        tide__warm_drop(&c->h.warm);
        TIDE_TRY(status);
        if (step_ns != UINT64_MAX) tide__ladder_note(&c->ladder, middle, step_ns);
        *(step_ns == UINT64_MAX ? &low : &high) = middle;
    }
    return TIDE_OK;
}

/* ---- the way down ---- */

static size_t next_main(const tide__ladder *l, size_t r) {
    while (r < l->rungs.count && !l->rungs.data[r].main) r++;
    return r;
}

/* Below main rung r, which may be one that nobody searched yet. */
static tide_status enter_cellar(climb *c, size_t r, uint64_t low, bool searched) {
    const tide__ladder *l = &c->ladder;
    bool fits = searched;
    if (r >= l->rungs.count || !tide__ladder_is_wanted(l, 0)) return TIDE_OK;
    if (!searched) TIDE_TRY(search_main(c, r, &fits));
    return fits ? search_cellar(c, low, l->rungs.data[r].bytes) : TIDE_OK;
}

/* Down to where nothing fits, or nothing that is of use to anybody. */
static tide_status descend(climb *c) {
    const tide__ladder *l = &c->ladder;
    bool fits = false;
    uint64_t low = l->least_bytes;
    size_t last = l->rungs.count; /* the main rung that was searched last */
    for (size_t r = l->rungs.count; r-- > 0;) {
        if (!l->rungs.data[r].main || !tide__ladder_is_wanted(l, l->rungs.data[r].bytes)) continue;
        size_t above = next_main(l, r + 1);
        bool searched = fits && last == above;
        TIDE_TRY(search_main(c, r, &fits));
        last = r;
        if (fits) continue;
        low = tide__max_u64(low, l->rungs.data[r].bytes);
        return enter_cellar(c, above, low, searched);
    }
    size_t lowest = next_main(l, 0);
    return enter_cellar(c, lowest, low, fits && last == lowest);
}

tide_status tide__hybrid_climb(const tide__policy_input *in, const uint64_t *budgets, size_t n, tide_plan **out) {
    climb c = {.h = {.limit = UINT64_MAX, .most = UINT64_MAX, .keeps = true}, .options = *in->options, .in = *in};
    c.h.work = tide__effort_rung_work(in->options->effort, tide_program_op_count(in->program));
    c.in.options = &c.options;
    TIDE_TRY(tide__ladder_init(in, budgets, n, &c.ladder));
    tide_status status = tide__model_create(in, &c.h.model);
    if (status == TIDE_OK) status = descend(&c);
    for (size_t i = 0; status == TIDE_OK && i < n; i++) out[i] = tide__ladder_take(&c.ladder, i);
    tide__warm_drop(&c.h.warm);
    tide__judge_deinit(&c.h.judge);
    tide__model_destroy(c.h.model);
    tide__ladder_deinit(&c.ladder);
    return status;
}
