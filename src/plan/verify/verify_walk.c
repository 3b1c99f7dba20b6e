/* The walk: every action in issue order, with vector clocks, over the owners of all bytes.
 *
 * Why it is enough to look at each creation and each read once: take any two accesses to the same byte that belong to
 * different holdings. The later holding (in issue order) took the byte from the earlier one, directly or through
 * others; each take demands that the earlier owner's interval is over and that all its accesses are ordered before
 * the creation; and every access of the later holding is ordered after that creation. So the two accesses are ordered
 * whatever the timing. Two accesses of the same holding: one creation, which all reads are ordered after; reads do
 * not disturb each other. */
#include <inttypes.h>

#include "plan/verify/verify_state.h"

/* Action j is complete before action i starts, or j is i. */
static bool ordered(const tide__verifier *v, uint32_t j, uint32_t i) {
    return v->clock[(size_t)i * v->n_queues + v->plan->actions.data[j].queue] > j;
}

/* clock(to) = max(clock(to), clock(from)), entry by entry. */
static void join_clock(tide__verifier *v, uint32_t to, uint32_t from) {
    uint32_t *a = v->clock + (size_t)to * v->n_queues;
    const uint32_t *b = v->clock + (size_t)from * v->n_queues;
    for (uint32_t q = 0; q < v->n_queues; q++)
        if (b[q] > a[q]) a[q] = b[q];
}

/* last[q]: 1 + the last action of queue q so far; 0: none. */
static void set_clock(tide__verifier *v, uint32_t i, uint32_t *last) {
    const tide__action *a = &v->plan->actions.data[i];
    if (last[a->queue] > 0) join_clock(v, i, last[a->queue] - 1);
    for (uint32_t k = 0; k < a->n_waits; k++) join_clock(v, i, v->plan->waits.data[a->waits + k]);
    v->clock[(size_t)i * v->n_queues + a->queue] = i + 1;
    last[a->queue] = i + 1;
}

/* ---- accesses ---- */
static void touch(tide__verifier *v, uint32_t i, uint32_t h) {
    v->touched[(size_t)h * v->n_queues + v->plan->actions.data[i].queue] = i + 1;
}

static tide_status read_holding(tide__verifier *v, uint32_t i, uint32_t h) {
    const tide__holding *holding = &v->holding[h];
    TIDE__DEMAND(i >= holding->begin && i < holding->end, LIFETIME, i, "it reads %s, which exists on [%u, %u)",
                 tide__label_holding(v, h).text, holding->begin, holding->end);
    TIDE__DEMAND(holding->created, CREATE, i, "it reads %s, which nothing has created", tide__label_holding(v, h).text);
    TIDE__DEMAND(holding->creator == TIDE_NONE || ordered(v, holding->creator, i), READY, i,
                 "it reads %s, but is not ordered after action %u, which makes it", tide__label_holding(v, h).text,
                 holding->creator);
    touch(v, i, h);
    return TIDE_OK;
}

/* `to` takes over bytes of `from` in action i: they are an in-place pair of a RUN, at one offset, or what a RELOCATE reads
 * and makes, at any; and `from` dies here (at the last action its interval reaches the end of the step all the same; then it
 * may not be needed there). */
static bool is_hand_over(const tide__verifier *v, uint32_t i, uint32_t from, uint32_t to) {
    const tide__holding *old = &v->holding[from], *new = &v->holding[to];
    bool in_place = new->offset == old->offset || v->plan->actions.data[i].kind == TIDE_RELOCATE;
    return new->partner == from &&in_place && old->end == i + 1 && !old->at_end;
}

/* Bytes of `old` go to `h`, created by action i (TIDE_NONE: at the start). */
static tide_status check_take(tide__verifier *v, uint32_t i, uint32_t old, uint32_t h) {
    TIDE__DEMAND(i != TIDE_NONE && (v->holding[old].end <= i || is_hand_over(v, i, old, h)), OVERLAP, i,
                 "%s at %" PRIu64 " overlaps %s, alive on [%u, %u)", tide__label_holding(v, h).text,
                 v->holding[h].offset, tide__label_holding(v, old).text, v->holding[old].begin, v->holding[old].end);
    const uint32_t *touched = v->touched + (size_t)old * v->n_queues;
    const uint32_t *clock = v->clock + (size_t)i * v->n_queues;
    for (uint32_t q = 0; q < v->n_queues; q++)
        TIDE__DEMAND(touched[q] <= clock[q], REUSE, i, "it makes %s, but is not ordered after action %u, which uses %s",
                     tide__label_holding(v, h).text, touched[q] - 1, tide__label_holding(v, old).text);
    return TIDE_OK;
}

