/* See draft.h. */
#include "plan/decide/draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/schedule.h"

tide_status tide__draft_new(const tide__policy_input *in, tide_plan **out) {
    TIDE_TRY(tide__plan_new(out));
    (*out)->signature = tide_program_signature(in->program);
    (*out)->n_queues = 1 + in->machine->n_channels;
    (*out)->n_tiers = in->machine->n_tiers;
    return TIDE_OK;
}

tide_status tide__draft_simulate(const tide__policy_input *in, tide_plan *plan) {
    tide_timeline *timeline;
    TIDE_TRY(tide_plan_simulate(plan, in->program, in->machine, &timeline));
    plan->prediction = timeline->prediction;
    tide_timeline_destroy(timeline);
    return TIDE_OK;
}

typedef tide_status (*place_fn)(const tide_program *program, const tide_machine *machine, bool keep_everything,
                                const tide_budgets *budgets, tide_plan *plan);

/* Where things lie: what a function finds, or what is given. */
typedef struct places {
    place_fn find;
    const uint64_t *offsets;
    size_t n;
} places;

static tide_status use_offsets(const tide__policy_input *in, const places *p, tide_plan *plan) {
    if (p->n != plan->residencies.count)
        return tide__fail(TIDE_E_INTERNAL, "offsets of %zu residencies, there are %zu", p->n, plan->residencies.count);
    plan->arena_bytes = 0;
    for (size_t i = 0; i < p->n; i++) {
        tide_residency *r = &plan->residencies.data[i];
        r->offset_bytes = p->offsets[i];
        plan->arena_bytes = tide__max_u64(plan->arena_bytes, tide__add_capped(r->offset_bytes, r->size_bytes));
    }
    return tide__place_tiers(in->program, in->machine, &in->options->budgets, plan);
}

static tide_status place(const tide__policy_input *in, const tide__decisions *decisions, const places *p,
                         tide_plan *plan) {
    if (!p->find) return use_offsets(in, p, plan);
    return p->find(in->program, in->machine, decisions->keep_everything, &in->options->budgets, plan);
}

static tide_status draft_by(places p, const tide__policy_input *in, const tide__decisions *decisions, tide_plan **out) {
    tide_plan *plan;
    TIDE_TRY(tide__draft_new(in, &plan));
    tide_status status = tide__schedule(in->program, in->machine, decisions, plan);
    if (status == TIDE_OK) status = place(in, decisions, &p, plan);
    if (status == TIDE_OK) status = tide__sync(plan);
    if (status == TIDE_OK) status = tide__draft_simulate(in, plan);
    if (status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    return status;
}

tide_status tide__draft(const tide__policy_input *in, const tide__decisions *decisions, tide_plan **out) {
    return draft_by((places){.find = tide__place_draft}, in, decisions, out);
}

tide_status tide__draft_with_care(const tide__policy_input *in, const tide__decisions *decisions, tide_plan **out) {
    return draft_by((places){.find = tide__place_plan}, in, decisions, out);
}

tide_status tide__draft_at(const tide__policy_input *in, const tide__decisions *decisions, const uint64_t *offsets,
                           size_t n, tide_plan **out) {
    return draft_by((places){.offsets = offsets, .n = n}, in, decisions, out);
}

/* Which slot an action belongs to: originals run in order, once each, after whatever else their slot holds. */
static void fold_into_slots(const tide_plan *plan, uint32_t n_ops, const uint64_t *by_action, uint64_t *loads) {
    uint32_t slot = 0;
    memset(loads, 0, (n_ops + (size_t)1) * sizeof *loads);
    for (size_t i = 0; i < plan->actions.count; i++) {
        loads[slot] = tide__max_u64(loads[slot], by_action[i]);
        if (plan->actions.data[i].kind == TIDE_RUN && plan->actions.data[i].op == slot) slot++;
    }
}

tide_status tide__draft_loads(const tide__policy_input *in, const tide__decisions *decisions, uint64_t *loads) {
    tide_plan *plan;
    TIDE_TRY(tide__draft_new(in, &plan));
    tide_status status = tide__schedule(in->program, in->machine, decisions, plan);
    uint64_t *by_action = status == TIDE_OK ? calloc(plan->actions.count + 1, sizeof *by_action) : NULL;
    if (status == TIDE_OK && !by_action) status = tide__fail_memory();
    if (status == TIDE_OK) status = tide__plan_load(in->program, in->machine, plan, by_action);
    if (status == TIDE_OK) fold_into_slots(plan, tide_program_op_count(in->program), by_action, loads);
    free(by_action);
    tide_plan_destroy(plan);
    return status;
}
