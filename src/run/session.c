/* The session: its life, its states, and the two ends of a step. See session.h and session_data.h.
 *
 * Invariant: between steps every queue is idle, and every state has a place in the arena or in a tier. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "run/session_data.h"

void tide_session_options_init(tide_session_options *options) {
    *options = (tide_session_options){.size = sizeof *options};
    tide_budgets_init(&options->budgets);
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
    s->released.count = 0;
    for (size_t i = 0; i < s->states.count; i++) TIDE_TRY(tide__vec_push(&s->released, false));
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
    tide_program_destroy(s->program);
    s->program = NULL;
    s->phase = TIDE__READY;
    return TIDE_OK;
}

/* ---- life ---- */

static tide_status check_options(const tide_session_options *o) {
    if (o->size != sizeof *o) return tide__fail(TIDE_E_ARGUMENT, "tide_session_options: wrong size");
    if (!o->device || !o->machine) return tide__fail(TIDE_E_ARGUMENT, "a session needs a device and a machine");
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
        if (m->tier[t].kind == TIDE_TIER_RAM && *budget == UINT64_MAX) *budget = 0;
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
    o.online = s->options.online ? s->options.online : "delta";
    return tide__run_create(&o, true, &s->run);
}

static tide_status open_session(tide_session *s) {
    TIDE_TRY(adapt_machine(s));
    TIDE_TRY(open_program(s));
    return open_run(s);
}

tide_status tide_session_create(const tide_session_options *options, tide_session **out) {
    TIDE_TRY(check_options(options));
    tide_session *s = calloc(1, sizeof *s);
    if (!s) return tide__fail_memory();
    s->options = *options;
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
    tide_program_destroy(s->program);
    tide__vec_free(&s->states);
    tide__store_free(&s->names);
    tide__vec_free(&s->inputs);
    tide__vec_free(&s->calls);
    tide__vec_free(&s->released);
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
    tide_tensor state = *tensor;
    tide_id id;
    state.start = TIDE_START_PRESENT;
    state.keep = false;
    TIDE_TRY(check_resting(s));
    TIDE_TRY(make_ready(s));
    TIDE_TRY(tide__store_string(&s->names, tensor->name, &state.name));
    TIDE_TRY(tide__vec_reserve(&s->states, 1));
    TIDE_TRY(tide__vec_reserve(&s->released, 1));
    TIDE_TRY(tide_program_builder_tensor(s->builder, &state, &id));
    s->states.data[s->states.count++] = state;
    s->released.data[s->released.count++] = false;
    tide_status status = tide__run_online_grow(s->run->online);
    if (status == TIDE_OK) status = tide__run_online_place(s->run->online, id);
    if (status == TIDE_OK)
        *out = id;
    else
        s->run->poisoned = true; /* a state without a place */
    return status;
}

tide_status tide_session_write(tide_session *s, tide_id state, const void *data, uint64_t size_bytes) {
    TIDE_TRY(check_resting(s));
    if (state >= s->states.count) return tide__fail(TIDE_E_ARGUMENT, "there is no state %u", state);
    return tide_run_write(s->run, state, data, size_bytes);
}

tide_status tide_session_read(tide_session *s, tide_id tensor, void *data, uint64_t size_bytes) {
    TIDE_TRY(check_resting(s));
    return tide_run_read(s->run, tensor, data, size_bytes);
}

/* ---- begin and end ---- */

tide_status tide__session_fail(tide_session *s, tide_status status) {
    if (s->run->online->engine) status = tide__run_online_finish(s->run->online, status, NULL);
    s->run->poisoned = true;
    s->phase = TIDE__ENDED;
    return tide__fail_in(status, "step %llu", (unsigned long long)s->args.step);
}

tide_status tide_session_begin(tide_session *s, const tide_step_args *args) {
    TIDE_TRY(check_resting(s));
    TIDE_TRY(make_ready(s));
    s->args = *args;
    s->inputs.count = s->calls.count = s->dead.count = 0;
    s->pending = TIDE_NONE;
    s->phase = TIDE__STEPPING;
    tide_status status = tide__run_online_begin(s->run->online, &s->args);
    if (status == TIDE_OK) status = tide__online_begin(s->run->online->engine);
    return status == TIDE_OK ? TIDE_OK : tide__session_fail(s, status);
}

/* A state without a carry stays as it is, if it still can. */
static tide_status carry_rest(tide_session *s) {
    for (tide_id id = 0; id < s->states.count; id++) {
        if (s->builder->states.data[id].carried_to) continue;
        if (s->released.data[id])
            return tide__fail(TIDE_E_ARGUMENT,
                              "state %u \"%s\" is overwritten or released, and no value is carried to it", id,
                              s->states.data[id].name);
        TIDE_TRY(tide_program_builder_keep(s->builder, id));
        TIDE_TRY(tide_program_builder_carry(s->builder, (tide_carry){id, id}));
    }
    return TIDE_OK;
}

/* What is not kept can no longer be read. */
static tide_status forget_unkept(tide_session *s) {
    for (tide_id id = 0; id < tide_program_tensor_count(s->program); id++)
        if (!tide_program_tensor(s->program, id)->keep) TIDE_TRY(tide__run_online_give_up(s->run->online, id));
    return TIDE_OK;
}

static tide_status close_program(tide_session *s) {
    TIDE_TRY(tide_program_builder_finish(s->builder, &s->program));
    s->builder = NULL;
    s->run->options.program = s->program;
    s->run->stepped = true;
    TIDE_TRY(tide__run_read_carries(s->run));
    return forget_unkept(s);
}

tide_status tide_session_end(tide_session *s, tide_step_report *report) {
    if (s->run->poisoned) return check_resting(s);
    if (s->phase != TIDE__STEPPING) return tide__fail(TIDE_E_ARGUMENT, "no step has begun");
    TIDE_TRY(carry_rest(s));
    tide_status status = tide__session_flush(s);
    if (status != TIDE_OK) return status;
    status = tide__online_end(s->run->online->engine);
    if (status == TIDE_OK) status = tide__run_online_finish(s->run->online, TIDE_OK, report);
    if (status == TIDE_OK) status = close_program(s);
    if (status != TIDE_OK) return tide__session_fail(s, status);
    s->phase = TIDE__ENDED;
    return TIDE_OK;
}
