/* Online: opening, stepping, and what lasts from one step to the next. See online.h. */
#include "run/online.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "plan/plan_data.h"

typedef struct tide__run_online state;

#define FIRST_TIER_BYTES (UINT64_C(64) << 20) /* a tier begins with at most twice that, unless it is wanted at once */

/* ---- opening ---- */

/* Policies that take one check it themselves. */
static tide_status check_argument(const state *s, const char *name) {
    if (s->policy->takes_argument || !strchr(name, ':')) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "\"%s\": the policy %s takes no argument", name, s->policy->name);
}

static tide_status find_policy(state *s, const char *name) {
    static const tide__online_policy *const all[] = {&tide__online_delta, &tide__online_cache, &tide__online_dtr};
    size_t length = strcspn(name, ":");
    s->argument = name[length] ? name + length + 1 : "";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]->name) == length && strncmp(all[i]->name, name, length) == 0) {
            s->policy = all[i];
            return check_argument(s, name);
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
    uint64_t most = s->run->growing ? UINT64_MAX : find_most(s);
    s->run->arena_bytes = tide__min_u64(o->budgets.arena_bytes, most);
    s->arena_bytes = s->run->arena_bytes & ~(s->block_bytes - 1);
    TIDE_TRY(tide_arena_create(o->device, tide__max_u64(s->run->arena_bytes, 1), &s->run->arena));
    TIDE_TRY(tide__ranges_init(&s->arena, s->arena_bytes));
    for (uint32_t t = 0; t < o->machine->n_tiers; t++) {
        uint64_t room = tide__tier_limit(o->machine, &o->budgets, t);
        s->tier_bytes[t] = tide__min_u64(room, most) & ~(s->block_bytes - 1);
        TIDE_TRY(tide__ranges_init(&s->tiers[t], s->tier_bytes[t]));
    }
    return TIDE_OK;
}

static tide_status grow_storages(state *s, uint32_t n) {
    TIDE_TRY(tide__vec_reserve(&s->places, n - s->places.count));
    TIDE_TRY(tide__vec_reserve(&s->movers, n - s->movers.count));
    for (tide_id id = s->n_storages; id < n; id++) {
        uint64_t bytes = tide_program_tensor(s->run->options.program, id)->size_bytes;
        tide__place place = {.tier = TIDE_NONE};
        if (!tide__align_up(bytes, s->block_bytes, &place.bytes))
            return tide__fail(TIDE_E_OVERFLOW, "a tensor of %llu bytes", (unsigned long long)bytes);
        s->places.data[s->places.count++] = place;
        s->movers.data[s->movers.count++] = NULL;
        s->n_storages++;
    }
    return TIDE_OK;
}

tide_status tide__run_online_grow(state *s) {
    const tide_program *p = s->run->options.program;
    TIDE_TRY(grow_storages(s, tide_program_tensor_count(p)));
    for (tide_id op = (tide_id)s->cost_ns.count; op < tide_program_op_count(p); op++) {
        const tide_op *x = tide_program_op(p, op);
        TIDE_TRY(tide__vec_reserve(&s->offsets, (size_t)x->n_reads + x->n_writes + 1));
        TIDE_TRY(tide__vec_push(&s->cost_ns, x->variants[0].cost_ns));
    }
    return TIDE_OK;
}

tide_status tide__run_online_reach(state *s, uint32_t tier, uint64_t size_bytes) {
    tide__tier *open = s->run->tier[tier];
    uint64_t has = open ? tide__run_tier_bytes(s->run, tier) : tide__min_u64(s->arena_bytes, FIRST_TIER_BYTES);
    if (open && size_bytes <= has) return TIDE_OK;
    uint64_t wanted = tide__min_u64(tide__max_u64(size_bytes, 2 * has), s->tier_bytes[tier]);
    if (!open) {
        tide_status status = tide__run_open_tier(s->run, tier, wanted);
        bool may_do = tide__run_tier_is_refused(status) && wanted > size_bytes;
        return may_do ? tide__run_open_tier(s->run, tier, size_bytes) : status;
    }
    TIDE_TRY(tide__run_sync(s->run, TIDE_OK)); /* what moves looks at its size */
    tide__journal_saw_all(s->journal);
    return tide__tier_grow(open, wanted) == TIDE_OK ? TIDE_OK : tide__tier_grow(open, size_bytes);
}

