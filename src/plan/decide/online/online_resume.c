/* Online: taking over in the middle of a step that began from a plan. See tide__online_resume in online.h.
 *
 * The plan guarantees that everything wanted later is in the arena, in a tier, or comes from what is: so after the
 * take-over the engine's own invariant (online_life.c) holds. */
#include "plan/decide/online/online.h"

#include "base/size.h"

static bool exists(const tide__online *o, tide_id id) {
    tide_id producer = o->storages[id].producer;
    if (tide_program_tensor(o->program, id)->start != TIDE_START_ABSENT) return true;
    return producer != TIDE_NONE && o->ops[producer].ran;
}

static tide_status take_over(tide__online *o, tide_id id, const tide__online_map *map) {
    tide__storage *s = &o->storages[id];
    bool client = tide_program_tensor(o->program, id)->start == TIDE_START_CLIENT;
    s->live = exists(o, id) && !map->released[id];
    s->tier = client ? tide_machine_find_tier(o->machine, TIDE_TIER_CLIENT) : map->tier[id];
    if (!client && s->tier != TIDE_NONE) o->tier_room[s->tier] -= tide__min_u64(s->bytes, o->tier_room[s->tier]);
    return map->resident[id] ? tide__online_enter(o, id) : TIDE_OK;
}

static bool is_gone(const tide__online *o, tide_id id) {
    const tide__storage *s = &o->storages[id];
    return exists(o, id) && !s->resident && s->tier == TIDE_NONE;
}

tide_status tide__online_resume(tide__online *o, tide_id n_ran, const tide__online_map *map) {
    for (tide_id op = 0; op < n_ran; op++) o->ops[op].ran = true;
    for (tide_id id = 0; id < o->n_storages; id++) TIDE_TRY(take_over(o, id, map));
    o->n_started = o->n_storages;
    o->slot = n_ran;
    for (tide_id id = 0; id < o->n_storages; id++)
        if (is_gone(o, id) && !o->storages[id].live && tide__online_is_source(o, id))
            TIDE_TRY(tide__online_bury(o, id));
    for (tide_id id = 0; id < o->n_storages; id++) {
        if (is_gone(o, id) && o->storages[id].live && tide__online_is_source(o, id))
            return tide__fail(TIDE_E_INTERNAL, "the plan lost tensor \"%s\"",
                              tide_program_tensor(o->program, id)->name);
        if (!exists(o, id) || o->storages[id].live || is_gone(o, id)) continue;
        o->storages[id].live = true; /* for the one moment that releasing it takes */
        TIDE_TRY(tide__online_release(o, id));
    }
    return TIDE_OK;
}
