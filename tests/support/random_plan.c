/* See random_plan.h. Invariant of the walk: every value that is still needed can be had, because a place holds it or
 * because re-runs of ops that destroy nothing lead to it. Whatever would break that is not done. */
#include "support/random_plan.h"

#include "program/program_data.h"
#include "support/plan_sketch.h"
#include "support/random_messages.h"
#include "support/random_program.h"
#include "support/test.h"

typedef struct walk {
    sketch s;
    const tide_program *program;
    uint32_t n_tensors, n_ops;
    uint32_t next_op; /* all before it have run */
    uint64_t block;   /* the largest of all tiers: values that must be able to go anywhere are multiples of it */
    uint32_t drop_percent, side_percent, inplace_percent;
    uint32_t *variant;  /* per op: of its first run */
    uint32_t *demand;   /* per tensor: actions in the making that read it */
    uint32_t *making;   /* per tensor: actions in the making that write it */
    uint32_t *last_use; /* per tensor: 1 + the last op that reads it; 0: none */
    bool *movable;      /* per tensor: always whole blocks */
    uint8_t *reachable; /* per tensor, scratch: 0 unknown, 1 no, 2 yes */
} walk;

static uint32_t pick(walk *w, uint64_t n) { return (uint32_t)sketch_random(&w->s, n); }
static sketch_holding *at(walk *w, uint32_t h) { return &w->s.holdings.data[h]; }
static const tide_tensor *tensor_of(const walk *w, tide_id t) { return tide_program_tensor(w->program, t); }
static uint64_t round_up(uint64_t x, uint64_t align) { return (x + align - 1) / align * align; }
static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- sizes ---- */

/* Of a movable value: depends on the tensor's size only, so that a carried value has the size of its successor. */
static uint64_t block_size(const walk *w, tide_id t) {
    uint64_t size = tensor_of(w, t)->size_bytes;
    return round_up(size, w->block) + (size % 5 == 3 ? w->block : 0);
}

typedef struct extent {
    uint64_t size, align;
} extent;

/* Of a new residency: whole blocks of some tier, or of none. */
static extent choose_extent(walk *w, tide_id t) {
    const tide_machine *m = w->s.machine;
    if (w->movable[t]) return (extent){block_size(w, t), max_u64(w->block, m->align_bytes)};
    uint64_t block = sketch_chance(&w->s, 60) ? w->block : m->tier[pick(w, m->n_tiers)].block_bytes;
    uint64_t slack = sketch_chance(&w->s, 10) ? block : 0;
    return (extent){round_up(tensor_of(w, t)->size_bytes, block) + slack, max_u64(block, m->align_bytes)};
}

/* ---- what can be had ---- */

/* Not what is just being written: nobody can count on it yet, and nobody has to. */
static bool is_needed(const walk *w, tide_id t) {
    const tide_tensor *tensor = tensor_of(w, t);
    bool exists = tensor->start != TIDE_START_ABSENT || tide_program_producer(w->program, t) < w->next_op;
    return exists && w->making[t] == 0 && (w->demand[t] > 0 || tensor->keep || w->last_use[t] > w->next_op);
}

static bool destroys(const tide_op *op) {
    for (uint32_t k = 0; k < op->n_inplace; k++)
        if (op->inplace[k].must) return true;
    return false;
}

static bool can_rerun(const walk *w, tide_id op) {
    return op < w->next_op && tide_program_op(w->program, op)->rerunnable;
}

static bool has_place(const walk *w, tide_id t) {
    for (size_t h = 0; h < w->s.holdings.count; h++) {
        const sketch_holding *holding = &w->s.holdings.data[h];
        if (holding->open && !holding->leaving && holding->tensor == t) return true;
    }
    return false;
}

static bool is_reachable(walk *w, tide_id t);

static bool can_rebuild(walk *w, tide_id t) {
    tide_id producer = tide_program_producer(w->program, t);
    if (producer == TIDE_NONE || !can_rerun(w, producer)) return false;
    const tide_op *op = tide_program_op(w->program, producer);
    bool yes = !destroys(op);
    for (uint32_t k = 0; yes && k < op->n_reads; k++) yes = is_reachable(w, op->reads[k]);
    return yes;
}

