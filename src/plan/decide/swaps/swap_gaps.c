/* Finds the gaps: between two uses of a value, over the end of the step for what is carried, from the start to the first use
 * of inputs and of what is there in a step that is not repeated, and to the end for what is only kept. Linear in the program. */
#include "plan/decide/swaps/swap_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"

/* A re-run that reads a value, or makes it again. */
typedef struct touch {
    uint32_t slot, next; /* next: in touches, no earlier; TIDE_NONE */
    bool writes;
} touch;

typedef struct finder {
    tide__swaps *s;
    const tide_program *program;
    const tide_machine *machine;
    uint32_t tier, client;
    uint32_t *first, *last; /* per tensor: first and last op that uses it; TIDE_NONE: none does */
    uint32_t *across;       /* per tensor: the gap that ends with it at the start of the step */
    uint32_t *n_from;       /* per tensor: the carries it is the end of */
    uint32_t *place_free; /* per tensor: the slot behind the last use of what it is carried to, whose place it takes */
    uint64_t *early;      /* per slot: how the bytes of inputs change that count before their first use */
    uint32_t *touched;    /* per tensor: in touches, the earliest; TIDE_NONE */
    TIDE_VEC(touch) touches;
    tide__arrays arrays; /* owns the arrays above */
} finder;

/* ---- what is worth a transfer ---- */

/* One value, and all smaller ones together, in parts of the target. */
enum { TINY_PART = 4096, ALL_TINY_PART = 16 };

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The sizes of what is alive at the peak, ascending. */
static tide_status sizes_at_peak(const tide_program *program, uint64_t **sizes, size_t *n) {
    tide_liveness *l;
    TIDE_TRY(tide_liveness_create(program, &l));
    uint64_t *found = malloc((l->n_tensors + (size_t)1) * sizeof *found);
    size_t count = 0;
    for (tide_id t = 0; found && t < l->n_tensors; t++)
        if (l->first[t] != TIDE_NONE && l->first[t] <= l->peak_op && l->peak_op <= l->last[t])
            found[count++] = tide_program_tensor(program, t)->size_bytes;
    tide_liveness_destroy(l);
    if (!found) return tide__fail_memory();
    qsort(found, count, sizeof *found, by_size);
    *sizes = found;
    *n = count;
    return TIDE_OK;
}

tide_status tide__swap_least_bytes(const tide__policy_input *in, uint64_t *out) {
    uint64_t *sizes, sum = 0, least = 1 + in->target_bytes / TINY_PART;
    size_t n;
    TIDE_TRY(sizes_at_peak(in->program, &sizes, &n));
    for (size_t i = 0; i < n && sizes[i] < least; i++) {
        sum += sizes[i];
        if (sum > in->target_bytes / ALL_TINY_PART) least = sizes[i];
    }
    free(sizes);
    *out = least;
    return TIDE_OK;
}

/* ---- transfers ---- */

/* Where both directions to a tier share their bandwidth, both are taken to be busy. */
static uint64_t transfer_ns(const tide_machine *m, uint32_t tier, bool out, uint64_t bytes) {
    uint32_t queue = tide_machine_queue(m, tier, out), back = tide_machine_queue(m, tier, !out);
    if (queue == TIDE_NONE) return 0;
    const tide_machine_channel *channel = &m->channel[queue - 1];
    uint64_t ns = tide_machine_transfer_ns(m, queue - 1, bytes);
    bool shared = back != TIDE_NONE && channel->share && m->channel[back - 1].share == channel->share;
    return shared ? tide__add_capped(ns, ns - tide__min_u64(ns, channel->latency_ns)) : ns;
}

tide_status tide__swap_gap_to_tier(const tide_machine *m, uint32_t tier, tide__swap_gap *g) {
    uint64_t moved;
    if (!tide__align_up(g->size_bytes, m->tier[tier].block_bytes, &moved))
        return tide__fail(TIDE_E_OVERFLOW, "a tensor that fills the address space");
    g->tier = tier;
    g->moved_bytes = moved;
    g->out_ns = g->clean ? 0 : transfer_ns(m, tier, true, moved);
    g->in_ns = g->to == TIDE_NONE ? 0 : transfer_ns(m, tier, false, moved);
    return TIDE_OK;
}

