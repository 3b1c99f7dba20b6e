/* The shape of a plan: what can be said of one residency, copy or action without looking at any other moment. Runs
 * first and leaves every id, count and size that the walk relies on in range. */
#include <inttypes.h>

#include "base/size.h"
#include "plan/verify/verify_state.h"

/* ---- budgets ---- */
static tide_status check_budgets(tide__verifier *v) {
    const tide_plan *plan = v->plan;
    uint64_t arena = v->budgets ? v->budgets->arena_bytes : UINT64_MAX;
    TIDE__DEMAND(plan->arena_bytes <= arena, BUDGET, TIDE_NONE,
                 "the arena of %" PRIu64 " bytes exceeds the budget of %" PRIu64, plan->arena_bytes, arena);
    for (uint32_t t = 0; t < v->machine->n_tiers; t++) {
        const tide_machine_tier *tier = &v->machine->tier[t];
        if (tier->kind == TIDE_TIER_CLIENT) continue;
        uint64_t limit = tide__min_u64(tier->capacity_bytes, v->budgets ? v->budgets->tier_bytes[t] : UINT64_MAX);
        TIDE__DEMAND(plan->tier_bytes[t] <= limit, BUDGET, TIDE_NONE,
                     "%" PRIu64 " bytes of tier \"%.32s\" exceed its limit of %" PRIu64, plan->tier_bytes[t],
                     tier->name, limit);
    }
    return TIDE_OK;
}

/* ---- residencies and copies ---- */
static tide_status check_interval(tide__verifier *v, uint32_t i) {
    const tide__holding *h = &v->holding[i];
    TIDE__DEMAND(h->begin <= h->end && h->end <= v->n_actions, LIFETIME, TIDE_NONE,
                 "%s exists on [%u, %u) of %u actions", tide__label_holding(v, i).text, h->begin, h->end, v->n_actions);
    TIDE__DEMAND(!h->at_start || h->begin == 0, LIFETIME, TIDE_NONE, "%s is in the start map but begins at %u",
                 tide__label_holding(v, i).text, h->begin);
    TIDE__DEMAND(!h->at_end || h->end == v->n_actions, LIFETIME, TIDE_NONE,
                 "%s is in the end map but ends at %u of %u actions", tide__label_holding(v, i).text, h->end,
                 v->n_actions);
    return TIDE_OK;
}

/* Inside the arena or its tier. A client tier has neither offsets nor a size of its own. */
static tide_status check_extent(tide__verifier *v, uint32_t i) {
    const tide__holding *h = &v->holding[i];
    if (tide__in_client_tier(v, h)) return TIDE_OK;
    uint64_t limit = h->space == 0 ? v->plan->arena_bytes : v->plan->tier_bytes[h->space - 1], end;
    TIDE__DEMAND(tide__add(h->offset, h->size, &end) && end <= limit, BUDGET, TIDE_NONE,
                 "%s at %" PRIu64 " + %" PRIu64 " bytes leaves the %" PRIu64 " bytes the plan declares",
                 tide__label_holding(v, i).text, h->offset, h->size, limit);
    TIDE__DEMAND(h->space != 0 || h->offset % v->machine->align_bytes == 0, ALIGN, TIDE_NONE,
                 "%s lies at %" PRIu64 ", not a multiple of %u", tide__label_holding(v, i).text, h->offset,
                 v->machine->align_bytes);
    return TIDE_OK;
}

static tide_status check_residency(tide__verifier *v, uint32_t i) {
    const tide__holding *h = &v->holding[i];
    const tide_tensor *tensor = tide_program_tensor(v->program, h->tensor);
    TIDE__DEMAND(tensor || h->tensor == TIDE_NONE, TABLE, TIDE_NONE, "residency %u is of tensor %u of %u", i, h->tensor,
                 v->n_tensors);
    TIDE__DEMAND(!tensor || h->size >= tensor->size_bytes, SIZE, TIDE_NONE, "%s has %" PRIu64 " of %" PRIu64 " bytes",
                 tide__label_holding(v, i).text, h->size, tensor->size_bytes);
    TIDE_TRY(check_interval(v, i));
    return check_extent(v, i);
}

