/* Schedule: turns decisions into actions in issue order.
 *
 * One walk over the slots. Within slot k: SAVEs, LOADs, re-runs by ascending op, then op k itself. A use binds to
 * the tensor's current residency, which is the latest one made; a residency ends with its last use, so nothing else
 * has to say when a value leaves the arena. */
#include <stdlib.h>

#include "plan/schedule/scheduler.h"

typedef tide__slot_list slot_list;
typedef tide__scheduler scheduler;

/* ---- residencies, copies, actions ---- */

static uint32_t now(const scheduler *s) { return (uint32_t)s->plan->actions.count; }

static tide_status new_residency(scheduler *s, tide_id tensor, uint64_t size, tide_id *out) {
    *out = (tide_id)s->plan->residencies.count;
    tide_residency r = {.tensor = tensor, .size_bytes = size, .begin = now(s), .end = now(s)};
    return tide__vec_push(&s->plan->residencies, r);
}

static tide_status new_copy(scheduler *s, tide_id tensor, uint32_t tier, tide_id *out) {
    *out = (tide_id)s->plan->copies.count;
    tide_copy c = {
        .tensor = tensor, .tier = tier, .size_bytes = s->moved_bytes[tensor], .begin = now(s), .end = now(s)};
    TIDE_TRY(tide__vec_push(&s->next_copy, s->first_copy[tensor]));
    s->first_copy[tensor] = *out;
    return tide__vec_push(&s->plan->copies, c);
}

/* The tensor's latest copy in a tier; TIDE_NONE if there is none. */
static tide_id find_copy(const scheduler *s, tide_id tensor, uint32_t tier) {
    tide_id c = s->first_copy[tensor];
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a tensor with a first copy is in next_copy */
    while (c != TIDE_NONE && s->plan->copies.data[c].tier != tier) c = s->next_copy.data[c];
    return c;
}

/* Adds to the uses of the action that is being built. */
static tide_status use(scheduler *s, tide_id residency) {
    s->plan->residencies.data[residency].end = now(s) + 1;
    return tide__vec_push(&s->plan->uses, residency);
}

/* Ends the action whose uses start at `uses`. */
static tide_status emit(scheduler *s, tide__action action, size_t uses) {
    if (now(s) == TIDE_NONE - 1) return tide__fail(TIDE_E_OVERFLOW, "a plan of 2^32 actions");
    action.uses = uses;
    action.n_uses = (uint32_t)(s->plan->uses.count - uses);
    return tide__vec_push(&s->plan->actions, action);
}

static tide_status emit_load(scheduler *s, tide_id tensor, uint32_t tier) {
    tide_id copy = find_copy(s, tensor, tier), residency;
    if (copy == TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" is to be loaded from tier \"%s\", which does not have it",
                          tide__scheduler_name(s, tensor), s->machine->tier[tier].name);
    size_t uses = s->plan->uses.count;
    TIDE_TRY(new_residency(s, tensor, s->moved_bytes[tensor], &residency));
    TIDE_TRY(use(s, residency));
    s->current[tensor] = residency;
    s->plan->copies.data[copy].end = now(s) + 1;
    tide__action a = {
        .kind = TIDE_LOAD, .queue = tide_machine_queue(s->machine, tier, false), .op = TIDE_NONE, .copy = copy};
    return emit(s, a, uses);
}

static tide_status emit_save(scheduler *s, tide_id tensor, uint32_t tier) {
    tide_id copy, residency = s->current[tensor];
    if (residency == TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" is to be saved when it is not in the arena",
                          tide__scheduler_name(s, tensor));
    size_t uses = s->plan->uses.count;
    TIDE_TRY(new_copy(s, tensor, tier, &copy));
    s->plan->copies.data[copy].end = now(s) + 1;
    TIDE_TRY(use(s, residency));
    tide__action a = {
        .kind = TIDE_SAVE, .queue = tide_machine_queue(s->machine, tier, true), .op = TIDE_NONE, .copy = copy};
    return emit(s, a, uses);
}

/* CLIENT tensors come in just before their first use, unless a decision brought them in earlier. */
static tide_status load_inputs(scheduler *s, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide_id t = op->reads[i];
        uint32_t tier;
        if (s->current[t] != TIDE_NONE || tide_program_tensor(s->program, t)->start != TIDE_START_CLIENT) continue;
        TIDE_TRY(tide__scheduler_client_tier(s, t, &tier));
        TIDE_TRY(emit_load(s, t, tier));
    }
    return TIDE_OK;
}

