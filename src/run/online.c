/* Online: opening, stepping, and what lasts from one step to the next. See online.h. */
#include "run/online.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"

typedef struct tide__run_online state;

/* ---- opening ---- */

static tide_status find_policy(state *s, const char *name) {
    static const tide__online_policy *const all[] = {&tide__online_delta, &tide__online_cache, &tide__online_dtr};
    size_t length = strcspn(name, ":");
    s->argument = name[length] ? name + length + 1 : "";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]->name) == length && strncmp(all[i]->name, name, length) == 0) {
            s->policy = all[i];
            return TIDE_OK;
        }
    return tide__fail(TIDE_E_ARGUMENT, "\"%s\" is not an online policy (known: delta, cache, dtr)", name);
}

/* As the engine rounds: what may move through several tiers has the size that suits them all. */
static uint64_t find_block(const state *s) {
    const tide_machine *m = s->run->options.machine;
    uint64_t block = m->align_bytes;
    for (uint32_t t = 0; t < m->n_tiers; t++)
        if (s->policy->swaps || m->tier[t].kind == TIDE_TIER_CLIENT)
            block = tide__max_u64(block, m->tier[t].block_bytes);
    return block;
}

/* The bytes of everything that the program could ever have at once; a built program's sums cannot overflow. */
static uint64_t find_most(const state *s) {
    const tide_program *p = s->run->options.program;
    uint64_t most = s->block_bytes, workspace = 0;
    for (tide_id id = 0; id < s->n_storages; id++) most += tide_program_tensor(p, id)->size_bytes + s->block_bytes;
    for (tide_id op = 0; op < tide_program_op_count(p); op++)
        workspace = tide__max_u64(workspace, tide_program_op(p, op)->variants[0].workspace_bytes);
    return most + workspace;
}

static tide_status open_memory(state *s) {
    const tide_run_options *o = &s->run->options;
    uint64_t most = find_most(s);
    s->arena_bytes = tide__min_u64(o->budgets.arena_bytes, most) & ~(s->block_bytes - 1);
    TIDE_TRY(tide_arena_create(o->device, tide__max_u64(s->arena_bytes, 1), &s->run->arena));
    s->run->arena_bytes = s->arena_bytes;
    TIDE_TRY(tide__ranges_init(&s->arena, s->arena_bytes));
    for (uint32_t t = 0; t < o->machine->n_tiers; t++) {
        uint64_t room = tide__min_u64(o->machine->tier[t].capacity_bytes, o->budgets.tier_bytes[t]);
        s->tier_bytes[t] = tide__min_u64(room, most) & ~(s->block_bytes - 1);
        TIDE_TRY(tide__ranges_init(&s->tiers[t], s->tier_bytes[t]));
    }
    return TIDE_OK;
}

static tide_status allocate(state *s) {
    const tide_program *p = s->run->options.program;
    size_t n = s->n_storages + (size_t)1, m = tide_program_op_count(p) + (size_t)1, operands = 1;
    for (tide_id op = 0; op + 1 < m; op++) {
        const tide_op *x = tide_program_op(p, op);
        size_t uses = (size_t)x->n_reads + x->n_writes + 1;
        operands = uses > operands ? uses : operands;
    }
    s->places = calloc(n, sizeof *s->places);
    s->moves = calloc(n, sizeof *s->moves);
    s->events = calloc(n, sizeof(tide_event *));
    s->cost_ns = calloc(m, sizeof *s->cost_ns);
    s->offsets = calloc(operands, sizeof *s->offsets);
    if (!s->places || !s->moves || !s->events || !s->cost_ns || !s->offsets) return tide__fail_memory();
    for (tide_id id = 0; id < s->n_storages; id++) {
        uint64_t bytes = tide_program_tensor(p, id)->size_bytes;
        if (!tide__align_up(bytes, s->block_bytes, &s->places[id].bytes))
            return tide__fail(TIDE_E_OVERFLOW, "a tensor of %llu bytes", (unsigned long long)bytes);
        s->places[id].tier = TIDE_NONE;
        s->moves[id] = (tide__move){.run = s->run, .tensor = id, .size_bytes = bytes};
    }
    for (tide_id op = 0; op + 1 < m; op++) s->cost_ns[op] = tide_program_op(p, op)->variants[0].cost_ns;
    return TIDE_OK;
}

