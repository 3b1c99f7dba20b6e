/* Between the places of an online run and the maps of a plan: the way into a plan (its start map), and the way out of
 * one, at its end or where a step leaves it. */
#include <stdlib.h>

#include "base/size.h"
#include "plan/plan_data.h"
#include "run/online.h"
#include "run/transition.h"

typedef struct tide__run_online state;

/* ---- out of a plan ---- */

/* Is [begin, end) there when actions [0, index) are complete and no other has begun? */
static bool is_there(uint32_t begin, uint32_t end, bool at_end, uint32_t index, uint32_t n_actions) {
    if (index == n_actions) return at_end;
    return (begin < index || begin == 0) && end > index;
}

static void take_residency(state *s, const tide_residency *r, uint32_t index) {
    if (r->tensor >= s->n_storages || (r->begin == 0 && !r->at_start && index == 0)) return;
    if (!is_there(r->begin, r->end, r->at_end, index, s->run->n_actions)) return;
    tide__place *p = &s->places.data[r->tensor];
    if (p->in_arena) return; /* one is enough */
    p->in_arena = true;
    p->offset = r->offset_bytes;
}

static void take_copy(state *s, const tide_copy *c, uint32_t index) {
    if (s->run->options.machine->tier[c->tier].kind == TIDE_TIER_CLIENT) return;
    if (c->tensor >= s->n_storages || (c->begin == 0 && !c->at_start && index == 0)) return;
    if (!is_there(c->begin, c->end, c->at_end, index, s->run->n_actions)) return;
    tide__place *p = &s->places.data[c->tensor];
    if (p->tier != TIDE_NONE) return;
    p->tier = c->tier;
    p->slot = c->offset_bytes;
}

static size_t list_taken(const state *s, uint32_t space, tide__range *taken) {
    size_t n = 0;
    for (tide_id id = 0; id < s->n_storages; id++) {
        const tide__place *p = &s->places.data[id];
        if (space == 0 && p->in_arena) taken[n++] = (tide__range){p->offset, p->bytes};
        if (space > 0 && p->tier == space - 1) taken[n++] = (tide__range){p->slot, p->bytes};
    }
    return n;
}

/* Free is what no place holds. */
static tide_status rebuild_ranges(state *s) {
    tide__range *taken = malloc((s->n_storages + (size_t)1) * sizeof *taken);
    if (!taken) return tide__fail_memory();
    tide_status status = tide__ranges_init_except(&s->arena, s->arena_bytes, taken, list_taken(s, 0, taken));
    for (uint32_t t = 0; t < s->run->options.machine->n_tiers && status == TIDE_OK; t++)
        status = tide__ranges_init_except(&s->tiers[t], s->tier_bytes[t], taken, list_taken(s, 1 + t, taken));
    free(taken);
    return status;
}

static void forget_places(state *s) {
    for (tide_id id = 0; id < s->n_storages; id++) {
        s->places.data[id].in_arena = false;
        s->places.data[id].tier = TIDE_NONE;
    }
}

tide_status tide__run_leave_plan(state *s, uint32_t index) {
    const tide_plan *plan = s->run->options.plan;
    TIDE_TRY(tide__run_online_grow(s));
    forget_places(s);
    for (tide_id i = 0; i < tide_plan_residency_count(plan); i++)
        take_residency(s, tide_plan_residency(plan, i), index);
    for (tide_id i = 0; i < tide_plan_copy_count(plan); i++) take_copy(s, tide_plan_copy(plan, i), index);
    return rebuild_ranges(s);
}

/* ---- into a plan ---- */

typedef struct way {
    state *s;
    uint32_t *haul_of; /* per tensor: the haul that brings it to its first site; TIDE_NONE: none yet */
    TIDE_VEC(tide__haul) hauls;
    TIDE_VEC(tide__haul) copies; /* to further sites, once the first one has it */
} way;

static bool is_at(const tide__place *p, tide__site site) {
    if (site.space == 0) return p->in_arena && p->offset == site.offset;
    return p->tier == site.space - 1 && p->slot == site.offset;
}

/* A value goes to its first site from where it is, or stays if one of its places is right. */
static tide_status add_site(way *w, tide_id tensor, tide__site site) {
    const tide__place *p = &w->s->places.data[tensor];
    tide__site arena = {0, p->offset}, slot = {1 + p->tier, p->slot};
    tide__haul haul = {.tensor = tensor,
                       .size_bytes = tide_program_tensor(w->s->run->options.program, tensor)->size_bytes,
                       .from = is_at(p, site) ? site
                               : p->in_arena  ? arena
                                              : slot,
                       .to = site};
    if (!p->in_arena && p->tier == TIDE_NONE)
        return tide__fail(TIDE_E_INTERNAL, "tensor %u has no value between steps", tensor);
    if (w->haul_of[tensor] != TIDE_NONE && !is_at(p, site)) return tide__vec_push(&w->copies, haul);
    if (w->haul_of[tensor] == TIDE_NONE) w->haul_of[tensor] = (uint32_t)w->hauls.count;
    return tide__vec_push(&w->hauls, haul);
}

