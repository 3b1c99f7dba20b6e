/* See interpreter.h. Three parts: what each action touches, what that does to memory, and when it happens. */
#include "support/interpreter.h"

#include <stdarg.h>

#include "base/hash.h"
#include "base/vec.h"
#include "plan/plan_data.h"
#include "support/random_program.h"
#include "support/test.h"

/* A byte: the symbol it holds, and who is at it. */
typedef struct cell {
    uint64_t symbol;
    uint32_t writer; /* 1 + the action that is writing it; 0: nobody */
    uint32_t readers;
} cell;

/* Bytes that an action reads or writes. Byte k of a value v is symbol(v, k). */
typedef struct stretch {
    uint32_t space; /* 0: arena; 1 + t: tier t */
    uint64_t offset, size;
    uint64_t value, value_size; /* written beyond value_size: garbage */
    uint32_t partner;           /* of a write: position of the read whose bytes it may take; TIDE_NONE: none */
} stretch;

typedef struct touched {
    TIDE_VEC(stretch) reads;
    TIDE_VEC(stretch) writes;
} touched;

typedef struct event {
    uint64_t time, tie;
    uint32_t action;
    bool start;
} event;

typedef struct world {
    const tide_plan *plan;
    const tide_program *program;
    const tide_machine *machine;
    const tide_budgets *budgets;
    const tide__crossings *crossings; /* NULL: a barrier between steps */
    uint32_t n_actions, n_tensors, n_ops, step;
    uint32_t first; /* of this step's actions, which are counted through all steps that run at once */
    cell *space[1 + TIDE_MACHINE_MAX_TIERS]; /* NULL: client */
    uint64_t size[1 + TIDE_MACHINE_MAX_TIERS];
    uint64_t *value;  /* per tensor: the right one in this step */
    uint64_t *before; /* per tensor: the right one in the step before */
    touched *touched; /* per action of all steps at once */
    event *events;    /* start and end of each of these, in order of time */
    uint64_t *end;    /* per action of all steps at once: time of its end */
    uint64_t random, garbage;
    interpretation *result;
} world;

static bool broken(world *w, uint32_t action, const char *format, ...) TIDE_PRINTF(3, 4);
static bool broken(world *w, uint32_t action, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(w->result->why, sizeof w->result->why, format, args);
    va_end(args);
    w->result->ok = false;
    w->result->step = w->step;
    w->result->action = action;
    if (w->crossings && action != TIDE_NONE && action >= w->n_actions) { /* counted through */
        w->result->step = action / w->n_actions;
        w->result->action = action % w->n_actions;
    }
    return false;
}

enum { STEPS_ACROSS = 3 };

static uint32_t steps_at_once(const world *w) { return w->crossings ? STEPS_ACROSS : 1; }

static uint64_t symbol(uint64_t value, uint64_t k) { return tide__hash_word(value, k); }

static bool is_client(const world *w, uint32_t tier) { return w->machine->tier[tier].kind == TIDE_TIER_CLIENT; }

/* ---- what an action touches ---- */
static bool is_slice(size_t first, size_t n, size_t count) { return first <= count && n <= count - first; }

static const tide_residency *use(const world *w, uint32_t i, uint32_t k) {
    return &w->plan->residencies.data[w->plan->uses.data[w->plan->actions.data[i].uses + k]];
}

static bool check_lists(world *w, uint32_t i) {
    const tide_plan *plan = w->plan;
    const tide__action *a = &plan->actions.data[i];
    if (!is_slice(a->uses, a->n_uses, plan->uses.count) || !is_slice(a->waits, a->n_waits, plan->waits.count))
        return broken(w, i, "lists out of range");
    for (uint32_t k = 0; k < a->n_uses; k++) {
        if (plan->uses.data[a->uses + k] >= plan->residencies.count) return broken(w, i, "no such residency");
        if (use(w, i, k)->offset_bytes % w->machine->align_bytes != 0) return broken(w, i, "misaligned");
    }
    for (uint32_t k = 0; k < a->n_waits; k++)
        if (plan->waits.data[a->waits + k] >= i) return broken(w, i, "waits for the future");
    return true;
}

static bool add_stretch(world *w, uint32_t i, bool read, stretch x) {
    if (!w->space[x.space] || x.offset > w->size[x.space] || x.size > w->size[x.space] - x.offset)
        return broken(w, i, "leaves its space");
    assert_ok(read ? tide__vec_push(&w->touched[w->first + i].reads, x)
                   : tide__vec_push(&w->touched[w->first + i].writes, x));
    return true;
}

