/* See plan_sketch.h. */
#include "support/plan_sketch.h"

#include "support/random_program.h"
#include "support/test.h"

enum { ROW_WORDS = SKETCH_MAX_ACTIONS / 64 };

void sketch_init(sketch *s, const tide_program *program, const tide_machine *machine, uint64_t seed) {
    *s = (sketch){.program = program, .machine = machine, .random = seed};
    s->ancestors = calloc((size_t)SKETCH_MAX_ACTIONS * ROW_WORDS, sizeof *s->ancestors);
    assert_non_null(s->ancestors);
    assert_ok(tide__plan_new(&s->plan));
    s->plan->signature = tide_program_signature(program);
    s->plan->machine_fingerprint = tide_machine_fingerprint(machine);
    s->plan->n_queues = 1 + machine->n_channels;
    s->plan->n_tiers = machine->n_tiers;
}

uint64_t sketch_random(sketch *s, uint64_t n) { return random_below(&s->random, n); }
bool sketch_chance(sketch *s, uint32_t percent) { return sketch_random(s, 100) < percent; }
uint32_t sketch_now(const sketch *s) { return (uint32_t)s->plan->actions.count; }

bool sketch_is_client(const sketch *s, uint32_t space) {
    return space > 0 && s->machine->tier[space - 1].kind == TIDE_TIER_CLIENT;
}

/* ---- places ---- */
static bool overlap(const sketch_holding *h, uint32_t space, uint64_t offset, uint64_t size) {
    return h->space == space && h->size > 0 && size > 0 && h->offset < offset + size && offset < h->offset + h->size;
}

bool sketch_is_free(const sketch *s, uint32_t space, uint64_t offset, uint64_t size) {
    for (size_t i = 0; i < s->holdings.count; i++)
        if (s->holdings.data[i].open && overlap(&s->holdings.data[i], space, offset, size)) return false;
    return true;
}

static uint64_t round_up(uint64_t x, uint64_t align) { return (x + align - 1) / align * align; }

/* Candidate k: the start or the end of a holding there ever was, rounded up; the last one is 0. */
static uint64_t candidate(const sketch *s, size_t k, uint32_t space, uint64_t align) {
    if (k == 2 * s->holdings.count) return 0;
    const sketch_holding *h = &s->holdings.data[k / 2];
    if (h->space != space) return 0;
    return round_up(k % 2 ? h->offset : h->offset + h->size, align);
}

uint64_t sketch_place(sketch *s, uint32_t space, uint64_t size, uint64_t align) {
    if (sketch_is_client(s, space)) return 0;
    size_t n = 2 * s->holdings.count + 1, first = sketch_random(s, n);
    uint64_t limit = sketch_chance(s, 90) ? s->high_water[space] : UINT64_MAX;
    for (size_t k = 0; k < n; k++) {
        uint64_t offset = candidate(s, (first + k) % n, space, align);
        if (offset + size <= limit && sketch_is_free(s, space, offset, size)) return offset;
    }
    return round_up(s->high_water[space], align);
}

/* ---- holdings ---- */
uint32_t sketch_add(sketch *s, tide_id tensor, uint32_t space, uint64_t offset, uint64_t size, bool at_start) {
    uint32_t now = sketch_now(s);
    sketch_holding h = {.tensor = tensor,
                        .space = space,
                        .offset = offset,
                        .size = size,
                        .begin = at_start ? 0 : now,
                        .at_start = at_start,
                        .open = true,
                        .creator = at_start ? TIDE_NONE : now};
    h.id = (tide_id)(space == 0 ? s->plan->residencies.count : s->plan->copies.count);
    if (space == 0)
        assert_ok(tide__vec_push(&s->plan->residencies, (tide_residency){0}));
    else
        assert_ok(tide__vec_push(&s->plan->copies, (tide_copy){0}));
    assert_ok(tide__vec_push(&s->holdings, h));
    if (!sketch_is_client(s, space) && offset + size > s->high_water[space]) s->high_water[space] = offset + size;
    return (uint32_t)s->holdings.count - 1;
}

void sketch_close(sketch *s, uint32_t h) {
    sketch_holding *holding = &s->holdings.data[h];
    assert_true(holding->open && holding->pins == 0);
    holding->open = false;
    holding->end = holding->used_to + (uint32_t)sketch_random(s, sketch_now(s) - holding->used_to + 1);
}

/* ---- order ---- */
static uint64_t *row(const sketch *s, uint32_t i) { return s->ancestors + (size_t)i * ROW_WORDS; }
static bool is_ancestor(const sketch *s, uint32_t j, uint32_t i) { return row(s, i)[j / 64] >> j % 64 & 1; }

/* j, and all that is complete before it, is complete before i. */
static void add_ancestor(sketch *s, uint32_t i, uint32_t j) {
    for (size_t k = 0; k < ROW_WORDS; k++) row(s, i)[k] |= row(s, j)[k];
    row(s, i)[j / 64] |= UINT64_C(1) << j % 64;
}

static void need(bool *needed, uint32_t action) {
    if (action != TIDE_NONE) needed[action] = true;
}

/* Everything that ever touched bytes of the new holding, except through the holding itself. */
static void need_bytes(const sketch *s, bool *needed, uint32_t i, uint32_t h) {
    const sketch_holding *holding = &s->holdings.data[h];
    for (size_t k = 0; k < s->accesses.count; k++) {
        sketch_access a = s->accesses.data[k];
        const sketch_holding *old = &s->holdings.data[a.holding];
        if (a.action != i && a.holding != h && overlap(old, holding->space, holding->offset, holding->size))
            needed[a.action] = true;
    }
}

