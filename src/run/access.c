/* Values between steps, and at the end of one: bytes in and out of wherever the start or the end map has them, through
 * the device's own copies, so that it works on devices whose arena the host cannot see. */
#include <string.h>

#include "base/error.h"
#include "run/online.h"
#include "run/run_data.h"

/* A part of a value, and where it is with the client. */
typedef struct window {
    char *data; /* only read when writing to the run */
    uint64_t position_bytes, size_bytes;
} window;

static tide_status from_client(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    const window *w = context;
    if (size_bytes) memcpy(data, w->data + position, size_bytes);
    return TIDE_OK;
}

static tide_status to_client(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    const window *w = context;
    if (size_bytes) memcpy(w->data + position, data, size_bytes);
    return TIDE_OK;
}

/* Between steps every queue is idle; any will do. */
static tide_status access_arena(tide_run *run, uint64_t offset, window *w, bool write) {
    tide_io io = {.fn = write ? from_client : to_client, .context = w, .channel = TIDE_NONE};
    offset += w->position_bytes;
    TIDE_TRY(write ? tide_copy_in(run->queue[0], run->arena, offset, w->size_bytes, io)
                   : tide_copy_out(run->queue[0], run->arena, offset, w->size_bytes, io));
    return tide_queue_sync(run->queue[0]);
}

/* Straight between the client and the slot; what a copy has beyond the value is padding. */
static tide_status access_slot(tide__tier_slot slot, window *w, bool write) {
    if (w->size_bytes == 0) return TIDE_OK; /* a tier of no bytes may not be there at all */
    return write ? tide__tier_save(&slot, w->position_bytes, w->data, w->size_bytes)
                 : tide__tier_load(&slot, w->position_bytes, w->data, w->size_bytes);
}

static tide_status access_spot(tide_run *run, const tide__spot *spot, window *w, bool write) {
    const tide_plan *plan = run->options.plan;
    if (spot->residency == TIDE_NONE) {
        const tide_copy *c = tide_plan_copy(plan, spot->copy);
        return access_slot((tide__tier_slot){.tier = run->tier[c->tier], .offset = c->offset_bytes}, w, write);
    }
    const tide__parked *parked = tide__run_find_parked(run, spot->residency);
    if (parked) return access_slot((tide__tier_slot){.tier = run->park, .offset = parked->offset_bytes}, w, write);
    return access_arena(run, run->base + tide_plan_residency(plan, spot->residency)->offset_bytes, w, write);
}

/* A value may be in the arena and in a tier, too: a write leaves one place, so that the two cannot differ. */
static tide_status access_online(tide_run *run, tide_id tensor, window *w, bool write) {
    struct tide__run_online *s = run->online;
    const tide__place *p = tide__run_online_find(run, tensor);
    if (!p)
        return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" has no value between steps",
                          tide_program_tensor(run->options.program, tensor)->name);
    if (write && p->in_arena) TIDE_TRY(tide__run_online_give_slot(s, (tide_id)(p - s->places.data)));
    if (p->in_arena) return access_arena(run, p->offset, w, write);
    return access_slot((tide__tier_slot){.tier = run->tier[p->tier], .offset = p->slot}, w, write);
}

/* After a step the end map holds. A value of the start map is then found by what it is carried from: each of its
 * places is one of those. */
static uint32_t first_spot(const tide_run *run, tide_id tensor) {
    if (!run->stepped) return run->starts[tensor];
    tide_id from = run->carried_from[tensor];
    return run->ends[tensor] == TIDE_NONE && from != TIDE_NONE ? run->ends[from] : run->ends[tensor];
}

/* Is this all of the tensor? */
static tide_status check_size(const tide_run *run, tide_id tensor, uint64_t size_bytes) {
    const tide_tensor *t = tide_program_tensor(run->options.program, tensor);
    if (!t || t->size_bytes == size_bytes) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" has %llu bytes, not %llu", t->name,
                      (unsigned long long)t->size_bytes, (unsigned long long)size_bytes);
}

static tide_status check_part(tide_run *run, tide_id tensor, uint64_t position_bytes, uint64_t size_bytes) {
    const tide_tensor *t = tide_program_tensor(run->options.program, tensor);
    if (!t) return tide__fail(TIDE_E_ARGUMENT, "there is no tensor %u", tensor);
    if (position_bytes > t->size_bytes || size_bytes > t->size_bytes - position_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" has %llu bytes, not %llu from %llu on", t->name,
                          (unsigned long long)t->size_bytes, (unsigned long long)size_bytes,
                          (unsigned long long)position_bytes);
    return tide__run_check_rests(run);
}