static bool is_reachable(walk *w, tide_id t) {
    if (w->reachable[t] == 0) w->reachable[t] = has_place(w, t) || can_rebuild(w, t) ? 2 : 1;
    return w->reachable[t] == 2;
}

/* A needed value that could not be had without what is leaving; TIDE_NONE: there is none. */
static tide_id find_lost(walk *w) {
    memset(w->reachable, 0, w->n_tensors);
    for (tide_id t = 0; t < w->n_tensors; t++)
        if (is_needed(w, t) && !is_reachable(w, t)) return t;
    return TIDE_NONE;
}

static bool can_go(walk *w, uint32_t h) {
    at(w, h)->leaving = true;
    bool yes = find_lost(w) == TIDE_NONE;
    at(w, h)->leaving = false;
    return yes;
}

static void try_close(walk *w, uint32_t h) {
    if (at(w, h)->open && at(w, h)->pins == 0 && can_go(w, h)) sketch_close(&w->s, h);
}

/* ---- moves ---- */
static bool fits_tier(walk *w, const sketch_holding *residency, uint32_t tier) {
    const tide_machine_tier *m = &w->s.machine->tier[tier];
    return m->kind != TIDE_TIER_CLIENT && m->kind != TIDE_TIER_PEER && residency->size % m->block_bytes == 0 &&
           residency->offset % m->block_bytes == 0;
}

static uint32_t save_at(walk *w, uint32_t residency, uint32_t tier, uint64_t offset) {
    uint32_t copy = sketch_add(&w->s, at(w, residency)->tensor, 1 + tier, offset, at(w, residency)->size, false);
    sketch_save(&w->s, residency, copy);
    return copy;
}

static uint32_t save(walk *w, uint32_t residency, uint32_t tier) {
    uint64_t block = w->s.machine->tier[tier].block_bytes;
    return save_at(w, residency, tier, sketch_place(&w->s, 1 + tier, at(w, residency)->size, block));
}

static uint32_t load_at(walk *w, uint32_t copy, uint64_t offset) {
    uint32_t residency = sketch_add(&w->s, at(w, copy)->tensor, 0, offset, at(w, copy)->size, false);
    sketch_load(&w->s, copy, residency);
    return residency;
}

static uint32_t load(walk *w, uint32_t copy) {
    const tide_machine *m = w->s.machine;
    uint64_t block = m->tier[at(w, copy)->space - 1].block_bytes;
    if (w->movable[at(w, copy)->tensor] || sketch_chance(&w->s, 50)) block = w->block;
    return load_at(w, copy, sketch_place(&w->s, 0, at(w, copy)->size, max_u64(block, m->align_bytes)));
}

/* ---- runs ---- */
static uint32_t materialise(walk *w, tide_id t);

/* A random open holding of a tensor, in the arena or in the tiers; TIDE_NONE if there is none. */
static uint32_t find_holding(walk *w, tide_id t, bool in_arena) {
    uint32_t found = TIDE_NONE, n = 0;
    for (uint32_t h = 0; h < w->s.holdings.count; h++) {
        const sketch_holding *holding = at(w, h);
        if (holding->open && holding->tensor == t && (holding->space == 0) == in_arena && pick(w, ++n) == 0) found = h;
    }
    return found;
}

/* The residency whose bytes write k of the op takes over; TIDE_NONE: none. */
static uint32_t find_hand_over(walk *w, const tide_op *op, const uint32_t *uses, uint32_t k) {
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        uint32_t from = uses[op->inplace[i].read];
        if (op->inplace[i].write != k) continue;
        if (op->inplace[i].must) return from;
        tide_id t = op->writes[k];
        const sketch_holding *h = at(w, from);
        bool fits = !w->movable[t] || (h->size == block_size(w, t) && h->offset % w->block == 0);
        bool alone = h->open && h->pins == 1; /* the pin is this op's */
        if (!fits || !alone || !sketch_chance(&w->s, w->inplace_percent)) return TIDE_NONE;
        return can_go(w, from) ? from : TIDE_NONE;
    }
    return TIDE_NONE;
}