/* The first tier with room for it; TIDE_NONE: none. */
static tide_status place_in_tier(state *s, tide_id id) {
    const tide_machine *m = s->run->options.machine;
    tide__place *p = &s->places.data[id];
    tide__tiers tiers = tide__tiers_of(m);
    for (uint32_t i = 0; i < tiers.n && s->policy->swaps; i++) {
        uint32_t t = tiers.tier[i];
        if (!tide__ranges_take(&s->tiers[t], p->bytes, &p->slot)) continue;
        p->tier = t;
        return p->bytes ? tide__run_online_reach(s, t, p->slot + p->bytes) : TIDE_OK;
    }
    return tide__fail(TIDE_E_FIT, "there is no room for \"%s\" at the start, in the arena or in a tier",
                      tide_program_tensor(s->run->options.program, id)->name);
}

tide_status tide__run_online_place(state *s, tide_id id) {
    tide__place *p = &s->places.data[id];
    if (tide_program_tensor(s->run->options.program, id)->start != TIDE_START_PRESENT) return TIDE_OK;
    p->in_arena = tide__ranges_take(&s->arena, p->bytes, &p->offset);
    return p->in_arena ? TIDE_OK : place_in_tier(s, id);
}

static tide_status open_state(tide_run *run) {
    state *s = calloc(1, sizeof *s);
    if (!s) return tide__fail_memory();
    run->online = s;
    s->run = run;
    TIDE_TRY(find_policy(s, run->options.online ? run->options.online : "delta"));
    s->block_bytes = find_block(s);
    return tide__run_online_grow(s);
}

tide_status tide__run_online_attach(tide_run *run) {
    TIDE_TRY(open_state(run));
    run->online->arena_bytes = run->arena_bytes;
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) run->online->tier_bytes[t] = tide__run_tier_bytes(run, t);
    return TIDE_OK;
}

tide_status tide__run_online_open(tide_run *run) {
    TIDE_TRY(open_state(run));
    state *s = run->online;
    TIDE_TRY(open_memory(s));
    for (tide_id id = 0; id < s->n_storages; id++) TIDE_TRY(tide__run_online_place(s, id));
    return TIDE_OK;
}

static void close_mover(state *s, tide_id id) {
    tide__mover *m = s->movers.data[id];
    if (m) tide_event_destroy(m->event);
    free(m);
}

void tide__run_online_shrink(state *s, uint32_t n_storages) {
    for (; s->n_storages > n_storages; s->n_storages--) close_mover(s, s->n_storages - 1);
    s->places.count = s->movers.count = n_storages;
    s->cost_ns.count = 0;
}

void tide__run_online_close(tide_run *run) {
    state *s = run->online;
    if (!s) return;
    tide__online_destroy(s->engine); /* in the middle of a step */
    tide__journal_close(s->journal);
    tide__run_online_shrink(s, 0);
    tide__ahead_close(&s->ahead);
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) tide__ranges_deinit(&s->tiers[t]);
    tide__ranges_deinit(&s->arena);
    tide__vec_free(&s->fences);
    tide__vec_free(&s->places);
    tide__vec_free(&s->movers);
    tide__vec_free(&s->cost_ns);
    tide__vec_free(&s->offsets);
    free(s);
    run->online = NULL;
}

/* ---- between steps ---- */

const tide__place *tide__run_online_find(const tide_run *run, tide_id tensor) {
    const tide__place *p = &run->online->places.data[tensor];
    tide_id from = run->stepped ? run->carried_from[tensor] : TIDE_NONE;
    if (!p->in_arena && p->tier == TIDE_NONE && from != TIDE_NONE) p = &run->online->places.data[from];
    return p->in_arena || p->tier != TIDE_NONE ? p : NULL;
}