/* The first tier with room for it; TIDE_NONE: none. */
static tide_status place_in_tier(state *s, tide_id id) {
    const tide_machine *m = s->run->options.machine;
    tide__place *p = &s->places[id];
    for (uint32_t t = 0; t < m->n_tiers && s->policy->swaps; t++) {
        if (tide_machine_queue(m, t, true) == TIDE_NONE || tide_machine_queue(m, t, false) == TIDE_NONE) continue;
        if (!tide__ranges_take(&s->tiers[t], p->bytes, &p->slot)) continue;
        p->tier = t;
        return s->run->tier[t] || p->bytes == 0 ? TIDE_OK : tide__run_open_tier(s->run, t, s->tier_bytes[t]);
    }
    return tide__fail(TIDE_E_FIT, "there is no room for \"%s\" at the start, in the arena or in a tier",
                      tide_program_tensor(s->run->options.program, id)->name);
}

/* What is there at the start lies in the arena as long as that has room. */
static tide_status place_starts(state *s) {
    for (tide_id id = 0; id < s->n_storages; id++) {
        tide__place *p = &s->places[id];
        if (tide_program_tensor(s->run->options.program, id)->start != TIDE_START_PRESENT) continue;
        p->in_arena = tide__ranges_take(&s->arena, p->bytes, &p->offset);
        if (!p->in_arena) TIDE_TRY(place_in_tier(s, id));
    }
    return TIDE_OK;
}

tide_status tide__run_online_open(tide_run *run) {
    state *s = calloc(1, sizeof *s);
    if (!s) return tide__fail_memory();
    run->online = s;
    s->run = run;
    s->n_storages = tide_program_tensor_count(run->options.program);
    TIDE_TRY(find_policy(s, run->options.online));
    s->block_bytes = find_block(s);
    TIDE_TRY(allocate(s));
    TIDE_TRY(open_memory(s));
    return place_starts(s);
}

void tide__run_online_close(tide_run *run) {
    state *s = run->online;
    if (!s) return;
    for (tide_id id = 0; s->events && id < s->n_storages; id++) tide_event_destroy(s->events[id]);
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) tide__ranges_deinit(&s->tiers[t]);
    tide__ranges_deinit(&s->arena);
    tide__vec_free(&s->fences);
    free(s->places);
    free(s->moves);
    free(s->events);
    free(s->cost_ns);
    free(s->offsets);
    free(s);
    run->online = NULL;
}

/* ---- between steps ---- */

const tide__place *tide__run_online_find(const tide_run *run, tide_id tensor) {
    const tide__place *p = &run->online->places[tensor];
    tide_id from = run->carried_from[tensor];
    if (run->stepped && !p->in_arena && p->tier == TIDE_NONE && from != TIDE_NONE) p = &run->online->places[from];
    return p->in_arena || p->tier != TIDE_NONE ? p : NULL;
}

static tide_status give_up(state *s, tide_id id) {
    tide__place *p = &s->places[id];
    if (p->in_arena) TIDE_TRY(tide__ranges_give(&s->arena, p->offset, p->bytes));
    p->in_arena = false;
    return tide__run_online_give_slot(s, id);
}

/* From the arena to a tier, between steps. */
static tide_status put_away(state *s, tide_id id) {
    tide__place *p = &s->places[id];
    TIDE_TRY(place_in_tier(s, id));
    tide__tier_slot slot = {.tier = s->run->tier[p->tier], .offset = p->slot};
    tide_io io = {.fn = tide__tier_save, .context = &slot, .channel = TIDE_NONE};
    TIDE_TRY(tide_copy_out(s->run->queue[0], s->run->arena, p->offset, p->bytes, io));
    TIDE_TRY(tide_queue_sync(s->run->queue[0]));
    p->in_arena = false;
    return tide__ranges_give(&s->arena, p->offset, p->bytes);
}

tide_status tide__run_online_rest(tide_run *run, uint64_t wanted_bytes, tide__range *out) {
    state *s = run->online;
    *out = (tide__range){0};
    if (!tide_arena_host(run->arena)) return TIDE_OK;
    for (tide_id id = 0; id < s->n_storages && s->arena.free_bytes < wanted_bytes; id++)
        if (s->places[id].in_arena && s->places[id].bytes) TIDE_TRY(put_away(s, id));
    TIDE_TRY(tide__run_online_compact(s));
    if (s->arena.free.count) *out = s->arena.free.data[0];
    return TIDE_OK;
}