/* Messages go beside compute. */
static tide_status find_peer_queue(const scheduler *s, const tide_message *message, uint32_t *out) {
    uint32_t tier = tide_machine_find_tier(s->machine, TIDE_TIER_PEER);
    uint32_t queue = tier == TIDE_NONE ? TIDE_NONE : tide_machine_queue(s->machine, tier, !message->receives);
    if (queue == TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "the program has messages, machine \"%s\" has no channels to peers",
                          s->machine->name);
    *out = queue;
    return TIDE_OK;
}

static tide_status emit_run(scheduler *s, tide_id id) {
    const tide_op *op = tide_program_op(s->program, id);
    uint32_t variant = s->decisions->variants.count > id ? s->decisions->variants.data[id] : 0;
    if (variant >= op->n_variants) return tide__fail(TIDE_E_ARGUMENT, "op \"%s\" has no variant %u", op->name, variant);
    TIDE_TRY(load_inputs(s, op));
    size_t uses = s->plan->uses.count;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide_id t = op->reads[i];
        if (s->current[t] == TIDE_NONE)
            return tide__fail(TIDE_E_ARGUMENT, "op %u \"%s\" needs tensor \"%s\", which is not in the arena then", id,
                              op->name, tide__scheduler_name(s, t));
        TIDE_TRY(use(s, s->current[t]));
    }
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) s->current[op->reads[op->inplace[i].read]] = TIDE_NONE;
    for (uint32_t i = 0; i < op->n_writes; i++) {
        tide_id t = op->writes[i];
        TIDE_TRY(new_residency(s, t, s->moved_bytes[t], &s->current[t]));
        TIDE_TRY(use(s, s->current[t]));
    }
    if (op->variants[variant].workspace_bytes) {
        tide_id workspace;
        TIDE_TRY(new_residency(s, TIDE_NONE, op->variants[variant].workspace_bytes, &workspace));
        TIDE_TRY(use(s, workspace));
    }
    tide__action a = {.kind = TIDE_RUN, .op = id, .variant = variant, .copy = TIDE_NONE};
    if (op->message) TIDE_TRY(find_peer_queue(s, op->message, &a.queue));
    return emit(s, a, uses);
}

/* ---- the start and the end of the step ---- */

/* Per tensor, what the decisions say of the start: in the arena, in a tier, or both. */
typedef struct start_place {
    uint32_t tier;      /* TIDE_NONE: in no tier */
    uint32_t load_slot; /* the first LOAD from there */
} start_place;

/* A PRESENT tensor whose absence begins with the step, and for which nothing better is known yet. */
static void note_start_place(const scheduler *s, const tide__swap *w, uint32_t load_slot, start_place *places) {
    if (w->save_slot != TIDE_NONE || places[w->tensor].tier != TIDE_NONE) return;
    if (tide_program_tensor(s->program, w->tensor)->start == TIDE_START_PRESENT)
        places[w->tensor] = (start_place){.tier = w->tier, .load_slot = load_slot};
}

/* The first LOAD of a PRESENT tensor that no earlier SAVE explains comes from a copy in the start map; so does what
 * stays in a tier all the time. */
static void find_start_places(const scheduler *s, start_place *places) {
    const tide__swap *swaps = s->decisions->swaps.data;
    for (tide_id t = 0; t < s->n_tensors; t++) places[t] = (start_place){.tier = TIDE_NONE, .load_slot = 0};
    for (size_t i = 0; i < s->loads.count; i++) {
        const tide__swap *w = &swaps[s->loads.items[i].index];
        note_start_place(s, w, w->load_slot, places);
    }
    for (size_t i = 0; i < s->decisions->swaps.count; i++)
        if (swaps[i].load_slot == TIDE_NONE) note_start_place(s, &swaps[i], s->n_ops, places);
    for (size_t i = 0; i < s->saves.count; i++) { /* saved here before: the copy is this step's own */
        const tide__swap *w = &swaps[s->saves.items[i].index];
        start_place *p = &places[w->tensor];
        if (p->tier == w->tier && w->save_slot <= p->load_slot) p->tier = TIDE_NONE;
    }
}