static tide_status find_way(way *w, const tide_plan *plan) {
    const tide_machine *m = w->s->run->options.machine;
    for (tide_id i = 0; i < tide_plan_residency_count(plan); i++) {
        const tide_residency *r = tide_plan_residency(plan, i);
        if (r->at_start) TIDE_TRY(add_site(w, r->tensor, (tide__site){0, r->offset_bytes}));
    }
    for (tide_id i = 0; i < tide_plan_copy_count(plan); i++) {
        const tide_copy *c = tide_plan_copy(plan, i);
        if (c->at_start && m->tier[c->tier].kind != TIDE_TIER_CLIENT)
            TIDE_TRY(add_site(w, c->tensor, (tide__site){1 + c->tier, c->offset_bytes}));
    }
    return TIDE_OK;
}

/* Nothing has moved if that fails. */
static tide_status open_tiers(state *s, const tide_plan *plan) {
    const tide_machine *m = s->run->options.machine;
    for (uint32_t t = 0; t < m->n_tiers; t++) {
        if (tide_plan_tier_bytes(plan, t) == 0 || m->tier[t].kind == TIDE_TIER_CLIENT) continue;
        if (tide_plan_tier_bytes(plan, t) > s->tier_bytes[t])
            return tide__fail(TIDE_E_TIER_FULL, "the plan needs %llu bytes of tier \"%s\", the run has %llu",
                              (unsigned long long)tide_plan_tier_bytes(plan, t), m->tier[t].name,
                              (unsigned long long)s->tier_bytes[t]);
        tide_status status = tide__run_online_reach(s, t, tide_plan_tier_bytes(plan, t));
        if (status != TIDE_OK) return tide__run_tier_is_refused(status) ? TIDE_E_TIER_FULL : status;
    }
    return TIDE_OK;
}

/* Where the values are after a transition that found no way. */
static tide_status stay(way *w) {
    for (tide_id id = 0; id < w->s->n_storages; id++) {
        tide__place *p = &w->s->places.data[id];
        if (w->haul_of[id] == TIDE_NONE) continue;
        tide__site at = w->hauls.data[w->haul_of[id]].from;
        p->in_arena = at.space == 0;
        p->tier = at.space ? at.space - 1 : TIDE_NONE;
        *(at.space ? &p->slot : &p->offset) = at.offset;
    }
    return rebuild_ranges(w->s);
}

/* What a tier has; one that is not open may be, to put a value aside, which takes no more than the arena has. Nothing of
 * ours goes to the client's. */
static uint64_t spare_room(const state *s, uint32_t tier) {
    if (s->run->options.machine->tier[tier].kind == TIDE_TIER_CLIENT) return 0;
    if (s->run->tier[tier]) return tide__run_tier_bytes(s->run, tier);
    return tide__min_u64(s->tier_bytes[tier], s->run->arena_bytes);
}

static tide_status go(way *w, const tide_plan *plan) {
    uint64_t room[1 + TIDE_MACHINE_MAX_TIERS] = {w->s->run->arena_bytes};
    for (uint32_t t = 0; t < w->s->run->options.machine->n_tiers; t++) room[1 + t] = spare_room(w->s, t);
    TIDE_TRY(find_way(w, plan));
    tide_status status = tide__transition(w->s->run, room, w->hauls.data, w->hauls.count);
    if (status == TIDE_E_FIT) TIDE_TRY(stay(w));
    for (size_t i = 0; i < w->copies.count && status == TIDE_OK; i++) {
        const tide__haul *h = &w->copies.data[i];
        status = tide__transition_copy(w->s->run, w->hauls.data[w->haul_of[h->tensor]].to, h->to, h->size_bytes);
    }
    return status;
}

tide_status tide__run_enter_plan(state *s, const tide_plan *plan) {
    way w = {.s = s};
    if (tide_plan_arena_bytes(plan) > s->run->arena_bytes)
        return tide__fail(TIDE_E_FIT, "the plan needs %llu bytes, the arena has %llu",
                          (unsigned long long)tide_plan_arena_bytes(plan), (unsigned long long)s->run->arena_bytes);
    TIDE_TRY(open_tiers(s, plan));
    TIDE_TRY(tide__online_widen(&w.haul_of, 0, s->n_storages, 0xff));
    tide_status status = go(&w, plan);
    tide__vec_free(&w.hauls);
    tide__vec_free(&w.copies);
    free(w.haul_of);
    return status;
}
