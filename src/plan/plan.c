/* The pipeline as a list of calls: decide, schedule, place, sync, verify, simulate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/ask.h"
#include "plan/budget.h"
#include "plan/decide/bounds/bound.h"
#include "plan/order/order.h"
#include "plan/refuse.h"
#include "plan/schedule/schedule.h"

static tide_status fail_unknown_policy(const char *name) {
    char known[256] = "";
    for (uint32_t i = 0; tide_policy_name(i, NULL); i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", tide_policy_name(i, NULL));
    }
    return tide__fail(TIDE_E_ARGUMENT, "there is no policy \"%s\" (known: %s)", name, known);
}

/* Where the write of a RUN takes over the bytes of a read, they count once. */
static uint64_t shared_bytes(const tide_program *program, const tide_plan *plan, uint32_t i) {
    tide_action a = tide_plan_action(plan, i);
    const tide_op *op = tide_program_op(program, a.op);
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        const tide_residency *read = &plan->residencies.data[a.uses[op->inplace[k].read]];
        const tide_residency *write = &plan->residencies.data[a.uses[op->n_reads + op->inplace[k].write]];
        if (read->end == i + 1 && read->offset_bytes == write->offset_bytes)
            bytes += tide__min_u64(read->size_bytes, write->size_bytes);
    }
    return bytes;
}

/* The first op of the most bytes in the arena; TIDE_NONE if no op runs. */
tide_status tide__plan_peak_op(const tide_program *program, const tide_plan *plan, tide_id *out) {
    size_t n = plan->actions.count;
    uint64_t *change = calloc(n + 2, sizeof *change), load = 0, peak = 0; /* sums modulo 2^64: losses are negative */
    if (!change) return tide__fail_memory();
    for (size_t i = 0; i < plan->residencies.count; i++) {
        const tide_residency *r = &plan->residencies.data[i];
        change[r->begin] += r->size_bytes;
        change[r->end] -= r->size_bytes;
    }
    *out = TIDE_NONE;
    for (uint32_t i = 0; i < n; i++) {
        load += change[i];
        if (plan->actions.data[i].kind != TIDE_RUN) continue;
        uint64_t bytes = load - shared_bytes(program, plan, i);
        if (*out == TIDE_NONE || bytes > peak) *out = plan->actions.data[i].op;
        peak = tide__max_u64(peak, bytes);
    }
    free(change);
    return TIDE_OK;
}

/* No plan for the bytes is faster, in the orders that options->order has the policy look at. */
static tide_status bound_step(const tide__policy_input *in, bool reorders, uint64_t budget_bytes, uint64_t *bound_ns) {
    tide__order *orders = NULL;
    uint64_t least_ns;
    TIDE_TRY(tide__bound_step(in, budget_bytes, &least_ns));
    if (reorders && in->options->order == TIDE_ORDER_FREE) TIDE_TRY(tide__order_find(in->program, &orders));
    tide_status status = TIDE_OK;
    for (const tide__order *o = orders; o && status == TIDE_OK; o = o->next) {
        tide__policy_input other = *in;
        uint64_t ns = UINT64_MAX;
        other.program = o->program;
        status = tide__bound_step(&other, budget_bytes, &ns);
        least_ns = tide__min_u64(least_ns, ns);
    }
    tide__order_destroy(orders);
    if (status == TIDE_OK) *bound_ns = least_ns;
    return status;
}

/* What the policy has to offer for the budgets of in->options, or whatever the budgets are. */
static tide_status fill_pool(const tide__policy *policy, const tide__policy_input *in, tide__plans *plans) {
    if (!policy->generate) return tide__ask(policy, in, plans);
    if (in->options->progress) TIDE_TRY(bound_step(in, true, plans->wanted_bytes, &plans->bound_ns));
    return tide__order_generate(policy, in, plans);
}

static tide_status simulate(const tide__policy_input *in, tide_plan *plan) {
    tide_timeline *timeline;
    TIDE_TRY(tide_plan_simulate(plan, in->program, in->machine, &timeline));
    plan->prediction = timeline->prediction;
    tide_timeline_destroy(timeline);
    return TIDE_OK;
}

