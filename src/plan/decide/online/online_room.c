/* See online_room.h. */
#include "plan/decide/online/online_room.h"

uint64_t tide__online_now(const tide__online *o) { return o->device->now_ns(o->device_self); }

/* ---- arriving and leaving ---- */

tide_status tide__online_enter(tide__online *o, tide_id id) {
    tide__storage *s = &o->storages[id];
    s->resident = true;
    s->at = (uint32_t)o->residents.count;
    TIDE_TRY(tide__vec_push(&o->residents, id));
    return o->policy->arrived ? o->policy->arrived(o->self, o, id) : TIDE_OK;
}

tide_status tide__online_leave(tide__online *o, tide_id id, tide__way way) {
    tide__storage *s = &o->storages[id];
    tide_id last = o->residents.data[--o->residents.count];
    o->residents.data[s->at] = last;
    o->storages[last].at = s->at;
    s->resident = s->arriving = false;
    return o->policy->left ? o->policy->left(o->self, o, id, way) : TIDE_OK;
}

tide_status tide__online_release_bytes(tide__online *o, tide_id id, tide__way way) {
    TIDE_TRY(tide__online_leave(o, id, way));
    o->device->release(o->device_self, id);
    return TIDE_OK;
}

bool tide__online_thrashes(const tide__online *o) { return o->n_events > 40 * (uint64_t)o->n_ops + 1000; }

tide_status tide__online_count(tide__online *o) {
    o->n_events++;
    if (!tide__online_thrashes(o)) return TIDE_OK;
    return tide__fail(TIDE_E_FIT, "policy %s thrashes: %llu runs and moves, and the step is only at op %u of %u",
                      o->policy->name, (unsigned long long)o->n_events, o->slot, o->n_ops);
}

/* ---- making room ---- */

/* The bytes that a tier has left may lie apart. */
static bool has_slot(const tide__online *o, uint32_t tier, uint64_t bytes) {
    return !o->device->has_slot || o->device->has_slot(o->device_self, tier, bytes);
}

uint32_t tide__online_tier(const tide__online *o, tide_id id) {
    const tide__storage *s = &o->storages[id];
    if (s->tier != TIDE_NONE) return s->tier;
    if (!o->policy->swaps) return TIDE_NONE;
    for (uint32_t i = 0; i < o->tiers.n; i++) {
        uint32_t t = o->tiers.tier[i];
        if (s->end_tier != TIDE_NONE && s->end_tier != t) continue;
        if (o->tier_room[t] >= s->bytes && has_slot(o, t, s->bytes)) return t;
    }
    return TIDE_NONE;
}

bool tide__online_can_swap(const tide__online *o, tide_id id) { return tide__online_tier(o, id) != TIDE_NONE; }

tide_status tide__online_save(tide__online *o, tide_id id) {
    tide__storage *s = &o->storages[id];
    if (s->tier != TIDE_NONE) return TIDE_OK; /* a clean copy */
    uint32_t tier = tide__online_tier(o, id);
    if (tier == TIDE_NONE)
        return tide__fail(TIDE_E_FIT, "policy %s finds no tier with room for %llu bytes", o->policy->name,
                          (unsigned long long)s->bytes);
    TIDE_TRY(tide__online_count(o));
    TIDE_TRY(o->device->save(o->device_self, id, tier));
    s->tier = tier;
    o->tier_room[tier] -= s->bytes;
    o->n_swaps++;
    return TIDE_OK;
}

static tide_status evict(tide__online *o, tide__victim v) {
    if (v.way == TIDE__SWAP) TIDE_TRY(tide__online_save(o, v.storage));
    return tide__online_release_bytes(o, v.storage, v.way);
}

/* What re-runs made on the way and nobody wants is taken first. */
static tide_id take_leftover(tide__online *o) {
    while (!o->keep_leftovers && o->leftovers.count) {
        tide_id id = o->leftovers.data[--o->leftovers.count];
        const tide__storage *s = &o->storages[id];
        if (s->resident && !s->live && !s->held && s->locks == 0) return id;
    }
    return TIDE_NONE;
}

