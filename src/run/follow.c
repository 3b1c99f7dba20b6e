/* What following a plan needs: tables made once, so that a step only reads them. A run that always follows the same plan
 * makes them when it is created; a session and a run that has learned make them between two steps, as tide_run_follow
 * does. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan_data.h"
#include "run/online.h"
#include "run/run_data.h"

static void *zeros(size_t n, size_t size) { return calloc(n ? n : 1, size); }

static uint32_t *nones(size_t n) {
    uint32_t *ids = malloc((n ? n : 1) * sizeof *ids);
    if (ids) memset(ids, 0xff, n * sizeof *ids); /* TIDE_NONE in each */
    return ids;
}

tide_status tide__run_read_carries(tide_run *run) {
    free(run->carried_from);
    run->carried_from = nones(tide_program_tensor_count(run->options.program));
    if (!run->carried_from) return tide__fail_memory();
    for (uint32_t i = 0; i < tide_program_carry_count(run->options.program); i++) {
        const tide_carry *c = tide_program_carry(run->options.program, i);
        run->carried_from[c->to] = c->from;
    }
    return TIDE_OK;
}

static tide_status allocate(tide_run *run) {
    const tide_plan *plan = run->options.plan;
    size_t n = run->n_actions, tensors = tide_program_tensor_count(run->options.program), uses = 0;
    for (uint32_t i = 0; i < n; i++) uses += tide_plan_action(plan, i).n_uses;
    run->done = zeros(n, sizeof *run->done);
    run->moves = zeros(n, sizeof *run->moves);
    run->offsets = zeros(uses, sizeof *run->offsets);
    run->first_offset = zeros(n, sizeof *run->first_offset);
    run->rerun = zeros(n, sizeof *run->rerun);
    run->starts = nones(tensors);
    run->ends = nones(tensors);
    bool complete =
        run->done && run->moves && run->offsets && run->first_offset && run->rerun && run->starts && run->ends;
    return complete ? TIDE_OK : tide__fail_memory();
}

static tide_status add_spot(tide_run *run, tide__spot spot, uint32_t *list) {
    spot.next = *list;
    TIDE_TRY(tide__vec_push(&run->spots, spot));
    *list = (uint32_t)(run->spots.count - 1);
    return TIDE_OK;
}

/* Copies first and residencies in front of them: the head of a list is the quickest to read. */
static tide_status read_maps(tide_run *run) {
    const tide_plan *plan = run->options.plan;
    for (tide_id i = 0; i < tide_plan_copy_count(plan); i++) {
        const tide_copy *c = tide_plan_copy(plan, i);
        tide__spot spot = {.residency = TIDE_NONE, .copy = i};
        if (run->options.machine->tier[c->tier].kind == TIDE_TIER_CLIENT) continue;
        if (c->at_start) TIDE_TRY(add_spot(run, spot, &run->starts[c->tensor]));
        if (c->at_end) TIDE_TRY(add_spot(run, spot, &run->ends[c->tensor]));
    }
    for (tide_id i = 0; i < tide_plan_residency_count(plan); i++) {
        const tide_residency *r = tide_plan_residency(plan, i);
        tide__spot spot = {.residency = i, .copy = TIDE_NONE};
        if (r->at_start) TIDE_TRY(add_spot(run, spot, &run->starts[r->tensor]));
        if (r->at_end) TIDE_TRY(add_spot(run, spot, &run->ends[r->tensor]));
    }
    return TIDE_OK;
}

static void prepare_move(tide_run *run, uint32_t i, const tide_action *a) {
    const tide_copy *c = tide_plan_copy(run->options.plan, a->copy);
    run->moves[i] = (tide__move){.slot = {.tier = run->tier[c->tier], .offset = c->offset_bytes},
                                 .run = run,
                                 .tensor = c->tensor,
                                 .size_bytes = tide_program_tensor(run->options.program, c->tensor)->size_bytes};
    if (a->kind == TIDE_SAVE)
        run->saved_bytes += c->size_bytes;
    else
        run->loaded_bytes += c->size_bytes;
}

static void prepare_message(tide_run *run, uint32_t i, const tide_action *a) {
    const tide_op *op = tide_program_op(run->options.program, a->op);
    tide_id tensor = op->message->receives ? op->writes[0] : op->reads[0];
    run->moves[i] = (tide__move){.run = run,
                                 .tensor = tensor,
                                 .size_bytes = tide_program_tensor(run->options.program, tensor)->size_bytes,
                                 .message = op->message};
}