/* First op that reads each tensor; n_ops when none does. */
static void find_first_uses(const scheduler *s, uint32_t *first) {
    for (tide_id t = 0; t < s->n_tensors; t++) first[t] = s->n_ops;
    for (tide_id o = s->n_ops; o-- > 0;) {
        const tide_op *op = tide_program_op(s->program, o);
        for (uint32_t i = 0; i < op->n_reads; i++) first[op->reads[i]] = o;
    }
}

static tide_status start_tensor(scheduler *s, tide_id t, const start_place *place, uint32_t first_use) {
    const tide_tensor *tensor = tide_program_tensor(s->program, t);
    tide_id copy;
    uint32_t tier = place->tier;
    if (tensor->start == TIDE_START_CLIENT) TIDE_TRY(tide__scheduler_client_tier(s, t, &tier));
    if (tier != TIDE_NONE) {
        TIDE_TRY(new_copy(s, t, tier, &copy));
        s->plan->copies.data[copy].at_start = true;
    }
    if (tensor->start == TIDE_START_CLIENT || (tier != TIDE_NONE && first_use >= place->load_slot)) return TIDE_OK;
    TIDE_TRY(new_residency(s, t, s->moved_bytes[t], &s->current[t]));
    s->plan->residencies.data[s->current[t]].at_start = true;
    s->starts_in_arena[t] = true;
    return TIDE_OK;
}

static tide_status start_step(scheduler *s) {
    size_t n = s->n_tensors ? s->n_tensors : 1;
    start_place *places = malloc(n * sizeof *places);
    uint32_t *first = malloc(n * sizeof *first);
    tide_status status = places && first ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        find_start_places(s, places);
        find_first_uses(s, first);
    }
    for (tide_id t = 0; status == TIDE_OK && t < s->n_tensors; t++)
        if (tide_program_tensor(s->program, t)->start != TIDE_START_ABSENT)
            status = start_tensor(s, t, &places[t], first[t]);
    free(places);
    free(first);
    return status;
}

static void end_copy(scheduler *s, tide_id copy) {
    s->plan->copies.data[copy].at_end = true;
    s->plan->copies.data[copy].end = now(s);
}

/* Kept values whose last absence has no way back end in that tier. */
static tide_status end_in_tiers(scheduler *s) {
    for (size_t i = 0; i < s->decisions->swaps.count; i++) {
        const tide__swap *w = &s->decisions->swaps.data[i];
        if (w->load_slot != TIDE_NONE) continue;
        tide_id copy = find_copy(s, w->tensor, w->tier);
        if (copy == TIDE_NONE)
            return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" is to stay in a tier that does not have it",
                              tide__scheduler_name(s, w->tensor));
        if (tide_program_tensor(s->program, w->tensor)->keep) end_copy(s, copy);
    }
    return TIDE_OK;
}

/* What starts in a tier must have ended there. */
static tide_status carry_in_tiers(scheduler *s) {
    for (uint32_t i = 0; i < tide_program_carry_count(s->program); i++) {
        const tide_carry *c = tide_program_carry(s->program, i);
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): as in find_copy */
        for (tide_id k = s->first_copy[c->to]; k != TIDE_NONE; k = s->next_copy.data[k]) {
            const tide_copy *start = &s->plan->copies.data[k];
            if (!start->at_start) continue;
            tide_id end = find_copy(s, c->from, start->tier);
            if (end == TIDE_NONE)
                return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" starts in tier \"%s\", but \"%s\" does not end there",
                                  tide__scheduler_name(s, c->to), s->machine->tier[start->tier].name,
                                  tide__scheduler_name(s, c->from));
            end_copy(s, end);
        }
    }
    return TIDE_OK;
}

/* Per tensor: must it be in the arena at the end? Kept and in no tier then, or the next step finds it there. */
static void find_arena_ends(const scheduler *s, bool *ends) {
    for (tide_id t = 0; t < s->n_tensors; t++) ends[t] = tide_program_tensor(s->program, t)->keep;
    for (size_t i = 0; i < s->plan->copies.count; i++)
        if (s->plan->copies.data[i].at_end) ends[s->plan->copies.data[i].tensor] = false;
    for (uint32_t i = 0; i < tide_program_carry_count(s->program); i++) {
        const tide_carry *c = tide_program_carry(s->program, i);
        ends[c->from] |= s->starts_in_arena[c->to];
    }
}