/* The values of the step's end become those of the next start; all others are given up. Two passes, because a value
 * may be carried to the id of one that is carried itself. */
static tide_status carry(state *s) {
    const tide_program *p = s->run->options.program;
    uint32_t n = tide_program_carry_count(p);
    tide__place *carried = malloc((n + (size_t)1) * sizeof *carried);
    if (!carried) return tide__fail_memory();
    for (uint32_t i = 0; i < n; i++) {
        tide__place *from = &s->places[tide_program_carry(p, i)->from];
        carried[i] = *from;
        from->in_arena = false;
        from->tier = TIDE_NONE;
    }
    tide_status status = TIDE_OK;
    for (tide_id id = 0; id < s->n_storages && status == TIDE_OK; id++) status = give_up(s, id);
    for (uint32_t i = 0; i < n; i++) s->places[tide_program_carry(p, i)->to] = carried[i];
    free(carried);
    return status;
}

const uint64_t *tide_run_costs(const tide_run *run) { return run->online ? run->online->cost_ns : NULL; }

/* ---- stepping ---- */

static tide_status begin(state *s) {
    const tide_run_options *o = &s->run->options;
    tide__online_options options = {.program = o->program,
                                    .machine = o->machine,
                                    .budgets = &o->budgets,
                                    .policy = s->policy,
                                    .argument = s->argument,
                                    .device = &tide__run_online_device,
                                    .device_self = s};
    if (s->run->stepped) TIDE_TRY(carry(s));
    TIDE_TRY(tide__online_create(&options, &s->engine));
    s->engine->ends_anywhere = true;
    memcpy(s->engine->cost_ns, s->cost_ns, s->engine->n_ops * sizeof *s->cost_ns);
    for (tide_id id = 0; id < s->n_storages; id++) {
        tide__place *p = &s->places[id];
        if (p->in_arena) TIDE_TRY(tide__run_online_give_slot(s, id)); /* one place is enough */
        s->engine->start_tier[id] = p->tier;
    }
    for (uint32_t t = 0; t < o->machine->n_tiers; t++)
        s->engine->tier_room[t] = tide__min_u64(s->engine->tier_room[t], s->tier_bytes[t]);
    s->saved_bytes = s->loaded_bytes = s->compute_ns = s->n_actions = 0;
    s->failure = TIDE_OK;
    return TIDE_OK;
}

static tide_status sync_all(tide_run *run, tide_status status) {
    for (uint32_t q = 0; q < run->n_queues; q++) {
        if (status == TIDE_OK)
            status = tide_queue_sync(run->queue[q]);
        else
            (void)tide_queue_sync(run->queue[q]);
    }
    return status;
}

/* What the engine forgot needs no copy any more. */
static tide_status settle(state *s) {
    s->fences.count = 0;
    for (tide_id id = 0; id < s->n_storages; id++)
        if (s->engine->storages[id].tier == TIDE_NONE) TIDE_TRY(tide__run_online_give_slot(s, id));
    return s->failure;
}

static void report_step(const state *s, uint64_t step_ns, tide_step_report *report) {
    *report = (tide_step_report){.step_ns = step_ns,
                                 .compute_ns = s->compute_ns,
                                 .arena_bytes = s->arena_bytes,
                                 .saved_bytes = s->saved_bytes,
                                 .loaded_bytes = s->loaded_bytes,
                                 .n_actions = s->n_actions,
                                 .n_reruns = (uint32_t)s->engine->n_reruns};
    for (uint32_t t = 0; t < s->run->options.machine->n_tiers; t++)
        report->tier_bytes[t] = s->run->tier[t] ? s->tier_bytes[t] : 0;
}

tide_status tide__run_online_step(tide_run *run, const tide_step_args *args, tide_step_report *report) {
    state *s = run->online;
    uint64_t start = tide__now_ns();
    s->args = args;
    tide_status status = begin(s);
    if (status == TIDE_OK) status = tide__online_step(s->engine);
    status = sync_all(run, status);
    if (status == TIDE_OK) status = settle(s);
    if (status == TIDE_OK && report) report_step(s, tide__now_ns() - start, report);
    tide__online_destroy(s->engine);
    s->engine = NULL;
    return status;
}