tide_status tide__run_online_give_up(state *s, tide_id id) {
    tide__place *p = &s->places.data[id];
    if (p->in_arena) TIDE_TRY(tide__ranges_give(&s->arena, p->offset, p->bytes));
    p->in_arena = false;
    return tide__run_online_give_slot(s, id);
}

static tide_status copy_to_tier(state *s, tide_id id) {
    const tide__place *p = &s->places.data[id];
    TIDE_TRY(place_in_tier(s, id));
    tide__tier_slot slot = {.tier = s->run->tier[p->tier], .offset = p->slot};
    tide_io io = {.fn = tide__tier_save, .context = &slot, .channel = TIDE_NONE};
    TIDE_TRY(tide_copy_out(s->run->queue[0], s->run->arena, p->offset, p->bytes, io));
    return tide_queue_sync(s->run->queue[0]);
}

/* From the arena to a tier, between steps; if a tier has it already, that copy is as good. */
static tide_status put_away(state *s, tide_id id) {
    tide__place *p = &s->places.data[id];
    tide_status status = p->tier == TIDE_NONE ? copy_to_tier(s, id) : TIDE_OK;
    if (status != TIDE_OK) {
        (void)tide__run_online_give_slot(s, id); /* the copy is not whole */
        return status;
    }
    p->in_arena = false;
    return tide__ranges_give(&s->arena, p->offset, p->bytes);
}

/* The old one goes first, so that there are never two. Without the new one there is another of the old size; without
 * that, too, the run is of no use any more. */
static tide_status replace_arena(tide_run *run, uint64_t arena_bytes) {
    tide_arena_destroy(run->arena);
    run->arena = NULL;
    tide_status status = tide_arena_create(run->options.device, tide__max_u64(arena_bytes, 1), &run->arena);
    if (status == TIDE_OK)
        run->arena_bytes = run->options.budgets.arena_bytes = arena_bytes;
    else
        run->poisoned =
            tide_arena_create(run->options.device, tide__max_u64(run->arena_bytes, 1), &run->arena) != TIDE_OK;
    return status;
}

tide_status tide__run_online_resize(state *s, uint64_t arena_bytes) {
    TIDE_TRY(tide__vec_reserve(&s->arena.free, 1)); /* so that the ranges can be made anew */
    for (tide_id id = 0; id < s->n_storages; id++)
        if (s->places.data[id].in_arena && s->places.data[id].bytes) TIDE_TRY(put_away(s, id));
    TIDE_TRY(replace_arena(s->run, arena_bytes));
    s->arena_bytes = arena_bytes & ~(s->block_bytes - 1);
    return tide__ranges_init(&s->arena, s->arena_bytes);
}

tide_status tide__run_online_rest(tide_run *run, uint64_t wanted_bytes, tide__range *out) {
    state *s = run->online;
    *out = (tide__range){0};
    if (!tide_arena_host(run->arena)) return TIDE_OK;
    for (tide_id id = 0; id < s->n_storages && s->arena.free_bytes < wanted_bytes; id++)
        if (s->places.data[id].in_arena && s->places.data[id].bytes) TIDE_TRY(put_away(s, id));
    TIDE_TRY(tide__run_online_compact(s));
    if (s->arena.free.count) *out = s->arena.free.data[0];
    return TIDE_OK;
}

/* The values of the step's end become those of the next start; all others are given up. Two passes, because a value
 * may be carried to the id of one that is carried itself. */
tide_status tide__run_online_carry(state *s) {
    const tide_program *p = s->run->options.program;
    uint32_t n = tide_program_carry_count(p);
    tide__place *carried = malloc((n + (size_t)1) * sizeof *carried);
    if (!carried) return tide__fail_memory();
    for (uint32_t i = 0; i < n; i++) {
        tide__place *from = &s->places.data[tide_program_carry(p, i)->from];
        carried[i] = *from;
        from->in_arena = false;
        from->tier = TIDE_NONE;
    }
    tide_status status = TIDE_OK;
    for (tide_id id = 0; id < s->n_storages && status == TIDE_OK; id++) status = tide__run_online_give_up(s, id);
    for (uint32_t i = 0; i < n; i++) s->places.data[tide_program_carry(p, i)->to] = carried[i];
    free(carried);
    return status;
}