static uint32_t write_in_place(walk *w, tide_id t, uint32_t from) {
    sketch_holding *h = at(w, from);
    h->open = false;
    h->pins = 0;
    h->end = sketch_now(&w->s) + 1;
    uint64_t offset = h->offset, size = h->size;
    return sketch_add(&w->s, t, 0, offset, size, false);
}

/* Where the value carried from t starts the next step, if those bytes are free. */
static bool find_home(walk *w, tide_id t, extent e, uint64_t *offset) {
    for (uint32_t i = 0; i < tide_program_carry_count(w->program); i++) {
        tide_carry carry = *tide_program_carry(w->program, i);
        for (uint32_t h = 0; carry.from == t && h < w->s.holdings.count; h++) {
            const sketch_holding *home = at(w, h);
            if (!home->at_start || home->tensor != carry.to || home->space != 0) continue;
            *offset = home->offset;
            return home->size == e.size && sketch_is_free(&w->s, 0, home->offset, e.size);
        }
    }
    return false;
}

static uint32_t write_anywhere(walk *w, tide_id t) {
    extent e = choose_extent(w, t);
    uint64_t offset;
    if (!sketch_chance(&w->s, 70) || !find_home(w, t, e, &offset)) offset = sketch_place(&w->s, 0, e.size, e.align);
    return sketch_add(&w->s, t, 0, offset, e.size, false);
}

static uint32_t choose_variant(walk *w, tide_id id) {
    const tide_op *op = tide_program_op(w->program, id);
    if (w->variant[id] != TIDE_NONE) return w->variant[id];
    uint32_t v = pick(w, op->n_variants);
    if (!w->s.plan->bits_any && op->variants[v].bits_class != op->variants[0].bits_class) v = 0;
    return w->variant[id] = v;
}

static void set_leaving(walk *w, const tide_op *op, const uint32_t *uses, bool leaving) {
    for (uint32_t k = 0; k < op->n_inplace; k++)
        if (op->inplace[k].must) at(w, uses[op->inplace[k].read])->leaving = leaving;
}

/* The op's `must` pairs are about to destroy residencies: first have, elsewhere, what would be lost with them. */
static void rescue(walk *w, const tide_op *op, const uint32_t *uses) {
    uint32_t inplace_percent = w->inplace_percent;
    w->inplace_percent = 0;
    for (;;) {
        set_leaving(w, op, uses, true);
        tide_id t = find_lost(w);
        set_leaving(w, op, uses, false);
        if (t == TIDE_NONE) break;
        uint32_t residency = find_holding(w, t, true);
        if (residency == TIDE_NONE)
            materialise(w, t);
        else
            save(w, residency, tide_machine_find_tier(w->s.machine, TIDE_TIER_RAM));
    }
    w->inplace_percent = inplace_percent;
}

/* The write half: in place where it must or can be, elsewhere, then the workspace. `uses` has the reads, pinned. */
static uint32_t make_writes(walk *w, tide_id id, uint32_t *uses) {
    const tide_op *op = tide_program_op(w->program, id);
    uint32_t n = op->n_reads;
    for (uint32_t k = 0; k < op->n_writes; k++) {
        uint32_t from = find_hand_over(w, op, uses, k);
        uses[n++] = from != TIDE_NONE ? write_in_place(w, op->writes[k], from) : write_anywhere(w, op->writes[k]);
    }
    uint64_t workspace = op->variants[choose_variant(w, id)].workspace_bytes;
    if (workspace == 0) return n;
    workspace += sketch_random(&w->s, 4);
    uint64_t offset = sketch_place(&w->s, 0, workspace, w->s.machine->align_bytes);
    uses[n++] = sketch_add(&w->s, TIDE_NONE, 0, offset, workspace, false);
    return n;
}

/* Every read resident and pinned. */
static void make_reads(walk *w, const tide_op *op, uint32_t *uses) {
    for (uint32_t k = 0; k < op->n_reads; k++) w->demand[op->reads[k]]++;
    for (uint32_t k = 0; k < op->n_reads; k++) {
        uses[k] = materialise(w, op->reads[k]);
        at(w, uses[k])->pins++;
    }
    for (uint32_t k = 0; k < op->n_reads; k++) w->demand[op->reads[k]]--;
}