static void touch(sketch *s, uint32_t i, uint32_t h) {
    assert_ok(tide__vec_push(&s->accesses, ((sketch_access){h, i})));
    s->holdings.data[h].used_to = i + 1;
}

static int compare_waits(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Latest first, so that no wait is implied by another: the smallest list that will do, but for the extra ones. */
static void add_waits(sketch *s, tide__action *a, uint32_t i, const bool *needed) {
    a->waits = s->plan->waits.count;
    if (s->last[a->queue] > 0) add_ancestor(s, i, s->last[a->queue] - 1);
    for (uint32_t j = i; j-- > 0;) {
        bool extra = s->extra_wait_percent > 0 && sketch_random(s, 1000) < s->extra_wait_percent;
        if (!extra && (!needed[j] || is_ancestor(s, j, i))) continue;
        add_ancestor(s, i, j);
        assert_ok(tide__vec_push(&s->plan->waits, j));
        a->n_waits++;
    }
    if (a->n_waits > 0) qsort(&s->plan->waits.data[a->waits], a->n_waits, sizeof(uint32_t), compare_waits);
    s->last[a->queue] = i + 1;
}

/* ---- actions ---- */
static void issue(sketch *s, tide__action a, const uint32_t *reads, uint32_t n_reads, const uint32_t *creates,
                  uint32_t n_creates) {
    uint32_t i = sketch_now(s);
    bool needed[SKETCH_MAX_ACTIONS] = {false};
    assert_true(i < SKETCH_MAX_ACTIONS);
    for (uint32_t k = 0; k < n_reads; k++) {
        need(needed, s->holdings.data[reads[k]].creator);
        touch(s, i, reads[k]);
    }
    for (uint32_t k = 0; k < n_creates; k++) {
        need_bytes(s, needed, i, creates[k]);
        touch(s, i, creates[k]);
    }
    add_waits(s, &a, i, needed);
    assert_ok(tide__vec_push(&s->plan->actions, a));
}

static size_t add_use(sketch *s, uint32_t h) {
    assert_ok(tide__vec_push(&s->plan->uses, s->holdings.data[h].id));
    return s->plan->uses.count - 1;
}

void sketch_run(sketch *s, tide_id op, uint32_t variant, const uint32_t *uses, uint32_t n_uses) {
    uint32_t n_reads = tide_program_op(s->program, op)->n_reads;
    const tide_message *message = tide_program_op(s->program, op)->message;
    tide__action a = {.kind = TIDE_RUN, .op = op, .variant = variant, .copy = TIDE_NONE, .n_uses = n_uses};
    if (message)
        a.queue =
            tide_machine_queue(s->machine, tide_machine_find_tier(s->machine, TIDE_TIER_PEER), !message->receives);
    a.uses = s->plan->uses.count;
    for (uint32_t k = 0; k < n_uses; k++) add_use(s, uses[k]);
    issue(s, a, uses, n_reads, uses + n_reads, n_uses - n_reads);
}

static void move(sketch *s, tide_action_kind kind, uint32_t residency, uint32_t copy) {
    uint32_t tier = s->holdings.data[copy].space - 1;
    tide__action a = {.kind = kind, .op = TIDE_NONE, .copy = s->holdings.data[copy].id, .n_uses = 1};
    a.queue = tide_machine_queue(s->machine, tier, kind == TIDE_SAVE);
    a.uses = add_use(s, residency);
    bool save = kind == TIDE_SAVE;
    issue(s, a, save ? &residency : &copy, 1, save ? &copy : &residency, 1);
}

void sketch_save(sketch *s, uint32_t residency, uint32_t copy) { move(s, TIDE_SAVE, residency, copy); }
void sketch_load(sketch *s, uint32_t copy, uint32_t residency) { move(s, TIDE_LOAD, residency, copy); }

void sketch_relocate(sketch *s, uint32_t from, uint32_t to) {
    tide__action a = {.kind = TIDE_RELOCATE, .op = TIDE_NONE, .copy = TIDE_NONE, .n_uses = 2};
    a.uses = add_use(s, from);
    add_use(s, to);
    issue(s, a, &from, 1, &to, 1);
}

/* ---- the plan ---- */
static void write_holding(tide_plan *plan, const sketch_holding *h) {
    if (h->space == 0)
        plan->residencies.data[h->id] =
            (tide_residency){h->tensor, h->offset, h->size, h->begin, h->end, h->at_start, h->at_end};
    else
        plan->copies.data[h->id] =
            (tide_copy){h->tensor, h->space - 1, h->offset, h->size, h->begin, h->end, h->at_start, h->at_end};
}

tide_plan *sketch_finish(sketch *s) {
    tide_plan *plan = s->plan;
    for (uint32_t i = 0; i < s->holdings.count; i++) {
        sketch_holding *h = &s->holdings.data[i];
        h->pins = 0;
        if (h->open) sketch_close(s, i);
        if (h->at_end) h->end = sketch_now(s);
        write_holding(plan, h);
    }
    plan->arena_bytes = s->high_water[0];
    for (uint32_t t = 0; t < plan->n_tiers; t++) plan->tier_bytes[t] = s->high_water[1 + t];
    free(s->ancestors);
    tide__vec_free(&s->holdings);
    tide__vec_free(&s->accesses);
    return plan;
}
