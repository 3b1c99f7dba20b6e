/* Planned: actions are issued one after the other, as the plan says. Nothing is decided, searched or allocated here. */
#include <string.h>

#include "base/error.h"
#include "run/run_data.h"

typedef struct launched {
    tide_operands_fn fn;
    void *context;
    void *const *operands;
} launched;

static tide_status run_launched(void *context) {
    const launched *l = context;
    return l->fn(l->context, l->operands);
}

static tide_status list_operands(const tide_call *call, void *const **out) {
    char *host = tide_arena_host(call->arena);
    const void *copy;
    if (!host) return tide__fail(TIDE_E_UNSUPPORTED, "the host cannot see this device's arena");
    TIDE_TRY(tide__store_copy(call->memory, call->offsets, call->n_offsets, sizeof(void *), &copy));
    void **operands;
    memcpy(&operands, &copy, sizeof copy); /* drops the const of what was made here */
    for (uint32_t i = 0; i < call->n_offsets; i++) operands[i] = host + call->offsets[i];
    *out = operands;
    return TIDE_OK;
}

tide_status tide_call_launch(const tide_call *call, tide_operands_fn fn, void *context) {
    TIDE_NEED(call);
    if (!fn) return tide__fail(TIDE_E_ARGUMENT, "tide_call_launch: no function");
    launched l = {.fn = fn, .context = context};
    const void *copy;
    void *stored;
    TIDE_TRY(list_operands(call, &l.operands));
    TIDE_TRY(tide__store_copy(call->memory, &l, 1, sizeof l, &copy));
    memcpy(&stored, &copy, sizeof copy);
    return tide_queue_launch(call->queue, run_launched, stored, 0);
}

tide_status tide__run_load_input(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    const tide__move *m = context;
    const tide_run_options *o = &m->run->options;
    if (position >= m->size_bytes) return TIDE_OK; /* padding */
    uint64_t left = m->size_bytes - position;
    return o->input(o->input_context, m->tensor, position, data, size_bytes < left ? size_bytes : left);
}

static tide_status issue_move(tide_run *run, uint32_t i, const tide_action *a) {
    const tide_residency *r = tide_plan_residency(run->options.plan, a->uses[0]);
    tide__move *m = &run->moves[i];
    if (r->size_bytes == 0) return TIDE_OK; /* and a tier of no bytes may not be there at all */
    tide_io io = {.context = &m->slot, .channel = a->queue - 1};
    tide_queue *queue = run->queue[a->queue];
    if (a->kind == TIDE_SAVE) {
        io.fn = tide__tier_save;
        return tide_copy_out(queue, run->arena, run->base + r->offset_bytes, r->size_bytes, io);
    }
    if (m->slot.tier)
        io.fn = tide__tier_load;
    else
        io = (tide_io){.fn = tide__run_load_input, .context = m, .channel = a->queue - 1};
    return tide_copy_in(queue, run->arena, run->base + r->offset_bytes, r->size_bytes, io);
}

static tide_status issue_relocate(tide_run *run, uint32_t i, const tide_action *a) {
    const uint64_t *offsets = run->offsets + run->first_offset[i];
    uint64_t size_bytes = tide_plan_residency(run->options.plan, a->uses[0])->size_bytes;
    return tide_copy_within(run->queue[0], run->arena, offsets[0], offsets[1], size_bytes);
}

static tide_status move_message(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    const tide__move *m = context;
    const tide_run_options *o = &m->run->options;
    return o->message(o->message_context, m->message, position, data, size_bytes);
}

/* Of the value alone, without the padding that this plan may give it. */
static tide_status issue_message(tide_run *run, uint32_t i, const tide_action *a) {
    tide__move *m = &run->moves[i];
    const tide_io io = {.fn = move_message, .context = m, .channel = a->queue - 1};
    uint64_t offset = run->offsets[run->first_offset[i]];
    return m->message->receives ? tide_copy_in(run->queue[a->queue], run->arena, offset, m->size_bytes, io)
                                : tide_copy_out(run->queue[a->queue], run->arena, offset, m->size_bytes, io);
}

static tide_status issue_run(tide_run *run, uint32_t i, const tide_action *a, const tide_step_args *args) {
    const tide_call call = {.op = a->op,
                            .variant = a->variant,
                            .rerun = run->rerun[i],
                            .queue = run->queue[0],
                            .arena = run->arena,
                            .offsets = run->offsets + run->first_offset[i],
                            .n_offsets = a->n_uses,
                            .args = args,
                            .memory = &run->calls};
    return run->options.op(run->options.op_context, &call);
}

static tide_status issue(tide_run *run, uint32_t i, const tide_action *a, const tide_step_args *args) {
    switch (a->kind) {
    case TIDE_RUN: return a->queue ? issue_message(run, i, a) : issue_run(run, i, a, args);
    case TIDE_RELOCATE: return issue_relocate(run, i, a);
    default: return issue_move(run, i, a);
    }
}

/* What is still on its way of the step before. An event that this step has recorded again comes later on the same queue. */
static tide_status await_crossings(tide_run *run, uint32_t i, uint32_t queue, size_t *next) {
    while (*next < run->crossings.count && run->crossings.data[*next].to < i) ++*next;
    for (; *next < run->crossings.count && run->crossings.data[*next].to == i; ++*next)
        TIDE_TRY(tide_event_wait(run->done[run->crossings.data[*next].from], run->queue[queue]));
    return TIDE_OK;
}

tide_status tide__run_issue(tide_run *run, const tide_step_args *args, uint32_t from, uint32_t to) {
    size_t next = 0;
    for (uint32_t i = from; i < to; i++) {
        tide_action a = tide_plan_action(run->options.plan, i);
        if (run->unsettled) TIDE_TRY(await_crossings(run, i, a.queue, &next));
        for (uint32_t k = 0; k < a.n_waits; k++)
            if (run->done[a.waits[k]]) TIDE_TRY(tide_event_wait(run->done[a.waits[k]], run->queue[a.queue]));
        if (run->trace) TIDE_TRY(tide__trace_begin(run->trace, i, run->queue[a.queue]));
        TIDE_TRY(issue(run, i, &a, args));
        if (run->trace) TIDE_TRY(tide__trace_end(run->trace, i, run->queue[a.queue]));
        if (run->done[i]) TIDE_TRY(tide_event_record(run->done[i], run->queue[a.queue]));
    }
    return TIDE_OK;
}