const uint64_t *tide_run_costs(const tide_run *run) { return run->online ? run->online->cost_ns.data : NULL; }

/* ---- stepping ---- */

tide_status tide__run_online_begin(state *s, const tide_step_args *args) {
    const tide_run_options *o = &s->run->options;
    tide__online_options options = {.program = o->program,
                                    .machine = o->machine,
                                    .budgets = &o->budgets,
                                    .policy = s->policy,
                                    .argument = s->argument,
                                    .device = &tide__run_online_device,
                                    .device_self = s,
                                    .growing = s->run->growing};
    s->args = args;
    if (!s->run->growing) s->begin_ns = tide__now_ns();
    if (s->run->stepped && !s->run->growing) TIDE_TRY(tide__run_online_carry(s));
    TIDE_TRY(tide__online_create(&options, &s->engine));
    s->engine->ends_anywhere = true;
    for (tide_id op = 0; op < s->engine->n_ops; op++) s->engine->ops[op].cost_ns = s->cost_ns.data[op];
    for (tide_id id = 0; id < s->n_storages; id++) {
        tide__place *p = &s->places.data[id];
        if (p->in_arena) TIDE_TRY(tide__run_online_give_slot(s, id)); /* one place is enough */
        s->engine->storages[id].start_tier = p->tier;
    }
    for (uint32_t t = 0; t < o->machine->n_tiers; t++)
        s->engine->tier_room[t] = tide__min_u64(s->engine->tier_room[t], s->tier_bytes[t]);
    s->saved_bytes = s->loaded_bytes = s->compute_ns = s->n_actions = 0;
    tide__run_mark_traffic(s->run);
    s->failure = TIDE_OK;
    return o->journal ? tide__journal_open(s, &s->journal) : TIDE_OK;
}

/* What the engine forgot needs no copy any more. */
static tide_status settle(state *s) {
    s->fences.count = 0;
    for (tide_id id = 0; id < s->n_storages; id++)
        if (s->engine->storages[id].tier == TIDE_NONE) TIDE_TRY(tide__run_online_give_slot(s, id));
    return s->failure;
}

static void report_step(const state *s, tide_step_report *report) {
    *report = (tide_step_report){.step_ns = tide__now_ns() - s->begin_ns,
                                 .compute_ns = s->compute_ns,
                                 .arena_bytes = s->arena_bytes,
                                 .saved_bytes = s->saved_bytes,
                                 .loaded_bytes = s->loaded_bytes,
                                 .n_actions = s->n_actions,
                                 .n_reruns = (uint32_t)s->engine->n_reruns};
    for (uint32_t t = 0; t < s->run->options.machine->n_tiers; t++)
        report->tier_bytes[t] = tide__run_tier_bytes(s->run, t);
    tide__run_report_traffic(s->run, report);
}

tide_status tide__run_online_finish(state *s, tide_status status, tide_step_report *report) {
    status = tide__ahead_settle(s, tide__run_sync(s->run, status));
    if (status == TIDE_OK && s->journal) status = tide__journal_check(s->journal, s->run->options.program);
    tide__journal_close(s->journal);
    s->journal = NULL;
    tide__store_free(&s->run->calls);
    if (status == TIDE_OK) status = settle(s);
    if (status == TIDE_OK && report) report_step(s, report);
    tide__online_destroy(s->engine);
    s->engine = NULL;
    return status;
}

tide_status tide__run_online_step(tide_run *run, const tide_step_args *args, tide_step_report *report) {
    state *s = run->online;
    tide_status status = tide__run_online_begin(s, args);
    if (status == TIDE_OK) status = tide__online_step(s->engine);
    return tide__run_online_finish(s, status, report);
}