/* Events only where an action of another queue waits. */
static tide_status prepare_waits(tide_run *run, const tide_action *a) {
    for (uint32_t k = 0; k < a->n_waits; k++) {
        uint32_t on = a->waits[k];
        if (run->done[on] || tide_plan_action(run->options.plan, on).queue == a->queue) continue;
        TIDE_TRY(tide_event_create(run->options.device, &run->done[on]));
    }
    return TIDE_OK;
}

static tide_status prepare_actions(tide_run *run) {
    const tide_plan *plan = run->options.plan;
    bool *ran = zeros(tide_program_op_count(run->options.program), sizeof *ran);
    if (!ran) return tide__fail_memory();
    tide_status status = TIDE_OK;
    size_t at = 0;
    for (uint32_t i = 0; i < run->n_actions && status == TIDE_OK; i++) {
        tide_action a = tide_plan_action(plan, i);
        run->first_offset[i] = at;
        for (uint32_t k = 0; k < a.n_uses; k++)
            run->offsets[at++] = run->base + tide_plan_residency(plan, a.uses[k])->offset_bytes;
        if (a.kind == TIDE_RUN) {
            run->rerun[i] = ran[a.op];
            run->n_reruns += ran[a.op];
            ran[a.op] = true;
            if (a.queue) prepare_message(run, i, &a);
        } else if (a.kind == TIDE_RELOCATE) {
            run->relocated_bytes += tide_plan_residency(plan, a.uses[0])->size_bytes;
        } else {
            prepare_move(run, i, &a);
        }
        status = prepare_waits(run, &a);
    }
    free(ran);
    return status;
}

/* ---- across the border between two steps ---- */

/* A queue flows if compute waits for some of its actions: then it is never more than one step behind. What a client hands over
 * it may change after the step. */
static bool find_flows(tide_run *run) {
    const tide_plan *plan = run->options.plan;
    const tide_machine *m = run->options.machine;
    bool any = false;
    for (uint32_t i = 0; i < run->n_actions; i++) {
        tide_action a = tide_plan_action(plan, i);
        for (uint32_t k = 0; a.queue == 0 && k < a.n_waits; k++)
            run->flows[tide_plan_action(plan, a.waits[k]).queue] = true;
    }
    for (uint32_t q = 1; q < run->n_queues; q++) {
        bool client = m->tier[m->channel[q - 1].tier].kind == TIDE_TIER_CLIENT;
        run->flows[q] = run->flows[q] && !client && tide_queue_check(run->queue[q]) == TIDE_OK;
        any = any || run->flows[q];
    }
    return any;
}

/* Compute is complete when the next step begins, and so are queues that do not flow. */
static tide_status prepare_crossings(tide_run *run) {
    const tide_run_options *o = &run->options;
    const bool barrier = o->step_barrier || run->growing || !o->op; /* sessions and pulled steps end with one */
    tide_status status = barrier || !find_flows(run)
                             ? TIDE_E_UNSUPPORTED
                             : tide__plan_cross(o->plan, o->program, o->machine, &o->budgets, &run->crossings);
    size_t n = 0;
    for (size_t i = 0; i < run->crossings.count && status == TIDE_OK; i++) {
        tide__crossing c = run->crossings.data[i];
        if (!run->flows[tide_plan_action(o->plan, c.from).queue]) continue;
        run->crossings.data[n++] = c;
        if (!run->done[c.from]) status = tide_event_create(o->device, &run->done[c.from]);
    }
    run->crossings.count = n;
    if (status == TIDE_OK) return TIDE_OK;
    memset(run->flows, 0, sizeof run->flows);
    run->crossings.count = 0;
    return status == TIDE_E_DEVICE ? status : TIDE_OK; /* else steps end with a barrier */
}

tide_status tide__run_prepare_plan(tide_run *run) {
    run->n_actions = tide_plan_action_count(run->options.plan);
    run->saved_bytes = run->loaded_bytes = run->relocated_bytes = run->n_reruns = 0;
    TIDE_TRY(allocate(run));
    TIDE_TRY(read_maps(run));
    TIDE_TRY(prepare_actions(run));
    return prepare_crossings(run);
}

void tide__run_forget_plan(tide_run *run) {
    for (uint32_t i = 0; run->done && i < run->n_actions; i++) tide_event_destroy(run->done[i]);
    free(run->done);
    free(run->moves);
    free(run->offsets);
    free(run->first_offset);
    free(run->rerun);
    free(run->starts);
    free(run->ends);
    tide__vec_free(&run->spots);
    tide__vec_free(&run->crossings);
    memset(run->flows, 0, sizeof run->flows);
    run->done = NULL;
    run->moves = NULL;
    run->offsets = NULL;
    run->first_offset = NULL;
    run->rerun = NULL;
    run->starts = run->ends = NULL;
    run->n_actions = 0;
}

