/* The session: its life, its states, and the two ends of a step. See session.h and session_data.h.
 *
 * Invariant: between steps every queue is idle, and every state has a place in the arena or in a tier. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/size.h"
#include "run/session_data.h"

void tide_session_options_init(tide_session_options *options) {
    tide_run_options run;
    tide_run_options_init(&run);
    *options = (tide_session_options){.size = sizeof *options,
                                      .budgets = run.budgets,
                                      .disk_checksums = run.disk_checksums,
                                      .disk_packing = run.disk_packing,
                                      .journal = run.journal};
}

/* ---- programs ---- */

/* A program that has the states and nothing else yet. */
static tide_status open_program(tide_session *s) {
    tide_program_builder *b;
    TIDE_TRY(tide_program_builder_create("step", true, &b));
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < s->states.count && status == TIDE_OK; i++)
        status = tide_program_builder_tensor(b, &s->states.data[i], NULL);
    if (status != TIDE_OK) {
        tide_program_builder_destroy(b);
        return status;
    }
    s->builder = b;
    s->released.count = s->kept.count = s->carried.count = 0;
    for (size_t i = 0; i < s->states.count; i++) {
        TIDE_TRY(tide__vec_push(&s->released, TIDE_NONE));
        TIDE_TRY(tide__vec_push(&s->kept, false));
        TIDE_TRY(tide__vec_push(&s->carried, false));
    }
    return TIDE_OK;
}

/* After a step: states take over what is carried to them, everything else is forgotten. */
static tide_status make_ready(tide_session *s) {
    if (s->phase == TIDE__READY) return TIDE_OK;
    s->run->poisoned = true; /* until all states have their new places */
    TIDE_TRY(tide__run_online_carry(s->run->online));
    tide__run_online_shrink(s->run->online, (uint32_t)s->states.count);
    TIDE_TRY(open_program(s));
    s->run->poisoned = false;
    s->run->options.program = s->builder->program;
    s->run->stepped = false;
    s->phase = TIDE__READY;
    return TIDE_OK;
}

/* ---- life ---- */

static tide_status check_options(const tide_session_options *o) {
    if (!o->device || !o->machine) return tide__fail(TIDE_E_ARGUMENT, "a session needs a device and a machine");
    if ((unsigned)o->effort > TIDE_EFFORT_HIGH)
        return tide__fail(TIDE_E_ARGUMENT, "tide_session_options: there is no effort %d", (int)o->effort);
    if (o->budgets.arena_bytes == UINT64_MAX)
        return tide__fail(TIDE_E_ARGUMENT, "a session needs a budget for its arena: what steps will need is not known");
    return tide_machine_validate(o->machine);
}

/* One block for offsets and sizes everywhere, so that a value can go from any place to any other. */
static tide_status adapt_machine(tide_session *s) {
    tide_device_info info;
    tide_machine *m = &s->machine;
    *m = *s->options.machine;
    TIDE_TRY(tide_device_get_info(s->options.device, &info));
    uint32_t block = m->align_bytes > info.align_bytes ? m->align_bytes : info.align_bytes;
    for (uint32_t t = 0; t < m->n_tiers; t++) block = block > m->tier[t].block_bytes ? block : m->tier[t].block_bytes;
    m->align_bytes = block;
    for (uint32_t t = 0; t < m->n_tiers; t++) {
        m->tier[t].block_bytes = block;
        uint64_t *budget = &s->options.budgets.tier_bytes[t];
        if (m->tier[t].kind == TIDE_TIER_RAM && *budget == UINT64_MAX) *budget = info.staging_bytes;
    }
    return TIDE_OK;
}

static tide_status open_run(tide_session *s) {
    tide_run_options o;
    tide_run_options_init(&o);
    o.device = s->options.device;
    o.program = s->builder->program;
    o.machine = &s->machine;
    o.budgets = s->options.budgets;
    o.op = tide__session_call_op;
    o.input = tide__session_give_input;
    o.op_context = o.input_context = s;
    o.disk_path = s->options.disk_path;
    o.disk_checksums = s->options.disk_checksums;
    o.disk_packing = s->options.disk_packing;
    o.journal = s->options.journal;
    o.online = s->options.online ? s->options.online : "delta";
    return tide__run_create(&o, true, &s->run);
}

/* Plans are made for what the run has. */
static void open_cache(tide_session *s) {
    const struct tide__run_online *online = s->run->online;
    s->cache.machine = &s->machine;
    s->cache.folder = s->options.plan_folder;
    tide_plan_options_init(&s->cache.options);
    s->cache.options.policy = s->options.policy ? s->options.policy : "hybrid";
    s->cache.options.effort = s->options.effort;
    s->cache.options.order = TIDE_ORDER_PROGRAM; /* in which the client will submit the step again */
    s->cache.options.budgets.arena_bytes = online->arena_bytes;
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++)
        s->cache.options.budgets.tier_bytes[t] = online->tier_bytes[t];
}