static stretch operand(const world *w, uint32_t i, uint32_t k, tide_id tensor) {
    uint64_t size = tide_program_tensor(w->program, tensor)->size_bytes;
    return (stretch){0, use(w, i, k)->offset_bytes, size, w->value[tensor], size, TIDE_NONE};
}

/* Which reads are updated in place: those of a pair whose residencies start at the same byte. */
static bool find_partners(world *w, uint32_t i, const tide_op *op) {
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        const stretch *read = &w->touched[w->first + i].reads.data[op->inplace[k].read];
        stretch *write = &w->touched[w->first + i].writes.data[op->inplace[k].write];
        if (read->offset == write->offset)
            write->partner = op->inplace[k].read;
        else if (op->inplace[k].must && read->size > 0)
            return broken(w, i, "cannot update in place");
    }
    return true;
}

/* The variant whose bits the results must have. */
static uint32_t right_variant(const world *w, tide_id op) {
    for (uint32_t i = 0; w->plan->bits_any && i < w->n_actions; i++)
        if (w->plan->actions.data[i].kind == TIDE_RUN && w->plan->actions.data[i].op == op)
            return w->plan->actions.data[i].variant;
    return 0;
}

static bool is_queue_of(const world *w, const tide_op *op, uint32_t queue) {
    if (!op->message) return queue == 0;
    if (queue == 0 || queue > w->machine->n_channels) return false;
    const tide_machine_channel *channel = &w->machine->channel[queue - 1];
    return w->machine->tier[channel->tier].kind == TIDE_TIER_PEER && channel->out != op->message->receives;
}

/* A peer takes messages in the order of their numbers, and each once. */
static bool is_next_message(const world *w, uint32_t i, const tide_message *message) {
    for (uint32_t k = 0; k < i; k++) {
        const tide__action *a = &w->plan->actions.data[k];
        const tide_op *op = a->kind == TIDE_RUN ? tide_program_op(w->program, a->op) : NULL;
        if (op && op->message && op->message->number >= message->number) return false;
    }
    return true;
}

static bool list_run(world *w, uint32_t i) {
    const tide__action *a = &w->plan->actions.data[i];
    const tide_op *op = tide_program_op(w->program, a->op);
    if (!op || !is_queue_of(w, op, a->queue) || a->variant >= op->n_variants)
        return broken(w, i, "no such op, queue or variant");
    if (op->message && !is_next_message(w, i, op->message)) return broken(w, i, "a message out of turn");
    uint32_t right = right_variant(w, a->op), n = op->n_reads + op->n_writes;
    if (right >= op->n_variants || op->variants[a->variant].bits_class != op->variants[right].bits_class)
        return broken(w, i, "other bits");
    uint64_t space = op->variants[a->variant].workspace_bytes;
    if (a->n_uses != n + (space > 0)) return broken(w, i, "wrong number of uses");
    for (uint32_t k = 0; k < n; k++) {
        bool read = k < op->n_reads;
        tide_id tensor = read ? op->reads[k] : op->writes[k - op->n_reads];
        if (!add_stretch(w, i, read, operand(w, i, k, tensor))) return false;
    }
    if (!find_partners(w, i, op)) return false;
    return space == 0 || add_stretch(w, i, false, (stretch){0, use(w, i, n)->offset_bytes, space, 0, 0, TIDE_NONE});
}

static bool check_blocks(world *w, uint32_t i, const tide_copy *c, const tide_residency *r) {
    uint32_t block = w->machine->tier[c->tier].block_bytes;
    bool slot = is_client(w, c->tier) || c->offset_bytes % block == 0;
    if (!slot || c->size_bytes % block || r->offset_bytes % block) return broken(w, i, "not in blocks");
    return c->size_bytes == r->size_bytes || broken(w, i, "sizes differ");
}

