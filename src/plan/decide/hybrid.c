/* Policy `hybrid`: keep, move or re-run, per gap, jointly, for the least time inside the budget.
 *
 *   hybrid            both; above low effort a larger budget is never slower (hybrid/ladder.h)
 *   hybrid:norerun    moves only
 *   hybrid:nomove     re-runs only
 *   hybrid:steady     never slower at every effort; also steady,nomove and so on
 *
 * Moves that hide behind compute are free, so they come first; re-runs take what they leave above the target; then a
 * search exchanges moves and re-runs together (hybrid/search.h).
 * Drafts of these, of either kind alone and of moves that compute waits for are compared by the simulator. */
#include <string.h>

#include "base/size.h"
#include "plan/decide/draft.h"
#include "plan/decide/hybrid/climb.h"
#include "plan/decide/hybrid/effort.h"
#include "plan/decide/hybrid/polish.h"
#include "plan/decide/hybrid/ways.h"
#include "plan/decide/policies.h"
#include "plan/decide/tiers.h"
#include "plan/decide/workspaces.h"

/* So near to the ideal that looking further, at this size, takes longer than it could save. */
static bool is_near_ideal(const tide__hybrid *h) {
    uint64_t least = tide__workspaces_least_ns(&h->judge.in);
    return h->judge.fits && h->judge.best_ns <= tide__add_capped(least, least / 100);
}

/* Moves alone, hidden or waited for, and what the papers do. */
static tide_status try_large(tide__hybrid *h) {
    bool reruns = h->reruns;
    h->reruns = false;
    tide_status status = h->moves ? tide__try_from(h, TIDE__MOVES_LEAST) : TIDE_OK;
    if (status == TIDE_OK && h->moves && !is_near_ideal(h)) status = tide__try_alone(h, true);
    h->reruns = reruns;
    if (status == TIDE_OK && !is_near_ideal(h)) status = tide__try_others(h);
    return status;
}

/* A third of what would be there without any decision: re-runs take the most then, and moves what those cannot. */
static tide_status is_tight(const tide__hybrid *h, bool *out) {
    tide_liveness *l;
    TIDE_TRY(tide_liveness_create(h->judge.in.program, &l));
    *out = h->moves && h->reruns && h->judge.in.target_bytes < l->peak_bytes / 3;
    tide_liveness_destroy(l);
    return TIDE_OK;
}

/* For another way: each overruns the limit by a little. */
static bool has_time(const tide__hybrid *h) { return !h->judge.strict || h->judge.spent < h->limit / 2; }

/* A plan soon, and a better one as long as there is work left. */
static tide_status try_low(tide__hybrid *h) {
    bool large = h->model->n_ops > TIDE__LARGE_OPS;
    TIDE_TRY(tide__try_policies(h, TIDE__PEERS_FIRST, large ? TIDE__PEERS_FIRST : TIDE__PEERS_SECOND));
    if (large && is_near_ideal(h)) return TIDE_OK;
    bool dearest = h->moves && h->reruns, tight;
    TIDE_TRY(is_tight(h, &tight));
    if (tight && !large) TIDE_TRY(tide__try_from(h, TIDE__MOVES_DEAREST));
    if (!tight || large || has_time(h)) TIDE_TRY(tide__try_from(h, TIDE__MOVES_LEAST));
    if (tide__hybrid_is_ideal(h) || (large && h->found)) return TIDE_OK;
    if (dearest && !tight && has_time(h)) TIDE_TRY(tide__try_from(h, TIDE__MOVES_DEAREST));
    return tide__try_policies(h, TIDE__PEERS_QUICK, TIDE__PEERS_QUICK);
}

/* All ways, in turn; but LEAST where low effort has tried it before. */
static tide_status try_every_way(tide__hybrid *h, bool least) {
    bool both = h->moves && h->reruns;
    if (least) TIDE_TRY(tide__try_from(h, TIDE__MOVES_LEAST));
    if (tide__hybrid_is_ideal(h)) return TIDE_OK;
    if (both && !tide__hybrid_is_spent(h)) TIDE_TRY(tide__try_from(h, TIDE__MOVES_DEAREST));
    TIDE_TRY(tide__try_rooms(h));
    if (both && !tide__hybrid_is_spent(h) && !h->found) TIDE_TRY(tide__try_waiting(h));
    if (both && !tide__hybrid_is_spent(h)) TIDE_TRY(tide__try_alone(h, false));
    if (h->moves && !tide__hybrid_is_spent(h)) TIDE_TRY(tide__try_alone(h, true));
    if (!tide__hybrid_is_ideal(h)) TIDE_TRY(tide__try_others(h));
    if (h->model->n_ops <= TIDE__POLISH_OPS && !tide__hybrid_is_ideal(h)) TIDE_TRY(tide__polish(h));
    return h->reruns && !h->judge.strict ? tide__try_passes(h) : TIDE_OK;
}

