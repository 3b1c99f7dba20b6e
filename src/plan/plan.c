/* The pipeline as a list of calls: decide, schedule, place, sync, verify, simulate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/ask.h"
#include "plan/budget.h"
#include "plan/decide/bound.h"
#include "plan/decide/draft.h"
#include "plan/refuse.h"
#include "plan/schedule.h"

static tide_status fail_unknown_policy(const char *name) {
    char known[256] = "";
    for (uint32_t i = 0; tide_policy_name(i, NULL); i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", tide_policy_name(i, NULL));
    }
    return tide__fail(TIDE_E_ARGUMENT, "there is no policy \"%s\" (known: %s)", name, known);
}

static void describe(const tide_program *program, const tide_machine *machine, const char *name,
                     const tide_plan_options *options, tide_plan *plan) {
    plan->signature = tide_program_signature(program);
    plan->machine_fingerprint = tide_machine_fingerprint(machine);
    plan->n_queues = 1 + machine->n_channels;
    plan->n_tiers = machine->n_tiers;
    plan->bits_any = options->bits_any;
    snprintf(plan->machine_name, sizeof plan->machine_name, "%s", machine->name);
    snprintf(plan->policy, sizeof plan->policy, "%s", name);
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

/* Who made the plan does not matter: what it holds is taken over. */
static void adopt(tide_plan *plan, tide_plan *made) {
    tide_plan whole = *made;
    *made = *plan;
    *plan = whole;
    plan->signature = made->signature;
    plan->machine_fingerprint = made->machine_fingerprint;
    plan->bits_any = made->bits_any;
    memcpy(plan->machine_name, made->machine_name, sizeof plan->machine_name);
    memcpy(plan->policy, made->policy, sizeof plan->policy);
    tide_plan_destroy(made);
}

/* What the policy handed over, or what it decides. */
static tide_status fill_plan(const tide__policy *policy, tide__policy_input *in, tide_plan **made, tide_plan *plan,
                             tide_fit_report *fit) {
    bool whole = *made != NULL;
    if (whole) adopt(plan, *made);
    *made = NULL;
    if (!whole) TIDE_TRY(tide__ask(policy, in, plan));
    TIDE_TRY(tide__refuse_late(policy, in, plan, fit));
    return whole ? TIDE_OK : tide__sync(plan);
}

static tide_status prove(const tide__policy_input *in, tide_plan *plan) {
    TIDE_TRY(tide_plan_verify(plan, in->program, in->machine, &in->options->budgets, NULL));
    return tide__draft_simulate(in, plan);
}

/* One plan for the budgets of in->options; takes *made over. */
static tide_status finish(const tide__policy *policy, tide__policy_input *in, tide_plan **made, tide_fit_report *fit,
                          tide_plan **out) {
    tide_plan *plan;
    TIDE_TRY(tide__plan_new(&plan));
    describe(in->program, in->machine, in->options->policy ? in->options->policy : "liveness", in->options, plan);
    tide_status status = fill_plan(policy, in, made, plan, fit);
    if (status == TIDE_OK) status = prove(in, plan);
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
    tide_plan *made = NULL;
    TIDE_TRY(tide__budget_settle(program, machine, options, &settled));
    TIDE_TRY(begin(program, machine, &settled, &policy, &in));
    TIDE_TRY(tide__refuse_early(policy, &in, fit));
    tide_status status = policy->plan ? policy->plan(&in, &settled.budgets.arena_bytes, 1, &made) : TIDE_OK;
    if (status == TIDE_OK) status = finish(policy, &in, &made, fit, out);
    tide_plan_destroy(made);
    return status;
}

/* ---- several budgets ---- */

typedef struct frontier {
    const tide__policy *policy;
    tide__policy_input in;
    tide_plan_options options; /* the budget changes */
    uint64_t *budgets;         /* those that are not refused at once */
    tide_plan **made;          /* for them */
    size_t n, *origin;         /* per one of them: which it is */
} frontier;

static bool is_misfit(tide_status status) { return status == TIDE_E_FIT || status == TIDE_E_TIER_FULL; }

static tide_status frontier_init(frontier *f, const tide_program *program, const tide_machine *machine,
                                 const tide_plan_options *options, size_t n) {
    *f = (frontier){0};
    TIDE_TRY(tide__budget_limit(program, machine, options, &f->options));
    TIDE_TRY(begin(program, machine, &f->options, &f->policy, &f->in));
    f->budgets = calloc(n + 1, sizeof *f->budgets);
    f->made = calloc(n + 1, sizeof(tide_plan *));
    f->origin = calloc(n + 1, sizeof *f->origin);
    return f->budgets && f->made && f->origin ? TIDE_OK : tide__fail_memory();
}

static void frontier_deinit(frontier *f) {
    for (size_t i = 0; i < f->n; i++) tide_plan_destroy(f->made[i]);
    free(f->budgets);
    free((void *)f->made);
    free(f->origin);
}

static tide_status list_budgets(frontier *f, const uint64_t *budgets, size_t n, tide_fit_report *fits) {
    for (size_t i = 0; i < n; i++) {
        f->options.budgets.arena_bytes = budgets[i];
        tide_status status = tide__refuse_early(f->policy, &f->in, &fits[i]);
        if (status != TIDE_OK && !is_misfit(status)) return status;
        if (status != TIDE_OK) continue;
        f->origin[f->n] = i;
        f->budgets[f->n++] = budgets[i];
    }
    return TIDE_OK;
}

static tide_status make_frontier(frontier *f, tide_fit_report *fits, tide_plan **plans) {
    if (f->policy->plan && f->n) TIDE_TRY(f->policy->plan(&f->in, f->budgets, f->n, f->made));
    for (size_t i = 0; i < f->n; i++) {
        size_t at = f->origin[i];
        tide__policy_input in = f->in;
        f->options.budgets.arena_bytes = f->budgets[i];
        tide_status status = finish(f->policy, &in, &f->made[i], &fits[at], &plans[at]);
        if (status != TIDE_OK && !is_misfit(status)) return status;
    }
    return TIDE_OK;
}

tide_status tide_plan_frontier(const tide_program *program, const tide_machine *machine,
                               const tide_plan_options *options, const uint64_t *budgets, size_t n,
                               tide_fit_report *fits, tide_plan **plans) {
    TIDE_NEED(program, machine, options, budgets, plans);
    frontier f;
    tide_plan **made = calloc(n + 1, sizeof(tide_plan *));
    tide_fit_report *reports = calloc(n + 1, sizeof *reports);
    tide_status status = made && reports ? frontier_init(&f, program, machine, options, n) : tide__fail_memory();
    if (!made || !reports) f = (frontier){0};
    for (size_t i = 0; status == TIDE_OK && i < n; i++)
        reports[i] =
            (tide_fit_report){.op = TIDE_NONE, .bound_op = TIDE_NONE, .tier = TIDE_NONE, .tier_tensor = TIDE_NONE};
    if (status == TIDE_OK) status = list_budgets(&f, budgets, n, reports);
    if (status == TIDE_OK) status = make_frontier(&f, reports, made);
    frontier_deinit(&f);
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
    TIDE_TRY(tide__budget_settle(program, machine, options, &settled));
    const char *name = settled.policy ? settled.policy : "liveness";
    if (!tide__policy_find(name)) return fail_unknown_policy(name);
    bool is_restricted = strncmp(name, "hybrid:", 7) == 0;
    tide__policy_input in = {
        .program = program, .machine = machine, .options = &settled, .argument = is_restricted ? name + 7 : ""};
    return tide__bound_step(&in, settled.budgets.arena_bytes, bound_ns);
}