/* All the copy's bytes move; those beyond the tensor's size have no meaning, but they overwrite what is there. */
static bool list_move(world *w, uint32_t i) {
    const tide__action *a = &w->plan->actions.data[i];
    bool save = a->kind == TIDE_SAVE;
    if ((!save && a->kind != TIDE_LOAD) || a->copy >= w->plan->copies.count || a->n_uses != 1)
        return broken(w, i, "not a move");
    const tide_copy *c = &w->plan->copies.data[a->copy];
    const tide_tensor *tensor = tide_program_tensor(w->program, c->tensor);
    if (a->queue == 0 || a->queue > w->machine->n_channels || c->tier >= w->machine->n_tiers || !tensor)
        return broken(w, i, "no such queue, tier or tensor");
    const tide_machine_channel *channel = &w->machine->channel[a->queue - 1];
    if (channel->tier != c->tier || channel->out != save) return broken(w, i, "wrong channel");
    if (!check_blocks(w, i, c, use(w, i, 0))) return false;
    uint64_t size = tensor->size_bytes, value = w->value[c->tensor];
    if (size > c->size_bytes) return broken(w, i, "moves a part of the value");
    stretch arena = {0, use(w, i, 0)->offset_bytes, save ? size : c->size_bytes, value, size, TIDE_NONE};
    stretch slot = {1 + c->tier, c->offset_bytes, save ? c->size_bytes : size, value, size, TIDE_NONE};
    if (!is_client(w, c->tier)) return add_stretch(w, i, save, arena) && add_stretch(w, i, !save, slot);
    if (save || tensor->start != TIDE_START_CLIENT) return broken(w, i, "the client has no such value");
    return add_stretch(w, i, false, arena);
}

/* As memmove does it: the value is read before its bytes are overwritten. */
static bool list_relocate(world *w, uint32_t i) {
    const tide__action *a = &w->plan->actions.data[i];
    if (a->queue != 0 || a->copy != TIDE_NONE || a->n_uses != 2) return broken(w, i, "not a relocation");
    const tide_residency *from = use(w, i, 0), *to = use(w, i, 1);
    const tide_tensor *tensor = tide_program_tensor(w->program, from->tensor);
    if (!tensor || from->tensor != to->tensor) return broken(w, i, "relocates one value to another");
    if (from->size_bytes != to->size_bytes) return broken(w, i, "sizes differ");
    uint64_t size = tensor->size_bytes, value = w->value[from->tensor];
    if (size > from->size_bytes) return broken(w, i, "relocates a part of the value");
    stretch read = {0, from->offset_bytes, size, value, size, TIDE_NONE};
    stretch write = {0, to->offset_bytes, to->size_bytes, value, size, 0};
    return add_stretch(w, i, true, read) && add_stretch(w, i, false, write);
}

static bool list_action(world *w, uint32_t i) {
    switch (w->plan->actions.data[i].kind) {
    case TIDE_RUN: return list_run(w, i);
    case TIDE_RELOCATE: return list_relocate(w, i);
    default: return list_move(w, i);
    }
}

static bool list_touched(world *w) {
    for (uint32_t i = 0; i < w->n_actions; i++) {
        w->touched[w->first + i].reads.count = w->touched[w->first + i].writes.count = 0;
        if (!check_lists(w, i) || !list_action(w, i)) return false;
    }
    return true;
}

/* ---- what it does ---- */
static cell *cells(const world *w, const stretch *x) { return w->space[x->space] + x->offset; }

static bool holds(const world *w, const stretch *x) {
    for (uint64_t k = 0; k < x->size; k++)
        if (cells(w, x)[k].symbol != symbol(x->value, k)) return false;
    return true;
}

static void fill(world *w, const stretch *x) {
    for (uint64_t k = 0; k < x->size; k++)
        cells(w, x)[k].symbol = k < x->value_size ? symbol(x->value, k) : tide__mix(++w->garbage);
}

static bool start_read(world *w, uint32_t i, const stretch *x) {
    for (uint64_t k = 0; k < x->size; k++) {
        if (cells(w, x)[k].writer != 0) return broken(w, i, "reads while action %u writes", cells(w, x)[k].writer - 1);
        cells(w, x)[k].readers++;
    }
    return holds(w, x) || broken(w, i, "reads a wrong value at its start");
}

/* Does the action itself read byte k of what it writes, and may it? */
static bool reads_own(const world *w, uint32_t i, const stretch *x, uint64_t k) {
    if (x->partner == TIDE_NONE) return false;
    const stretch *read = &w->touched[i].reads.data[x->partner];
    uint64_t at = x->offset + k;
    return at >= read->offset && at - read->offset < read->size;
}