/* ---- another plan ---- */

/* Of a run that followed a plan: tiers that are open become as large as the next plan needs them. Nothing has moved if
 * that fails. */
static tide_status reach_tiers(struct tide__run_online *s, const tide_plan *next) {
    const tide_run_options *o = &s->run->options;
    for (uint32_t t = 0; t < o->machine->n_tiers; t++) {
        s->tier_bytes[t] = tide__tier_limit(o->machine, &o->budgets, t);
        if (s->run->tier[t] && tide__tier_grow(s->run->tier[t], tide_plan_tier_bytes(next, t)) != TIDE_OK)
            return TIDE_E_TIER_FULL;
    }
    return TIDE_OK;
}

/* From a plan: the places that its end map, or before the first step its start map, gives the values. */
static tide_status find_places(tide_run *run) {
    TIDE_TRY(tide__run_online_attach(run));
    return tide__run_leave_plan(run->online, run->stepped ? run->n_actions : 0);
}

/* All values go to where `plan` starts with them. *is_intact: they are where they were, and known to be there. */
static tide_status lead_to(tide_run *run, const tide_plan *plan, bool *is_intact) {
    uint64_t hauled_before = run->hauled_bytes;
    *is_intact = true;
    if (run->options.plan) TIDE_TRY(find_places(run));
    *is_intact = run->options.plan != NULL; /* what an online run knows may be half carried */
    if (run->stepped) TIDE_TRY(tide__run_online_carry(run->online));
    *is_intact = true;
    run->stepped = false;
    if (run->options.plan) TIDE_TRY(reach_tiers(run->online, plan));
    tide_status status = tide__run_enter_plan(run->online, plan);
    *is_intact = run->hauled_bytes == hauled_before;
    return status;
}

/* What another plan needed, or was to need, and this one does not. */
static void give_back_tiers(tide_run *run, const tide_plan *plan) {
    for (uint32_t t = 0; t < run->options.machine->n_tiers; t++) {
        uint64_t need = tide_plan_tier_bytes(plan, t);
        if (!run->tier[t]) continue;
        tide__tier_shrink(run->tier[t], need);
        if (need > 0) continue;
        tide__tier_destroy(run->tier[t]);
        run->tier[t] = NULL;
    }
}

/* Nothing has moved: a run that followed a plan still does. */
static void remain(tide_run *run, bool stepped) {
    if (!run->options.plan) return;
    tide__run_online_close(run);
    run->stepped = stepped;
    give_back_tiers(run, run->options.plan);
}

/* There is no way to the next plan: a run that followed one goes back to where that starts. */
static tide_status go_back(tide_run *run, tide_status status) {
    if (!run->options.plan) return status;
    if (tide__run_enter_plan(run->online, run->options.plan) != TIDE_OK) return TIDE_E_POISONED;
    tide__run_online_close(run);
    give_back_tiers(run, run->options.plan);
    return status;
}

static tide_status adopt_plan(tide_run *run, const tide_plan *plan) {
    tide__run_online_close(run);
    tide__run_forget_plan(run);
    run->options.plan = plan;
    give_back_tiers(run, plan);
    return tide__run_prepare_plan(run);
}

tide_status tide_run_follow(tide_run *run, const tide_plan *plan) {
    TIDE_NEED(run, plan);
    TIDE_TRY(tide__run_check_rests(run));
    if (run->host || run->guest)
        return tide__fail(TIDE_E_ARGUMENT, "only a run without host and guest can begin to follow a plan");
    TIDE_TRY(tide__run_check_steps(run));
    TIDE_TRY(tide_plan_verify(plan, run->options.program, run->options.machine, &run->options.budgets, NULL));
    const bool stepped = run->stepped;
    bool is_intact;
    run->poisoned = true; /* until every value is there */
    tide_status status = lead_to(run, plan, &is_intact);
    if (status != TIDE_OK && is_intact) {
        remain(run, stepped);
        run->poisoned = false;
        return status;
    }
    if (tide_status_is_misfit(status)) status = go_back(run, status);
    if (status == TIDE_OK) status = adopt_plan(run, plan);
    run->poisoned = status != TIDE_OK && !tide_status_is_misfit(status);
    return status;
}