static void run_op(walk *w, tide_id id) {
    const tide_op *op = tide_program_op(w->program, id);
    uint32_t *uses = calloc((size_t)op->n_reads + op->n_writes + 1, sizeof *uses);
    assert_non_null(uses);
    make_reads(w, op, uses);
    if (id == w->next_op) w->next_op++;
    for (uint32_t k = 0; k < op->n_writes; k++) w->making[op->writes[k]]++;
    rescue(w, op, uses);
    uint32_t n_uses = make_writes(w, id, uses);
    for (uint32_t k = 0; k < op->n_writes; k++) w->making[op->writes[k]]--;
    sketch_run(&w->s, id, choose_variant(w, id), uses, n_uses);
    for (uint32_t k = 0; k < op->n_reads; k++)
        if (at(w, uses[k])->open) at(w, uses[k])->pins--;
    if (n_uses > op->n_reads + op->n_writes) sketch_close(&w->s, uses[n_uses - 1]);
    free(uses);
}

/* A residency of the value: one that is there, or from a copy, or by running its op again. */
static uint32_t materialise(walk *w, tide_id t) {
    uint32_t residency = find_holding(w, t, true), copy = find_holding(w, t, false);
    if (residency != TIDE_NONE) return residency;
    memset(w->reachable, 0, w->n_tensors);
    bool again = can_rebuild(w, t);
    if (copy != TIDE_NONE && (!again || sketch_chance(&w->s, 70))) return load(w, copy);
    assert_true(again);
    run_op(w, tide_program_producer(w->program, t));
    return find_holding(w, t, true);
}

/* ---- things to do between the ops ---- */

/* Anywhere, or a little lower or higher than it was, over bytes of its own if those are free by then. */
static uint64_t choose_target(walk *w, const sketch_holding *h) {
    uint64_t align = max_u64(w->block, w->s.machine->align_bytes), step = align * (1 + pick(w, 4));
    bool lower = sketch_chance(&w->s, 50) && h->offset >= step;
    uint64_t near = lower ? h->offset - step : h->offset + step;
    if (h->offset % align == 0 && sketch_chance(&w->s, 60) && sketch_is_free(&w->s, 0, near, h->size)) return near;
    return sketch_place(&w->s, 0, h->size, align);
}

/* The old place goes with it, or stays as well. */
static void try_relocate(walk *w) {
    uint32_t h = pick(w, w->s.holdings.count);
    sketch_holding *from = at(w, h);
    if (!from->open || from->space != 0 || from->tensor == TIDE_NONE || from->pins > 0) return;
    if (sketch_chance(&w->s, 70)) {
        from->open = false;
        from->end = sketch_now(&w->s) + 1;
    }
    tide_id tensor = from->tensor;
    uint64_t size = from->size, target = choose_target(w, from);
    sketch_relocate(&w->s, h, sketch_add(&w->s, tensor, 0, target, size, false));
}

static void try_save(walk *w) {
    uint32_t h = pick(w, w->s.holdings.count), tier = pick(w, w->s.machine->n_tiers);
    const sketch_holding *holding = at(w, h);
    if (holding->open && holding->space == 0 && holding->tensor != TIDE_NONE && fits_tier(w, holding, tier))
        save(w, h, tier);
}

static void try_load(walk *w) {
    uint32_t h = pick(w, w->s.holdings.count);
    if (at(w, h)->open && at(w, h)->space > 0) load(w, h);
}

static void try_rerun(walk *w) {
    tide_id op = pick(w, w->n_ops);
    if (!can_rerun(w, op)) return;
    const tide_op *o = tide_program_op(w->program, op);
    memset(w->reachable, 0, w->n_tensors);
    for (uint32_t k = 0; k < o->n_reads; k++)
        if (!is_reachable(w, o->reads[k])) return;
    run_op(w, op);
}

