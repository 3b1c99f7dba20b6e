/* Online: the engine. See online.h.
 *
 * An op at hand is a frame: its reads are locked, the missing ones are fetched one by one. A read in a tier is loaded;
 * one that was dropped pushes a frame for its producer, and so on down the chain. A frame whose reads are all resident
 * reserves its writes and runs. Invariant: the reads of the topmost frame never leave before it ran; those of the
 * frames below may be swapped when nothing else can go, so that with room in a tier a chain of any depth needs no more
 * than one op's operands. */
#include "plan/decide/online/online.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/decide/online/online_room.h"

/* ---- frames ---- */

static tide_status push_frame(tide__online *o, tide_id id) {
    const tide_op *op = tide_program_op(o->program, id);
    uint64_t now = tide__online_now(o);
    TIDE_TRY(tide__vec_push(&o->frames, (tide__frame){.op = id}));
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide__storage *s = &o->storages[op->reads[i]];
        s->locks++;
        s->last_used_ns = now;
    }
    return TIDE_OK;
}

static void pop_frame(tide__online *o) {
    const tide_op *op = tide_program_op(o->program, o->frames.data[--o->frames.count].op);
    for (uint32_t i = 0; i < op->n_reads; i++) o->storages[op->reads[i]].locks--;
}

/* The next read of the topmost frame that is not resident; TIDE_NONE: it can run. */
static tide_id next_missing(tide__online *o) {
    tide__frame *f = &o->frames.data[o->frames.count - 1];
    const tide_op *op = tide_program_op(o->program, f->op);
    for (; f->cursor < op->n_reads; f->cursor++)
        if (!o->storages[op->reads[f->cursor]].resident) return op->reads[f->cursor];
    for (f->cursor = 0; f->cursor < op->n_reads; f->cursor++) /* one may have had to go while others came */
        if (!o->storages[op->reads[f->cursor]].resident) return op->reads[f->cursor];
    return TIDE_NONE;
}

static tide_status fetch_missing(tide__online *o, tide_id id) {
    tide__storage *s = &o->storages[id];
    if (s->tier != TIDE_NONE) {
        TIDE_TRY(tide__online_make_room(o, id, s->bytes));
        return tide__online_load(o, id);
    }
    if (s->producer == TIDE_NONE || !o->ops[s->producer].ran || tide__online_is_source(o, id))
        return tide__fail(TIDE_E_INTERNAL, "online: tensor \"%s\" is lost", tide_program_tensor(o->program, id)->name);
    return push_frame(o, s->producer);
}

/* ---- running ---- */

static void look_at_arrivals(tide__online *o, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide__storage *s = &o->storages[op->reads[i]];
        if (s->arriving && o->policy->loaded) {
            uint64_t ready = o->device->ready_ns(o->device_self, op->reads[i]), now = tide__online_now(o);
            uint32_t channel = tide_machine_queue(o->machine, s->tier, false) - 1;
            uint64_t whole = tide_machine_transfer_ns(o->machine, channel, s->bytes);
            o->policy->loaded(o->self, o, whole, ready > now ? tide__min_u64(ready - now, whole) : 0);
        }
        s->arriving = false;
    }
}

/* May `write` take over the bytes of `read` in this run? In-place kernels always do; others where the read dies. */
static tide_status inherits(tide__online *o, tide_id id, tide_inplace pair, bool rerun, bool *out) {
    const tide_op *op = tide_program_op(o->program, id);
    tide_id read = op->reads[pair.read];
    const tide__storage *s = &o->storages[read];
    *out = pair.must;
    if (pair.must || rerun || o->never_share || !s->resident) return TIDE_OK;
    if (o->storages[read].release_after != id || s->locks != 1 || s->bytes != o->storages[op->writes[pair.write]].bytes)
        return TIDE_OK;
    bool needed = false;
    if (tide__online_is_source(o, read)) TIDE_TRY(tide__online_is_needed(o, read, &needed));
    *out = !needed;
    return TIDE_OK;
}

static tide_status inherit(tide__online *o, tide_id read, tide_id write) {
    if (o->storages[write].resident)
        TIDE_TRY(tide__online_release_bytes(o, write, TIDE__DROP)); /* it is about to be made anew */
    o->device->inherit(o->device_self, read, write);
    TIDE_TRY(tide__online_leave(o, read, TIDE__RELEASE));
    o->storages[read].live = false;
    tide__online_forget_copy(o, read);
    return tide__online_enter(o, write);
}

static tide_status share_bytes(tide__online *o, tide_id id, bool rerun) {
    const tide_op *op = tide_program_op(o->program, id);
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        bool share;
        TIDE_TRY(inherits(o, id, op->inplace[i], rerun, &share));
        if (share) TIDE_TRY(inherit(o, op->reads[op->inplace[i].read], op->writes[op->inplace[i].write]));
    }
    return TIDE_OK;
}

