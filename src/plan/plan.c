/* The pipeline as a list of calls: decide, schedule, place, sync, verify, simulate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/schedule.h"

static tide_status fail_unknown_policy(const char *name) {
    char known[256] = "";
    for (uint32_t i = 0; tide_policy_name(i, NULL); i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", tide_policy_name(i, NULL));
    }
    return tide__fail(TIDE_E_ARGUMENT, "there is no policy \"%s\" (known: %s)", name, known);
}

static void describe(const tide_program *program, const tide_machine *machine, const tide__policy *policy,
                     const tide_plan_options *options, tide_plan *plan) {
    plan->signature = tide_program_signature(program);
    plan->machine_fingerprint = tide_machine_fingerprint(machine);
    plan->n_queues = 1 + machine->n_channels;
    plan->n_tiers = machine->n_tiers;
    plan->bits_any = options->bits_any;
    snprintf(plan->machine_name, sizeof plan->machine_name, "%s", machine->name);
    snprintf(plan->policy, sizeof plan->policy, "%s", policy->name);
}

static tide_status check_fit(const tide_program *program, const tide_machine *machine, const tide_budgets *budgets,
                             const tide_plan *plan, tide_fit_report *fit) {
    uint64_t needed = plan->arena_bytes;
    if (needed > budgets->arena_bytes) {
        tide_liveness *l;
        TIDE_TRY(tide_liveness_create(program, &l));
        tide_fit_report report = {.needed_bytes = needed, .op = l->peak_op};
        tide_liveness_destroy(l);
        if (fit) *fit = report;
        return tide__fail(TIDE_E_FIT, "policy %s needs %llu bytes, the budget is %llu; the peak is at op \"%s\"",
                          plan->policy, (unsigned long long)needed, (unsigned long long)budgets->arena_bytes,
                          report.op == TIDE_NONE ? "" : tide_program_op(program, report.op)->name);
    }
    for (uint32_t t = 0; t < machine->n_tiers; t++) {
        uint64_t room = machine->tier[t].capacity_bytes;
        if (budgets->tier_bytes[t] < room) room = budgets->tier_bytes[t];
        if (plan->tier_bytes[t] > room)
            return tide__fail(TIDE_E_TIER_FULL, "the plan needs %llu bytes of tier \"%s\", which has %llu",
                              (unsigned long long)plan->tier_bytes[t], machine->tier[t].name, (unsigned long long)room);
    }
    return TIDE_OK;
}

static tide_status predict(const tide_program *program, const tide_machine *machine, tide_plan *plan) {
    tide_timeline *timeline;
    TIDE_TRY(tide_plan_simulate(plan, program, machine, &timeline));
    plan->prediction = timeline->prediction;
    tide_timeline_destroy(timeline);
    return TIDE_OK;
}

static tide_status make(const tide_program *program, const tide_machine *machine, const tide__policy *policy,
                        const tide_plan_options *options, tide__decisions *decisions, tide_plan *plan,
                        tide_fit_report *fit) {
    const tide_budgets *budgets = &options->budgets;
    describe(program, machine, policy, options, plan);
    TIDE_TRY(policy->decide(program, machine, options, decisions));
    TIDE_TRY(tide__schedule(program, machine, decisions, plan));
    TIDE_TRY(tide__place_plan(program, machine, decisions->keep_everything, budgets->arena_bytes, plan));
    TIDE_TRY(check_fit(program, machine, budgets, plan, fit));
    TIDE_TRY(tide__sync(plan));
    TIDE_TRY(tide_plan_verify(plan, program, machine, budgets, NULL));
    return predict(program, machine, plan);
}

tide_status tide_plan_create(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                             tide_fit_report *fit, tide_plan **out) {
    if (options->size != sizeof *options) return tide__fail(TIDE_E_ARGUMENT, "tide_plan_options: wrong size");
    const char *name = options->policy ? options->policy : "liveness";
    const tide__policy *policy = tide__policy_find(name);
    if (!policy) return fail_unknown_policy(name);
    TIDE_TRY(tide_machine_validate(machine));
    tide_plan *plan;
    TIDE_TRY(tide__plan_new(&plan));
    tide__decisions decisions = {0};
    tide_status status = make(program, machine, policy, options, &decisions, plan, fit);
    tide__decisions_free(&decisions);
    if (status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    return status;
}