/* All bytes of h leave their owners for h. A client tier has no addresses. */
static tide_status take_bytes(tide__verifier *v, uint32_t i, uint32_t h) {
    const tide__holding *holding = &v->holding[h];
    if (holding->size == 0 || tide__in_client_tier(v, holding)) return TIDE_OK;
    tide__verify_ranges *space = &v->space[holding->space];
    size_t begin = tide__ranges_cut(space, holding->offset);
    size_t end = tide__ranges_cut(space, holding->offset + holding->size);
    for (size_t p = begin; p < end; p = tide__ranges_next(space, p))
        if (space->owner[p] != TIDE_NONE) TIDE_TRY(check_take(v, i, space->owner[p], h));
    tide__ranges_join(space, begin, end, h);
    return TIDE_OK;
}

static tide_status create_holding(tide__verifier *v, uint32_t i, uint32_t h) {
    tide__holding *holding = &v->holding[h];
    TIDE__DEMAND(!holding->created, CREATE, i, "it makes %s a second time", tide__label_holding(v, h).text);
    TIDE__DEMAND(holding->begin == i, CREATE, i, "it makes %s, which begins at %u", tide__label_holding(v, h).text,
                 holding->begin);
    TIDE__DEMAND(holding->end > i, LIFETIME, i, "it makes %s, which ends before it", tide__label_holding(v, h).text);
    TIDE_TRY(take_bytes(v, i, h));
    holding->created = true;
    holding->creator = i;
    touch(v, i, h);
    return TIDE_OK;
}

/* ---- actions ---- */

/* Its effects are not in the values that it writes: it keeps its order with others of the kind. */
static bool is_fixed(const tide__verifier *v, tide_id id) {
    const tide_op *op = tide_program_op(v->program, id);
    bool destroys = false;
    for (uint32_t k = 0; k < op->n_inplace; k++) destroys = destroys || op->inplace[k].must;
    return v->all_fixed || (!op->rerunnable && !destroys);
}

/* In program order, or, where the plan says that it has an order of its own, whenever its reads are there, which
 * read_holding sees to: a value comes from the start map or from a run of its op, whatever moved in between. */
static tide_status check_first_run(tide__verifier *v, uint32_t i, tide_id op) {
    TIDE__DEMAND(v->plan->reordered || op == v->next_op, ORDER, i, "it runs %s before %s", tide__label_op(v, op).text,
                 tide__label_op(v, v->next_op).text);
    if (!is_fixed(v, op)) return TIDE_OK;
    TIDE__DEMAND(v->last_fixed == TIDE_NONE || op > v->last_fixed, ORDER, i, "it runs %s after %s",
                 tide__label_op(v, op).text, tide__label_op(v, v->last_fixed).text);
    v->last_fixed = op;
    return TIDE_OK;
}

/* First runs in the plan's order; re-runs only of what can be re-run, with the same variant. */
static tide_status check_run_order(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    uint32_t first = v->first_variant[a->op];
    if (first == TIDE_NONE) {
        TIDE_TRY(check_first_run(v, i, a->op));
        v->first_variant[a->op] = a->variant;
        while (v->next_op < v->n_ops && v->first_variant[v->next_op] != TIDE_NONE) v->next_op++;
        return TIDE_OK;
    }
    TIDE__DEMAND(tide_program_op(v->program, a->op)->rerunnable, RERUN, i, "it re-runs %s, which must run once",
                 tide__label_op(v, a->op).text);
    TIDE__DEMAND(a->variant == first, VARIANT, i, "it re-runs %s as variant %u, the first run was variant %u",
                 tide__label_op(v, a->op).text, a->variant, first);
    return TIDE_OK;
}

/* Notes the in-place pairs of the op. A kernel that must update in place gets one offset for both values; empty values
 * lie nowhere. */
static tide_status bind_pairs(tide__verifier *v, uint32_t i, const tide_op *op) {
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        uint32_t read = tide__use(v, i, op->inplace[k].read);
        uint32_t write = tide__use(v, i, op->n_reads + op->inplace[k].write);
        bool empty = v->holding[read].size == 0 || v->holding[write].size == 0;
        v->holding[write].partner = read;
        TIDE__DEMAND(!op->inplace[k].must || empty || v->holding[read].offset == v->holding[write].offset, INPLACE, i,
                     "it updates %s in place, but %s lies elsewhere", tide__label_holding(v, read).text,
                     tide__label_holding(v, write).text);
    }
    return TIDE_OK;
}

