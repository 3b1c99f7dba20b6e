/* Online: the engine of plan/decide/online/online.h on a real device.
 *
 * Nobody waits here unless a decision needs it: ops are enqueued ahead of compute (ahead.h), transfers beside it. Every
 * storage has an event that its latest SAVE or LOAD records, and knows the last run that used it. An op's queue waits
 * for the transfers of its operands, a SAVE for the run that made its value. Bytes that are given back while a transfer
 * or a run under way still uses them are *fenced*: a transfer that writes them next waits for both, an op for the
 * transfer, as its own queue runs in order. When the free bytes suffice but lie apart, everything is awaited and the
 * arena is compacted. */
#include "run/online.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"

typedef struct tide__run_online state;
typedef tide__place place;
typedef tide__fence fence;

static void keep_failure(state *s, tide_status status) {
    if (s->failure == TIDE_OK) s->failure = status;
}

/* ---- fences ---- */

static bool overlap(tide__range a, tide__range b) {
    return a.offset < b.offset + b.size && b.offset < a.offset + a.size;
}

static bool is_moving(const state *s, tide_id id) {
    const tide__mover *m = s->movers.data[id];
    bool complete = true;
    if (m && tide_event_query(m->event, &complete) == TIDE_OK && !complete) return true;
    tide__journal_saw_move(s->journal, id);
    return false;
}

/* The host waits for its latest move. */
static tide_status finish_move(state *s, tide_id id) {
    if (!is_moving(s, id)) return TIDE_OK;
    tide__journal_saw_move(s->journal, id);
    return tide_event_sync(s->movers.data[id]->event);
}

/* A queue does. */
static tide_status wait_for_move(state *s, tide_id id, uint32_t queue) {
    tide__journal_wait(s->journal, queue, id);
    return tide_event_wait(s->movers.data[id]->event, s->run->queue[queue]);
}

static void add_fence(state *s, tide__range range, tide_id id, uint64_t run) {
    bool moving = id != TIDE_NONE && is_moving(s, id), running = tide__ahead_end_ns(&s->ahead, run) > 0;
    fence f = {.range = range, .storage = moving ? id : TIDE_NONE, .run = run};
    if (moving || running) keep_failure(s, tide__vec_push(&s->fences, f));
}

/* A queue waits for what still uses bytes that it will write. *free_ns, if wanted: no earlier than that. */
static tide_status wait_for_bytes(state *s, tide__range range, uint32_t queue, uint64_t *free_ns) {
    size_t kept = 0;
    uint64_t run = 0;
    for (size_t i = 0; i < s->fences.count; i++) {
        fence f = s->fences.data[i];
        bool moving = f.storage != TIDE_NONE && is_moving(s, f.storage);
        if (!moving && tide__ahead_end_ns(&s->ahead, f.run) == 0) continue;
        s->fences.data[kept++] = f;
        if (!overlap(f.range, range)) continue;
        run = tide__max_u64(run, f.run);
        if (!moving) continue;
        TIDE_TRY(wait_for_move(s, f.storage, queue));
        if (free_ns) *free_ns = tide__max_u64(*free_ns, s->movers.data[f.storage]->ends_ns);
    }
    s->fences.count = kept;
    if (free_ns) *free_ns = tide__max_u64(*free_ns, tide__ahead_end_ns(&s->ahead, run));
    return queue ? tide__ahead_wait(s, run, queue) : TIDE_OK;
}

/* ---- the arena ---- */

