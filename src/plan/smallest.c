/* The smallest budget that a policy works in, by bisection over whole plans.
 *
 *   bound            failed       works                       unconstrained
 *     ├────────────────┼─ ─ ─ ─ ─ ─┼──────────────────────────────┤
 *     proved           tried       tried, planned and verified
 *
 * Invariant: a plan was made for works_bytes, and none could be made for failed_bytes < works_bytes. */
#include <string.h>

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

enum { MAX_PLANS = 40 };

typedef struct search {
    const tide_program *program;
    const tide_machine *machine;
    tide_plan_options options; /* the budget changes */
    tide_smallest found;
    uint64_t hint_bytes; /* an arena that was seen: often a budget that works; 0: none */
} search;

static tide_status accept(search *s, const tide_plan *plan) {
    TIDE_TRY(tide__plan_peak_op(s->program, plan, &s->found.op));
    s->found.works_bytes = s->options.budgets.arena_bytes;
    s->hint_bytes = tide_plan_arena_bytes(plan);
    return TIDE_OK;
}

/* A full tier is a budget that does not work, too. */
static tide_status try_budget(search *s, uint64_t bytes, bool *works) {
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_plan *plan;
    s->options.budgets.arena_bytes = bytes;
    s->found.tried++;
    tide_status status = tide_plan_create(s->program, s->machine, &s->options, &fit, &plan);
    *works = status == TIDE_OK;
    if (status != TIDE_OK) {
        s->hint_bytes = fit.is_bound ? 0 : fit.needed_bytes;
        return status;
    }
    status = accept(s, plan);
    tide_plan_destroy(plan);
    return status;
}

/* The hint if it lies well inside the bracket, else the middle. */
static uint64_t next_budget(const search *s) {
    uint64_t low = s->found.failed_bytes, high = s->found.works_bytes, width = high - low;
    bool inside = s->hint_bytes > low && s->hint_bytes < high && high - s->hint_bytes > width / 16;
    return inside ? s->hint_bytes : low + width / 2;
}

static tide_status narrow(search *s, double tolerance) {
    tide_smallest *f = &s->found;
    while (f->tried < MAX_PLANS && f->works_bytes - f->failed_bytes > 1 &&
           (double)(f->works_bytes - f->failed_bytes) > tolerance * (double)f->works_bytes) {
        uint64_t budget = next_budget(s);
        bool works;
        tide_status status = try_budget(s, budget, &works);
        if (status == TIDE_E_FIT || status == TIDE_E_TIER_FULL)
            f->failed_bytes = budget;
        else if (status != TIDE_OK)
            return status;
    }
    return TIDE_OK;
}

/* A policy without a budget has one arena. */
static void settle(search *s) {
    s->found.works_bytes = s->hint_bytes;
    s->found.failed_bytes = s->hint_bytes ? s->hint_bytes - 1 : 0;
}

/* A finite budget that works: the arena of the plan without a budget, or a little more where the policy, now that it
 * must save, does worse. */
static tide_status start(search *s) {
    tide_status status;
    bool works = false;
    uint64_t budget = s->hint_bytes;
    do {
        status = try_budget(s, budget, &works);
        budget += budget / 16 + 1;
    } while (!works && (status == TIDE_E_FIT || status == TIDE_E_TIER_FULL) && s->found.tried < MAX_PLANS);
    return status;
}

static tide_status search_budget(search *s, double tolerance) {
    bool works;
    TIDE_TRY(try_budget(s, s->options.budgets.arena_bytes, &works));
    const char *name = s->options.policy ? s->options.policy : "liveness", *colon = strchr(name, ':');
    const tide__policy *policy = tide__policy_find(name);
    tide__policy_input in = {
        .program = s->program, .machine = s->machine, .options = &s->options, .argument = colon ? colon + 1 : ""};
    tide_fit_report least;
    TIDE_TRY(tide__policy_least(policy, &in, &least));
    s->found.bound_bytes = least.needed_bytes;
    if (!policy->budgeted) return settle(s), TIDE_OK;
    if (s->found.works_bytes == UINT64_MAX) TIDE_TRY(start(s));
    s->found.failed_bytes = least.needed_bytes ? least.needed_bytes - 1 : 0;
    TIDE_TRY(narrow(s, tolerance));
    if (s->found.works_bytes == s->found.bound_bytes && least.op != TIDE_NONE) s->found.op = least.op;
    return TIDE_OK;
}

tide_status tide_plan_smallest(const tide_program *program, const tide_machine *machine,
                               const tide_plan_options *options, double tolerance, tide_smallest *out) {
    if (!(tolerance >= 0)) return tide__fail(TIDE_E_ARGUMENT, "tolerance: not a number from 0 up");
    search s = {.program = program, .machine = machine, .options = *options, .found = {.op = TIDE_NONE}};
    TIDE_TRY(search_budget(&s, tolerance));
    *out = s.found;
    return TIDE_OK;
}