/* Small programs leave work to low effort once it has a plan: a part of it goes into a longer search. */
static tide_status go_on(tide__hybrid *h) {
    h->limit = tide__min_u64(h->limit, tide__effort_more(h->model->n_ops));
    uint64_t left = h->limit - tide__min_u64(h->limit, h->judge.spent);
    if (tide__hybrid_is_spent(h) || h->work >= left / 2) return TIDE_OK;
    h->work = left / 2;
    TIDE_TRY(tide__try_from(h, TIDE__MOVES_LEAST));
    return h->moves && !tide__hybrid_is_spent(h) ? tide__try_alone(h, true) : TIDE_OK;
}

static tide_status try_all(tide__hybrid *h) {
    bool low = h->judge.in.options->effort == TIDE_EFFORT_LOW;
    if (h->model->n_ops > TIDE__LARGE_OPS && !low) {
        TIDE_TRY(try_large(h));
        if (h->judge.fits && (h->judge.in.options->effort != TIDE_EFFORT_HIGH || is_near_ideal(h))) return TIDE_OK;
    }
    if (!low) return try_every_way(h, true);
    TIDE_TRY(try_low(h));
    if (!h->judge.strict && h->judge.fits) TIDE_TRY(tide__judge_settle(&h->judge));
    if (tide__hybrid_is_ideal(h) || tide__hybrid_is_spent(h)) return TIDE_OK;
    if (h->judge.strict && h->found) return go_on(h);
    uint64_t normal = tide__effort_work(TIDE_EFFORT_NORMAL, h->model->n_ops);
    h->work = tide__max_u64(h->work, normal); /* else the search would find nothing */
    if (!h->judge.strict) h->limit = UINT64_MAX;
    return try_every_way(h, false);
}

static tide_status check_argument(const char *argument) {
    static const char *const words[] = {"nomove", "norerun", "steady"};
    for (size_t length; *argument; argument += length + (argument[length] == ',')) {
        bool known = false;
        length = strcspn(argument, ",");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            known = known || (strlen(words[i]) == length && strncmp(argument, words[i], length) == 0);
        if (!known)
            return tide__fail(TIDE_E_ARGUMENT, "policy hybrid:%.32s: it takes nomove, norerun or steady", argument);
    }
    return TIDE_OK;
}

/* One search for the input's target. */
static tide_status search_once(tide__hybrid *h, const tide__policy_input *in) {
    uint32_t n_ops = tide_program_op_count(in->program);
    h->work = in->options->effort == TIDE_EFFORT_LOW ? tide__effort_low_work(n_ops)
                                                     : tide__effort_work(in->options->effort, n_ops);
    h->limit = tide__effort_limit(in->options->effort, n_ops);
    h->most = tide__effort_most(in->options->effort, n_ops);
    bool one = tide__policy_has(in->argument, "nomove") && in->options->effort == TIDE_EFFORT_NORMAL;
    if (one) {
        h->work = tide__effort_alone_work(n_ops); /* with moves there are four */
        h->most = tide__max_u64(h->most, 4 * h->work);
    }
    TIDE_TRY(tide__model_create(in, &h->model));
    tide_status status = tide__hybrid_search(h, in, try_all);
    tide__model_destroy(h->model);
    h->model = NULL;
    return status;
}

tide_status tide__decide_hybrid(const tide__policy_input *in, tide__decisions *out) {
    TIDE_TRY(check_argument(in->argument));
    tide__hybrid h = {0};
    if (in->target_bytes == UINT64_MAX) return TIDE_OK;
    tide_status status = search_once(&h, in);
    if (status == TIDE_OK) {
        *out = h.judge.best;
        h.judge.best = (tide__decisions){0};
    }
    tide__judge_deinit(&h.judge);
    return status;
}

/* Attempts at smaller and smaller loads, where placement keeps missing the budget. */
enum { MAX_ATTEMPTS = 8 };

/* Half as much again below what the last load was too large by; 0: no hope. */
static uint64_t smaller_target(const tide__hybrid *h, uint64_t target) {
    uint64_t budget = h->judge.in.options->budgets.arena_bytes;
    uint64_t over = h->judge.best_bytes - tide__min_u64(h->judge.best_bytes, budget), step = over + over / 2 + 1;
    return step < target / 4 ? target - step : 0;
}

