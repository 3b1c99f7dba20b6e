/* The smallest budget that a policy works in.
 *
 *   bound            failed       works                       unconstrained
 *     ├────────────────┼─ ─ ─ ─ ─ ─┼──────────────────────────────┤
 *     proved           tried       tried, planned and verified
 *
 * Where a policy may move everything, a plan for the bound itself is made (decide/shuttle.h), and the two meet. A policy that
 * fills the pool of plans (plans.h) has its smallest there. Else it is bisection over whole plans.
 *
 * Invariant: a plan was made for works_bytes, and none could be made for failed_bytes < works_bytes. */
#include <string.h>

#include "base/size.h"
#include "plan/budget.h"
#include "plan/decide/bounds/least.h"
#include "plan/decide/hybrid/shuttle.h"
#include "plan/order/order.h"

enum { MAX_PLANS = 40 };

typedef struct search {
    const tide_program *program;
    const tide_machine *machine;
    const tide__policy *policy;
    tide_plan_options options; /* budget and effort change */
    tide_smallest found;
    uint64_t hint_bytes; /* an arena that was seen: often a budget that works; 0: none */
    tide_plan *plan;     /* the pool's answer to works_bytes; NULL: it comes from elsewhere */
} search;

static tide_status accept(search *s, const tide_plan *plan) {
    TIDE_TRY(tide__plan_peak_op(s->program, plan, &s->found.op));
    s->found.works_bytes = s->options.budgets.arena_bytes;
    s->hint_bytes = tide_plan_arena_bytes(plan);
    return TIDE_OK;
}

/* A full tier is a budget that does not work, too. */
static tide_status try_budget(search *s, uint64_t bytes) {
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_plan *plan;
    s->options.budgets.arena_bytes = bytes;
    s->found.tried++;
    if (s->options.trying) s->options.trying(s->options.trying_self, bytes);
    tide_status status = tide_plan_create(s->program, s->machine, &s->options, &fit, &plan);
    if (status != TIDE_OK) {
        s->hint_bytes = fit.is_bound ? 0 : fit.needed_bytes;
        return status;
    }
    status = accept(s, plan);
    tide_plan_destroy(plan);
    return status;
}

/* ---- bisection ---- */

/* The hint if it lies well inside the bracket, else the middle; of a wide bracket a third, as what counts is the ratio. */
static uint64_t next_budget(const search *s) {
    uint64_t low = s->found.failed_bytes, high = s->found.works_bytes, width = high - low;
    bool inside = s->hint_bytes > low && s->hint_bytes < high && high - s->hint_bytes > width / 16;
    return inside ? s->hint_bytes : low + width / (high / 3 > low ? 3 : 2);
}

static tide_status narrow(search *s, double tolerance, uint32_t max_plans) {
    tide_smallest *f = &s->found;
    for (uint32_t i = 0; i < max_plans && f->works_bytes - f->failed_bytes > 1 &&
                         (double)(f->works_bytes - f->failed_bytes) > tolerance * (double)f->works_bytes;
         i++) {
        uint64_t budget = next_budget(s);
        tide_status status = try_budget(s, budget);
        if (tide_status_is_misfit(status))
            f->failed_bytes = budget;
        else if (status != TIDE_OK)
            return status;
    }
    return TIDE_OK;
}

/* A budget that works, from this one up. */
static tide_status climb(search *s, uint64_t budget) {
    tide_status status;
    int left = MAX_PLANS;
    do {
        status = try_budget(s, budget);
        budget += budget / 16 + 1;
    } while (tide_status_is_misfit(status) && --left > 0);
    return status;
}

/* A finite budget that works: the arena of the plan without a budget, or a little more where the policy, now that it
 * must save, does worse. */
static tide_status bisect(search *s, double tolerance) {
    if (s->found.works_bytes == UINT64_MAX) TIDE_TRY(climb(s, s->hint_bytes));
    s->found.failed_bytes = s->found.bound_bytes ? s->found.bound_bytes - 1 : 0;
    return narrow(s, tolerance, MAX_PLANS);
}

/* ---- at the bound ---- */