/* A copy is as moved: whole blocks of its tier, in offset and size. */
static tide_status check_copy(tide__verifier *v, uint32_t i) {
    const tide__holding *h = &v->holding[i];
    const tide_tensor *tensor = tide_program_tensor(v->program, h->tensor);
    uint32_t copy = i - v->n_residencies;
    TIDE__DEMAND(tensor, TABLE, TIDE_NONE, "copy %u is of tensor %u of %u", copy, h->tensor, v->n_tensors);
    TIDE__DEMAND(h->space <= v->machine->n_tiers, TABLE, TIDE_NONE, "copy %u is in tier %u of %u", copy, h->space - 1,
                 v->machine->n_tiers);
    TIDE__DEMAND(h->size >= tensor->size_bytes, SIZE, TIDE_NONE, "%s has %" PRIu64 " of %" PRIu64 " bytes",
                 tide__label_holding(v, i).text, h->size, tensor->size_bytes);
    bool client = tide__in_client_tier(v, h);
    uint32_t block = v->machine->tier[h->space - 1].block_bytes;
    TIDE__DEMAND(h->size % block == 0 && (client || h->offset % block == 0), ALIGN, TIDE_NONE,
                 "%s at %" PRIu64 " + %" PRIu64 " bytes is not in blocks of %u", tide__label_holding(v, i).text,
                 h->offset, h->size, block);
    TIDE__DEMAND(!client || (h->at_start && !h->at_end && tensor->start == TIDE_START_CLIENT), CLIENT, TIDE_NONE,
                 "%s is in a client tier, which holds CLIENT tensors from the start and takes nothing back",
                 tide__label_holding(v, i).text);
    TIDE_TRY(check_interval(v, i));
    return check_extent(v, i);
}

/* ---- actions ---- */

/* The lists of all actions together fit in the shared arrays, so that reading them all is linear. */
static tide_status check_lists(tide__verifier *v) {
    const tide_plan *plan = v->plan;
    size_t uses_left = plan->uses.count, waits_left = plan->waits.count;
    for (uint32_t i = 0; i < v->n_actions; i++) {
        const tide__action *a = &plan->actions.data[i];
        bool inside = a->uses <= plan->uses.count && a->n_uses <= plan->uses.count - a->uses &&
                      a->waits <= plan->waits.count && a->n_waits <= plan->waits.count - a->waits;
        TIDE__DEMAND(inside && a->n_uses <= uses_left && a->n_waits <= waits_left, TABLE, i,
                     "its lists of %u uses and %u waits leave the plan's arrays", a->n_uses, a->n_waits);
        uses_left -= a->n_uses;
        waits_left -= a->n_waits;
    }
    return TIDE_OK;
}

static tide_status check_waits(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    for (uint32_t k = 0; k < a->n_waits; k++) {
        const uint32_t *waits = v->plan->waits.data + a->waits;
        TIDE__DEMAND(waits[k] < i, WAIT, i, "it waits for action %u, which is not earlier", waits[k]);
        TIDE__DEMAND(k == 0 || waits[k - 1] < waits[k], WAIT, i, "its waits %u and %u do not ascend", waits[k - 1],
                     waits[k]);
    }
    return TIDE_OK;
}

static tide_status check_use_ids(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    for (uint32_t k = 0; k < a->n_uses; k++)
        TIDE__DEMAND(tide__use(v, i, k) < v->n_residencies, TABLE, i, "use %u is residency %u of %u", k,
                     tide__use(v, i, k), v->n_residencies);
    return TIDE_OK;
}

