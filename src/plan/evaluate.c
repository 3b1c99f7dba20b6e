/* See evaluate.h. */
#include "plan/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/place_plan.h"
#include "plan/place_workspaces.h"
#include "plan/relocate/relocate.h"
#include "plan/schedule/schedule.h"

tide_status tide__evaluate_begin(const tide__policy_input *in, tide_plan **out) {
    const char *name = in->options->policy ? in->options->policy : "liveness";
    tide_plan *plan;
    TIDE_TRY(tide__plan_new(&plan));
    plan->signature = tide_program_signature(in->program);
    plan->machine_fingerprint = tide_machine_fingerprint(in->machine);
    plan->n_queues = 1 + in->machine->n_channels;
    plan->n_tiers = in->machine->n_tiers;
    plan->bits_any = in->options->bits_any;
    snprintf(plan->machine_name, sizeof plan->machine_name, "%s", in->machine->name);
    snprintf(plan->policy, sizeof plan->policy, "%s", name);
    *out = plan;
    return TIDE_OK;
}

/* ---- places ---- */

/* All runs together: no step is faster. */
static uint64_t sum_runs(const tide_program *program, const tide_plan *plan) {
    uint64_t sum = 0;
    for (size_t i = 0; i < plan->actions.count; i++) {
        const tide__action *a = &plan->actions.data[i];
        if (a->kind == TIDE_RUN)
            sum = tide__add_capped(sum, tide_program_op(program, a->op)->variants[a->variant].cost_ns);
    }
    return sum;
}

/* Copies inside the arena may take this part of the runs, and no more than makes the step as slow as what is known. */
enum { RELOCATE_PART = 50 };
/* A unit of placement's work takes as long as so many looks at blocks. */
enum { LOOKS = 1600 };

static tide_status relocate(const tide__policy_input *in, const tide_budgets *budgets, const tide__evaluate_options *o,
                            uint64_t runs_ns, uint64_t least_ns, tide_plan *plan) {
    uint64_t limit = tide__min_u64(least_ns / RELOCATE_PART, o->worth_ns - runs_ns);
    bool fits;
    return tide__relocate_fit(in->program, in->machine, budgets, limit, LOOKS * o->place_work, plan, &fits);
}

/* What the runs take, or will once workspaces are filled in. */
static tide_status estimate_runs(const tide__policy_input *in, const tide__evaluate_options *o, const tide_plan *plan,
                                 uint64_t *out) {
    if (o->fills) return tide__place_least_runs(in->program, o->capacity_bytes, plan, out);
    *out = sum_runs(in->program, plan);
    return TIDE_OK;
}

/* What the step takes at least: runs that become faster save no more than their own time. */
static tide_status estimate_step(const tide__policy_input *in, uint64_t runs_ns, tide_plan *plan, uint64_t *out) {
    tide_prediction p;
    *out = runs_ns;
    if (plan->copies.count == 0) return TIDE_OK;
    TIDE_TRY(tide__sync_data(plan));
    TIDE_TRY(tide__plan_predict_times(plan, in->program, in->machine, &p));
    uint64_t saved = sum_runs(in->program, plan) - runs_ns;
    *out = tide__max_u64(runs_ns, p.step_ns - tide__min_u64(saved, p.step_ns));
    return TIDE_OK;
}

static uint64_t wanted_below(const tide__evaluate_options *o, uint64_t step_ns) {
    return o->wanted_below ? o->wanted_below(o->self, step_ns) : UINT64_MAX;
}

/* The rest is not found out. */
static void give_up(tide_plan *plan) { plan->prediction.step_ns = UINT64_MAX; }
static bool is_given_up(const tide_plan *plan) { return plan->prediction.step_ns == UINT64_MAX; }

static tide_status place_within(const tide__policy_input *in, bool keep_everything, const tide__evaluate_options *o,
                                tide_plan *plan) {
    tide_budgets budgets = in->options->budgets;
    tide__place_answer answer = TIDE__PLACE_FITS;
    uint64_t runs_ns, least_ns;
    TIDE_TRY(estimate_runs(in, o, plan, &runs_ns));
    TIDE_TRY(estimate_step(in, runs_ns, plan, &least_ns));
    bool is_worth = least_ns < o->worth_ns;
    uint64_t below = wanted_below(o, least_ns);
    budgets.arena_bytes = below - 1; /* where a smaller plan is as fast: is even the load more than that? */
    if (below <= o->capacity_bytes)
        TIDE_TRY(tide__place_plan_within(in->program, in->machine, keep_everything, &budgets, 0, plan, &answer));
    budgets.arena_bytes = o->capacity_bytes;
    if (answer != TIDE__PLACE_TOO_SMALL)
        TIDE_TRY(tide__place_plan_within(in->program, in->machine, keep_everything, &budgets,
                                         is_worth ? o->place_work : 0, plan, &answer));
    if (answer == TIDE__PLACE_TOO_SMALL && plan->arena_bytes < below) {
        budgets.arena_bytes = UINT64_MAX; /* above the capacity in any case: a first answer will do */
        return tide__place_plan_within(in->program, in->machine, keep_everything, &budgets, 0, plan, &answer);
    }
    bool is_high = answer == TIDE__PLACE_TOO_HIGH && plan->arena_bytes > o->capacity_bytes && !keep_everything;
    if (is_high && is_worth && o->relocates) TIDE_TRY(relocate(in, &budgets, o, runs_ns, least_ns, plan));
    if (plan->arena_bytes >= below) give_up(plan);
    return TIDE_OK;
}

