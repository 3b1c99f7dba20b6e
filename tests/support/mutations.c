/* Mutations of single fields: a wait, an offset, an id, a flag. See mutations.h. */
#include "support/mutations.h"

#include "support/mutations_pick.h"

random_case mutation_copy(const random_case *c) {
    random_case copy = *c;
    assert_ok(tide__plan_clone(c->plan, &copy.plan));
    return copy;
}

/* ---- waits ---- */
static bool drop_wait(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->n_waits > 0);
    for (uint32_t k = pick(random, a->n_waits); k + 1 < a->n_waits; k++) *wait_of(c, a, k) = *wait_of(c, a, k + 1);
    a->n_waits--;
    return true;
}

static bool wait_earlier(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->n_waits > 0 && *wait_of(c, x, 0) > 0);
    *wait_of(c, a, 0) = pick(random, *wait_of(c, a, 0));
    return true;
}

static bool wait_later(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->n_waits > 0);
    *wait_of(c, a, a->n_waits - 1) = index_of(c, a) + pick(random, 3);
    return true;
}

static bool wait_twice(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->n_waits > 1);
    *wait_of(c, a, 1) = *wait_of(c, a, 0);
    return true;
}

/* ---- places ---- */
static bool move_residency(random_case *c, uint64_t *random) {
    PICK_RESIDENCY(r, x->size_bytes > 0 && x->size_bytes < c->plan->arena_bytes);
    uint64_t old = r->offset_bytes, align = c->machine.align_bytes;
    r->offset_bytes = random_below(random, c->plan->arena_bytes - r->size_bytes + 1) / align * align;
    return r->offset_bytes != old;
}

static bool nudge_residency(random_case *c, uint64_t *random) {
    PICK_RESIDENCY(r, x->size_bytes > 0 && x->offset_bytes >= c->machine.align_bytes);
    r->offset_bytes -= c->machine.align_bytes;
    return true;
}

static bool move_copy(random_case *c, uint64_t *random) {
    PICK_COPY(r, !is_client(c, x) && x->size_bytes > 0 && x->size_bytes < c->plan->tier_bytes[x->tier]);
    uint64_t old = r->offset_bytes, block = c->machine.tier[r->tier].block_bytes;
    r->offset_bytes = random_below(random, c->plan->tier_bytes[r->tier] - r->size_bytes + 1) / block * block;
    return r->offset_bytes != old;
}

static bool misalign(random_case *c, uint64_t *random) {
    if (c->machine.align_bytes == 1) return false;
    PICK_RESIDENCY(r, x->offset_bytes + x->size_bytes < c->plan->arena_bytes);
    r->offset_bytes++;
    return true;
}

static bool misalign_copy(random_case *c, uint64_t *random) {
    PICK_COPY(r, !is_client(c, x) && c->machine.tier[x->tier].block_bytes > 1 && x->offset_bytes > 0);
    r->offset_bytes--;
    return true;
}

static bool shrink_residency(random_case *c, uint64_t *random) {
    PICK_RESIDENCY(r, x->size_bytes > 0);
    r->size_bytes -= 1 + random_below(random, r->size_bytes);
    return true;
}

static bool shrink_copy(random_case *c, uint64_t *random) {
    PICK_COPY(r, x->size_bytes > 0);
    r->size_bytes -= 1 + random_below(random, r->size_bytes);
    return true;
}

static bool grow_residency(random_case *c, uint64_t *random) {
    PICK_RESIDENCY(r, true);
    r->size_bytes += 1 + random_below(random, 32);
    return true;
}

static bool offset_huge(random_case *c, uint64_t *random) {
    if (pick(random, 2)) {
        PICK_RESIDENCY(r, true);
        r->offset_bytes = UINT64_MAX - random_below(random, 64);
        return true;
    }
    PICK_COPY(r, !is_client(c, x));
    r->offset_bytes = UINT64_MAX - random_below(random, 64);
    return true;
}

/* ---- limits ---- */
static bool shrink_arena(random_case *c, uint64_t *random) {
    if (c->plan->arena_bytes == 0) return false;
    c->plan->arena_bytes -= 1 + random_below(random, c->plan->arena_bytes);
    return true;
}

static bool shrink_tier(random_case *c, uint64_t *random) {
    uint32_t t = pick(random, c->machine.n_tiers);
    if (c->plan->tier_bytes[t] == 0) return false;
    c->plan->tier_bytes[t] -= 1 + random_below(random, c->plan->tier_bytes[t]);
    return true;
}