static tide_status access_value(tide_run *run, tide_id tensor, window *w, bool write) {
    TIDE_TRY(check_part(run, tensor, w->position_bytes, w->size_bytes));
    if (write && run->guest) return tide__fail(TIDE_E_ARGUMENT, "a run cannot be written to while it has a guest");
    if (run->online) return access_online(run, tensor, w, write);
    uint32_t at = first_spot(run, tensor);
    if (at == TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" has no value between steps",
                          tide_program_tensor(run->options.program, tensor)->name);
    TIDE_TRY(access_spot(run, &run->spots.data[at], w, write));
    while (write && (at = run->spots.data[at].next) != TIDE_NONE) /* all its places agree */
        TIDE_TRY(access_spot(run, &run->spots.data[at], w, true));
    return TIDE_OK;
}

tide_status tide_run_write_part(tide_run *run, tide_id tensor, uint64_t position_bytes, const void *data,
                                uint64_t size_bytes) {
    TIDE_NEED(run, data);
    window w = {.position_bytes = position_bytes, .size_bytes = size_bytes};
    memcpy(&w.data, &data, sizeof data); /* drops the const: from_client only reads */
    return access_value(run, tensor, &w, true);
}

tide_status tide_run_read_part(tide_run *run, tide_id tensor, uint64_t position_bytes, void *data,
                               uint64_t size_bytes) {
    TIDE_NEED(run, data);
    window w = {.data = data, .position_bytes = position_bytes, .size_bytes = size_bytes};
    return access_value(run, tensor, &w, false);
}

tide_status tide_run_write(tide_run *run, tide_id tensor, const void *data, uint64_t size_bytes) {
    TIDE_NEED(run, data);
    TIDE_TRY(check_size(run, tensor, size_bytes));
    return tide_run_write_part(run, tensor, 0, data, size_bytes);
}

tide_status tide_run_read(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes) {
    TIDE_NEED(run, data);
    TIDE_TRY(check_size(run, tensor, size_bytes));
    return tide_run_read_part(run, tensor, 0, data, size_bytes);
}

/* ---- with every step ---- */

tide_status tide_run_watch(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes) {
    TIDE_NEED(run, data);
    TIDE_TRY(check_size(run, tensor, size_bytes));
    TIDE_TRY(check_part(run, tensor, 0, size_bytes));
    if (!tide_program_tensor(run->options.program, tensor)->keep)
        return tide__fail(TIDE_E_ARGUMENT, "tensor \"%s\" has no value at the end of a step",
                          tide_program_tensor(run->options.program, tensor)->name);
    return tide__vec_push(&run->watches, ((tide__watch){tensor, data, size_bytes, false}));
}

static tide_status watched(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    const tide__watch *w = context;
    memcpy(w->data + position, data, size_bytes);
    return TIDE_OK;
}

/* A value that a LOAD brings after all that computes may still be on its way when compute ends. */
static bool comes_late(const tide_run *run, tide_id residency) {
    const tide_plan *plan = run->options.plan;
    const uint32_t begin = tide_plan_residency(plan, residency)->begin;
    if (begin >= run->n_actions) return false;
    const tide_action a = tide_plan_action(plan, begin);
    return a.kind == TIDE_LOAD && a.uses[0] == residency && run->flows[a.queue];
}

tide_status tide__run_enqueue_watches(tide_run *run) {
    for (size_t i = 0; i < run->watches.count; i++) {
        tide__watch *w = &run->watches.data[i];
        const tide__spot *spot = run->ends[w->tensor] != TIDE_NONE ? &run->spots.data[run->ends[w->tensor]] : NULL;
        w->enqueued = spot && spot->residency != TIDE_NONE && !comes_late(run, spot->residency);
        if (!w->enqueued) continue;
        const uint64_t at = run->base + tide_plan_residency(run->options.plan, spot->residency)->offset_bytes;
        TIDE_TRY(tide_copy_out(run->queue[0], run->arena, at, w->size_bytes,
                               (tide_io){.fn = watched, .context = w, .channel = TIDE_NONE}));
    }
    return TIDE_OK;
}

tide_status tide__run_finish_watches(tide_run *run) {
    for (size_t i = 0; i < run->watches.count; i++) {
        const tide__watch *w = &run->watches.data[i];
        if (run->online || !w->enqueued) TIDE_TRY(tide_run_read(run, w->tensor, w->data, w->size_bytes));
    }
    return TIDE_OK;
}
