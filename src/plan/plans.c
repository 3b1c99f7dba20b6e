/* See plans.h. */
#include "plan/plans.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/size.h"
#include "plan/decide/swaps/tiers.h"
#include "plan/order/order.h"

void tide__plans_init(const tide__policy_input *in, uint64_t wanted_bytes, tide__plans *p) {
    *p = (tide__plans){.in = *in, .wanted_bytes = wanted_bytes};
}

static void free_entry(tide__plans_entry *e) {
    tide__decisions_free(&e->decisions);
    tide_plan_destroy(e->whole);
}

void tide__plans_deinit(tide__plans *p) {
    for (size_t i = 0; i < p->entries.count; i++) free_entry(&p->entries.data[i]);
    tide__vec_free(&p->entries);
    tide__vec_free(&p->seen);
    tide_plan_destroy(p->missed);
    tide__order_destroy(p->orders);
    *p = (tide__plans){0};
}

/* ---- what was seen ---- */

static uint64_t fingerprint(const tide__decisions *d, const tide__evaluate_options *o) {
    uint64_t hash =
        tide__hash_word(o->capacity_bytes, d->keep_everything | (uint64_t)o->relocates << 1 | (uint64_t)o->fills << 2);
    hash = tide__hash_word(hash, o->place_work);
    hash = tide__hash_bytes(hash, d->variants.data, d->variants.count * sizeof *d->variants.data);
    for (size_t i = 0; i < d->swaps.count; i++) {
        const tide__swap *s = &d->swaps.data[i];
        hash = tide__hash_word(hash, (uint64_t)s->tensor << 32 | s->tier);
        hash = tide__hash_word(hash, (uint64_t)s->save_slot << 32 | s->load_slot);
        hash = tide__hash_word(hash, s->needed_slot);
    }
    for (size_t i = 0; i < d->reruns.count; i++)
        hash = tide__hash_word(hash, (uint64_t)d->reruns.data[i].slot << 32 | d->reruns.data[i].op);
    for (size_t i = 0; i < d->sequence.count; i++) {
        const tide__step *s = &d->sequence.data[i];
        hash = tide__hash_word(hash, (uint64_t)s->slot << 32 | s->index);
        hash = tide__hash_word(hash, (uint64_t)s->kind);
    }
    return hash;
}

/* The first with a fingerprint that is not smaller. */
static size_t place_of_print(const tide__plans *p, uint64_t print) {
    size_t low = 0, high = p->seen.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->seen.data[middle].fingerprint < print)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const tide__plans_outcome *find_seen(const tide__plans *p, uint64_t print) {
    size_t at = place_of_print(p, print);
    bool found = at < p->seen.count && p->seen.data[at].fingerprint == print;
    return found ? &p->seen.data[at].outcome : NULL;
}

static tide_status note_seen(tide__plans *p, uint64_t print, const tide__plans_outcome *o) {
    size_t at = place_of_print(p, print);
    TIDE_TRY(tide__vec_reserve(&p->seen, 1));
    memmove(&p->seen.data[at + 1], &p->seen.data[at], (p->seen.count - at) * sizeof *p->seen.data);
    p->seen.data[at] = (tide__plans_seen){print, *o};
    p->seen.count++;
    return TIDE_OK;
}

/* ---- entries ---- */

