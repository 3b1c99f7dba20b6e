/* See superneurons_cache.h. One pass finds the rests, one walk over the slots evicts, one pass backwards places the loads:
 * n log n altogether.
 *
 * Invariant: loads[] are those of the decisions so far. */
#include "plan/decide/policies/superneurons_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/swaps/tiers.h"

enum { SMALL_SHARE = 100 }; /* rests below 1/100 of the mean are not worth a transfer */

/* A tensor is in the arena and nobody uses it in the slots between `after` and `before`. */
typedef struct rest {
    tide_id tensor;
    uint32_t after, before;
    uint32_t tier;      /* evicted to; TIDE_NONE: not evicted */
    uint32_t save_slot; /* evicted: from here on it is away */
} rest;

typedef struct cache {
    const tide__policy_input *in;
    uint32_t n_ops;
    uint32_t *last_use; /* per tensor: slot; TIDE_NONE before the first */
    TIDE_VEC(rest) rests;
    tide__tiers tiers;
    uint64_t tier_room[TIDE_MACHINE_MAX_TIERS];
    uint32_t *goes_to; /* per tensor: the tier it is evicted to, or TIDE_NONE */
    bool *saved;       /* per tensor: a swap so far saves it there */
} cache;

/* ---- rests ---- */

/* Weights and what else is there from the start stay, as in the paper. */
static bool may_leave(const cache *c, tide_id t) {
    const tide_tensor *tensor = tide_program_tensor(c->in->program, t);
    return tensor->start != TIDE_START_PRESENT && tensor->size_bytes > 0;
}

static tide_status note_read(cache *c, uint32_t slot, tide_id t) {
    uint32_t after = c->last_use[t];
    c->last_use[t] = slot;
    if (after == TIDE_NONE || slot < after + 2 || !may_leave(c, t)) return TIDE_OK;
    return tide__vec_push(&c->rests, ((rest){.tensor = t, .after = after, .before = slot, .tier = TIDE_NONE}));
}

static tide_status note_run(cache *c, uint32_t slot, tide_id id) {
    const tide_op *op = tide_program_op(c->in->program, id);
    for (uint32_t i = 0; i < op->n_reads; i++) TIDE_TRY(note_read(c, slot, op->reads[i]));
    for (uint32_t i = 0; i < op->n_writes; i++) c->last_use[op->writes[i]] = slot;
    return TIDE_OK;
}