static void do_something(walk *w) {
    if (w->s.holdings.count == 0 || sketch_now(&w->s) > SKETCH_MAX_ACTIONS / 4) return;
    uint32_t what = pick(w, 100);
    if (what < w->drop_percent)
        try_close(w, pick(w, w->s.holdings.count));
    else if (what < w->drop_percent + 15)
        try_save(w);
    else if (what < w->drop_percent + 25)
        try_load(w);
    else if (what < w->drop_percent + 30)
        try_rerun(w);
    else if (what < w->drop_percent + 40)
        try_relocate(w);
}

static void close_unneeded(walk *w) {
    for (uint32_t h = 0; h < w->s.holdings.count; h++) {
        const sketch_holding *holding = at(w, h);
        if (!holding->open || holding->tensor == TIDE_NONE || is_needed(w, holding->tensor)) continue;
        if (sketch_chance(&w->s, 80)) try_close(w, h);
    }
}

/* ---- start ---- */
static uint32_t choose_tier(walk *w) {
    uint32_t tier = pick(w, w->s.machine->n_tiers);
    tide_tier_kind kind = w->s.machine->tier[tier].kind;
    return kind == TIDE_TIER_CLIENT || kind == TIDE_TIER_PEER ? tide_machine_find_tier(w->s.machine, TIDE_TIER_RAM)
                                                              : tier;
}

static void start_present(walk *w, tide_id t) {
    uint64_t size = block_size(w, t), align = max_u64(w->block, w->s.machine->align_bytes);
    uint32_t where = pick(w, 10); /* arena, a tier, or both */
    if (where < 7) sketch_add(&w->s, t, 0, sketch_place(&w->s, 0, size, align), size, true);
    if (where < 5) return;
    uint32_t space = 1 + choose_tier(w);
    sketch_add(&w->s, t, space, sketch_place(&w->s, space, size, w->block), size, true);
}

static void start_client(walk *w, tide_id t) {
    uint32_t tier = tide_machine_find_tier(w->s.machine, TIDE_TIER_CLIENT);
    extent e = choose_extent(w, t);
    e.size = round_up(e.size, w->s.machine->tier[tier].block_bytes);
    sketch_add(&w->s, t, 1 + tier, 0, e.size, true);
}

static void start(walk *w) {
    for (tide_id t = 0; t < w->n_tensors; t++) {
        if (tensor_of(w, t)->start == TIDE_START_PRESENT) start_present(w, t);
        if (tensor_of(w, t)->start == TIDE_START_CLIENT) start_client(w, t);
    }
}

/* ---- end ----
 * Every place of a PRESENT value at the start must hold the carried value at the end. Often it does by then; the
 * others are saved to fresh slots, everything else makes room, and they go where they belong. */

/* An open holding of `t` at the place of `home`; TIDE_NONE if there is none. */
static uint32_t find_at_home(walk *w, tide_id t, const sketch_holding *home) {
    for (uint32_t h = 0; h < w->s.holdings.count; h++) {
        const sketch_holding *x = at(w, h);
        if (x->open && x->tensor == t && x->space == home->space && x->offset == home->offset && x->size == home->size)
            return h;
    }
    return TIDE_NONE;
}

static void keep_to_end(walk *w, uint32_t h) {
    at(w, h)->at_end = true;
    at(w, h)->pins++;
}

/* For each carry and each place of its `to` at the start. */
typedef void (*home_fn)(walk *w, tide_id from, uint32_t home);
static void for_each_home(walk *w, home_fn visit) {
    uint32_t n = (uint32_t)w->s.holdings.count;
    for (uint32_t i = 0; i < tide_program_carry_count(w->program); i++) {
        tide_carry carry = *tide_program_carry(w->program, i);
        for (uint32_t h = 0; h < n; h++)
            if (at(w, h)->at_start && at(w, h)->tensor == carry.to) visit(w, carry.from, h);
    }
}

/* What is at home already stays. */
static bool keep_at_home(walk *w, tide_id from, const sketch_holding *home) {
    uint32_t h = find_at_home(w, from, home);
    if (h != TIDE_NONE && !at(w, h)->at_end) keep_to_end(w, h);
    return h != TIDE_NONE;
}