static bool start_write(world *w, uint32_t i, const stretch *x) {
    for (uint64_t k = 0; k < x->size; k++) {
        cell *c = &cells(w, x)[k];
        bool own = reads_own(w, i, x, k);
        if (c->writer != 0) return broken(w, i, "writes while action %u writes", c->writer - 1);
        if (c->readers != own) return broken(w, i, "writes what is being read");
        c->writer = i + 1;
        if (!own) c->symbol = tide__mix(++w->garbage);
    }
    return true;
}

static bool end_read(world *w, uint32_t i, const stretch *x) {
    for (uint64_t k = 0; k < x->size; k++) cells(w, x)[k].readers--;
    return holds(w, x) || broken(w, i, "finds a wrong value at its end");
}

static bool end_write(world *w, uint32_t i, const stretch *x) {
    for (uint64_t k = 0; k < x->size; k++) {
        if (cells(w, x)[k].writer != i + 1) return broken(w, i, "lost what it was writing");
        cells(w, x)[k].writer = 0;
    }
    fill(w, x);
    return true;
}

static bool process(world *w, const event *e) {
    const touched *t = &w->touched[e->action];
    for (size_t k = 0; k < t->reads.count; k++)
        if (!(e->start ? start_read : end_read)(w, e->action, &t->reads.data[k])) return false;
    for (size_t k = 0; k < t->writes.count; k++)
        if (!(e->start ? start_write : end_write)(w, e->action, &t->writes.data[k])) return false;
    return true;
}

/* ---- when it happens ---- */
enum { EVEN, WILD, QUEUES, FEW, N_STYLES };

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Even times; wildly different ones; fast and slow queues; a few actions that take ages. */
static uint64_t duration(world *w, uint32_t style, uint32_t queue, uint64_t style_seed) {
    switch (style) {
    case EVEN: return 1 + random_below(&w->random, 10);
    case WILD: return UINT64_C(1) << random_below(&w->random, 14);
    case QUEUES: return 1 + random_below(&w->random, UINT64_C(1) << tide__hash_word(style_seed, queue) % 12);
    default: return random_below(&w->random, 12) ? 1 + random_below(&w->random, 4) : 100000;
    }
}

/* When the waits of action i of step `step` are over, and what comes before it on its queue. */
static uint64_t time_ready(const world *w, uint32_t step, uint32_t i, uint64_t free_at) {
    const tide__action *a = &w->plan->actions.data[i];
    const uint32_t first = step * w->n_actions;
    uint64_t ready = free_at;
    for (uint32_t k = 0; k < a->n_waits; k++) ready = later(ready, w->end[first + w->plan->waits.data[a->waits + k]]);
    for (size_t k = 0; step > 0 && k < w->crossings->count; k++)
        if (w->crossings->data[k].to == i)
            ready = later(ready, w->end[first - w->n_actions + w->crossings->data[k].from]);
    return ready;
}

static void set_times(world *w) {
    uint64_t free_at[1 + TIDE_MACHINE_MAX_CHANNELS] = {0}, style_seed = w->random;
    uint32_t style = (uint32_t)random_below(&w->random, N_STYLES);
    bool late = random_below(&w->random, 2);
    for (uint32_t k = 0; k < steps_at_once(w) * w->n_actions; k++) {
        const uint32_t step = k / w->n_actions, i = k % w->n_actions, queue = w->plan->actions.data[i].queue;
        uint64_t start = time_ready(w, step, i, free_at[queue]);
        if (late && random_below(&w->random, 4) == 0) start += duration(w, style, queue, style_seed);
        w->end[k] = free_at[queue] = start + duration(w, style, queue, style_seed);
        w->events[(size_t)2 * k] = (event){start, random_below(&w->random, UINT64_MAX), k, true};
        w->events[(size_t)2 * k + 1] = (event){w->end[k], random_below(&w->random, UINT64_MAX), k, false};
    }
}

/* What ends at an instant makes way for what starts then. */
static int compare_events(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    if (x->start != y->start) return x->start ? 1 : -1;
    return (x->tie > y->tie) - (x->tie < y->tie);
}

static bool run_actions(world *w) {
    const size_t n = 2 * (size_t)steps_at_once(w) * w->n_actions;
    set_times(w);
    qsort(w->events, n, sizeof *w->events, compare_events);
    for (size_t k = 0; k < n; k++)
        if (!process(w, &w->events[k])) return false;
    return true;
}