static int by_after(const void *a, const void *b) {
    const rest *x = a, *y = b;
    if (x->after != y->after) return x->after < y->after ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* The re-runs come sorted by slot and op. */
static tide_status find_rests(cache *c, const tide__decisions *d) {
    size_t at = 0;
    for (uint32_t slot = 0; slot <= c->n_ops; slot++) {
        for (; at < d->reruns.count && d->reruns.data[at].slot == slot; at++)
            TIDE_TRY(note_run(c, slot, d->reruns.data[at].op));
        if (slot < c->n_ops) TIDE_TRY(note_run(c, slot, slot));
    }
    if (c->rests.count) qsort(c->rests.data, c->rests.count, sizeof *c->rests.data, by_after);
    return TIDE_OK;
}

static uint64_t size_of(const cache *c, const rest *r) {
    return tide_program_tensor(c->in->program, r->tensor)->size_bytes;
}

/* From forward to after it. */
static bool is_long(const cache *c, const rest *r) {
    return tide_program_op(c->in->program, r->after)->phase == TIDE_FORWARD && r->before < c->n_ops &&
           tide_program_op(c->in->program, r->before)->phase != TIDE_FORWARD;
}

static tide_status cache_init(const tide__policy_input *in, const tide__decisions *d, cache *c) {
    *c = (cache){.in = in, .n_ops = tide_program_op_count(in->program)};
    size_t n = tide_program_tensor_count(in->program) + (size_t)1;
    c->last_use = malloc(n * sizeof *c->last_use);
    c->goes_to = malloc(n * sizeof *c->goes_to);
    c->saved = calloc(n, sizeof *c->saved);
    if (!c->last_use || !c->goes_to || !c->saved) return tide__fail_memory();
    memset(c->last_use, 0xff, n * sizeof *c->last_use);
    memset(c->goes_to, 0xff, n * sizeof *c->goes_to);
    c->tiers = tide__tiers_with_room(in);
    for (uint32_t t = 0; t < in->machine->n_tiers; t++) c->tier_room[t] = tide__tier_room(in, t);
    return find_rests(c, d);
}

static void cache_free(cache *c) {
    free(c->last_use);
    free(c->goes_to);
    free(c->saved);
    tide__vec_free(&c->rests);
}

/* ---- tiers ---- */

/* Where an input came from, where the tensor went before, else the first tier with room. Rooms are not given back:
 * what left in forward comes back in the opposite order, so that all copies exist at once anyway. */
static uint32_t find_tier(cache *c, tide_id t) {
    const tide_machine *m = c->in->machine;
    const tide_tensor *tensor = tide_program_tensor(c->in->program, t);
    if (tensor->start == TIDE_START_CLIENT) return tide_machine_find_tier(m, TIDE_TIER_CLIENT);
    if (c->goes_to[t] != TIDE_NONE) return c->goes_to[t];
    for (uint32_t i = 0; i < c->tiers.n; i++) {
        uint32_t tier = c->tiers.tier[i];
        uint64_t bytes;
        if (!tide__align_up(tensor->size_bytes, m->tier[tier].block_bytes, &bytes) || bytes > c->tier_room[tier])
            continue;
        c->tier_room[tier] -= bytes;
        return tier;
    }
    return TIDE_NONE;
}

/* ---- eviction ---- */

static uint64_t smallest_worth_moving(const cache *c) {
    double sum = 0;
    for (size_t i = 0; i < c->rests.count; i++) sum += (double)size_of(c, &c->rests.data[i]);
    return c->rests.count ? (uint64_t)(sum / (double)c->rests.count / SMALL_SHARE) : 0;
}

/* Evicts a rest from `slot` on; false if no tier takes it. */
static bool evict(cache *c, rest *r, uint32_t slot) {
    uint32_t tier = find_tier(c, r->tensor);
    if (tier == TIDE_NONE) return false;
    c->goes_to[r->tensor] = r->tier = tier;
    r->save_slot = slot;
    return true;
}

/* Rests by their beginning are the LRU list: nobody uses them until they end. */
static void evict_when_short(cache *c, bool eager, uint64_t *loads, uint64_t *back) {
    uint64_t away = 0, small = smallest_worth_moving(c);
    size_t tail = 0, end = 0; /* rests [tail, end) are on the list; the tail is the least recently used */
    for (uint32_t slot = 0; slot <= c->n_ops; slot++) {
        away -= back[slot];
        while (end < c->rests.count && c->rests.data[end].after < slot) end++;
        for (; tail < end && (eager || loads[slot] - tide__min_u64(loads[slot], away) > c->in->target_bytes); tail++) {
            rest *r = &c->rests.data[tail];
            bool idle = r->before > slot && size_of(c, r) >= small && (!eager || is_long(c, r));
            if (!idle || !evict(c, r, slot)) continue;
            away += size_of(c, r);
            back[r->before] += size_of(c, r);
        }
        loads[slot] -= tide__min_u64(loads[slot], away);
    }
}

/* ---- loads ---- */

static int by_before(const void *a, const void *b) {
    const rest *x = a, *y = b;
    if (x->before != y->before) return x->before < y->before ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* As early as `earliest`, as long as it fits in all slots up to its use. */
static uint32_t find_load_slot(const cache *c, const rest *r, uint32_t earliest, uint64_t *loads) {
    uint32_t slot = r->before;
    while (slot > earliest && slot > r->save_slot + 1 &&
           tide__add_capped(loads[slot - 1], size_of(c, r)) <= c->in->target_bytes)
        loads[--slot] += size_of(c, r);
    return slot;
}

/* A second absence of the same value finds its copy in the tier. */
static tide_status add_swap(cache *c, const rest *r, uint32_t load_slot, tide__decisions *d) {
    bool has_copy = c->saved[r->tensor] || tide_program_tensor(c->in->program, r->tensor)->start == TIDE_START_CLIENT;
    tide__swap swap = {
        .tensor = r->tensor, .tier = r->tier, .save_slot = has_copy ? TIDE_NONE : r->save_slot, .load_slot = load_slot};
    c->saved[r->tensor] = true;
    return tide__vec_push(&d->swaps, swap);
}

/* Prefetch: at a use of something that was away, what will be used next. */
static tide_status place_loads(cache *c, uint64_t *loads, tide__decisions *d) {
    uint32_t earliest = 0, last = 0;
    if (c->rests.count) qsort(c->rests.data, c->rests.count, sizeof *c->rests.data, by_before);
    for (size_t i = 0; i < c->rests.count; i++) {
        const rest *r = &c->rests.data[i];
        if (r->tier == TIDE_NONE) continue;
        if (r->before != last) earliest = last;
        last = r->before;
        TIDE_TRY(add_swap(c, r, find_load_slot(c, r, earliest, loads), d));
    }
    return TIDE_OK;
}

tide_status tide__superneurons_decide(const tide__policy_input *in, bool eager, uint64_t *loads, tide__decisions *d) {
    cache c;
    uint64_t *back = calloc(tide_program_op_count(in->program) + (size_t)1, sizeof *back);
    tide_status status = cache_init(in, d, &c);
    if (status == TIDE_OK && !back) status = tide__fail_memory();
    if (status == TIDE_OK) {
        evict_when_short(&c, eager, loads, back);
        status = place_loads(&c, loads, d);
    }
    cache_free(&c);
    free(back);
    return status;
}

tide_status tide__superneurons_subtract(const tide__policy_input *in, const tide__decisions *d, uint64_t *loads) {
    cache c;
    uint64_t away = 0, *change = calloc(tide_program_op_count(in->program) + (size_t)2, sizeof *change);
    tide_status status = cache_init(in, d, &c);
    if (status == TIDE_OK && !change) status = tide__fail_memory();
    for (size_t i = 0; i < c.rests.count && status == TIDE_OK; i++) {
        const rest *r = &c.rests.data[i];
        if (!is_long(&c, r)) continue;
        change[r->after + 1] += size_of(&c, r); /* sums modulo 2^64: what comes back is subtracted */
        change[r->before] -= size_of(&c, r);
    }
    for (uint32_t k = 0; k <= c.n_ops && status == TIDE_OK; k++) {
        away += change[k];
        loads[k] -= tide__min_u64(loads[k], away);
    }
    cache_free(&c);
    free(change);
    return status;
}