static void keep_home(walk *w, tide_id from, uint32_t home) { keep_at_home(w, from, at(w, home)); }

/* A pinned copy in a slot that is nobody's home. */
static void secure(walk *w, tide_id t) {
    uint32_t residency = materialise(w, t), tier = choose_tier(w);
    uint64_t offset = round_up(w->s.high_water[1 + tier], w->block);
    uint32_t copy = save_at(w, residency, tier, offset);
    at(w, copy)->pins++;
    at(w, copy)->at_end = sketch_chance(&w->s, 20);
}

static void go_home_in_arena(walk *w, tide_id from, uint32_t home) {
    sketch_holding place = *at(w, home);
    if (place.space != 0 || keep_at_home(w, from, &place)) return;
    keep_to_end(w, load_at(w, find_holding(w, from, false), place.offset));
}

static void go_home_in_tier(walk *w, tide_id from, uint32_t home) {
    sketch_holding place = *at(w, home);
    if (place.space == 0 || keep_at_home(w, from, &place)) return;
    uint32_t residency = find_holding(w, from, true);
    if (residency == TIDE_NONE) residency = load(w, find_holding(w, from, false));
    keep_to_end(w, save_at(w, residency, place.space - 1, place.offset));
}

/* Whether all homes of the value that t is carried to hold t; true if it is not carried. */
static bool is_home(walk *w, tide_id t) {
    for (uint32_t i = 0; i < tide_program_carry_count(w->program); i++) {
        tide_carry carry = *tide_program_carry(w->program, i);
        for (uint32_t h = 0; carry.from == t && h < w->s.holdings.count; h++)
            if (at(w, h)->at_start && at(w, h)->tensor == carry.to && find_at_home(w, t, at(w, h)) == TIDE_NONE)
                return false;
    }
    return true;
}

static bool ends_somewhere(walk *w, tide_id t) {
    for (uint32_t h = 0; h < w->s.holdings.count; h++)
        if (at(w, h)->tensor == t && at(w, h)->at_end) return true;
    return false;
}

static void keep_somewhere(walk *w, tide_id t) {
    uint32_t h = find_holding(w, t, false);
    if (h == TIDE_NONE || sketch_is_client(&w->s, at(w, h)->space) || sketch_chance(&w->s, 70)) h = materialise(w, t);
    keep_to_end(w, h);
}

/* The end map may also list values that nobody asked for. */
static void keep_more(walk *w) {
    for (uint32_t h = 0; h < w->s.holdings.count; h++) {
        sketch_holding *holding = at(w, h);
        bool possible = holding->open && holding->tensor != TIDE_NONE && !sketch_is_client(&w->s, holding->space);
        if (possible && sketch_chance(&w->s, 10)) holding->at_end = true;
    }
}

static void end(walk *w) {
    for_each_home(w, keep_home);
    for (tide_id t = 0; t < w->n_tensors; t++)
        if (tensor_of(w, t)->keep && tide_program_is_repeating(w->program) && !(is_home(w, t) && ends_somewhere(w, t)))
            secure(w, t);
    for (uint32_t h = 0; tide_program_is_repeating(w->program) && h < w->s.holdings.count; h++) try_close(w, h);
    for_each_home(w, go_home_in_arena);
    for_each_home(w, go_home_in_tier);
    for (tide_id t = 0; t < w->n_tensors; t++)
        if (tensor_of(w, t)->keep && (!ends_somewhere(w, t) || sketch_chance(&w->s, 10))) keep_somewhere(w, t);
    keep_more(w);
}

/* ---- the whole ---- */
static tide_machine make_machine(uint64_t *random) {
    tide_machine m;
    tide_machine_init_default(&m); /* tiers: ram, client */
    m.align_bytes = 1u << random_below(random, 4);
    m.tier[0].block_bytes = 1u << random_below(random, 4);
    m.tier[1].block_bytes = 1u << random_below(random, 3);
    if (random_below(random, 2)) {
        m.tier[2] = (tide_machine_tier){"disk", TIDE_TIER_DISK, UINT64_MAX, 1u << random_below(random, 5)};
        m.channel[3] = (tide_machine_channel){.tier = 2, .out = false, .bytes_per_s = 1};
        m.channel[4] = (tide_machine_channel){.tier = 2, .out = true, .bytes_per_s = 1};
        m.n_tiers = 3;
        m.n_channels = 5;
    }
    if (random_below(random, 2)) assert_ok(tide_machine_add_peers(&m, 1, 0));
    return m;
}