static bool cut_budget(random_case *c, uint64_t *random) {
    if (c->plan->arena_bytes == 0) return false;
    c->budgets.arena_bytes = c->plan->arena_bytes - 1 - random_below(random, c->plan->arena_bytes);
    return true;
}

static bool cut_tier_budget(random_case *c, uint64_t *random) {
    uint32_t t = pick(random, c->machine.n_tiers);
    if (c->plan->tier_bytes[t] == 0) return false;
    if (pick(random, 2))
        c->budgets.tier_bytes[t] = c->plan->tier_bytes[t] - 1;
    else
        c->machine.tier[t].capacity_bytes = c->plan->tier_bytes[t] - 1;
    return true;
}

/* ---- bindings ---- */
static bool rebind(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->n_uses > 0);
    tide_id *use = use_of(c, a, pick(random, a->n_uses)), old = *use;
    *use = pick(random, c->plan->residencies.count);
    return *use != old;
}

/* Another residency of the same tensor: as if a re-run or a read took it for granted. */
static bool rebind_instance(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->n_uses > 0);
    tide_id *use = use_of(c, a, pick(random, a->n_uses)), old = *use;
    tide_id tensor = c->plan->residencies.data[old].tensor;
    PICK_RESIDENCY(r, x->tensor == tensor && x != &c->plan->residencies.data[old]);
    *use = (tide_id)(r - c->plan->residencies.data);
    return true;
}

/* Another value of that size: as if a part were another part of its value. */
static bool rebind_alike(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->n_uses > 0);
    tide_id *use = use_of(c, a, pick(random, a->n_uses)), old = *use;
    const tide_residency *was = &c->plan->residencies.data[old];
    PICK_RESIDENCY(r, x->tensor != was->tensor && x->tensor != TIDE_NONE && x->size_bytes == was->size_bytes);
    *use = (tide_id)(r - c->plan->residencies.data);
    return true;
}

static bool rebind_copy(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->copy != TIDE_NONE);
    tide_id old = a->copy;
    a->copy = pick(random, c->plan->copies.count);
    return a->copy != old;
}

static bool wrong_op(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RUN);
    tide_id old = a->op;
    a->op = pick(random, tide_program_op_count(c->program));
    return a->op != old;
}

static bool wrong_variant(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RUN && op_of(c, x)->n_variants > 1);
    uint32_t old = a->variant;
    a->variant = pick(random, op_of(c, a)->n_variants + 1);
    return a->variant != old;
}

/* With or without the workspace it needs, so that only the bits can tell. */
static bool other_bits(random_case *c, uint64_t *random) {
    if (c->plan->bits_any) return false;
    PICK_ACTION(a, x->kind == TIDE_RUN && op_of(c, x)->n_variants > 1);
    const tide_op *op = op_of(c, a);
    for (uint32_t v = 0; v < op->n_variants; v++) {
        bool fits = (op->variants[v].workspace_bytes == 0) == (op->variants[a->variant].workspace_bytes == 0) &&
                    op->variants[v].workspace_bytes <= op->variants[a->variant].workspace_bytes;
        if (!fits || op->variants[v].bits_class == op->variants[0].bits_class) continue;
        a->variant = v;
        return true;
    }
    return false;
}

static bool wrong_queue(random_case *c, uint64_t *random) {
    PICK_ACTION(a, true);
    uint32_t old = a->queue;
    a->queue = pick(random, c->plan->n_queues + 1);
    return a->queue != old;
}

static bool wrong_kind(random_case *c, uint64_t *random) {
    PICK_ACTION(a, true);
    tide_action_kind old = a->kind;
    a->kind = (tide_action_kind)pick(random, 5);
    return a->kind != old;
}

static bool wrong_tensor(random_case *c, uint64_t *random) {
    uint32_t n = tide_program_tensor_count(c->program);
    if (pick(random, 2)) {
        PICK_RESIDENCY(r, true);
        r->tensor = (r->tensor + 1 + pick(random, n)) % (n + 1);
        return true;
    }
    PICK_COPY(r, true);
    r->tensor = (r->tensor + 1 + pick(random, n)) % (n + 1);
    return true;
}

static bool wrong_tier(random_case *c, uint64_t *random) {
    PICK_COPY(r, true);
    r->tier = (r->tier + 1 + pick(random, c->machine.n_tiers)) % (c->machine.n_tiers + 1);
    return true;
}

static bool wrong_count(random_case *c, uint64_t *random) {
    PICK_ACTION(a, true);
    if (pick(random, 2))
        a->n_uses += pick(random, 2) ? 1 : UINT32_MAX;
    else
        a->n_waits += pick(random, 2) ? 1 : UINT32_MAX;
    return true;
}