static tide_status check_bound(tide__verifier *v, uint32_t i, uint32_t position, tide_id tensor) {
    uint32_t r = tide__use(v, i, position);
    TIDE__DEMAND(v->holding[r].tensor == tensor, BINDING, i, "use %u is %s instead of %s", position,
                 tide__label_holding(v, r).text, tide__label_tensor(v, tensor).text);
    return TIDE_OK;
}

static tide_status check_workspace(tide__verifier *v, uint32_t i, uint32_t position, uint64_t bytes) {
    uint32_t r = tide__use(v, i, position);
    TIDE_TRY(check_bound(v, i, position, TIDE_NONE));
    TIDE__DEMAND(v->holding[r].size >= bytes, SIZE, i, "the workspace has %" PRIu64 " of %" PRIu64 " bytes",
                 v->holding[r].size, bytes);
    return TIDE_OK;
}

static tide_status check_variant(tide__verifier *v, uint32_t i, const tide_op *op) {
    const tide__action *a = &v->plan->actions.data[i];
    TIDE__DEMAND(a->variant < op->n_variants, VARIANT, i, "%s has no variant %u", tide__label_op(v, a->op).text,
                 a->variant);
    TIDE__DEMAND(v->plan->bits_any || op->variants[a->variant].bits_class == op->variants[0].bits_class, VARIANT, i,
                 "variant %u of %s gives other bits than the default one", a->variant, tide__label_op(v, a->op).text);
    return TIDE_OK;
}

static tide_status check_compute_queue(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    TIDE__DEMAND(a->queue == 0, QUEUE, i, "it runs %s on queue %u", tide__label_op(v, a->op).text, a->queue);
    return TIDE_OK;
}

static tide_status check_peer_queue(tide__verifier *v, uint32_t i, const tide_message *message) {
    const tide__action *a = &v->plan->actions.data[i];
    bool inside = a->queue >= 1 && a->queue < v->n_queues;
    const tide_machine_channel *channel = &v->machine->channel[inside ? a->queue - 1 : 0];
    TIDE__DEMAND(inside && v->machine->tier[channel->tier].kind == TIDE_TIER_PEER && channel->out == !message->receives,
                 QUEUE, i, "queue %u does not %s peers, as %s does", a->queue,
                 message->receives ? "receive from" : "send to", tide__label_op(v, a->op).text);
    return TIDE_OK;
}

static tide_status check_run(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    const tide_op *op = tide_program_op(v->program, a->op);
    TIDE__DEMAND(op, TABLE, i, "it runs op %u of %u", a->op, v->n_ops);
    TIDE__DEMAND(a->copy == TIDE_NONE, TABLE, i, "it runs an op and names copy %u", a->copy);
    TIDE_TRY(op->message ? check_peer_queue(v, i, op->message) : check_compute_queue(v, i));
    TIDE_TRY(check_variant(v, i, op));
    uint64_t workspace = op->variants[a->variant].workspace_bytes;
    uint64_t n_uses = (uint64_t)op->n_reads + op->n_writes + (workspace > 0);
    TIDE__DEMAND(a->n_uses == n_uses, TABLE, i, "%s needs %" PRIu64 " uses and has %u", tide__label_op(v, a->op).text,
                 n_uses, a->n_uses);
    TIDE_TRY(check_use_ids(v, i));
    for (uint32_t k = 0; k < op->n_reads; k++) TIDE_TRY(check_bound(v, i, k, op->reads[k]));
    for (uint32_t k = 0; k < op->n_writes; k++) TIDE_TRY(check_bound(v, i, op->n_reads + k, op->writes[k]));
    return workspace > 0 ? check_workspace(v, i, op->n_reads + op->n_writes, workspace) : TIDE_OK;
}