static int by_offset(const void *a, const void *b) {
    const place *const *x = a, *const *y = b;
    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

/* Moves everything to the bottom; one free range is left on top. Needs an arena that the host can see. */
tide_status tide__run_online_compact(state *s) {
    char *host = tide_arena_host(s->run->arena);
    place **sorted = malloc((s->n_storages + (size_t)1) * sizeof(place *));
    size_t n = 0;
    uint64_t top = 0;
    tide_status status = sorted ? tide__run_sync(s->run, TIDE_OK) : tide__fail_memory();
    tide__journal_saw_all(s->journal);
    for (tide_id id = 0; status == TIDE_OK && id < s->n_storages; id++)
        if (s->places.data[id].in_arena && s->places.data[id].bytes) sorted[n++] = &s->places.data[id];
    if (n) qsort(sorted, n, sizeof(place *), by_offset);
    for (size_t i = 0; i < n; i++) {
        memmove(host + top, host + sorted[i]->offset, sorted[i]->bytes);
        sorted[i]->offset = top;
        tide__journal_shift(s->journal, (tide_id)(sorted[i] - s->places.data));
        top += sorted[i]->bytes;
    }
    free(sorted);
    TIDE_TRY(status);
    s->fences.count = 0;
    TIDE_TRY(tide__ranges_init(&s->arena, s->arena_bytes));
    uint64_t ignored;
    (void)tide__ranges_take(&s->arena, top, &ignored);
    return TIDE_OK;
}

static bool take(state *s, uint64_t bytes, uint64_t *offset) {
    if (tide__ranges_take(&s->arena, bytes, offset)) return true;
    if (s->arena.free_bytes < bytes || !tide_arena_host(s->run->arena) || s->failure != TIDE_OK) return false;
    keep_failure(s, tide__run_online_compact(s));
    return tide__ranges_take(&s->arena, bytes, offset);
}

static bool reserve(void *self, tide_id id, uint64_t bytes) {
    state *s = self;
    uint64_t offset;
    if (id == TIDE_NONE) {
        if (!tide__align_up(bytes, s->block_bytes, &bytes) || !take(s, bytes, &offset)) return false;
        s->workspace = (tide__range){offset, bytes};
        return true;
    }
    place *p = &s->places.data[id];
    if (p->in_arena) return true; /* it was there at the start */
    if (!take(s, bytes, &offset)) return false;
    p->offset = offset;
    p->bytes = bytes;
    p->in_arena = true;
    return true;
}

static void release(void *self, tide_id id) {
    state *s = self;
    if (id == TIDE_NONE) {
        add_fence(s, s->workspace, TIDE_NONE, s->ahead.n_issued);
        keep_failure(s, tide__ranges_give(&s->arena, s->workspace.offset, s->workspace.size));
        return;
    }
    place *p = &s->places.data[id];
    tide__journal_release(s->journal, id);
    add_fence(s, (tide__range){p->offset, p->bytes}, id, p->used_by);
    keep_failure(s, tide__ranges_give(&s->arena, p->offset, p->bytes));
    p->in_arena = false;
}

static void inherit(void *self, tide_id read, tide_id write) {
    state *s = self;
    place *from = &s->places.data[read], *to = &s->places.data[write];
    to->offset = from->offset;
    to->bytes = from->bytes;
    to->in_arena = true;
    from->in_arena = false;
    tide__journal_inherit(s->journal, read, write);
}

/* ---- running ---- */

static tide_status bind(state *s, const tide_op *op, bool workspace, uint32_t *count) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        if (is_moving(s, op->reads[i])) TIDE_TRY(wait_for_move(s, op->reads[i], 0));
        s->offsets.data[n++] = s->places.data[op->reads[i]].offset;
    }
    for (uint32_t i = 0; i < op->n_writes; i++) {
        const place *p = &s->places.data[op->writes[i]];
        if (is_moving(s, op->writes[i])) /* it may be on its way back while a re-run makes it anew */
            TIDE_TRY(wait_for_move(s, op->writes[i], 0));
        TIDE_TRY(wait_for_bytes(s, (tide__range){p->offset, p->bytes}, 0, NULL));
        s->offsets.data[n++] = p->offset;
    }
    if (workspace) {
        TIDE_TRY(wait_for_bytes(s, s->workspace, 0, NULL));
        s->offsets.data[n++] = s->workspace.offset;
    }
    *count = n;
    return TIDE_OK;
}

/* An in-place kernel finds its read where its write will be: the engine has handed the bytes over already. */
static void bind_inherited(state *s, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        tide_inplace pair = op->inplace[i];
        if (!s->places.data[op->reads[pair.read]].in_arena)
            s->offsets.data[pair.read] = s->places.data[op->writes[pair.write]].offset;
    }
}

/* ---- touching ---- */

typedef struct stretch {
    volatile char *bytes;
    uint64_t size;
} stretch;

/* What is there already, an in-place op's read, stays. */
static tide_status touch(void *context) {
    enum { PAGE_BYTES = 4096 };
    const stretch *s = context;
    for (uint64_t i = 0; i < s->size; i += PAGE_BYTES) {
        char there = s->bytes[i];
        s->bytes[i] = there;
    }
    return TIDE_OK;
}

static tide_status enqueue_touch(state *s, uint64_t offset, uint64_t size_bytes) {
    const stretch bytes = {.bytes = (char *)tide_arena_host(s->run->arena) + offset, .size = size_bytes};
    const void *copy;
    void *context;
    if (size_bytes == 0) return TIDE_OK;
    TIDE_TRY(tide__store_copy(&s->run->calls, &bytes, 1, sizeof bytes, &copy));
    memcpy(&context, &copy, sizeof copy); /* drops the const of what was made here */
    return tide_queue_launch(s->run->queue[0], touch, context, 0);
}

/* A page that nobody has touched yet costs more than most work on it. That is not the op's doing, so it happens before its
 * time is taken. */