static bool out_of_range(random_case *c, uint64_t *random) {
    uint32_t extreme[] = {UINT32_MAX, UINT32_MAX - 1, 1u << 31, 1u << 20};
    uint32_t value = extreme[pick(random, 4)];
    PICK_ACTION(a, true);
    switch (pick(random, 6)) {
    case 0: a->op = value; return a->kind == TIDE_RUN;
    case 1: a->copy = value; return a->kind == TIDE_SAVE || a->kind == TIDE_LOAD;
    case 2: a->variant = value; return a->kind == TIDE_RUN;
    case 3: a->queue = value; return true;
    case 4: a->uses = (size_t)value << pick(random, 33); return a->n_uses > 0;
    default:
        if (a->n_uses > 0) *use_of(c, a, pick(random, a->n_uses)) = value;
        return a->n_uses > 0;
    }
}

/* ---- relocations ---- */

/* On top of the old place, which somebody still needs. */
static bool relocate_over(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RELOCATE && c->plan->residencies.data[*use_of(c, x, 0)].size_bytes > 0);
    tide_residency *from = &c->plan->residencies.data[*use_of(c, a, 0)];
    tide_residency *to = &c->plan->residencies.data[*use_of(c, a, 1)];
    to->offset_bytes = from->offset_bytes + c->machine.align_bytes * pick(random, 2);
    if (from->end == index_of(c, a) + 1) from->end++;
    return from->end <= c->plan->actions.count;
}

static bool relocate_backwards(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RELOCATE);
    tide_id from = *use_of(c, a, 0);
    *use_of(c, a, 0) = *use_of(c, a, 1);
    *use_of(c, a, 1) = from;
    return true;
}

static bool relocate_other_size(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RELOCATE);
    c->plan->residencies.data[*use_of(c, a, pick(random, 2))].size_bytes += 1 + pick(random, 64);
    return true;
}

static bool relocate_on_channel(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RELOCATE);
    a->queue = 1 + pick(random, c->plan->n_queues - 1);
    return true;
}

static bool relocate_elsewhere(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RELOCATE && c->plan->residencies.data[*use_of(c, x, 1)].size_bytes > 0);
    tide_residency *to = &c->plan->residencies.data[*use_of(c, a, 1)];
    uint64_t old = to->offset_bytes, align = c->machine.align_bytes;
    to->offset_bytes = random_below(random, c->plan->arena_bytes - to->size_bytes + 1) / align * align;
    return to->offset_bytes != old;
}

static bool other_identity(random_case *c, uint64_t *random) {
    switch (pick(random, 3)) {
    case 0: c->plan->signature.word[pick(random, 2)] ^= UINT64_C(1) << pick(random, 64); return true;
    case 1: c->plan->n_queues += 1 + pick(random, 3); return true;
    default: c->plan->n_tiers -= 1; return true;
    }
}

/* ---- intervals and maps ---- */
static uint32_t shifted(uint64_t *random, uint32_t x) { return x + 1 + pick(random, 3) - (pick(random, 2) ? 4 : 0); }

static bool shift_begin(random_case *c, uint64_t *random) {
    if (pick(random, 2)) {
        PICK_RESIDENCY(r, true);
        r->begin = shifted(random, r->begin);
        return true;
    }
    PICK_COPY(r, true);
    r->begin = shifted(random, r->begin);
    return true;
}

static bool shift_end(random_case *c, uint64_t *random) {
    if (pick(random, 2)) {
        PICK_RESIDENCY(r, true);
        r->end = shifted(random, r->end);
        return true;
    }
    PICK_COPY(r, true);
    r->end = shifted(random, r->end);
    return true;
}

static bool flip_start(random_case *c, uint64_t *random) {
    if (pick(random, 2)) {
        PICK_RESIDENCY(r, true);
        r->at_start = !r->at_start;
        return true;
    }
    PICK_COPY(r, true);
    r->at_start = !r->at_start;
    return true;
}

static bool flip_end(random_case *c, uint64_t *random) {
    if (pick(random, 2)) {
        PICK_RESIDENCY(r, x->at_end || x->end == c->plan->actions.count);
        r->at_end = !r->at_end;
        return true;
    }
    PICK_COPY(r, x->at_end || x->end == c->plan->actions.count);
    r->at_end = !r->at_end;
    return true;
}