/* ---- what re-runs leave of a gap ---- */

static tide_status note_touch(finder *f, tide_id tensor, uint32_t slot, bool writes) {
    touch t = {.slot = slot, .next = f->touched[tensor], .writes = writes};
    f->touched[tensor] = (uint32_t)f->touches.count;
    return tide__vec_push(&f->touches, t);
}

static tide_status note_touches(finder *f, const tide__decisions *beside) {
    for (size_t i = beside->reruns.count; i-- > 0;) {
        const tide__rerun *r = &beside->reruns.data[i];
        const tide_op *op = tide_program_op(f->program, r->op);
        for (uint32_t k = 0; k < op->n_reads; k++) TIDE_TRY(note_touch(f, op->reads[k], r->slot, false));
        for (uint32_t k = 0; k < op->n_writes; k++) TIDE_TRY(note_touch(f, op->writes[k], r->slot, true));
    }
    return TIDE_OK;
}

/* Up to the first re-run that reads the value, behind those in its first slot; none where one makes it. A SAVE starts from the
 * newest instance. */
static bool shorten_inside(const finder *f, tide__swap_gap *g) {
    for (uint32_t i = f->touched[g->tensor]; i != TIDE_NONE && !g->forced; i = f->touches.data[i].next) {
        const touch *t = &f->touches.data[i];
        if (t->slot < g->from && t->writes) g->ready = t->slot + 1 > g->ready ? t->slot + 1 : g->ready;
        if (t->slot < g->from || t->slot > g->to) continue;
        if (t->writes && g->to != TIDE_NONE) return false;
        if (g->to == TIDE_NONE || t->slot == g->from)
            g->from = t->slot + 1; /* what does not come back leaves behind all of them */
        else
            g->to = t->slot;
    }
    return g->forced || (g->to > g->from && g->from < f->s->n_ops);
}

static bool shorten_across(const finder *f, tide__swap_gap *g) {
    for (uint32_t i = f->touched[g->tensor]; i != TIDE_NONE; i = f->touches.data[i].next)
        if (f->touches.data[i].slot >= g->from) g->from = f->touches.data[i].slot + 1;
    uint32_t first = f->touched[g->head];
    if (first != TIDE_NONE && f->touches.data[first].slot < g->to) g->to = f->touches.data[first].slot;
    return f->touches.count == 0 || g->from < f->s->n_ops;
}

static tide_status add(finder *f, tide__swap_gap gap) {
    if (!(gap.head == TIDE_NONE ? shorten_inside(f, &gap) : shorten_across(f, &gap))) return TIDE_OK;
    gap.size_bytes = tide_program_tensor(f->program, gap.tensor)->size_bytes;
    TIDE_TRY(tide__swap_gap_to_tier(f->machine, gap.tier, &gap));
    return tide__vec_push(&f->s->gaps, gap);
}

static bool is_large(const finder *f, tide_id tensor) {
    uint64_t size = tide_program_tensor(f->program, tensor)->size_bytes;
    return size > 0 && size >= f->s->options.min_bytes;
}

static void find_uses(finder *f) {
    for (uint32_t o = 0; o < f->s->n_ops; o++) {
        const tide_op *op = tide_program_op(f->program, o);
        for (uint32_t i = 0; i < op->n_reads + op->n_writes; i++) {
            tide_id t = i < op->n_reads ? op->reads[i] : op->writes[i - op->n_reads];
            if (f->first[t] == TIDE_NONE) f->first[t] = o;
            f->last[t] = o;
        }
    }
}

static uint32_t ready_slot(const finder *f, tide_id tensor) {
    tide_id producer = tide_program_producer(f->program, tensor);
    return producer == TIDE_NONE ? 0 : producer + 1;
}

/* ---- over the end of the step ---- */

/* A value that only passes through, from one carry to another, would tie two gaps together: it stays. So does one that
 * is carried twice, and inputs that are carried. */
