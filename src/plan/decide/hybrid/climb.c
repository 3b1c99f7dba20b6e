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
    return tide__hybrid_is_ideal(h) ? TIDE_OK : tide__try_others(h);
}

/* A climb: the searches, and the input for the present one. */
typedef struct climb {
    tide__hybrid h;
    tide__ladder ladder;
    tide_plan_options options;
    tide__policy_input in;
} climb;

/* With what the search has found placed with care, at the main rungs. */
static tide_status search_rung(climb *c, uint32_t r, tide_status (*try)(tide__hybrid *), bool with_care) {
    tide_plan *plan = NULL;
    c->ladder.rung = r;
    c->options.budgets.arena_bytes = c->in.target_bytes = c->ladder.rungs.data[r].bytes;
    TIDE_TRY(tide__hybrid_search(&c->h, &c->in, try));
    if (with_care) TIDE_TRY(tide__judge_finish(&c->h.judge, &plan));
    if (!with_care) plan = tide__judge_take_strict(&c->h.judge);
    tide_status status = plan ? tide__ladder_offer(&c->ladder, &plan) : TIDE_OK;
    tide_plan_destroy(plan);
    return status;
}

/* From a main rung to the next, not included. There is a little more room each time, so some re-runs go and others are
 * exchanged. What is found depends on the main rung alone. */
static tide_status ascend(climb *c, uint32_t main) {
    const tide__ladder *l = &c->ladder;
    for (uint32_t r = main + 1; r < l->rungs.count && !l->rungs.data[r].main; r++)
        if (c->h.warm.sketch && c->h.reruns && !tide__hybrid_is_ideal(&c->h))
            TIDE_TRY(search_rung(c, r, tide__try_warm, false));
    return TIDE_OK;
}

/* Downwards to where nothing fits, or only what is slower by a fifth: below that, searches take the longest, for plans that
 * no larger budget would want. */
static tide_status descend(climb *c) {
    const tide__ladder *l = &c->ladder;
    const tide__hybrid *h = &c->h;
    uint64_t fastest_ns = UINT64_MAX;
    for (uint32_t r = (uint32_t)l->rungs.count; r-- > 0;) {
        if (!l->rungs.data[r].main) continue;
        TIDE_TRY(search_rung(c, r, try_main, true));
        bool ends = h->model->n_ops > TIDE__SMALL_OPS && (!h->judge.fits || h->judge.best_ns / 6 > fastest_ns / 5);
        if (h->judge.fits) fastest_ns = tide__min_u64(fastest_ns, h->judge.best_ns);
        if (!ends) TIDE_TRY(ascend(c, r));
        tide__warm_drop(&c->h.warm);
        if (ends) break;
    }
    return TIDE_OK;
}

tide_status tide__hybrid_climb(const tide__policy_input *in, tide_plan **out) {
    climb c = {.h = {.limit = UINT64_MAX, .most = UINT64_MAX, .keeps = true}, .options = *in->options, .in = *in};
    c.h.work = tide__effort_rung_work(in->options->effort, tide_program_op_count(in->program));
    c.in.options = &c.options;
    TIDE_TRY(tide__ladder_init(in, &c.ladder));
    tide_status status = tide__model_create(in, &c.h.model);
    if (status == TIDE_OK) status = descend(&c);
    if (status == TIDE_OK) *out = tide__ladder_take(&c.ladder);
    tide__warm_drop(&c.h.warm);
    tide__judge_deinit(&c.h.judge);
    tide__model_destroy(c.h.model);
    tide__ladder_deinit(&c.ladder);
    return status;
}