/* Makes the plan of the fewest bytes. *exact: it has as few as the bound allows, but for alignment. */
static tide_status meet_bound(search *s, const tide__policy_input *in, bool *exact) {
    tide_plan *plan = NULL;
    uint64_t budget;
    *exact = false;
    if (!tide__policy_moves(s->policy, in->argument)) return TIDE_OK;
    if (!tide__align_up(s->found.bound_bytes, s->machine->align_bytes, &budget)) return TIDE_OK;
    s->options.budgets.arena_bytes = budget;
    TIDE_TRY(tide__shuttle(in, &plan));
    if (!plan) return TIDE_OK;
    s->found.tried++;
    tide_status status = tide_plan_verify(plan, s->program, s->machine, &s->options.budgets, NULL);
    *exact = status == TIDE_OK;
    if (*exact) status = accept(s, plan);
    if (*exact) s->found.failed_bytes = s->found.bound_bytes - 1;
    tide_plan_destroy(plan);
    return status;
}

/* A policy without a budget has one arena. */
static void settle(search *s) {
    s->found.works_bytes = s->hint_bytes;
    s->found.failed_bytes = s->hint_bytes ? s->hint_bytes - 1 : 0;
}

/* ---- from the pool ---- */

/* The smallest entry of a filled pool, proved. Without one within the limit, what tide_plan_create says of that. */
static tide_status accept_smallest(search *s, const tide__policy_input *in, const tide__plans *plans,
                                   uint64_t limit_bytes) {
    uint64_t bytes = tide__plans_smallest(plans);
    if (bytes > limit_bytes) return try_budget(s, limit_bytes);
    s->options.budgets.arena_bytes = bytes;
    s->found.failed_bytes = bytes ? bytes - 1 : 0;
    s->found.tried++;
    TIDE_TRY(tide__plan_answer(s->policy, in, plans, NULL, &s->plan));
    return accept(s, s->plan);
}

static tide_status search_pool(search *s, const tide__policy_input *in) {
    uint64_t limit = s->options.budgets.arena_bytes;
    tide__plans plans;
    bool exact;
    TIDE_TRY(meet_bound(s, in, &exact));
    if (exact) return TIDE_OK;
    s->options.budgets.arena_bytes = limit;
    if (s->options.trying) s->options.trying(s->options.trying_self, s->found.bound_bytes);
    tide__plans_init(in, 0, &plans);
    tide_status status = tide__order_generate(s->policy, in, &plans);
    if (status == TIDE_OK) status = accept_smallest(s, in, &plans, limit);
    tide__plans_deinit(&plans);
    return status;
}

/* ---- the whole ---- */

static tide_status search_budget(search *s, double tolerance) {
    const char *name = s->options.policy ? s->options.policy : "liveness", *colon = strchr(name, ':');
    tide__policy_input in = {
        .program = s->program, .machine = s->machine, .options = &s->options, .argument = colon ? colon + 1 : ""};
    tide__least least;
    s->policy = tide__policy_find(name);
    if (!s->policy || !s->policy->generate) TIDE_TRY(try_budget(s, s->options.budgets.arena_bytes));
    TIDE_TRY(tide__policy_least(s->policy, &in, &least));
    s->found.bound_bytes = least.bytes;
    if (!s->policy->budgeted) return settle(s), TIDE_OK;
    TIDE_TRY(s->policy->generate ? search_pool(s, &in) : bisect(s, tolerance));
    if (s->found.works_bytes - least.bytes < s->machine->align_bytes && least.op != TIDE_NONE) s->found.op = least.op;
    return TIDE_OK;
}

tide_status tide__budget_smallest(const tide_program *program, const tide_machine *machine,
                                  const tide_plan_options *options, double tolerance, tide_smallest *out,
                                  tide_plan **plan) {
    search s = {.program = program, .machine = machine, .options = *options, .found = {.op = TIDE_NONE}};
    if (tolerance == 0) tolerance = tide__budget_tolerance(options->effort);
    tide_status status = search_budget(&s, tolerance);
    if (status == TIDE_OK) {
        *out = s.found;
        *plan = s.plan;
    } else {
        tide_plan_destroy(s.plan);
    }
    return status;
}

tide_status tide_plan_smallest(const tide_program *program, const tide_machine *machine,
                               const tide_plan_options *options, double tolerance, tide_smallest *out) {
    TIDE_NEED(program, machine, options, out);
    if (!(tolerance >= 0)) return tide__fail(TIDE_E_ARGUMENT, "tolerance: not a number from 0 up");
    tide_plan_options limited;
    tide_plan *plan;
    TIDE_TRY(tide__budget_limit(program, machine, options, &limited));
    TIDE_TRY(tide__budget_smallest(program, machine, &limited, tolerance, out, &plan));
    tide_plan_destroy(plan);
    return TIDE_OK;
}