/* One order for all ranks: none waits for another in a circle. */
static tide_status check_message_order(tide__verifier *v, uint32_t i, const tide_message *message) {
    TIDE__DEMAND(message->number >= v->next_message, MESSAGE, i, "%s is message %" PRIu64 ", after message %" PRIu64,
                 tide__label_op(v, v->plan->actions.data[i].op).text, message->number, v->next_message - 1);
    v->next_message = message->number + 1;
    return TIDE_OK;
}

static tide_status walk_run(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    const tide_op *op = tide_program_op(v->program, a->op);
    if (op->message) TIDE_TRY(check_message_order(v, i, op->message));
    TIDE_TRY(check_run_order(v, i));
    TIDE_TRY(bind_pairs(v, i, op));
    for (uint32_t k = 0; k < op->n_reads; k++) TIDE_TRY(read_holding(v, i, tide__use(v, i, k)));
    for (uint32_t k = op->n_reads; k < a->n_uses; k++) TIDE_TRY(create_holding(v, i, tide__use(v, i, k)));
    return TIDE_OK;
}

static tide_status walk_move(tide__verifier *v, uint32_t i) {
    const tide__action *a = &v->plan->actions.data[i];
    uint32_t residency = tide__use(v, i, 0), copy = v->n_residencies + a->copy;
    TIDE_TRY(read_holding(v, i, a->kind == TIDE_SAVE ? residency : copy));
    return create_holding(v, i, a->kind == TIDE_SAVE ? copy : residency);
}

static tide_status walk_relocate(tide__verifier *v, uint32_t i) {
    uint32_t from = tide__use(v, i, 0), to = tide__use(v, i, 1);
    v->holding[to].partner = from;
    TIDE_TRY(read_holding(v, i, from));
    return create_holding(v, i, to);
}

static tide_status walk_action(tide__verifier *v, uint32_t i) {
    switch (v->plan->actions.data[i].kind) {
    case TIDE_RUN: return walk_run(v, i);
    case TIDE_RELOCATE: return walk_relocate(v, i);
    default: return walk_move(v, i);
    }
}

/* ---- before and after ---- */
static tide_status prepare_spaces(tide__verifier *v) {
    for (uint32_t h = 0; h < v->n_holdings; h++) {
        const tide__holding *holding = &v->holding[h];
        if (tide__in_client_tier(v, holding)) continue;
        TIDE_TRY(tide__ranges_add_point(&v->space[holding->space], holding->offset));
        TIDE_TRY(tide__ranges_add_point(&v->space[holding->space], holding->offset + holding->size));
    }
    for (uint32_t s = 0; s <= v->machine->n_tiers; s++) TIDE_TRY(tide__ranges_seal(&v->space[s]));
    return TIDE_OK;
}

/* What is there at the start owns its bytes before action 0, even if it ends before action 0. */
static tide_status create_at_start(tide__verifier *v) {
    for (uint32_t h = 0; h < v->n_holdings; h++) {
        if (!v->holding[h].at_start) continue;
        TIDE_TRY(take_bytes(v, TIDE_NONE, h));
        v->holding[h].created = true;
    }
    return TIDE_OK;
}

static tide_status check_all_done(tide__verifier *v) {
    TIDE__DEMAND(v->next_op == v->n_ops, ORDER, TIDE_NONE, "%s never runs", tide__label_op(v, v->next_op).text);
    for (uint32_t h = 0; h < v->n_holdings; h++)
        TIDE__DEMAND(v->holding[h].created, CREATE, TIDE_NONE, "nothing creates %s", tide__label_holding(v, h).text);
    return TIDE_OK;
}

static bool can_nothing_rerun(const tide__verifier *v) {
    for (tide_id op = 0; op < v->n_ops; op++)
        if (tide_program_op(v->program, op)->rerunnable) return false;
    return true;
}

tide_status tide__verify_walk(tide__verifier *v) {
    uint32_t last[1 + TIDE_MACHINE_MAX_CHANNELS] = {0};
    v->last_fixed = TIDE_NONE;
    v->all_fixed = can_nothing_rerun(v);
    TIDE_TRY(prepare_spaces(v));
    TIDE_TRY(create_at_start(v));
    for (uint32_t i = 0; i < v->n_actions; i++) {
        set_clock(v, i, last);
        TIDE_TRY(walk_action(v, i));
    }
    return check_all_done(v);
}