static bool is_legal(const tide__online *o, tide__victim v) {
    const tide__storage *s = &o->storages[v.storage];
    if (!s->resident || s->locks > 0) return false;
    return v.way == TIDE__DROP ? tide__online_can_drop(o, v.storage) : tide__online_can_swap(o, v.storage);
}

/* The largest that only frames below the topmost one have locked. */
static tide_id find_waiting(tide__online *o) {
    tide_id best = TIDE_NONE;
    if (o->frames.count == 0) return TIDE_NONE;
    const tide_op *top = tide_program_op(o->program, o->frames.data[o->frames.count - 1].op);
    o->pin++;
    for (uint32_t i = 0; i < top->n_reads; i++) o->storages[top->reads[i]].pinned = o->pin;
    for (uint32_t i = 0; i < top->n_writes; i++) o->storages[top->writes[i]].pinned = o->pin;
    for (size_t i = 0; i < o->residents.count; i++) {
        tide_id id = o->residents.data[i];
        const tide__storage *s = &o->storages[id];
        if (s->pinned == o->pin || s->locks == 0 || !tide__online_can_swap(o, id)) continue;
        if (best == TIDE_NONE || s->bytes > o->storages[best].bytes) best = id;
    }
    return best;
}

tide_status tide__online_fail_full(const tide__online *o, uint64_t bytes) {
    tide_id op = o->frames.count ? o->frames.data[o->frames.count - 1].op : TIDE_NONE;
    return tide__fail(TIDE_E_FIT, "policy %s finds no room for %llu bytes at op %u \"%s\": nothing else may leave",
                      o->policy->name, (unsigned long long)bytes, op,
                      op == TIDE_NONE ? "end" : tide_program_op(o->program, op)->name);
}

void tide__online_forget_copy(tide__online *o, tide_id id) {
    tide__storage *s = &o->storages[id];
    if (s->tier == TIDE_NONE || o->machine->tier[s->tier].kind == TIDE_TIER_CLIENT) return;
    o->tier_room[s->tier] += s->bytes;
    s->tier = TIDE_NONE;
}

/* Copies of what is in the arena as well: their room may be worth more than the SAVE that they spare. */
static bool forget_clean_copies(tide__online *o) {
    bool any = false;
    for (size_t i = 0; i < o->residents.count; i++) {
        tide_id id = o->residents.data[i];
        uint32_t tier = o->storages[id].tier;
        if (o->storages[id].arriving) continue; /* its LOAD may still be reading the copy */
        tide__online_forget_copy(o, id);
        any = any || tier != o->storages[id].tier;
    }
    return any;
}

static tide_status evict_one(tide__online *o, uint64_t bytes) {
    tide_id leftover = take_leftover(o);
    if (leftover != TIDE_NONE) return tide__online_release_bytes(o, leftover, TIDE__DROP);
    tide__victim v = o->policy->choose(o->self, o);
    if (v.storage != TIDE_NONE && is_legal(o, v)) return evict(o, v);
    tide_id waiting = find_waiting(o);
    if (waiting != TIDE_NONE) return evict(o, (tide__victim){waiting, TIDE__SWAP});
    if (forget_clean_copies(o)) return TIDE_OK; /* now others may go */
    return tide__online_fail_full(o, bytes);
}

tide_status tide__online_make_room(tide__online *o, tide_id id, uint64_t bytes) {
    while (!o->device->reserve(o->device_self, id, bytes)) TIDE_TRY(evict_one(o, bytes));
    return TIDE_OK;
}

tide_status tide__online_load(tide__online *o, tide_id id) {
    TIDE_TRY(tide__online_count(o));
    TIDE_TRY(o->device->load(o->device_self, id, o->storages[id].tier));
    TIDE_TRY(tide__online_enter(o, id));
    o->storages[id].arriving = true;
    o->storages[id].last_used_ns = tide__online_now(o);
    return TIDE_OK;
}
