/* See ask.h. */
#include "plan/ask.h"

#include <string.h>

#include "base/size.h"
#include "plan/decide/draft.h"
#include "plan/decide/tiers.h"
#include "plan/schedule.h"

/* Policies decide on loads, budgets bind the arena, and placement may stay above the load. */
enum { MAX_TRIES = 8, MAX_STALLS = 3 };

static tide_status try_target(const tide__policy *policy, const tide__policy_input *in, tide_plan *plan) {
    tide__decisions decisions = {0};
    tide__plan_clear(plan);
    tide_status status = policy->decide(in, &decisions);
    if (status == TIDE_OK) status = tide__schedule(in->program, in->machine, &decisions, plan);
    if (status == TIDE_OK)
        status = tide__place_plan(in->program, in->machine, decisions.keep_everything, &in->options->budgets, plan);
    tide__decisions_free(&decisions);
    return status;
}

/* What is asked for next, after a plan whose arena is above the budget: less by what it is over, and twice as much less
 * as the last time when that did not help. */
typedef struct narrowing {
    uint64_t last_bytes, step;
    int stalls;
} narrowing;

static bool narrow(narrowing *n, tide__policy_input *in, uint64_t arena_bytes) {
    uint64_t budget = in->options->budgets.arena_bytes;
    bool stalled = arena_bytes >= n->last_bytes;
    if (arena_bytes <= budget) return true;
    n->stalls += stalled;
    n->step = tide__max_u64(arena_bytes - budget, stalled ? 2 * n->step : 0);
    if (n->step >= in->target_bytes || n->stalls > MAX_STALLS) return false;
    n->last_bytes = arena_bytes;
    in->target_bytes -= n->step;
    return true;
}

/* Asks for smaller and smaller loads as long as the arena or a tier is above its budget. */
tide_status tide__ask(const tide__policy *policy, tide__policy_input *in, tide_plan *plan) {
    narrowing n = {.last_bytes = UINT64_MAX};
    in->target_bytes = in->options->budgets.arena_bytes;
    for (int i = 1;; i++) {
        TIDE_TRY(try_target(policy, in, plan));
        bool is_tier_missed = tide__tiers_shrink(in, plan->tier_bytes);
        if (plan->arena_bytes <= in->options->budgets.arena_bytes && !is_tier_missed) return TIDE_OK;
        if (i == MAX_TRIES || !policy->budgeted || !narrow(&n, in, plan->arena_bytes)) return TIDE_OK;
    }
}

tide_status tide__ask_by_name(const char *name, const tide__policy_input *in, tide_plan **out) {
    const char *colon = strchr(name, ':');
    const tide__policy *policy = tide__policy_find(name);
    tide__policy_input asked = {
        .program = in->program, .machine = in->machine, .options = in->options, .argument = colon ? colon + 1 : ""};
    tide_plan *plan;
    if (!policy) return tide__fail(TIDE_E_ARGUMENT, "there is no policy \"%s\"", name);
    TIDE_TRY(tide__draft_new(in, &plan));
    tide_status status = tide__ask(policy, &asked, plan);
    bool fits = status == TIDE_OK && plan->arena_bytes <= in->options->budgets.arena_bytes &&
                tide__tiers_hold(in, plan->tier_bytes);
    if (fits) status = tide__sync(plan);
    if (fits && status == TIDE_OK) status = tide__draft_simulate(in, plan);
    if (fits && status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    if (!fits && status == TIDE_OK) *out = NULL;
    return status;
}