static tide_status reserve_outputs(tide__online *o, const tide_op *op) {
    uint64_t need = op->variants[0].workspace_bytes;
    for (uint32_t i = 0; i < op->n_writes; i++) {
        tide__storage *s = &o->storages[op->writes[i]];
        if (!s->resident) {
            need += s->bytes;
            TIDE_TRY(tide__online_make_room(o, op->writes[i], s->bytes));
            TIDE_TRY(tide__online_enter(o, op->writes[i]));
        }
    }
    o->largest_need_bytes = tide__max_u64(o->largest_need_bytes, need);
    uint64_t workspace = op->variants[0].workspace_bytes;
    return workspace ? tide__online_make_room(o, TIDE_NONE, workspace) : TIDE_OK;
}

/* After a run: outputs are unlocked; nobody wants what a re-run made beyond its purpose. */
static tide_status settle_outputs(tide__online *o, const tide_op *op, bool rerun) {
    uint64_t now = tide__online_now(o);
    for (uint32_t i = 0; i < op->n_writes; i++) {
        tide__storage *s = &o->storages[op->writes[i]];
        s->locks--;
        if (!rerun) {
            s->live = true;
            s->last_used_ns = now;
        }
        if (!s->live) TIDE_TRY(tide__vec_push(&o->leftovers, op->writes[i]));
        if (o->policy->used) o->policy->used(o->self, o, op->writes[i]);
    }
    for (uint32_t i = 0; i < op->n_reads && o->policy->used; i++)
        if (o->storages[op->reads[i]].resident) o->policy->used(o->self, o, op->reads[i]);
    return TIDE_OK;
}

/* What an in-place kernel or an heir overwrote is gone for good if nothing makes it again. */
static tide_status bury_destroyed(tide__online *o, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        tide_id read = op->reads[op->inplace[i].read];
        if (!o->storages[read].resident && tide__online_is_source(o, read)) TIDE_TRY(tide__online_bury(o, read));
    }
    return TIDE_OK;
}

static tide_status execute(tide__online *o, tide_id id) {
    const tide_op *op = tide_program_op(o->program, id);
    bool rerun = o->ops[id].ran;
    TIDE_TRY(tide__online_count(o));
    look_at_arrivals(o, op);
    for (uint32_t i = 0; i < op->n_writes; i++) o->storages[op->writes[i]].locks++;
    TIDE_TRY(share_bytes(o, id, rerun));
    TIDE_TRY(reserve_outputs(o, op));
    TIDE_TRY(o->device->run(o->device_self, id, rerun));
    if (op->variants[0].workspace_bytes) o->device->release(o->device_self, TIDE_NONE);
    o->ops[id].ran = true;
    o->n_reruns += rerun;
    o->rerun_ns += rerun ? o->ops[id].cost_ns : 0;
    TIDE_TRY(settle_outputs(o, op, rerun));
    return bury_destroyed(o, op);
}

/* Runs what is above `bottom`. */
static tide_status work_off(tide__online *o, size_t bottom) {
    while (o->frames.count > bottom) {
        tide_id missing = next_missing(o);
        if (missing != TIDE_NONE) {
            TIDE_TRY(fetch_missing(o, missing));
            continue;
        }
        TIDE_TRY(execute(o, o->frames.data[o->frames.count - 1].op));
        pop_frame(o);
    }
    return TIDE_OK;
}

static tide_status run_frame(tide__online *o, tide_id op) {
    size_t bottom = o->frames.count;
    TIDE_TRY(push_frame(o, op));
    tide_status status = work_off(o, bottom);
    while (o->frames.count > bottom) pop_frame(o);
    return status;
}

/* Brings a value back, however it left. */
static tide_status fetch(tide__online *o, tide_id id) {
    tide__storage *s = &o->storages[id];
    if (s->resident) return TIDE_OK;
    if (s->tier == TIDE_NONE) return run_frame(o, s->producer);
    TIDE_TRY(tide__online_make_room(o, id, s->bytes));
    return tide__online_load(o, id);
}

/* ---- the step ---- */

tide_status tide__online_release(tide__online *o, tide_id id) {
    tide__storage *s = &o->storages[id];
    bool source = tide__online_is_source(o, id), needed = false;
    if (!s->live) return TIDE_OK; /* its bytes went to an heir */
    s->live = false;
    if (source) TIDE_TRY(tide__online_is_needed(o, id, &needed));
    s->held = needed;
    if (needed) return TIDE_OK;
    if (s->resident) TIDE_TRY(tide__online_release_bytes(o, id, TIDE__RELEASE));
    tide__online_forget_copy(o, id);
    return source ? tide__online_bury(o, id) : TIDE_OK;
}

/* What was dropped, is wanted and comes from a value that this op overwrites has to be made before. */
static tide_status rescue(tide__online *o, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        tide_id read = op->reads[op->inplace[i].read];
        size_t first;
        if (!op->inplace[i].must || !tide__online_is_source(o, read)) continue;
        TIDE_TRY(tide__online_find_wanted(o, read, &first));
        while (o->stack.count > first) TIDE_TRY(fetch(o, o->stack.data[--o->stack.count]));
    }
    return TIDE_OK;
}