/* ---- the program ---- */
static void set_values(world *w) {
    for (tide_id t = 0; t < w->n_tensors; t++) w->value[t] = tide__hash_word(w->step + 1, t);
    for (uint32_t k = 0; w->step > 0 && k < tide_program_carry_count(w->program); k++) {
        const tide_carry *carry = tide_program_carry(w->program, k);
        w->value[carry->to] = w->before[carry->from];
    }
    for (tide_id i = 0; i < w->n_ops; i++) {
        const tide_op *op = tide_program_op(w->program, i);
        uint64_t result = tide__hash_word(op->counter, i);
        for (uint32_t k = 0; k < op->n_reads; k++) result = tide__hash_word(result, w->value[op->reads[k]]);
        for (uint32_t k = 0; k < op->n_writes; k++) w->value[op->writes[k]] = tide__hash_word(result, k);
    }
}

/* Effects that are not in the bytes, as program.h has it; all of them where nothing says that an op may run again. */
static bool has_effect(const world *w, tide_id id) {
    bool any_again = false, overwrites = false;
    const tide_op *op = tide_program_op(w->program, id);
    for (tide_id i = 0; i < w->n_ops; i++) any_again |= tide_program_op(w->program, i)->rerunnable;
    for (uint32_t k = 0; k < op->n_inplace; k++) overwrites |= op->inplace[k].must;
    return !any_again || (!op->rerunnable && !overwrites);
}

/* Every op runs; those with side effects once, and where these are not in the bytes in the order of the program. */
static bool check_ops(world *w, uint32_t *runs) {
    tide_id last_fixed = 0;
    for (uint32_t i = 0; i < w->n_actions; i++) {
        const tide__action *a = &w->plan->actions.data[i];
        if (a->kind != TIDE_RUN) continue;
        const tide_op *op = tide_program_op(w->program, a->op);
        if (!op->rerunnable && runs[a->op] > 0) return broken(w, i, "a side effect too many");
        if (has_effect(w, a->op) && a->op < last_fixed) return broken(w, i, "a side effect too late");
        if (has_effect(w, a->op)) last_fixed = a->op;
        runs[a->op]++;
    }
    for (tide_id i = 0; i < w->n_ops; i++)
        if (runs[i] == 0) return broken(w, TIDE_NONE, "op %u does not run", i);
    return true;
}

/* ---- start and end ---- */

/* Every place of the start or end map: visit(value there). A place of a client tier is none of ours. */
typedef bool (*place_fn)(world *w, tide_id tensor, const stretch *x);

static bool visit_place(world *w, tide_id tensor, uint32_t space, uint64_t offset, place_fn visit) {
    const tide_tensor *t = tide_program_tensor(w->program, tensor);
    if (!t || (space > 0 && space - 1 >= w->machine->n_tiers)) return broken(w, TIDE_NONE, "no such tensor or tier");
    if (space > 0 && is_client(w, space - 1)) return true;
    stretch x = {space, offset, t->size_bytes, w->value[tensor], t->size_bytes, TIDE_NONE};
    if (x.offset > w->size[space] || x.size > w->size[space] - x.offset)
        return broken(w, TIDE_NONE, "leaves its space");
    return visit(w, tensor, &x);
}

static bool visit_map(world *w, bool start, place_fn visit) {
    for (size_t i = 0; i < w->plan->residencies.count; i++) {
        const tide_residency *r = &w->plan->residencies.data[i];
        if ((start ? r->at_start : r->at_end) && !visit_place(w, r->tensor, 0, r->offset_bytes, visit)) return false;
    }
    for (size_t i = 0; i < w->plan->copies.count; i++) {
        const tide_copy *c = &w->plan->copies.data[i];
        uint32_t space = c->tier < TIDE_MACHINE_MAX_TIERS ? 1 + c->tier : 1 + TIDE_MACHINE_MAX_TIERS;
        if ((start ? c->at_start : c->at_end) && !visit_place(w, c->tensor, space, c->offset_bytes, visit))
            return false;
    }
    return true;
}

/* The world keeps its part: what is PRESENT is where the start map says. */
static bool put_present(world *w, tide_id tensor, const stretch *x) {
    if (tide_program_tensor(w->program, tensor)->start == TIDE_START_PRESENT) fill(w, x);
    return true;
}

static bool check_place(world *w, tide_id tensor, const stretch *x) {
    return holds(w, x) || broken(w, TIDE_NONE, "tensor %u is not where the map says", tensor);
}

/* Marks in `before`, which is free by then, which tensors have a place. */
static bool count_place(world *w, tide_id tensor, const stretch *x) {
    (void)x;
    w->before[tensor] = 1;
    return true;
}