static bool can_cross(const finder *f, const tide_carry *c) {
    const tide_tensor *from = tide_program_tensor(f->program, c->from), *to = tide_program_tensor(f->program, c->to);
    if (f->n_from[c->from] != 1 || from->start == TIDE_START_CLIENT || !is_large(f, c->to)) return false;
    if (c->from == c->to) return true;
    return !to->keep && from->start == TIDE_START_ABSENT && f->first[c->to] != TIDE_NONE;
}

static tide_status add_across(finder *f) {
    for (uint32_t i = 0; i < tide_program_carry_count(f->program); i++)
        f->n_from[tide_program_carry(f->program, i)->from]++;
    for (uint32_t i = 0; i < tide_program_carry_count(f->program); i++) {
        const tide_carry *c = tide_program_carry(f->program, i);
        if (!can_cross(f, c)) continue;
        tide__swap_gap gap = {.tensor = c->from, .head = c->to, .tier = f->tier, .to = f->first[c->to]};
        gap.ready = ready_slot(f, c->from);
        gap.from = f->last[c->from] == TIDE_NONE ? 0 : f->last[c->from] + 1;
        gap.clean = c->from == c->to;
        gap.forced = gap.clean && gap.to == TIDE_NONE;
        gap.across = TIDE_NONE;
        uint32_t place = (uint32_t)f->s->gaps.count;
        TIDE_TRY(add(f, gap));
        if (f->s->gaps.count > place) f->across[c->to] = place;
    }
    return TIDE_OK;
}

/* What is there at the start of a step that is not repeated may be in a tier until its first use. */
static tide_status add_starts(finder *f) {
    for (tide_id t = 0; t < tide_program_tensor_count(f->program); t++) {
        bool used = f->first[t] != TIDE_NONE && f->first[t] > 0;
        if (tide_program_tensor(f->program, t)->start != TIDE_START_PRESENT || !used || !is_large(f, t)) continue;
        tide__swap_gap gap = {.tensor = t, .head = TIDE_NONE, .tier = f->tier, .to = f->first[t], .clean = true};
        gap.across = TIDE_NONE;
        uint32_t place = (uint32_t)f->s->gaps.count;
        TIDE_TRY(add(f, gap));
        if (f->s->gaps.count > place) f->across[t] = place;
    }
    return TIDE_OK;
}

/* ---- between two uses ---- */

static bool is_carried_to_itself(const finder *f, tide_id tensor) {
    uint32_t across = f->across[tensor];
    return across != TIDE_NONE && f->s->gaps.data[across].head == tensor && f->s->gaps.data[across].tensor == tensor;
}

static tide_status add_inside(finder *f, const tide_gap *g) {
    tide_start start = tide_program_tensor(f->program, g->tensor)->start;
    bool input = start == TIDE_START_CLIENT;
    if (start == TIDE_START_PRESENT && f->s->options.weights_stay) return TIDE_OK;
    if (!is_large(f, g->tensor) || (input ? f->client : f->tier) == TIDE_NONE) return TIDE_OK;
    tide__swap_gap gap = {.tensor = g->tensor, .head = TIDE_NONE, .from = g->after_op + 1, .to = g->before_op};
    gap.tier = input ? f->client : f->tier;
    gap.ready = ready_slot(f, g->tensor);
    gap.clean = input || is_carried_to_itself(f, g->tensor);
    gap.across = f->across[g->tensor];
    return add(f, gap);
}

static tide_status add_all_inside(finder *f) {
    tide_gap *gaps;
    size_t n;
    TIDE_TRY(tide_liveness_gaps(f->program, &gaps, &n));
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < n && status == TIDE_OK; i++) status = add_inside(f, &gaps[i]);
    free(gaps);
    return status;
}

/* What is kept and carried nowhere may be in a tier in the end. */
static tide_status add_ends(finder *f) {
    for (tide_id t = 0; t < tide_program_tensor_count(f->program); t++) {
        const tide_tensor *tensor = tide_program_tensor(f->program, t);
        bool ends = tensor->keep && f->n_from[t] == 0 && tensor->start != TIDE_START_CLIENT;
        if (!ends || f->last[t] == TIDE_NONE || f->last[t] + 1 >= f->s->n_ops || !is_large(f, t)) continue;
        tide__swap_gap gap = {.tensor = t, .head = TIDE_NONE, .tier = f->tier, .from = f->last[t] + 1, .to = TIDE_NONE};
        gap.ready = ready_slot(f, t);
        gap.across = f->across[t];
        TIDE_TRY(add(f, gap));
    }
    return TIDE_OK;
}