/* The bytes that move: the residency has the copy's size and lies on the tier's blocks, as the copy does. */
static tide_status check_moved_bytes(tide__verifier *v, uint32_t i, const tide__holding *from_arena,
                                     const tide__holding *copy) {
    uint32_t block = v->machine->tier[copy->space - 1].block_bytes;
    TIDE__DEMAND(from_arena->size == copy->size, SIZE, i,
                 "it moves between a residency of %" PRIu64 " and a copy of %" PRIu64 " bytes", from_arena->size,
                 copy->size);
    TIDE__DEMAND(from_arena->offset % block == 0, ALIGN, i,
                 "it moves bytes at %" PRIu64 ", not a multiple of the block of %u", from_arena->offset, block);
    return TIDE_OK;
}

static tide_status check_move(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    TIDE__DEMAND(a->copy < v->n_holdings - v->n_residencies, TABLE, i, "it moves copy %u of %u", a->copy,
                 v->n_holdings - v->n_residencies);
    TIDE__DEMAND(a->op == TIDE_NONE, TABLE, i, "a move runs no op, this one %u", a->op);
    TIDE__DEMAND(a->n_uses == 1, TABLE, i, "a move uses one residency, this one %u", a->n_uses);
    TIDE_TRY(check_use_ids(v, i));
    const tide__holding *copy = &v->holding[v->n_residencies + a->copy];
    const tide__holding *residency = &v->holding[tide__use(v, i, 0)];
    TIDE__DEMAND(a->kind == TIDE_LOAD || !tide__in_client_tier(v, copy), CLIENT, i, "it saves to a client tier");
    TIDE__DEMAND(a->queue >= 1 && a->queue < v->n_queues, QUEUE, i, "a move is on queue %u of %u", a->queue,
                 v->n_queues);
    const tide_machine_channel *channel = &v->machine->channel[a->queue - 1];
    TIDE__DEMAND(channel->tier == copy->space - 1 && channel->out == (a->kind == TIDE_SAVE), QUEUE, i,
                 "queue %u does not %s tier %u", a->queue, a->kind == TIDE_SAVE ? "save to" : "load from",
                 copy->space - 1);
    TIDE_TRY(check_bound(v, i, 0, copy->tensor));
    return check_moved_bytes(v, i, residency, copy);
}

static tide_status check_relocate(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    TIDE__DEMAND(a->queue == 0, QUEUE, i, "it relocates on queue %u", a->queue);
    TIDE__DEMAND(a->n_uses == 2 && a->copy == TIDE_NONE && a->op == TIDE_NONE, TABLE, i,
                 "a relocation uses two residencies, no copy and no op, this one %u", a->n_uses);
    TIDE_TRY(check_use_ids(v, i));
    const tide__holding *from = &v->holding[tide__use(v, i, 0)], *to = &v->holding[tide__use(v, i, 1)];
    TIDE__DEMAND(from->tensor != TIDE_NONE, BINDING, i, "it relocates %s, which holds no value",
                 tide__label_holding(v, tide__use(v, i, 0)).text);
    TIDE_TRY(check_bound(v, i, 1, from->tensor));
    TIDE__DEMAND(from->size == to->size, SIZE, i, "it relocates %" PRIu64 " bytes to a residency of %" PRIu64,
                 from->size, to->size);
    return TIDE_OK;
}

static tide_status check_action(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    TIDE_TRY(check_waits(v, i));
    if (a->kind == TIDE_RUN) return check_run(v, i);
    if (a->kind == TIDE_RELOCATE) return check_relocate(v, i);
    TIDE__DEMAND(a->kind == TIDE_SAVE || a->kind == TIDE_LOAD, TABLE, i, "it is of no known kind");
    return check_move(v, i);
}

tide_status tide__verify_shape(tide__verifier *v) {
    TIDE_TRY(check_budgets(v));
    for (uint32_t i = 0; i < v->n_residencies; i++) TIDE_TRY(check_residency(v, i));
    for (uint32_t i = v->n_residencies; i < v->n_holdings; i++) TIDE_TRY(check_copy(v, i));
    TIDE_TRY(check_lists(v));
    for (uint32_t i = 0; i < v->n_actions; i++) TIDE_TRY(check_action(v, i));
    return TIDE_OK;
}