/* Of what was found the smallest, which is above the budgets: for whoever reports that. */
static tide_status keep_smallest(const tide__judge *j, tide_plan **smallest) {
    tide_plan *plan;
    if (!j->any) return TIDE_OK;
    TIDE_TRY(tide__draft(&j->in, &j->best, &plan));
    bool is_smaller = !*smallest || plan->arena_bytes < (*smallest)->arena_bytes;
    tide_plan_destroy(is_smaller ? *smallest : plan);
    if (is_smaller) *smallest = plan;
    return TIDE_OK;
}

static tide_status plan_at(const tide__policy_input *in, uint64_t budget, tide_plan **out) {
    tide__hybrid h = {0};
    tide_plan_options options = *in->options;
    tide__policy_input attempt = *in;
    tide_plan *smallest = NULL;
    tide_status status = TIDE_OK;
    if (budget == UINT64_MAX) return TIDE_OK;
    options.budgets.arena_bytes = attempt.target_bytes = budget;
    attempt.options = &options;
    for (int i = 0; i < MAX_ATTEMPTS && attempt.target_bytes && status == TIDE_OK && !*out; i++) {
        status = search_once(&h, &attempt);
        if (status == TIDE_OK) status = tide__judge_finish(&h.judge, out);
        if (status == TIDE_OK && !*out) status = keep_smallest(&h.judge, &smallest);
        attempt.target_bytes = tide__hybrid_is_spent(&h) ? 0 : smaller_target(&h, attempt.target_bytes);
    }
    tide__judge_deinit(&h.judge);
    if (status == TIDE_OK && !*out)
        *out = smallest;
    else
        tide_plan_destroy(smallest);
    return status;
}

/* Low effort is for quick plans, the restricted kinds are for single figures: one search, unless asked. */
static bool is_steady(const tide__policy_input *in) {
    uint32_t n_ops = tide_program_op_count(in->program);
    if (n_ops > TIDE__LARGE_OPS || tide__policy_has(in->argument, "steady")) return n_ops <= TIDE__LARGE_OPS;
    return !in->argument[0] && in->options->effort != TIDE_EFFORT_LOW && n_ops > TIDE__TINY_OPS &&
           tide__tiers_with_room(in).n > 0;
}

static bool is_within(const tide__policy_input *in, const tide_plan *plan, uint64_t budget) {
    return plan && plan->arena_bytes <= budget && tide__tiers_hold(in, plan->tier_bytes);
}

/* A plan for another budget stands for one's own if it fits and is faster. */
static tide_status stand_in(const tide__policy_input *in, const uint64_t *budgets, size_t n, tide_plan **out) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            tide_plan *copy;
            if (k == i || !is_within(in, out[k], budgets[i])) continue;
            if (is_within(in, out[i], budgets[i]) && out[k]->prediction.step_ns >= out[i]->prediction.step_ns) continue;
            TIDE_TRY(tide__plan_clone(out[k], &copy));
            tide_plan_destroy(out[i]);
            out[i] = copy;
        }
    return TIDE_OK;
}

/* No slower than any of the others in the same budget: what is asked for by the plain name, and not at low effort. */
static tide_status ask_peers(const tide__policy_input *in, uint64_t budget, tide_plan **plan) {
    tide_plan_options options = *in->options;
    tide__policy_input at = *in;
    uint32_t n_ops = tide_program_op_count(in->program);
    if (in->argument[0] || in->options->effort == TIDE_EFFORT_LOW || n_ops > TIDE__LARGE_OPS) return TIDE_OK;
    if (budget == UINT64_MAX) return TIDE_OK;
    options.budgets.arena_bytes = budget;
    at.options = &options;
    tide_plan *best = is_within(in, *plan, budget) ? *plan : NULL, *missed = best ? NULL : *plan;
    tide_status status = tide__ask_peers(&at, &best);
    if (best) tide_plan_destroy(missed);
    *plan = best ? best : missed;
    return status;
}

tide_status tide__plan_hybrid(const tide__policy_input *in, const uint64_t *budgets, size_t n, tide_plan **out) {
    TIDE_TRY(check_argument(in->argument));
    bool asked = tide__policy_has(in->argument, "steady"); /* then below the ladder there is nothing to promise */
    for (size_t i = 0; i < n; i++) out[i] = NULL;
    if (is_steady(in)) TIDE_TRY(tide__hybrid_climb(in, budgets, n, out));
    for (size_t i = 0; i < n && !(asked && is_steady(in)); i++) {
        if (!out[i]) TIDE_TRY(plan_at(in, budgets[i], &out[i]));
        TIDE_TRY(ask_peers(in, budgets[i], &out[i]));
    }
    return stand_in(in, budgets, n, out);
}