/* ---- inputs ---- */

static void find_free_places(const finder *f) {
    for (uint32_t i = 0; i < tide_program_carry_count(f->program); i++) {
        const tide_carry *c = tide_program_carry(f->program, i);
        uint32_t *slot = &f->place_free[c->from];
        if (f->last[c->to] != TIDE_NONE && f->last[c->to] >= *slot) *slot = f->last[c->to] + 1;
        for (uint32_t k = f->touched[c->to]; k != TIDE_NONE; k = f->touches.data[k].next)
            if (f->touches.data[k].slot >= *slot) *slot = f->touches.data[k].slot + 1;
    }
}

/* From the start to the first use; of the next step's input from where this step's is done with. Counting it as there from then on
 * makes its way in an absence like any other. */
static tide_status add_first_loads(finder *f) {
    find_free_places(f);
    for (tide_id t = 0; f->client != TIDE_NONE && t < tide_program_tensor_count(f->program); t++) {
        const tide_tensor *tensor = tide_program_tensor(f->program, t);
        bool used = f->first[t] != TIDE_NONE;
        if (tensor->start != TIDE_START_CLIENT || (!used && !tensor->keep)) continue;
        tide__swap_gap gap = {.tensor = t, .head = TIDE_NONE, .tier = f->client, .clean = true, .forced = true};
        gap.to = used ? f->first[t] : f->s->n_ops;
        gap.from = f->place_free[t] < gap.to ? f->place_free[t] : gap.to;
        gap.across = TIDE_NONE;
        TIDE_TRY(add(f, gap));
        f->early[gap.from] += tensor->size_bytes;
        f->early[gap.to] -= tensor->size_bytes;
    }
    uint64_t early = 0;
    for (uint32_t k = 0; k <= f->s->n_ops; k++) f->s->base_loads[k] += early += f->early[k];
    return TIDE_OK;
}

static tide_status find_gaps(finder *f, const tide__decisions *beside) {
    find_uses(f);
    TIDE_TRY(note_touches(f, beside));
    bool ends = f->tier != TIDE_NONE && !f->s->options.weights_stay;
    if (ends) TIDE_TRY(tide_program_is_repeating(f->program) ? add_across(f) : add_starts(f));
    TIDE_TRY(add_all_inside(f));
    if (ends) TIDE_TRY(add_ends(f));
    return add_first_loads(f);
}

tide_status tide__swap_gaps_find(tide__swaps *s, const tide__decisions *beside) {
    finder f = {.s = s, .program = s->in->program, .machine = s->in->machine};
    uint32_t n = tide_program_tensor_count(f.program);
    f.tier = s->tiers.n ? s->tiers.tier[0] : TIDE_NONE;
    f.client = tide_machine_find_tier(f.machine, TIDE_TIER_CLIENT);
    if (f.client != TIDE_NONE && tide_machine_queue(f.machine, f.client, false) == TIDE_NONE) f.client = TIDE_NONE;
    tide__array_ones(&f.arrays, f.first, n + (size_t)1);
    tide__array_ones(&f.arrays, f.last, n + (size_t)1);
    tide__array_ones(&f.arrays, f.across, n + (size_t)1);
    tide__array(&f.arrays, f.n_from, n + (size_t)1);
    tide__array(&f.arrays, f.place_free, n + (size_t)1);
    tide__array(&f.arrays, f.early, s->n_ops + (size_t)1);
    tide__array_ones(&f.arrays, f.touched, n + (size_t)1);
    tide_status status = tide__arrays_check(&f.arrays);
    if (status == TIDE_OK) status = find_gaps(&f, beside);
    tide__arrays_free(&f.arrays);
    tide__vec_free(&f.touches);
    return status;
}