static tide_status touch_writes(state *s, const tide_op *op) {
    if (s->run->stepped || s->run->growing || !tide_arena_host(s->run->arena)) return TIDE_OK;
    for (uint32_t i = 0; i < op->n_writes; i++) {
        const place *p = &s->places.data[op->writes[i]];
        TIDE_TRY(enqueue_touch(s, p->offset, p->bytes));
    }
    return enqueue_touch(s, s->workspace.offset, op->variants[0].workspace_bytes);
}

/* ---- the op ---- */

static void note_use(state *s, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_reads; i++) s->places.data[op->reads[i]].used_by = s->ahead.n_issued;
    for (uint32_t i = 0; i < op->n_writes; i++) s->places.data[op->writes[i]].used_by = s->ahead.n_issued;
}

static tide_status run_op(void *self, tide_id id, bool rerun) {
    state *s = self;
    tide_run *run = s->run;
    const tide_op *op = tide_program_op(run->options.program, id);
    tide_call call = {
        .op = id, .rerun = rerun, .queue = run->queue[0], .arena = run->arena, .offsets = s->offsets.data};
    TIDE_TRY(s->failure);
    TIDE_TRY(bind(s, op, op->variants[0].workspace_bytes > 0, &call.n_offsets));
    bind_inherited(s, op);
    call.args = s->args;
    call.memory = &run->calls;
    TIDE_TRY(touch_writes(s, op));
    TIDE_TRY(tide__ahead_begin(s, id));
    TIDE_TRY(run->options.op(run->options.op_context, &call));
    TIDE_TRY(tide__ahead_end(s));
    note_use(s, op);
    s->n_actions++;
    return TIDE_OK;
}

/* ---- moving ---- */

tide_status tide__run_online_give_slot(state *s, tide_id id) {
    place *p = &s->places.data[id];
    uint32_t tier = p->tier;
    p->tier = TIDE_NONE;
    tide__journal_give_slot(s->journal, id);
    if (tier == TIDE_NONE || s->run->options.machine->tier[tier].kind == TIDE_TIER_CLIENT) return TIDE_OK;
    return tide__ranges_give(&s->tiers[tier], p->slot, p->bytes);
}

/* Slots of values that the engine has given up are found here, when room is short. A LOAD under way still reads its. */
static tide_status sweep_slots(state *s) {
    for (tide_id id = 0; id < s->n_storages; id++)
        if (s->engine && s->places.data[id].tier != TIDE_NONE && s->engine->storages[id].tier == TIDE_NONE &&
            !is_moving(s, id))
            TIDE_TRY(tide__run_online_give_slot(s, id));
    return TIDE_OK;
}

static bool find_slot(state *s, place *p, uint32_t tier) {
    return tide__ranges_take(&s->tiers[tier], p->bytes, &p->slot);
}

static tide_status sync_and_sweep(state *s) {
    TIDE_TRY(tide__run_sync(s->run, TIDE_OK));
    tide__journal_saw_all(s->journal);
    return sweep_slots(s);
}

static tide_status take_slot(state *s, tide_id id, uint32_t tier) {
    place *p = &s->places.data[id];
    TIDE_TRY(tide__run_online_give_slot(s, id)); /* of an earlier instance */
    bool found = find_slot(s, p, tier);
    if (!found) {
        TIDE_TRY(sweep_slots(s));
        found = find_slot(s, p, tier);
    }
    if (!found) {
        TIDE_TRY(sync_and_sweep(s));
        found = find_slot(s, p, tier);
    }
    if (!found)
        return tide__fail(TIDE_E_TIER_FULL, "tier \"%s\" has no room for %llu bytes in one piece",
                          s->run->options.machine->tier[tier].name, (unsigned long long)p->bytes);
    p->tier = tier;
    return tide__run_online_reach(s, tier, p->slot + p->bytes);
}

static tide_status open_mover(state *s, tide_id id) {
    if (s->movers.data[id]) return TIDE_OK;
    uint64_t bytes = tide_program_tensor(s->run->options.program, id)->size_bytes;
    tide__mover *m = calloc(1, sizeof *m);
    if (!m) return tide__fail_memory();
    m->move = (tide__move){.run = s->run, .tensor = id, .size_bytes = bytes};
    tide_status status = tide_event_create(s->run->options.device, &m->event);
    if (status == TIDE_OK)
        s->movers.data[id] = m;
    else
        free(m);
    return status;
}

/* Its queue waits: for its earlier move, the other way; to save, for the run that made it; to load, for whoever still uses
 * the bytes. Returns about when it can begin. */