/* As long as there is room beyond what one op is known to need. */
static tide_status prefetch(tide__online *o) {
    while (o->policy->prefetch) {
        tide_id id = o->policy->prefetch(o->self, o);
        if (id == TIDE_NONE) return TIDE_OK;
        const tide__storage *s = &o->storages[id];
        if (s->resident || s->tier == TIDE_NONE) return TIDE_OK;
        uint64_t spare = o->device->free_bytes(o->device_self);
        if (spare < o->largest_need_bytes || spare - o->largest_need_bytes < s->bytes) return TIDE_OK;
        if (!o->device->reserve(o->device_self, id, s->bytes)) return TIDE_OK;
        TIDE_TRY(tide__online_load(o, id));
    }
    return TIDE_OK;
}

static tide_status start_storage(tide__online *o, tide_id id) {
    tide__storage *s = &o->storages[id];
    tide_start start = tide_program_tensor(o->program, id)->start;
    if (start == TIDE_START_ABSENT) return TIDE_OK;
    s->live = true;
    if (start == TIDE_START_CLIENT) {
        s->tier = tide_machine_find_tier(o->machine, TIDE_TIER_CLIENT);
        if (s->tier != TIDE_NONE && tide_machine_queue(o->machine, s->tier, false) != TIDE_NONE) return TIDE_OK;
        return tide__fail(TIDE_E_ARGUMENT, "machine \"%s\" has no client tier to load tensor \"%s\" from",
                          o->machine->name, tide_program_tensor(o->program, id)->name);
    }
    s->tier = o->storages[id].start_tier;
    if (s->tier != TIDE_NONE) {
        o->tier_room[s->tier] -= tide__min_u64(s->bytes, o->tier_room[s->tier]);
        return TIDE_OK;
    }
    if (!o->device->reserve(o->device_self, id, s->bytes)) return tide__online_fail_full(o, s->bytes);
    return tide__online_enter(o, id);
}

/* A kept value ends in the tier where the next step starts with it, or in the arena if it starts there. */
static tide_status end_storage(tide__online *o, tide_id id, bool anywhere) {
    tide__storage *s = &o->storages[id];
    if (o->storages[id].end_tier != TIDE_NONE) {
        if (s->tier == o->storages[id].end_tier) return TIDE_OK;
        TIDE_TRY(fetch(o, id));
        return tide__online_save(o, id);
    }
    if (anywhere && s->tier != TIDE_NONE) return TIDE_OK;
    if (o->ends_anywhere) {
        s->ended = true; /* to stay or to go to a tier */
        return fetch(o, id);
    }
    tide_status status = fetch(o, id);
    if (status == TIDE_E_FIT && o->policy->swaps && !tide__online_thrashes(o)) return tide__vec_push(&o->homeless, id);
    if (status == TIDE_OK) s->locks++;
    return status;
}

tide_status tide__online_end(tide__online *o) {
    bool repeating = tide_program_is_repeating(o->program) && !o->ends_anywhere;
    bool *carried = calloc(o->n_storages + (size_t)1, sizeof *carried);
    if (!carried) return tide__fail_memory();
    for (uint32_t i = 0; i < tide_program_carry_count(o->program); i++)
        carried[tide_program_carry(o->program, i)->from] = true;
    tide_status status = TIDE_OK;
    for (tide_id id = 0; id < o->n_storages && status == TIDE_OK; id++)
        if (tide_program_tensor(o->program, id)->keep) status = end_storage(o, id, !repeating || !carried[id]);
    free(carried);
    return status;
}

tide_status tide__online_begin(tide__online *o) {
    for (; o->n_started < o->n_storages; o->n_started++) TIDE_TRY(start_storage(o, o->n_started));
    return TIDE_OK;
}

tide_status tide__online_run_op(tide__online *o, tide_id op, const tide_id *dead, uint32_t n_dead) {
    o->slot = op;
    TIDE_TRY(tide__online_begin(o)); /* what was declared since */
    for (uint32_t i = 0; i < n_dead; i++) o->storages[dead[i]].release_after = op;
    TIDE_TRY(rescue(o, tide_program_op(o->program, op)));
    TIDE_TRY(run_frame(o, op));
    for (uint32_t i = 0; i < n_dead; i++) TIDE_TRY(tide__online_release(o, dead[i]));
    return prefetch(o);
}

tide_status tide__online_step(tide__online *o) {
    TIDE_TRY(tide__online_begin(o));
    for (tide_id op = 0; op < o->n_ops; op++) {
        uint32_t first = o->first_release[op];
        TIDE_TRY(tide__online_run_op(o, op, o->releases + first, o->first_release[op + 1] - first));
    }
    o->slot = o->n_ops;
    return tide__online_end(o);
}
