/* See refuse.h. */
#include "plan/refuse.h"

#include <stdio.h>

#include "base/size.h"
#include "plan/decide/bounds/least.h"
#include "plan/decide/hybrid/shuttle.h"
#include "plan/decide/swaps/tiers.h"

typedef unsigned long long ull;

static const char *op_name(const tide_program *program, tide_id op) {
    return op == TIDE_NONE ? "" : tide_program_op(program, op)->name;
}

/* ---- before a search ---- */

static tide_status fail_bound(const tide__policy_input *in, const tide__least *l) {
    uint64_t budget = in->options->budgets.arena_bytes;
    const char *name = op_name(in->program, l->op);
    if (!l->is_whole)
        return tide__fail(TIDE_E_FIT, "op \"%s\" alone needs %llu bytes, the budget is %llu", name, (ull)l->bytes,
                          (ull)budget);
    char place[160] = "at the end of the step";
    if (l->op != TIDE_NONE) snprintf(place, sizeof place, "at op \"%.120s\"", name);
    if (l->tier_bytes)
        return tide__fail(TIDE_E_FIT,
                          "what has to be kept %s needs %llu bytes, the budget of %llu and the tiers of %llu together "
                          "have fewer: raise either",
                          place, (ull)(l->bytes + l->tier_bytes), (ull)budget, (ull)l->tier_bytes);
    return tide__fail(TIDE_E_FIT, "what has to be kept %s needs %llu bytes, the budget is %llu", place, (ull)l->bytes,
                      (ull)budget);
}

tide_status tide__refuse_early(const tide__policy *policy, const tide__policy_input *in, tide_fit_report *fit) {
    tide__policy_input within = *in;
    tide__least least;
    within.target_bytes = in->options->budgets.arena_bytes;
    if (!policy->budgeted || within.target_bytes == UINT64_MAX) return TIDE_OK;
    TIDE_TRY(tide__policy_least(policy, &within, &least));
    if (in->options->budgets.arena_bytes >= least.bytes) return TIDE_OK;
    if (fit)
        *fit = (tide_fit_report){.needed_bytes = least.bytes,
                                 .op = least.op,
                                 .is_bound = true,
                                 .bound_bytes = least.bytes,
                                 .bound_op = least.op,
                                 .tier = TIDE_NONE,
                                 .tier_tensor = TIDE_NONE};
    return fail_bound(in, &least);
}

/* ---- tiers ---- */

static tide_id largest_in(const tide_plan *plan, uint32_t tier) {
    const tide_copy *largest = NULL;
    for (size_t i = 0; i < plan->copies.count; i++) {
        const tide_copy *c = &plan->copies.data[i];
        if (c->tier == tier && (!largest || c->size_bytes > largest->size_bytes)) largest = c;
    }
    return largest ? largest->tensor : TIDE_NONE;
}

static uint64_t room_of(const tide__policy_input *in, uint32_t tier) {
    return tide__tier_limit(in->machine, &in->options->budgets, tier);
}

/* The first that the plan takes more of than there is; TIDE_NONE: none. */
static uint32_t full_tier(const tide__policy_input *in, const tide_plan *plan) {
    for (uint32_t t = 0; t < in->machine->n_tiers; t++)
        if (in->machine->tier[t].kind != TIDE_TIER_CLIENT && plan->tier_bytes[t] > room_of(in, t)) return t;
    return TIDE_NONE;
}

static void fill_tier(const tide__policy_input *in, const tide_plan *plan, uint32_t tier, tide_fit_report *report) {
    report->tier = tier;
    report->tier_needed_bytes = plan->tier_bytes[tier];
    report->tier_has_bytes = room_of(in, tier);
    report->tier_tensor = largest_in(plan, tier);
}

static tide_status fail_tier(const tide__policy_input *in, const char *policy, const tide_fit_report *r) {
    const char *tensor = r->tier_tensor == TIDE_NONE ? "" : tide_program_tensor(in->program, r->tier_tensor)->name;
    return tide__fail(
        TIDE_E_TIER_FULL,
        "policy %s needs %llu bytes of tier \"%s\", which has %llu; the largest value there is \"%.80s\"; "
        "raise that tier's budget or the arena's",
        policy, (ull)r->tier_needed_bytes, in->machine->tier[r->tier].name, (ull)r->tier_has_bytes, tensor);
}

/* Would this arena do, if the budgets of tiers did not count? *tier: what is too small then; TIDE_NONE: it would not. */
static tide_status blame_tier(const tide__policy_input *in, tide_fit_report *report) {
    tide_plan_options options = *in->options;
    tide__policy_input free = *in;
    tide_plan *plan;
    for (uint32_t t = 0; t < in->machine->n_tiers; t++) {
        options.budgets.tier_bytes[t] = UINT64_MAX;
        free.tier_missed_bytes[t] = 0;
    }
    free.options = &options;
    TIDE_TRY(tide__shuttle(&free, &plan));
    if (!plan) return TIDE_OK;
    uint32_t tier = full_tier(in, plan);
    if (tier != TIDE_NONE) fill_tier(in, plan, tier, report);
    tide_plan_destroy(plan);
    return TIDE_OK;
}

/* ---- after a search ---- */

static tide_status fail_arena(const tide__policy_input *in, const char *policy, const tide_fit_report *r) {
    char bound[256] = "";
    if (r->bound_bytes)
        snprintf(bound, sizeof bound, "; proved: none works below %llu, which op \"%.120s\" needs", (ull)r->bound_bytes,
                 op_name(in->program, r->bound_op));
    return tide__fail(TIDE_E_FIT, "policy %s needs %llu bytes, the budget is %llu; the peak is at op \"%.120s\"%s",
                      policy, (ull)r->needed_bytes, (ull)in->options->budgets.arena_bytes, op_name(in->program, r->op),
                      bound);
}

static tide_status fill_bound(const tide__policy *policy, const tide__policy_input *in, tide_fit_report *report) {
    tide__policy_input whole = *in;
    tide__least least;
    if (!policy->budgeted) return TIDE_OK;
    whole.target_bytes = 0;
    TIDE_TRY(tide__policy_least(policy, &whole, &least));
    report->bound_bytes = least.bytes;
    report->bound_op = least.op;
    return TIDE_OK;
}

tide_status tide__refuse_late(const tide__policy *policy, const tide__policy_input *in, const tide_plan *plan,
                              tide_fit_report *fit) {
    tide_fit_report report = {
        .op = TIDE_NONE, .bound_op = TIDE_NONE, .tier = full_tier(in, plan), .tier_tensor = TIDE_NONE};
    bool is_over = plan->arena_bytes > in->options->budgets.arena_bytes;
    if (!is_over && report.tier == TIDE_NONE) return TIDE_OK;
    TIDE_TRY(fill_bound(policy, in, &report));
    if (report.tier != TIDE_NONE) fill_tier(in, plan, report.tier, &report);
    bool can_shuttle = policy->generate && tide__policy_moves(policy, in->argument) && tide__tiers_with_room(in).n > 0;
    if (is_over && can_shuttle) TIDE_TRY(blame_tier(in, &report));
    if (is_over && full_tier(in, plan) == TIDE_NONE) report.needed_bytes = plan->arena_bytes;
    if (is_over) TIDE_TRY(tide__plan_peak_op(in->program, plan, &report.op));
    if (fit) *fit = report;
    return report.tier != TIDE_NONE ? fail_tier(in, plan->policy, &report) : fail_arena(in, plan->policy, &report);
}