static tide_status wait_to_move(state *s, tide_id id, uint32_t queue, bool out, uint64_t *begin_ns) {
    const place *p = &s->places.data[id];
    uint64_t begin = tide__max_u64(tide__now_ns(), s->busy_until_ns[queue - 1]);
    if (is_moving(s, id)) {
        begin = tide__max_u64(begin, s->movers.data[id]->ends_ns);
        TIDE_TRY(wait_for_move(s, id, queue));
    }
    if (out) {
        begin = tide__max_u64(begin, tide__ahead_end_ns(&s->ahead, p->used_by));
        TIDE_TRY(tide__ahead_wait(s, p->used_by, queue));
    } else if (p->bytes) {
        TIDE_TRY(wait_for_bytes(s, (tide__range){p->offset, p->bytes}, queue, &begin));
    }
    *begin_ns = begin;
    return TIDE_OK;
}

static tide_status start_move(state *s, tide_id id, uint32_t tier, bool out) {
    tide_run *run = s->run;
    place *p = &s->places.data[id];
    uint32_t queue = tide_machine_queue(run->options.machine, tier, out);
    uint64_t begin_ns;
    TIDE_TRY(open_mover(s, id));
    tide__mover *mover = s->movers.data[id];
    tide__move *m = &mover->move;
    TIDE_TRY(wait_to_move(s, id, queue, out, &begin_ns));
    if (m->slot.tier != run->tier[tier] || m->slot.offset != p->slot) /* else a SAVE may still be reading it */
        m->slot = (tide__tier_slot){.tier = run->tier[tier], .offset = p->slot};
    tide_io io = {.fn = out ? tide__tier_save : tide__tier_load, .context = &m->slot, .channel = queue - 1};
    if (run->options.machine->tier[tier].kind == TIDE_TIER_CLIENT)
        io = (tide_io){.fn = tide__run_load_input, .context = m, .channel = queue - 1};
    if (p->bytes && out) TIDE_TRY(tide_copy_out(run->queue[queue], run->arena, p->offset, p->bytes, io));
    if (p->bytes && !out) TIDE_TRY(tide_copy_in(run->queue[queue], run->arena, p->offset, p->bytes, io));
    tide__journal_move(s->journal, id, tier, queue, out);
    TIDE_TRY(tide_event_record(mover->event, run->queue[queue]));
    uint64_t takes = tide_machine_transfer_ns(run->options.machine, queue - 1, p->bytes);
    s->busy_until_ns[queue - 1] = mover->ends_ns = tide__add_capped(begin_ns, takes);
    s->n_actions++;
    return TIDE_OK;
}

static tide_status save(void *self, tide_id id, uint32_t tier) {
    state *s = self;
    TIDE_TRY(s->failure);
    TIDE_TRY(finish_move(s, id)); /* the slot of a move under way must not change: a copy thread reads it */
    TIDE_TRY(take_slot(s, id, tier));
    s->saved_bytes += s->places.data[id].bytes;
    return start_move(s, id, tier, true);
}

static tide_status load(void *self, tide_id id, uint32_t tier) {
    state *s = self;
    TIDE_TRY(s->failure);
    s->loaded_bytes += s->places.data[id].bytes;
    return start_move(s, id, tier, false);
}

/* About when compute will have done what it has. */
static uint64_t now_ns(void *self) {
    const state *s = self;
    return tide__add_capped(tide__now_ns(), s->ahead.pending_ns);
}

static uint64_t free_bytes(void *self) { return ((state *)self)->arena.free_bytes; }

static uint64_t channel_free_ns(void *self, uint32_t tier, bool out) {
    const state *s = self;
    return s->busy_until_ns[tide_machine_queue(s->run->options.machine, tier, out) - 1];
}

static bool has_piece(const tide__ranges *r, uint64_t bytes) {
    for (size_t i = 0; i < r->free.count; i++)
        if (r->free.data[i].size >= bytes) return true;
    return bytes == 0;
}

/* What the engine counts as free and is not has to be swept up first. */
static bool has_slot(void *self, uint32_t tier, uint64_t bytes) {
    state *s = self;
    if (has_piece(&s->tiers[tier], bytes)) return true;
    if (s->engine->tier_room[tier] <= s->tiers[tier].free_bytes) return false;
    keep_failure(s, sweep_slots(s));
    return has_piece(&s->tiers[tier], bytes);
}

static uint64_t ready_ns(void *self, tide_id id) {
    const state *s = self;
    return is_moving(s, id) ? s->movers.data[id]->ends_ns : 0;
}

const tide__online_device tide__run_online_device = {reserve, release,    inherit,  run_op,          save,    load,
                                                     now_ns,  free_bytes, ready_ns, channel_free_ns, has_slot};