/* In two or four parts, where any op of it can be cut. */
static tide_program *cut(tide_program *program, uint64_t *random) {
    tide_program *in_parts;
    if (tide_program_split(program, random_below(random, 4) ? 2 : 4, false, &in_parts) != TIDE_OK) return program;
    tide_program_destroy(program);
    return in_parts;
}

static tide_program *make_program(uint64_t seed, uint32_t max_ops, uint64_t *random) {
    const bool in_parts = seed % 4 == 0;
    random_program_options o = random_program_varied(seed);
    o.n_ops = 1 + (uint32_t)random_below(random, in_parts ? (max_ops + 1) / 2 : max_ops);
    o.split_percent = in_parts ? 75 : 0;
    o.max_bytes = 4 * (1 + random_below(random, 16));
    o.min_bytes = 4 + random_below(random, o.max_bytes - 3);
    o.max_workspace_bytes = 32;
    o.n_weights = (uint32_t)random_below(random, 6);
    tide_program *program = random_program(&o);
    return in_parts ? cut(program, random) : program;
}

static void find_movable(walk *w) {
    for (tide_id t = 0; t < w->n_tensors; t++)
        w->movable[t] = tensor_of(w, t)->keep || tensor_of(w, t)->start == TIDE_START_PRESENT;
    for (tide_id i = 0; i < w->n_ops; i++) {
        const tide_op *op = tide_program_op(w->program, i);
        for (uint32_t k = 0; k < op->n_reads; k++) w->last_use[op->reads[k]] = i + 1;
        for (uint32_t k = 0; k < op->n_inplace; k++)
            if (op->inplace[k].must)
                w->movable[op->reads[op->inplace[k].read]] = w->movable[op->writes[op->inplace[k].write]] = true;
    }
}

static void *zeroed(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    assert_non_null(p);
    return p;
}

static void walk_init(walk *w, const tide_program *program, const tide_machine *machine, uint64_t seed) {
    *w = (walk){.program = program};
    sketch_init(&w->s, program, machine, seed);
    w->n_tensors = tide_program_tensor_count(program);
    w->n_ops = tide_program_op_count(program);
    w->variant = zeroed(w->n_ops, sizeof *w->variant);
    w->demand = zeroed(w->n_tensors, sizeof *w->demand);
    w->making = zeroed(w->n_tensors, sizeof *w->making);
    w->last_use = zeroed(w->n_tensors, sizeof *w->last_use);
    w->movable = zeroed(w->n_tensors, sizeof *w->movable);
    w->reachable = zeroed(w->n_tensors, sizeof *w->reachable);
    memset(w->variant, 0xff, w->n_ops * sizeof *w->variant);
    for (uint32_t t = 0; t < machine->n_tiers; t++) w->block = max_u64(w->block, machine->tier[t].block_bytes);
    w->s.plan->bits_any = sketch_chance(&w->s, 10);
    w->s.extra_wait_percent = sketch_chance(&w->s, 30) ? 20 : 0;
    w->drop_percent = pick(w, 65);
    w->side_percent = pick(w, 95);
    w->inplace_percent = pick(w, 100);
    find_movable(w);
}

static tide_plan *walk_finish(walk *w) {
    free(w->variant);
    free(w->demand);
    free(w->making);
    free(w->last_use);
    free(w->movable);
    free(w->reachable);
    return sketch_finish(&w->s);
}

static tide_plan *make_plan(const tide_program *program, const tide_machine *machine, uint64_t seed) {
    walk w;
    walk_init(&w, program, machine, seed);
    start(&w);
    while (w.next_op < w.n_ops) {
        while (sketch_chance(&w.s, w.side_percent)) do_something(&w);
        run_op(&w, w.next_op);
        close_unneeded(&w);
    }
    while (sketch_chance(&w.s, w.side_percent)) do_something(&w);
    end(&w);
    return walk_finish(&w);
}