static tide_status open_session(tide_session *s) {
    TIDE_TRY(adapt_machine(s));
    TIDE_TRY(open_program(s));
    TIDE_TRY(open_run(s));
    open_cache(s);
    return TIDE_OK;
}

tide_status tide_session_create(const tide_session_options *options, tide_session **out) {
    tide_session_options taken;
    tide_session_options_init(&taken);
    if (!out) return tide__fail(TIDE_E_ARGUMENT, "a session needs a place for its handle");
    TIDE_TRY(tide__options_take("tide_session_options", options, sizeof taken, &taken));
    TIDE_TRY(check_options(&taken));
    tide_session *s = calloc(1, sizeof *s);
    if (!s) return tide__fail_memory();
    s->options = taken;
    s->pending = TIDE_NONE;
    tide_status status = open_session(s);
    if (status == TIDE_OK)
        *out = s;
    else
        tide_session_destroy(s);
    return status;
}

void tide_session_destroy(tide_session *s) {
    if (!s) return;
    tide_run_destroy(s->run);
    tide_program_builder_destroy(s->builder);
    tide__plan_cache_deinit(&s->cache);
    tide__vec_free(&s->states);
    tide__store_free(&s->names);
    tide__vec_free(&s->inputs);
    tide__vec_free(&s->calls);
    tide__vec_free(&s->released);
    tide__vec_free(&s->kept);
    tide__vec_free(&s->carried);
    tide__vec_free(&s->dead);
    free(s);
}

/* ---- states ---- */

static tide_status check_resting(const tide_session *s) {
    if (s->run->poisoned) return tide__fail(TIDE_E_POISONED, "an earlier step of this session failed half-way");
    if (s->phase == TIDE__STEPPING) return tide__fail(TIDE_E_ARGUMENT, "not in the middle of a step");
    return TIDE_OK;
}

tide_status tide_session_state(tide_session *s, const tide_tensor *tensor, tide_id *out) {
    TIDE_NEED(s, tensor, out);
    tide_tensor state = *tensor;
    tide_id id;
    state.start = TIDE_START_PRESENT;
    state.keep = false;
    TIDE_TRY(check_resting(s));
    TIDE_TRY(make_ready(s));
    TIDE_TRY(tide__store_string(&s->names, tensor->name, &state.name));
    TIDE_TRY(tide__vec_reserve(&s->states, 1));
    TIDE_TRY(tide__vec_reserve(&s->released, 1));
    TIDE_TRY(tide__vec_reserve(&s->kept, 1));
    TIDE_TRY(tide__vec_reserve(&s->carried, 1));
    TIDE_TRY(tide_program_builder_tensor(s->builder, &state, &id));
    s->states.data[s->states.count++] = state;
    s->released.data[s->released.count++] = TIDE_NONE;
    s->kept.data[s->kept.count++] = s->carried.data[s->carried.count++] = false;
    tide_status status = tide__run_online_grow(s->run->online);
    if (status == TIDE_OK) status = tide__run_online_place(s->run->online, id);
    if (status == TIDE_OK)
        *out = id;
    else
        s->run->poisoned = true; /* a state without a place */
    return status;
}

static tide_status check_written(const tide_session *s, tide_id state) {
    TIDE_TRY(check_resting(s));
    return state < s->states.count ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "there is no state %u", state);
}

tide_status tide_session_write(tide_session *s, tide_id state, const void *data, uint64_t size_bytes) {
    TIDE_NEED(s, data);
    TIDE_TRY(check_written(s, state));
    return tide_run_write(s->run, state, data, size_bytes);
}

tide_status tide_session_write_part(tide_session *s, tide_id state, uint64_t position_bytes, const void *data,
                                    uint64_t size_bytes) {
    TIDE_NEED(s, data);
    TIDE_TRY(check_written(s, state));
    return tide_run_write_part(s->run, state, position_bytes, data, size_bytes);
}

tide_status tide_session_read(tide_session *s, tide_id tensor, void *data, uint64_t size_bytes) {
    TIDE_NEED(s, data);
    TIDE_TRY(check_resting(s));
    return tide_run_read(s->run, tensor, data, size_bytes);
}

tide_status tide_session_read_part(tide_session *s, tide_id tensor, uint64_t position_bytes, void *data,
                                   uint64_t size_bytes) {
    TIDE_NEED(s, data);
    TIDE_TRY(check_resting(s));
    return tide_run_read_part(s->run, tensor, position_bytes, data, size_bytes);
}

tide_status tide_session_set_budget(tide_session *s, uint64_t arena_bytes) {
    TIDE_NEED(s);
    TIDE_TRY(check_resting(s));
    if (arena_bytes == UINT64_MAX) return tide__fail(TIDE_E_ARGUMENT, "a session needs a budget for its arena");
    TIDE_TRY(make_ready(s));
    TIDE_TRY(tide__run_online_resize(s->run->online, arena_bytes));
    s->options.budgets.arena_bytes = arena_bytes;
    s->cache.options.budgets.arena_bytes = s->run->online->arena_bytes;
    s->prepared = 0;
    tide__plan_cache_forget_plans(&s->cache);
    return TIDE_OK;
}

