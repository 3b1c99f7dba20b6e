/* The pipeline as a list of calls: decide, schedule, place, sync, verify, simulate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/bound.h"
#include "plan/decide/tiers.h"
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

static tide_status predict(const tide_program *program, const tide_machine *machine, tide_plan *plan) {
    tide_timeline *timeline;
    TIDE_TRY(tide_plan_simulate(plan, program, machine, &timeline));
    plan->prediction = timeline->prediction;
    tide_timeline_destroy(timeline);
    return TIDE_OK;
}

/* ---- decide, schedule, place ---- */

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
static tide_status decide_and_place(const tide__policy *policy, tide__policy_input *in, tide_plan *plan) {
    narrowing n = {.last_bytes = UINT64_MAX};
    in->target_bytes = in->options->budgets.arena_bytes;
    for (int i = 1;; i++) {
        TIDE_TRY(try_target(policy, in, plan));
        bool is_tier_missed = tide__tiers_shrink(in, plan->tier_bytes);
        if (plan->arena_bytes <= in->options->budgets.arena_bytes && !is_tier_missed) return TIDE_OK;
        if (i == MAX_TRIES || !policy->budgeted || !narrow(&n, in, plan->arena_bytes)) return TIDE_OK;
    }
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

static tide_status fill_plan(const tide__policy *policy, tide__policy_input *in, tide_plan *plan,
                             tide_fit_report *fit) {
    tide_plan *made = NULL;
    in->target_bytes = in->options->budgets.arena_bytes;
    if (policy->plan) TIDE_TRY(policy->plan(in, &made));
    if (made)
        adopt(plan, made);
    else
        TIDE_TRY(decide_and_place(policy, in, plan));
    TIDE_TRY(tide__refuse_late(policy, in, plan, fit));
    return made ? TIDE_OK : tide__sync(plan);
}

static tide_status make(const tide__policy *policy, tide__policy_input *in, tide_plan *plan, tide_fit_report *fit) {
    TIDE_TRY(tide__refuse_early(policy, in, fit));
    TIDE_TRY(fill_plan(policy, in, plan, fit));
    TIDE_TRY(tide_plan_verify(plan, in->program, in->machine, &in->options->budgets, NULL));
    return predict(in->program, in->machine, plan);
}

tide_status tide_plan_create(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                             tide_fit_report *fit, tide_plan **out) {
    if (options->size != sizeof *options) return tide__fail(TIDE_E_ARGUMENT, "tide_plan_options: wrong size");
    const char *name = options->policy ? options->policy : "liveness", *colon = strchr(name, ':');
    const tide__policy *policy = tide__policy_find(name);
    if (!policy) return fail_unknown_policy(name);
    TIDE_TRY(tide_machine_validate(machine));
    tide_plan *plan;
    TIDE_TRY(tide__plan_new(&plan));
    describe(program, machine, name, options, plan);
    tide__policy_input in = {
        .program = program, .machine = machine, .options = options, .argument = colon ? colon + 1 : ""};
    tide_status status = make(policy, &in, plan, fit);
    if (status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    return status;
}

tide_status tide_plan_bound(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                            uint64_t *bound_ns) {
    if (options->size != sizeof *options) return tide__fail(TIDE_E_ARGUMENT, "tide_plan_options: wrong size");
    const char *name = options->policy ? options->policy : "liveness";
    if (!tide__policy_find(name)) return fail_unknown_policy(name);
    TIDE_TRY(tide_machine_validate(machine));
    bool is_restricted = strncmp(name, "hybrid:", 7) == 0;
    tide__policy_input in = {
        .program = program, .machine = machine, .options = options, .argument = is_restricted ? name + 7 : ""};
    return tide__bound_step(&in, options->budgets.arena_bytes, bound_ns);
}
