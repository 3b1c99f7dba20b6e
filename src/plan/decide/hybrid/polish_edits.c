/* See polish_edits.h. */
#include "plan/decide/hybrid/polish_edits.h"

#include <stdlib.h>
#include <string.h>

#include "plan/evaluate.h"
#include "plan/decide/swaps/tiers.h"
#include "plan/schedule/schedule.h"

/* ---- applying ---- */

tide_status tide__edit_apply(const tide__edit *e, tide__decisions *d) {
    switch (e->kind) {
    case TIDE__EDIT_VARIANT: d->variants.data[e->index] = e->slot; break;
    case TIDE__EDIT_SWAP: d->swaps.data[e->index] = e->swap; break;
    case TIDE__EDIT_RERUN: d->reruns.data[e->index].slot = e->slot; break;
    case TIDE__EDIT_MOVE: return tide__vec_push(&d->swaps, e->swap);
    case TIDE__EDIT_REPEAT: return tide__vec_push(&d->reruns, ((tide__rerun){.slot = e->slot, .op = e->index}));
    }
    return TIDE_OK;
}

void tide__edits_clean(tide__decisions *d) {
    size_t n = 0;
    for (size_t i = 0; i < d->swaps.count; i++)
        if (d->swaps.data[i].tensor != TIDE_NONE) d->swaps.data[n++] = d->swaps.data[i];
    d->swaps.count = n;
    n = 0;
    for (size_t i = 0; i < d->reruns.count; i++)
        if (d->reruns.data[i].slot != TIDE_NONE) d->reruns.data[n++] = d->reruns.data[i];
    d->reruns.count = n;
}

bool tide__edits_clash(const tide__edit *a, const tide__edit *b) {
    return a->kind == b->kind && a->kind <= TIDE__EDIT_RERUN && a->index == b->index;
}

/* ---- what is decided ---- */

static tide_status list_variants(const tide__policy_input *in, const tide__decisions *d, tide__edits *out) {
    for (tide_id i = 0; i < d->variants.count; i++) {
        const tide_op *op = tide_program_op(in->program, i);
        for (uint32_t v = 0; v < op->n_variants; v++) {
            tide__edit e = {.kind = TIDE__EDIT_VARIANT, .index = i, .slot = v};
            bool same = op->variants[v].bits_class == op->variants[0].bits_class;
            if (v != d->variants.data[i] && (same || in->options->bits_any)) TIDE_TRY(tide__vec_push(out, e));
        }
    }
    return TIDE_OK;
}

/* It goes, or its SAVE or LOAD has another slot. */
static tide_status list_swap(const tide__decisions *d, uint32_t index, uint32_t n_slots, tide__edits *out) {
    tide__swap now = d->swaps.data[index];
    tide__edit e = {.kind = TIDE__EDIT_SWAP, .index = index, .swap = now};
    e.swap.tensor = TIDE_NONE;
    TIDE_TRY(tide__vec_push(out, e));
    if (now.load_slot == TIDE_NONE) return TIDE_OK;
    for (uint32_t slot = 0; slot < n_slots; slot++) {
        bool after = now.save_slot == TIDE_NONE || slot >= now.save_slot;
        e.swap = now;
        e.swap.load_slot = slot;
        if (slot != now.load_slot && after) TIDE_TRY(tide__vec_push(out, e));
        e.swap = now;
        e.swap.save_slot = slot;
        if (now.save_slot != TIDE_NONE && slot != now.save_slot && slot <= now.load_slot)
            TIDE_TRY(tide__vec_push(out, e));
    }
    return TIDE_OK;
}

static tide_status list_rerun(const tide__decisions *d, uint32_t index, uint32_t n_slots, tide__edits *out) {
    tide__rerun now = d->reruns.data[index];
    tide__edit e = {.kind = TIDE__EDIT_RERUN, .index = index, .slot = TIDE_NONE};
    TIDE_TRY(tide__vec_push(out, e));
    for (e.slot = now.op + 1; e.slot < n_slots; e.slot++)
        if (e.slot != now.slot) TIDE_TRY(tide__vec_push(out, e));
    return TIDE_OK;
}

/* ---- what is not ---- */

static bool is_rerun(const tide__decisions *d, tide_id op, uint32_t slot) {
    for (size_t i = 0; i < d->reruns.count; i++)
        if (d->reruns.data[i].op == op && d->reruns.data[i].slot == slot) return true;
    return false;
}

/* What overwrites its reads does not find them again. */
static bool can_repeat(const tide_op *op) {
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) return false;
    return op->rerunnable;
}