/* ---- begin and end ---- */

tide_status tide__session_fail(tide_session *s, tide_status status) {
    if (s->run->online->engine)
        status = tide__run_online_finish(s->run->online, status, NULL);
    else
        status = tide__run_end_step(s->run, status);
    s->run->poisoned = true;
    s->phase = TIDE__ENDED;
    return tide__fail_in(status, "step %llu", (unsigned long long)s->args.step);
}

tide_status tide_session_begin(tide_session *s, const tide_step_args *args) {
    TIDE_NEED(s, args);
    TIDE_TRY(check_resting(s));
    TIDE_TRY(make_ready(s));
    s->args = *args;
    s->inputs.count = s->calls.count = s->dead.count = 0;
    s->pending = TIDE_NONE;
    s->phase = TIDE__STEPPING;
    s->decided = false;
    s->run->online->begin_ns = tide__now_ns();
    return TIDE_OK;
}

/* A state without a carry stays as it is, if it still can. */
static tide_status carry_rest(tide_session *s) {
    for (tide_id id = 0; id < s->states.count; id++)
        if (!s->carried.data[id] && s->released.data[id] != TIDE_NONE)
            return tide__fail(TIDE_E_ARGUMENT,
                              "state %u \"%s\" is overwritten or released, and no value is carried to it", id,
                              s->states.data[id].name);
    for (tide_id id = 0; id < s->states.count; id++)
        if (!s->carried.data[id]) TIDE_TRY(tide__session_add_carry(s, (tide_carry){id, id}));
    return TIDE_OK;
}

/* What is not kept can no longer be read. */
static tide_status forget_unkept(tide_session *s) {
    for (tide_id id = 0; id < s->kept.count; id++)
        if (!s->kept.data[id]) TIDE_TRY(tide__run_online_give_up(s->run->online, id));
    return TIDE_OK;
}

static tide_status learn(tide_session *s, tide__cached **entry) {
    const uint64_t *cost_ns = s->run->online->cost_ns.data;
    tide_program *program, *measured;
    TIDE_TRY(tide__session_keep_unreleased(s));
    TIDE_TRY(tide_program_builder_finish(s->builder, &program));
    s->builder = NULL;
    tide_status status = tide_program_with_costs(program, cost_ns, &measured);
    tide_program_destroy(program);
    TIDE_TRY(status);
    TIDE_TRY(tide__plan_cache_note(&s->cache, measured, entry));
    TIDE_TRY(tide__plan_cache_plan(&s->cache, *entry));
    return TIDE_OK;
}

static tide_status end_online(tide_session *s, tide_step_report *report, tide__cached **entry) {
    TIDE_TRY(tide__online_end(s->run->online->engine));
    TIDE_TRY(tide__run_online_finish(s->run->online, TIDE_OK, report));
    return learn(s, entry);
}

static tide_status end_step(tide_session *s, tide_step_report *report) {
    TIDE_TRY(tide__session_decide(s, NULL));
    if (s->entry && !tide__session_is_complete(s)) TIDE_TRY(tide__session_deviate(s));
    tide__cached *entry = s->entry;
    TIDE_TRY(entry ? tide__session_end_planned(s, report) : end_online(s, report, &entry));
    s->entry = NULL;
    s->run->options.plan = NULL;
    s->run->options.program = entry->program;
    s->run->stepped = true;
    if (s->last) s->last->next = entry;
    s->last = entry;
    TIDE_TRY(tide__run_read_carries(s->run));
    TIDE_TRY(tide__run_online_grow(s->run->online)); /* tensors that no op wrote */
    return forget_unkept(s);
}

tide_status tide_session_end(tide_session *s, tide_step_report *report) {
    TIDE_NEED(s);
    if (s->run->poisoned) return check_resting(s);
    if (s->phase != TIDE__STEPPING) return tide__fail(TIDE_E_ARGUMENT, "no step has begun");
    TIDE_TRY(tide__session_flush(s));
    TIDE_TRY(tide__session_check_kept(s));
    TIDE_TRY(carry_rest(s));
    tide_status status = end_step(s, report);
    if (status != TIDE_OK) return s->run->poisoned ? status : tide__session_fail(s, status);
    s->phase = TIDE__ENDED;
    s->stats.n_steps++;
    return TIDE_OK;
}

tide_session_stats tide_session_get_stats(const tide_session *s) {
    tide_session_stats stats = s->stats;
    for (size_t i = 0; i < s->cache.entries.count; i++) stats.n_plans += s->cache.entries.data[i]->plan != NULL;
    return stats;
}