static tide_status end_in_arena(scheduler *s) {
    bool *ends = malloc((s->n_tensors ? s->n_tensors : 1) * sizeof *ends);
    if (!ends) return tide__fail_memory();
    find_arena_ends(s, ends);
    tide_status status = TIDE_OK;
    for (tide_id t = 0; t < s->n_tensors && status == TIDE_OK; t++) {
        if (!ends[t]) continue;
        if (s->current[t] == TIDE_NONE) {
            status = tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" is needed in the arena at the end",
                                tide__scheduler_name(s, t));
            continue;
        }
        s->plan->residencies.data[s->current[t]].at_end = true;
        s->plan->residencies.data[s->current[t]].end = now(s);
    }
    free(ends);
    return status;
}

/* ---- the walk ---- */

static tide_status emit_rerun(scheduler *s, uint32_t index) {
    tide_id op = s->decisions->reruns.data[index].op;
    if (!tide_program_op(s->program, op)->rerunnable)
        return tide__fail(TIDE_E_ARGUMENT, "op \"%s\" cannot be re-run", tide_program_op(s->program, op)->name);
    return emit_run(s, op);
}

static tide_status emit_swap(scheduler *s, uint32_t index, bool saves) {
    const tide__swap *w = &s->decisions->swaps.data[index];
    return saves ? emit_save(s, w->tensor, w->tier) : emit_load(s, w->tensor, w->tier);
}

/* In the order that the decisions give. */
static tide_status emit_sequence(scheduler *s, uint32_t slot) {
    const tide__decisions *d = s->decisions;
    for (; s->at_step < d->sequence.count && d->sequence.data[s->at_step].slot == slot; s->at_step++) {
        tide__step step = d->sequence.data[s->at_step];
        if (step.index >= (step.kind == TIDE__STEP_RERUN ? d->reruns.count : d->swaps.count))
            return tide__fail(TIDE_E_ARGUMENT, "the sequence names decision %u, which is none", step.index);
        TIDE_TRY(step.kind == TIDE__STEP_RERUN ? emit_rerun(s, step.index)
                                               : emit_swap(s, step.index, step.kind == TIDE__STEP_SAVE));
    }
    return TIDE_OK;
}

/* The index of the next item in this slot; false when the slot has no more. */
static bool slot_list_take(slot_list *list, uint32_t slot, uint32_t *index) {
    if (list->at == list->count || list->items[list->at].key >> 32 != slot) return false;
    *index = list->items[list->at++].index;
    return true;
}

static tide_status emit_by_kind(scheduler *s, uint32_t slot) {
    uint32_t i;
    while (slot_list_take(&s->saves, slot, &i)) TIDE_TRY(emit_swap(s, i, true));
    while (slot_list_take(&s->loads, slot, &i)) TIDE_TRY(emit_swap(s, i, false));
    while (slot_list_take(&s->reruns, slot, &i)) TIDE_TRY(emit_rerun(s, i));
    return TIDE_OK;
}

static tide_status emit_slot(scheduler *s, uint32_t slot) {
    TIDE_TRY(s->decisions->sequence.count ? emit_sequence(s, slot) : emit_by_kind(s, slot));
    return slot < s->n_ops ? emit_run(s, slot) : TIDE_OK;
}

/* The next batch: a kept CLIENT tensor that nothing read and no decision brought in. */
static tide_status load_kept_inputs(scheduler *s) {
    for (tide_id t = 0; t < s->n_tensors; t++) {
        const tide_tensor *tensor = tide_program_tensor(s->program, t);
        uint32_t tier;
        if (!tensor->keep || tensor->start != TIDE_START_CLIENT || s->current[t] != TIDE_NONE) continue;
        TIDE_TRY(tide__scheduler_client_tier(s, t, &tier));
        TIDE_TRY(emit_load(s, t, tier));
    }
    return TIDE_OK;
}

static tide_status walk(scheduler *s) {
    TIDE_TRY(start_step(s));
    for (uint32_t slot = 0; slot <= s->n_ops; slot++) TIDE_TRY(emit_slot(s, slot));
    TIDE_TRY(load_kept_inputs(s));
    TIDE_TRY(end_in_tiers(s));
    TIDE_TRY(carry_in_tiers(s));
    return end_in_arena(s);
}

tide_status tide__schedule(const tide_program *program, const tide_machine *machine, const tide__decisions *decisions,
                           tide_plan *plan) {
    scheduler s = {.program = program, .machine = machine, .decisions = decisions, .plan = plan};
    tide_status status = tide__scheduler_init(&s);
    if (status == TIDE_OK) status = walk(&s);
    tide__scheduler_deinit(&s);
    return status;
}