static bool check_kept(world *w) {
    memset(w->before, 0, w->n_tensors * sizeof *w->before);
    if (!visit_map(w, false, check_place) || !visit_map(w, false, count_place)) return false;
    for (tide_id t = 0; t < w->n_tensors; t++)
        if (tide_program_tensor(w->program, t)->keep && !w->before[t])
            return broken(w, TIDE_NONE, "tensor %u is not kept", t);
    memcpy(w->before, w->value, w->n_tensors * sizeof *w->before);
    return true;
}

/* ---- the whole ---- */
static void *zeroed(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    assert_non_null(p);
    return p;
}

static bool make_space(world *w, uint32_t space, uint64_t size, uint64_t limit) {
    if (size > limit || size > INTERPRETER_MAX_BYTES) return broken(w, TIDE_NONE, "space %u exceeds its limit", space);
    w->space[space] = zeroed(size, sizeof(cell));
    w->size[space] = size;
    return true;
}

static bool make_spaces(world *w) {
    const tide_budgets *b = w->budgets;
    if (!make_space(w, 0, w->plan->arena_bytes, b ? b->arena_bytes : UINT64_MAX)) return false;
    for (uint32_t t = 0; t < w->machine->n_tiers; t++) {
        uint64_t capacity = w->machine->tier[t].capacity_bytes, budget = b ? b->tier_bytes[t] : UINT64_MAX;
        if (is_client(w, t)) continue;
        if (!make_space(w, 1 + t, w->plan->tier_bytes[t], capacity < budget ? capacity : budget)) return false;
    }
    return true;
}

/* What the first step finds. */
static bool begin_world(world *w) {
    uint32_t *runs = zeroed(w->n_ops, sizeof *runs);
    bool ok = check_ops(w, runs);
    free(runs);
    return ok && visit_map(w, true, put_present);
}

static bool run_step(world *w) {
    set_values(w);
    if (!list_touched(w)) return false;
    if (w->step == 0 && !begin_world(w)) return false;
    return visit_map(w, true, check_place) && run_actions(w) && check_kept(w);
}

/* All at once: only the first begins, and only the last ends, with nothing under way. */
static bool run_across(world *w) {
    for (w->step = 0; w->step < STEPS_ACROSS; w->step++, w->first += w->n_actions) {
        set_values(w);
        if (!list_touched(w) || (w->step == 0 && !begin_world(w))) return false;
        memcpy(w->before, w->value, w->n_tensors * sizeof *w->before);
    }
    w->step--;
    return run_actions(w) && check_kept(w);
}

static void run_steps(world *w) {
    uint32_t n_steps = tide_program_is_repeating(w->program) ? 2 : 1;
    for (w->step = 0; w->step < n_steps && run_step(w); w->step++) {
    }
}

static void free_world(world *w) {
    for (uint32_t i = 0; i < steps_at_once(w) * w->n_actions; i++) {
        free(w->touched[i].reads.data);
        free(w->touched[i].writes.data);
    }
    for (size_t s = 0; s < sizeof w->space / sizeof w->space[0]; s++) free(w->space[s]);
    free(w->value);
    free(w->before);
    free(w->touched);
    free(w->events);
    free(w->end);
}

interpretation interpret_across(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                const tide_budgets *budgets, const tide__crossings *crossings, uint64_t seed) {
    interpretation result = {.ok = true, .action = TIDE_NONE};
    world w = {plan, program, machine, budgets, crossings, .random = seed, .garbage = seed, .result = &result};
    w.n_actions = (uint32_t)plan->actions.count;
    w.n_tensors = tide_program_tensor_count(program);
    w.n_ops = tide_program_op_count(program);
    const size_t n = (size_t)steps_at_once(&w) * w.n_actions;
    w.value = zeroed(w.n_tensors, sizeof *w.value);
    w.before = zeroed(w.n_tensors, sizeof *w.before);
    w.touched = zeroed(n, sizeof *w.touched);
    w.events = zeroed(2 * n, sizeof *w.events);
    w.end = zeroed(n, sizeof *w.end);
    if (!make_spaces(&w))
        result.ok = false;
    else if (crossings)
        run_across(&w);
    else
        run_steps(&w);
    free_world(&w);
    return result;
}

interpretation interpret(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                         const tide_budgets *budgets, uint64_t seed) {
    return interpret_across(plan, program, machine, budgets, NULL, seed);
}