tide_status tide__plan_answer(const tide__policy *policy, const tide__policy_input *in, const tide__plans *plans,
                              tide_fit_report *fit, tide_plan **out) {
    tide_plan *plan;
    TIDE_TRY(tide__plans_take(plans, in->options->budgets.arena_bytes, &plan));
    if (!plan) return tide__fail(TIDE_E_INTERNAL, "the policy has offered no plan");
    tide_status status = tide__refuse_late(policy, in, plan, fit);
    if (status == TIDE_OK) status = tide_plan_verify(plan, in->program, in->machine, &in->options->budgets, NULL);
    if (status == TIDE_OK) status = simulate(in, plan);
    if (status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    return status;
}

static tide_status begin(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                         const tide__policy **policy, tide__policy_input *in) {
    const char *name = options->policy ? options->policy : "liveness", *colon = strchr(name, ':');
    *policy = tide__policy_find(name);
    if (!*policy) return fail_unknown_policy(name);
    *in = (tide__policy_input){
        .program = program, .machine = machine, .options = options, .argument = colon ? colon + 1 : ""};
    return TIDE_OK;
}

tide_status tide_plan_create(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                             tide_fit_report *fit, tide_plan **out) {
    TIDE_NEED(program, machine, options, out);
    const tide__policy *policy;
    tide__policy_input in;
    tide_plan_options settled;
    tide__plans plans;
    tide_plan *smallest;
    TIDE_TRY(tide__budget_settle(program, machine, options, &settled, &smallest));
    if (smallest) return *out = smallest, TIDE_OK;
    TIDE_TRY(begin(program, machine, &settled, &policy, &in));
    TIDE_TRY(tide__refuse_early(policy, &in, fit));
    tide__plans_init(&in, settled.budgets.arena_bytes, &plans);
    tide_status status = fill_pool(policy, &in, &plans);
    if (status == TIDE_OK) status = tide__plan_answer(policy, &in, &plans, fit, out);
    tide__plans_deinit(&plans);
    return status;
}

/* ---- several budgets ---- */

/* One pool for all of them, or one each where the policy decides for a budget. *filled: the pool is, for good. */
static tide_status answer_next(const tide__policy *policy, const tide__policy_input *in, uint64_t wanted_bytes,
                               tide__plans *plans, bool *filled, tide_fit_report *fit, tide_plan **out) {
    TIDE_TRY(tide__refuse_early(policy, in, fit));
    if (!*filled) {
        tide__plans_deinit(plans);
        tide__plans_init(in, wanted_bytes, plans);
        TIDE_TRY(fill_pool(policy, in, plans));
        *filled = policy->generate != NULL;
    }
    return tide__plan_answer(policy, in, plans, fit, out);
}

static tide_status make_frontier(const tide__policy *policy, const tide__policy_input *in,
                                 const tide_plan_options *limits, const uint64_t *budgets, size_t n,
                                 tide_fit_report *fits, tide_plan **plans) {
    tide_plan_options options = *limits;
    tide__policy_input at = *in;
    tide__plans pool = {0};
    tide_status status = TIDE_OK;
    bool filled = false;
    uint64_t least = UINT64_MAX;
    at.options = &options;
    for (size_t i = 0; i < n; i++) least = tide__min_u64(least, budgets[i]);
    for (size_t i = 0; i < n && (status == TIDE_OK || tide_status_is_misfit(status)); i++) {
        options.budgets.arena_bytes = budgets[i];
        fits[i] =
            (tide_fit_report){.op = TIDE_NONE, .bound_op = TIDE_NONE, .tier = TIDE_NONE, .tier_tensor = TIDE_NONE};
        status = answer_next(policy, &at, least, &pool, &filled, &fits[i], &plans[i]);
    }
    tide__plans_deinit(&pool);
    return tide_status_is_misfit(status) ? TIDE_OK : status;
}

tide_status tide_plan_frontier(const tide_program *program, const tide_machine *machine,
                               const tide_plan_options *options, const uint64_t *budgets, size_t n,
                               tide_fit_report *fits, tide_plan **plans) {
    TIDE_NEED(program, machine, options, budgets, plans);
    const tide__policy *policy;
    tide__policy_input in;
    tide_plan_options limited;
    TIDE_TRY(tide__budget_limit(program, machine, options, &limited));
    TIDE_TRY(begin(program, machine, &limited, &policy, &in));
    tide_plan **made = calloc(n + 1, sizeof(tide_plan *));
    tide_fit_report *reports = calloc(n + 1, sizeof *reports);
    tide_status status =
        made && reports ? make_frontier(policy, &in, &limited, budgets, n, reports, made) : tide__fail_memory();
    for (size_t i = 0; i < n && made; i++) {
        if (status == TIDE_OK) plans[i] = made[i];
        if (status == TIDE_OK && fits) fits[i] = reports[i];
        if (status != TIDE_OK) tide_plan_destroy(made[i]);
    }
    free((void *)made);
    free(reports);
    return status;
}

tide_status tide_plan_bound(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                            uint64_t *bound_ns) {
    TIDE_NEED(program, machine, options, bound_ns);
    tide_plan_options settled;
    TIDE_TRY(tide__budget_settle(program, machine, options, &settled, NULL));
    const char *name = settled.policy ? settled.policy : "liveness";
    if (!tide__policy_find(name)) return fail_unknown_policy(name);
    bool is_restricted = strncmp(name, "hybrid:", 7) == 0;
    tide__policy_input in = {
        .program = program, .machine = machine, .options = &settled, .argument = is_restricted ? name + 7 : ""};
    return bound_step(&in, tide__policy_find(name)->generate != NULL, settled.budgets.arena_bytes, bound_ns);
}