static tide_status list_repeats(const tide__policy_input *in, const tide__decisions *d, tide__edits *out) {
    uint32_t n = tide_program_op_count(in->program);
    for (tide_id op = 0; op < n; op++)
        for (uint32_t slot = op + 2; slot <= n && can_repeat(tide_program_op(in->program, op)); slot++) {
            tide__edit e = {.kind = TIDE__EDIT_REPEAT, .index = op, .slot = slot};
            if (!is_rerun(d, op, slot)) TIDE_TRY(tide__vec_push(out, e));
        }
    return TIDE_OK;
}

/* Is the value in the tier by the time it would leave? */
static bool is_saved(const tide__decisions *d, tide_id tensor, uint32_t tier, uint32_t slot) {
    for (size_t i = 0; i < d->swaps.count; i++) {
        const tide__swap *w = &d->swaps.data[i];
        if (w->tensor == tensor && w->tier == tier && (w->save_slot == TIDE_NONE || w->save_slot < slot)) return true;
    }
    return false;
}

/* Where a value of the program goes: back to the client, or to the first tier with room. */
static uint32_t tier_for(const tide__policy_input *in, tide_id tensor) {
    tide__tiers tiers = tide__tiers_with_room(in);
    if (tide_program_tensor(in->program, tensor)->start == TIDE_START_CLIENT)
        return tide_machine_find_tier(in->machine, TIDE_TIER_CLIENT);
    return tiers.n ? tiers.tier[0] : TIDE_NONE;
}

/* Between a use in slot `from` and the next in slot `to`, the value was made in slot `made`. */
static tide_status list_gap(const tide__policy_input *in, const tide__decisions *d, tide_id tensor, uint32_t made,
                            uint32_t from, uint32_t to, tide__edits *out) {
    tide__edit e = {.kind = TIDE__EDIT_MOVE, .swap = {.tensor = tensor, .tier = tier_for(in, tensor)}};
    bool saved = tide_program_tensor(in->program, tensor)->start == TIDE_START_CLIENT ||
                 is_saved(d, tensor, e.swap.tier, from + 1);
    if (e.swap.tier == TIDE_NONE) return TIDE_OK;
    e.swap.needed_slot = to;
    for (e.swap.load_slot = from + 2; e.swap.load_slot <= to; e.swap.load_slot++) {
        e.swap.save_slot = saved ? TIDE_NONE : from + 1;
        TIDE_TRY(tide__vec_push(out, e));
        e.swap.save_slot = made + 1;
        if (!saved && made < from) TIDE_TRY(tide__vec_push(out, e));
    }
    return TIDE_OK;
}

/* Walks over the uses of a plan that is scheduled. made, last: per residency, slots. */
static tide_status list_gaps(const tide__policy_input *in, const tide_plan *plan, const tide__decisions *d,
                             uint32_t *made, uint32_t *last, tide__edits *out) {
    uint32_t slot = 0;
    for (uint32_t i = 0; i < plan->actions.count; i++) {
        const tide__action *a = &plan->actions.data[i];
        for (uint32_t k = 0; k < a->n_uses && a->kind != TIDE_SAVE; k++) {
            tide_id r = plan->uses.data[a->uses + k];
            const tide_residency *at = &plan->residencies.data[r];
            if (at->begin == i) made[r] = last[r] = slot;
            if (at->tensor != TIDE_NONE && !at->at_start && slot > last[r] + 1)
                TIDE_TRY(list_gap(in, d, at->tensor, made[r], last[r], slot, out));
            last[r] = slot;
        }
        if (a->kind == TIDE_RUN && a->op == slot) slot++;
    }
    return TIDE_OK;
}

static tide_status list_moves(const tide__policy_input *in, const tide__decisions *d, tide__edits *out) {
    tide_plan *plan;
    TIDE_TRY(tide__evaluate_begin(in, &plan));
    tide_status status = tide__schedule(in->program, in->machine, d, plan);
    size_t n = plan->residencies.count;
    uint32_t *slots = status == TIDE_OK ? calloc(2 * n + 1, sizeof *slots) : NULL;
    if (status == TIDE_OK && !slots) status = tide__fail_memory();
    if (status == TIDE_OK) status = list_gaps(in, plan, d, slots, slots + n, out);
    free(slots);
    tide_plan_destroy(plan);
    return status;
}

tide_status tide__edits_list(const tide__policy_input *in, const tide__decisions *d, bool moves, bool reruns,
                             tide__edits *out) {
    uint32_t n_slots = tide_program_op_count(in->program) + 1;
    TIDE_TRY(list_variants(in, d, out));
    for (uint32_t i = 0; i < d->swaps.count; i++) TIDE_TRY(list_swap(d, i, n_slots, out));
    for (uint32_t i = 0; i < d->reruns.count; i++) TIDE_TRY(list_rerun(d, i, n_slots, out));
    if (moves) TIDE_TRY(list_moves(in, d, out));
    return reruns ? list_repeats(in, d, out) : TIDE_OK;
}