/* A place at the end goes elsewhere, beyond everything, where it disturbs nobody. */
static bool move_end(random_case *c, uint64_t *random) {
    PICK_RESIDENCY(r, x->at_end && !x->at_start && x->size_bytes > 0);
    r->offset_bytes = (c->plan->arena_bytes + 63) / 64 * 64;
    c->plan->arena_bytes = r->offset_bytes + r->size_bytes;
    c->budgets.arena_bytes = UINT64_MAX;
    return true;
}

/* Something is left in the client tier. */
static bool client_end(random_case *c, uint64_t *random) {
    PICK_COPY(r, is_client(c, x));
    r->at_end = true;
    r->end = (uint32_t)c->plan->actions.count;
    return true;
}

/* A residency that no action makes or uses. */
static bool stray(random_case *c, uint64_t *random) {
    PICK_RESIDENCY(r, true);
    tide_residency copy = *r;
    copy.at_start = pick(random, 2);
    copy.begin = copy.end = 0;
    copy.at_end = false;
    assert_ok(tide__vec_push(&c->plan->residencies, copy));
    return true;
}

/* Random bits anywhere in the tables. */
static bool garbage(random_case *c, uint64_t *random) {
    tide_plan *p = c->plan;
    void *table[] = {p->actions.data, p->residencies.data, p->copies.data, p->uses.data, p->waits.data};
    size_t bytes[] = {p->actions.count * sizeof *p->actions.data, p->residencies.count * sizeof *p->residencies.data,
                      p->copies.count * sizeof *p->copies.data, p->uses.count * 4, p->waits.count * 4};
    uint32_t which = pick(random, 5);
    if (bytes[which] < 4) return false;
    uint32_t word, flip = 1u << pick(random, 32);
    unsigned char *at = (unsigned char *)table[which] + random_below(random, bytes[which] / 4) * 4;
    size_t inside = (size_t)(at - (unsigned char *)table[which]);
    if (which == 1 && inside % sizeof(tide_residency) >= offsetof(tide_residency, at_start)) return false;
    if (which == 2 && inside % sizeof(tide_copy) >= offsetof(tide_copy, at_start)) return false;
    memcpy(&word, at, 4);
    word ^= flip;
    memcpy(at, &word, 4);
    return true;
}

static const mutation table[] = {
    {"drop wait", drop_wait, 20, 75},
    {"wait earlier", wait_earlier, 30, 65},
    {"wait later", wait_later, 0, 100},
    {"wait twice", wait_twice, 0, 50},
    {"move residency", move_residency, 35, 80},
    {"nudge residency", nudge_residency, 30, 55},
    {"move copy", move_copy, 30, 70},
    {"misalign", misalign, 0, 90},
    {"misalign copy", misalign_copy, 0, 85},
    {"shrink residency", shrink_residency, 15, 10},
    {"shrink copy", shrink_copy, 5, 60},
    {"grow residency", grow_residency, 45, 10},
    {"offset huge", offset_huge, 0, 100},
    {"shrink arena", shrink_arena, 0, 90},
    {"shrink tier", shrink_tier, 0, 85},
    {"cut budget", cut_budget, 0, 100},
    {"cut tier budget", cut_tier_budget, 0, 100},
    {"rebind", rebind, 5, 70},
    {"rebind instance", rebind_instance, 10, 45},
    {"rebind alike", rebind_alike, 0, 60},
    {"rebind copy", rebind_copy, 5, 85},
    {"wrong op", wrong_op, 0, 90},
    {"wrong variant", wrong_variant, 30, 70},
    {"other bits", other_bits, 0, 100},
    {"wrong queue", wrong_queue, 0, 100},
    {"wrong kind", wrong_kind, 0, 100},
    {"wrong tensor", wrong_tensor, 10, 30},
    {"wrong tier", wrong_tier, 5, 85},
    {"wrong count", wrong_count, 10, 75},
    {"out of range", out_of_range, 0, 100},
    {"relocate over", relocate_over, 5, 30},
    {"relocate backwards", relocate_backwards, 0, 45},
    {"relocate other size", relocate_other_size, 0, 90},
    {"relocate on channel", relocate_on_channel, 0, 100},
    {"relocate elsewhere", relocate_elsewhere, 25, 75},
    {"other identity", other_identity, 0, 0},
    {"shift begin", shift_begin, 0, 0},
    {"shift end", shift_end, 50, 0},
    {"flip start", flip_start, 5, 45},
    {"flip end", flip_end, 60, 55},
    {"move end", move_end, 60, 75},
    {"client end", client_end, 0, 0},
    {"stray", stray, 10, 25},
    {"garbage", garbage, 30, 60},
};

const mutation *mutation_field_table(size_t *n) {
    *n = sizeof table / sizeof table[0];
    return table;
}