/* Within the load, or as near to it as the work gets. */
static tide_status place_low(const tide__policy_input *in, bool keep_everything, const tide__evaluate_options *o,
                             tide_plan *plan) {
    tide_budgets budgets = in->options->budgets;
    tide__place_answer answer;
    uint64_t least_ns;
    budgets.arena_bytes = 0;
    TIDE_TRY(
        tide__place_plan_within(in->program, in->machine, keep_everything, &budgets, o->place_work, plan, &answer));
    if (answer != TIDE__PLACE_TOO_SMALL) return TIDE_OK; /* of nothing */
    TIDE_TRY(estimate_step(in, sum_runs(in->program, plan), plan, &least_ns));
    if (plan->arena_bytes >= wanted_below(o, least_ns)) {
        give_up(plan);
        return TIDE_OK;
    }
    budgets.arena_bytes = plan->arena_bytes;
    return tide__place_plan_within(in->program, in->machine, keep_everything, &budgets, o->place_work, plan, &answer);
}

static tide_status find_places(const tide__policy_input *in, bool keep_everything, const tide__evaluate_options *o,
                               tide_plan *plan) {
    tide_budgets budgets = in->options->budgets;
    budgets.arena_bytes = UINT64_MAX;
    if (o->capacity_bytes == 0) return place_low(in, keep_everything, o, plan);
    TIDE_TRY(o->capacity_bytes == UINT64_MAX
                 ? tide__place_plan(in->program, in->machine, keep_everything, &budgets, plan)
                 : place_within(in, keep_everything, o, plan));
    bool fits = plan->arena_bytes <= o->capacity_bytes && !is_given_up(plan);
    if (!o->fills || !fits || keep_everything) return TIDE_OK;
    uint64_t limit = o->capacity_bytes == UINT64_MAX ? plan->arena_bytes : o->capacity_bytes;
    return tide__place_workspaces(in->program, in->machine, limit, plan);
}

static tide_status use_places(const tide__policy_input *in, const uint64_t *offsets, size_t n, tide_plan *plan) {
    if (n != plan->residencies.count)
        return tide__fail(TIDE_E_INTERNAL, "offsets of %zu residencies, there are %zu", n, plan->residencies.count);
    plan->arena_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        tide_residency *r = &plan->residencies.data[i];
        r->offset_bytes = offsets[i];
        plan->arena_bytes = tide__max_u64(plan->arena_bytes, tide__add_capped(r->offset_bytes, r->size_bytes));
    }
    return tide__place_tiers(in->program, in->machine, &in->options->budgets, plan);
}

/* ---- the pipeline ---- */

static tide_status schedule(const tide__policy_input *in, const tide__decisions *decisions, tide_plan **out) {
    tide_plan *plan;
    TIDE_TRY(tide__evaluate_begin(in, &plan));
    tide_status status = tide__schedule(in->program, in->machine, decisions, plan);
    if (status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    return status;
}

/* What follows the places; takes the plan over on failure. */
static tide_status finish(const tide__policy_input *in, tide_status status, tide_plan *plan, tide_plan **out) {
    bool given_up = is_given_up(plan);
    if (status == TIDE_OK && !given_up) status = tide__sync(plan);
    if (status == TIDE_OK && !given_up)
        status = tide__plan_predict_times(plan, in->program, in->machine, &plan->prediction);
    if (status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    return status;
}

tide_status tide__evaluate(const tide__policy_input *in, const tide__decisions *decisions,
                           const tide__evaluate_options *options, tide_plan **out) {
    tide_plan *plan;
    TIDE_TRY(schedule(in, decisions, &plan));
    return finish(in, find_places(in, decisions->keep_everything, options, plan), plan, out);
}

tide_status tide__evaluate_at(const tide__policy_input *in, const tide__decisions *decisions, const uint64_t *offsets,
                              size_t n, tide_plan **out) {
    tide_plan *plan;
    TIDE_TRY(schedule(in, decisions, &plan));
    return finish(in, use_places(in, offsets, n, plan), plan, out);
}

/* ---- loads ---- */

/* Which slot an action belongs to: originals run in order, once each, after whatever else their slot holds. */
static void fold_into_slots(const tide_plan *plan, uint32_t n_ops, const uint64_t *by_action, uint64_t *loads) {
    uint32_t slot = 0;
    memset(loads, 0, (n_ops + (size_t)1) * sizeof *loads);
    for (size_t i = 0; i < plan->actions.count; i++) {
        loads[slot] = tide__max_u64(loads[slot], by_action[i]);
        if (plan->actions.data[i].kind == TIDE_RUN && plan->actions.data[i].op == slot) slot++;
    }
}

tide_status tide__evaluate_loads(const tide__policy_input *in, const tide__decisions *decisions, uint64_t *loads) {
    tide_plan *plan;
    TIDE_TRY(schedule(in, decisions, &plan));
    uint64_t *by_action = calloc(plan->actions.count + 1, sizeof *by_action);
    tide_status status = by_action ? tide__plan_load(in->program, in->machine, plan, by_action) : tide__fail_memory();
    if (status == TIDE_OK) fold_into_slots(plan, tide_program_op_count(in->program), by_action, loads);
    free(by_action);
    tide_plan_destroy(plan);
    return status;
}
