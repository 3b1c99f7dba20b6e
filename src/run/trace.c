/* A traced step: two events per action, one as it begins and one as it ends, become a timeline. The begin is recorded
 * behind the action's waits, so that what lies between the two is the action's own time. */
#include <stdlib.h>

#include "base/error.h"
#include "base/size.h"
#include "run/run_data.h"

typedef struct tide__trace {
    uint32_t n_actions;
    tide_event **begin, **end; /* per action */
} tide__trace;

tide_status tide__trace_begin(tide__trace *trace, uint32_t action, tide_queue *queue) {
    return tide_event_record(trace->begin[action], queue);
}

tide_status tide__trace_end(tide__trace *trace, uint32_t action, tide_queue *queue) {
    return tide_event_record(trace->end[action], queue);
}

static void close_trace(tide__trace *trace) {
    for (uint32_t i = 0; trace->begin && trace->end && i < trace->n_actions; i++) {
        tide_event_destroy(trace->begin[i]);
        tide_event_destroy(trace->end[i]);
    }
    free(trace->begin);
    free(trace->end);
}

static tide_status open_trace(tide_run *run, tide__trace *trace) {
    trace->n_actions = run->n_actions;
    trace->begin = calloc((size_t)run->n_actions + 1, sizeof(tide_event *));
    trace->end = calloc((size_t)run->n_actions + 1, sizeof(tide_event *));
    if (!trace->begin || !trace->end) return tide__fail_memory();
    for (uint32_t i = 0; i < run->n_actions; i++) {
        TIDE_TRY(tide_event_create(run->options.device, &trace->begin[i]));
        TIDE_TRY(tide_event_create(run->options.device, &trace->end[i]));
    }
    return TIDE_OK;
}

/* A driver may tell of two completions of a queue, one shortly after the other, in the opposite order. */
static tide_status read_times(const tide_run *run, const tide__trace *trace, uint64_t *start_ns, uint64_t *end_ns) {
    for (uint32_t i = 0; i < trace->n_actions; i++) {
        TIDE_TRY(tide_event_elapsed(run->begin, trace->begin[i], &start_ns[i]));
        TIDE_TRY(tide_event_elapsed(run->begin, trace->end[i], &end_ns[i]));
        end_ns[i] = tide__max_u64(end_ns[i], start_ns[i]);
    }
    return TIDE_OK;
}

static tide_status read_trace(const tide_run *run, const tide__trace *trace, tide_timeline **out) {
    const tide_run_options *o = &run->options;
    uint64_t *start_ns = calloc((size_t)trace->n_actions + 1, sizeof *start_ns);
    uint64_t *end_ns = calloc((size_t)trace->n_actions + 1, sizeof *end_ns);
    tide_status status = start_ns && end_ns ? read_times(run, trace, start_ns, end_ns) : tide__fail_memory();
    if (status == TIDE_OK) status = tide_timeline_create(o->plan, o->program, o->machine, start_ns, end_ns, out);
    free(start_ns);
    free(end_ns);
    return status;
}

tide_status tide_run_step_traced(tide_run *run, const tide_step_args *args, tide_step_report *report,
                                 tide_timeline **out) {
    TIDE_NEED(run, args, out);
    tide__trace trace = {0};
    if (!run->options.plan) return tide__fail(TIDE_E_UNSUPPORTED, "only steps that follow a plan can be traced");
    tide_status status = open_trace(run, &trace);
    if (status == TIDE_OK) {
        run->trace = &trace;
        status = tide_run_step(run, args, report);
        run->trace = NULL;
    }
    if (status == TIDE_OK) status = read_trace(run, &trace, out);
    close_trace(&trace);
    return status;
}