/* The first entry with a larger arena. */
static size_t place_of(const tide__plans *p, uint64_t arena_bytes) {
    size_t low = 0, high = p->entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->entries.data[middle].arena_bytes <= arena_bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t tide__plans_time(const tide__plans *p, uint64_t budget_bytes) {
    size_t at = place_of(p, budget_bytes);
    return at ? p->entries.data[at - 1].step_ns : UINT64_MAX;
}

uint64_t tide__plans_smallest(const tide__plans *p) {
    return p->entries.count ? p->entries.data[0].arena_bytes : UINT64_MAX;
}

void tide__plans_close(tide__plans *p, uint64_t bytes) {
    if (!p->entries.count) return;
    p->is_closed = true;
    p->closed_ns = tide__plans_time(p, tide__max_u64(bytes, tide__plans_smallest(p)));
}

static bool is_wanted(const tide__plans *p, uint64_t arena_bytes, uint64_t step_ns) {
    if (p->is_closed && step_ns < p->closed_ns) return false;
    return step_ns < tide__plans_time(p, arena_bytes);
}

/* Takes *e over; entries that are no faster and no smaller go. */
static tide_status insert(tide__plans *p, tide__plans_entry *e) {
    TIDE_TRY(tide__vec_reserve(&p->entries, 1));
    size_t at = place_of(p, e->arena_bytes), end = at;
    if (at && p->entries.data[at - 1].arena_bytes == e->arena_bytes) at--;
    while (end < p->entries.count && p->entries.data[end].step_ns >= e->step_ns) end++;
    for (size_t i = at; i < end; i++) free_entry(&p->entries.data[i]);
    memmove(&p->entries.data[at + 1], &p->entries.data[end], (p->entries.count - end) * sizeof *p->entries.data);
    p->entries.count = p->entries.count - (end - at) + 1;
    p->entries.data[at] = *e;
    p->n_kept++;
    *e = (tide__plans_entry){0};
    tide_plan_destroy(p->missed);
    p->missed = NULL;
    return TIDE_OK;
}

static void keep_missed(tide__plans *p, tide_plan **plan) {
    if (p->entries.count || (p->missed && p->missed->arena_bytes <= (*plan)->arena_bytes)) return;
    tide_plan_destroy(p->missed);
    p->missed = *plan;
    *plan = NULL;
}

/* ---- offers ---- */

static tide__plans_outcome outcome_of(const tide__plans *p, const tide_plan *plan) {
    tide__plans_outcome o = {.holds_tiers = tide__tiers_hold(&p->in, plan->tier_bytes),
                             .arena_bytes = plan->arena_bytes,
                             .step_ns = plan->prediction.step_ns};
    memcpy(o.tier_bytes, plan->tier_bytes, sizeof o.tier_bytes);
    return o;
}

/* Keeps what fits the tiers and is worth it; takes over what it keeps. */
static tide_status settle(tide__plans *p, tide__plans_entry *e, tide_plan **plan, const tide__plans_outcome *o) {
    if (!o->holds_tiers) {
        (void)tide__tiers_shrink(&p->in, o->tier_bytes);
        keep_missed(p, plan);
        return TIDE_OK;
    }
    e->arena_bytes = o->arena_bytes;
    e->step_ns = o->step_ns;
    return is_wanted(p, o->arena_bytes, o->step_ns) ? insert(p, e) : TIDE_OK;
}

/* The arena of the smallest entry that takes no longer. */
static uint64_t wanted_below(const void *self, uint64_t step_ns) {
    const tide__plans *p = self;
    size_t low = 0, high = p->entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->entries.data[middle].step_ns > step_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->entries.count ? p->entries.data[low].arena_bytes : UINT64_MAX;
}

/* Takes the decisions of *e over if they become an entry. */
static tide_status offer(tide__plans *p, uint64_t print, tide__plans_entry *e, tide__plans_outcome *out) {
    tide_plan *plan;
    tide__evaluate_options asked = e->placed;
    asked.wanted_below = p->entries.count ? wanted_below : NULL; /* the smallest that misses a tier is kept, too */
    asked.self = p;
    TIDE_TRY(tide__evaluate(&p->in, &e->decisions, &asked, &plan));
    *out = outcome_of(p, plan);
    tide_status status = note_seen(p, print, out);
    if (status == TIDE_OK) status = settle(p, e, &plan, out);
    tide_plan_destroy(plan);
    return status;
}

tide_status tide__plans_offer(tide__plans *p, tide__decisions *d, const tide__evaluate_options *options,
                              tide__plans_outcome *out) {
    tide__plans_entry e = {.placed = *options, .decisions = *d, .order = p->in.order};
    uint64_t print = fingerprint(d, options);
    e.placed.worth_ns = tide__plans_time(p, options->capacity_bytes);
    const tide__plans_outcome *seen = find_seen(p, print);
    tide_status status = TIDE_OK;
    *d = (tide__decisions){0};
    if (seen)
        *out = *seen;
    else
        status = offer(p, print, &e, out);
    free_entry(&e);
    return status;
}

tide_status tide__plans_offer_whole(tide__plans *p, tide_plan **plan) {
    tide__plans_entry e = {.arena_bytes = (*plan)->arena_bytes,
                           .step_ns = (*plan)->prediction.step_ns,
                           .order = p->in.order,
                           .whole = *plan};
    *plan = NULL;
    tide_status status = TIDE_OK;
    if (!tide__tiers_hold(&p->in, e.whole->tier_bytes))
        keep_missed(p, &e.whole);
    else if (is_wanted(p, e.arena_bytes, e.step_ns))
        status = insert(p, &e);
    free_entry(&e);
    return status;
}

tide_status tide__plans_merge(tide__plans *p, tide__plans *from) {
    for (size_t i = 0; i < from->entries.count; i++) {
        tide__plans_entry *e = &from->entries.data[i];
        if (is_wanted(p, e->arena_bytes, e->step_ns)) TIDE_TRY(insert(p, e));
    }
    if (from->missed && from->in.order == p->in.order) keep_missed(p, &from->missed);
    return TIDE_OK;
}

static tide_status copy_entry(const tide__plans_entry *from, tide__plans_entry *to) {
    *to = *from;
    to->decisions = (tide__decisions){0};
    to->whole = NULL;
    tide_status status = tide__decisions_copy(&from->decisions, &to->decisions);
    if (status == TIDE_OK && from->whole) status = tide__plan_clone(from->whole, &to->whole);
    return status;
}

tide_status tide__plans_learn(tide__plans *p, const tide__plans *from) {
    for (size_t i = 0; i < from->entries.count; i++) {
        const tide__plans_entry *known = &from->entries.data[i];
        tide__plans_entry e;
        if (!is_wanted(p, known->arena_bytes, known->step_ns)) continue;
        tide_status status = copy_entry(known, &e);
        e.polished = false;
        if (status == TIDE_OK) status = insert(p, &e);
        free_entry(&e);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

/* ---- answers ---- */

/* In the entry's own order. */
static tide_status make_plan(const tide__plans *p, const tide__plans_entry *e, tide_plan **out) {
    tide__policy_input in = p->in;
    if (e->whole) return tide__plan_clone(e->whole, out);
    if (e->order) in.program = e->order->program;
    return tide__evaluate(&in, &e->decisions, &e->placed, out);
}

tide_status tide__plans_take(const tide__plans *p, uint64_t budget_bytes, tide_plan **out) {
    size_t at = place_of(p, budget_bytes);
    *out = NULL;
    if (p->entries.count == 0) return p->missed ? tide__plan_clone(p->missed, out) : TIDE_OK;
    const tide__plans_entry *e = &p->entries.data[at ? at - 1 : 0];
    TIDE_TRY(make_plan(p, e, out));
    if (e->order != p->in.order) tide__order_restore(e->order, p->in.program, *out);
    return TIDE_OK;
}