/* As tight as the plan needs, or looser. */
static uint64_t loosen(uint64_t *random, uint64_t bytes) {
    return random_below(random, 2) ? bytes : random_below(random, 2) ? bytes + random_below(random, 64) : UINT64_MAX;
}

/* ---- another order ---- */

static bool lists(const tide_id *ids, uint32_t n, tide_id id) {
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

static bool touches(const tide_op *op, tide_id t) {
    return lists(op->reads, op->n_reads, t) || lists(op->writes, op->n_writes, t);
}

/* `second` needs what `first` writes, or destroys what it touches. */
static bool follows(const tide_op *first, const tide_op *second) {
    for (uint32_t k = 0; k < first->n_writes; k++)
        if (lists(second->reads, second->n_reads, first->writes[k])) return true;
    for (uint32_t k = 0; k < second->n_inplace; k++)
        if (second->inplace[k].must && touches(first, second->reads[second->inplace[k].read])) return true;
    return false;
}

static bool has_effect(const tide_op *op) { return op->message || (!op->rerunnable && !destroys(op)); }

static bool any_reruns(const tide_program *program) {
    for (tide_id o = 0; o < tide_program_op_count(program); o++)
        if (tide_program_op(program, o)->rerunnable) return true;
    return false;
}

/* Neighbours that do not depend on each other change places, again and again. */
static void shuffle_ops(const tide_program *program, uint64_t *random, tide_id *order) {
    uint32_t n = tide_program_op_count(program);
    for (tide_id o = 0; o < n; o++) order[o] = o;
    for (uint32_t i = 0; n > 1 && any_reruns(program) && i < 8 * n; i++) {
        uint32_t at = (uint32_t)random_below(random, n - 1);
        const tide_op *a = tide_program_op(program, order[at]), *b = tide_program_op(program, order[at + 1]);
        if (follows(a, b) || (has_effect(a) && has_effect(b))) continue;
        tide_id swapped = order[at];
        order[at] = order[at + 1];
        order[at + 1] = swapped;
    }
}

/* The walk goes through the shuffled program; the plan is told in the ops of the one that was shuffled. */
static tide_plan *make_reordered_plan(const tide_program *program, const tide_machine *machine, uint64_t random) {
    tide_id *order = calloc(tide_program_op_count(program) + (size_t)1, sizeof *order);
    tide_program *shuffled;
    assert_non_null(order);
    shuffle_ops(program, &random, order);
    assert_ok(tide__program_reorder(program, order, &shuffled));
    tide_plan *plan = make_plan(shuffled, machine, random);
    plan->signature = tide_program_signature(program);
    plan->reordered = true;
    for (size_t i = 0; i < plan->actions.count; i++)
        if (plan->actions.data[i].op != TIDE_NONE) plan->actions.data[i].op = order[plan->actions.data[i].op];
    tide_program_destroy(shuffled);
    free(order);
    return plan;
}

random_case random_case_make(uint64_t seed, uint32_t max_ops) {
    uint64_t random = seed;
    random_case c = {.machine = make_machine(&random)};
    c.program = make_program(seed, max_ops, &random);
    if (tide_machine_find_tier(&c.machine, TIDE_TIER_PEER) != TIDE_NONE)
        c.program = random_messages(c.program, &random);
    c.plan = seed % 3 ? make_plan(c.program, &c.machine, random) : make_reordered_plan(c.program, &c.machine, random);
    c.budgets.arena_bytes = loosen(&random, c.plan->arena_bytes);
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) {
        c.budgets.tier_bytes[t] = loosen(&random, c.plan->tier_bytes[t]);
        if (t < c.machine.n_tiers && c.machine.tier[t].kind != TIDE_TIER_PEER)
            c.machine.tier[t].capacity_bytes = loosen(&random, c.plan->tier_bytes[t]);
    }
    return c;
}

void random_case_free(random_case *c) {
    tide_plan_destroy(c->plan);
    tide_program_destroy(c->program);
}
