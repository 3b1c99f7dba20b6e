/* Pulled steps: the client computes and the run does everything else. The client stands in for the compute queue: before an
 * op is handed over the host waits for the transfers that the plan names and for copies inside the arena, which are the
 * queue's own, and when the client comes back the op's event is recorded, which lets transfers that wait for the op begin. A step that the client gives up leaves values where the
 * actions so far put them; they can be rescued from there. */
#include <string.h>

#include "base/error.h"
#include "run/run_data.h"

static tide_status check_pulled(const tide_run *run) {
    if (run->poisoned) return tide__run_fail_poisoned(run);
    return run->pulling ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "no pulled step has begun");
}

tide_status tide_run_pull_begin(tide_run *run) {
    TIDE_NEED(run);
    TIDE_TRY(tide__run_check_rests(run));
    if (!run->options.plan || run->guest)
        return tide__fail(TIDE_E_ARGUMENT, "only a run that follows a plan and has no guest can be pulled");
    if (!tide_arena_host(run->arena)) return tide__fail(TIDE_E_UNSUPPORTED, "the host cannot see this device's arena");
    TIDE_TRY(tide__run_check_steps(run));
    TIDE_TRY(tide__run_begin_step(run));
    run->pulling = true;
    run->n_pulled = 0;
    return TIDE_OK;
}

/* The op that the client has now computed. */
static tide_status complete_op(tide_run *run) {
    if (run->n_pulled == 0) return TIDE_OK;
    tide_event *done = run->done[run->n_pulled - 1];
    return done ? tide_event_record(done, run->queue[0]) : TIDE_OK;
}

/* Plans name no waits inside a queue: what was relocated just before is waited for with the queue. */
static tide_status await_operands(tide_run *run, const tide_action *a, bool relocated) {
    if (relocated) TIDE_TRY(tide_queue_sync(run->queue[0]));
    for (uint32_t k = 0; k < a->n_waits; k++)
        if (run->done[a->waits[k]]) TIDE_TRY(tide_event_sync(run->done[a->waits[k]]));
    return TIDE_OK;
}

static tide_status advance(tide_run *run, tide_call *call) {
    TIDE_TRY(complete_op(run));
    uint32_t i = run->n_pulled;
    bool relocated = false;
    for (; i < run->n_actions; i++) {
        tide_action_kind kind = tide_plan_action(run->options.plan, i).kind;
        if (kind == TIDE_RUN) break;
        relocated |= kind == TIDE_RELOCATE;
    }
    TIDE_TRY(tide__run_issue(run, NULL, run->n_pulled, i));
    run->n_pulled = i;
    if (i == run->n_actions) {
        *call = (tide_call){.op = TIDE_NONE, .arena = run->arena};
        return TIDE_OK;
    }
    tide_action a = tide_plan_action(run->options.plan, i);
    TIDE_TRY(await_operands(run, &a, relocated));
    run->n_pulled = i + 1;
    *call = (tide_call){.op = a.op,
                        .variant = a.variant,
                        .rerun = run->rerun[i],
                        .arena = run->arena,
                        .offsets = run->offsets + run->first_offset[i],
                        .n_offsets = a.n_uses};
    return TIDE_OK;
}

tide_status tide_run_pull(tide_run *run, tide_call *call) {
    TIDE_NEED(run, call);
    TIDE_TRY(check_pulled(run));
    tide_status status = advance(run, call);
    run->poisoned = status != TIDE_OK;
    return status;
}

tide_status tide_run_pull_end(tide_run *run, tide_step_report *report) {
    TIDE_NEED(run);
    TIDE_TRY(check_pulled(run));
    if (run->n_pulled < run->n_actions)
        return tide__fail(TIDE_E_ARGUMENT, "action %u of %u of a pulled step is still to come", run->n_pulled,
                          run->n_actions);
    tide_status status = complete_op(run);
    status = tide__run_end_step(run, status);
    run->pulling = false;
    run->stepped |= status == TIDE_OK;
    if (status == TIDE_OK) status = tide__run_finish_watches(run);
    run->poisoned = status != TIDE_OK;
    return status == TIDE_OK && report ? tide__run_report_step(run, report) : status;
}

/* ---- giving up ---- */

tide_status tide_run_pull_stop(tide_run *run, bool computed) {
    TIDE_NEED(run);
    TIDE_TRY(check_pulled(run));
    bool half =
        run->n_pulled > 0 && !computed && tide_plan_action(run->options.plan, run->n_pulled - 1).kind == TIDE_RUN;
    run->n_pulled -= half; /* its writes are not there */
    run->pulling = false;
    run->stopped = run->poisoned = true;
    return tide__run_sync(run, half ? TIDE_OK : complete_op(run));
}

/* On [begin, end), when the first `index` actions are complete and no other has begun. After the last one: what the plan ends
 * with. */
static bool is_there(uint32_t begin, uint32_t end, bool at_start, bool at_end, const tide_run *run) {
    uint32_t index = run->n_pulled;
    if (index == run->n_actions) return at_end;
    return (at_start || begin < index) && end > index;
}

static tide_status rescue_copy(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes) {
    const tide_plan *plan = run->options.plan;
    for (tide_id i = 0; i < tide_plan_copy_count(plan); i++) {
        const tide_copy *c = tide_plan_copy(plan, i);
        if (c->tensor != tensor || !run->tier[c->tier] || !is_there(c->begin, c->end, c->at_start, c->at_end, run))
            continue;
        tide__tier_slot slot = {.tier = run->tier[c->tier], .offset = c->offset_bytes};
        return tide__tier_load(&slot, 0, data, size_bytes);
    }
    return tide__fail(TIDE_E_ARGUMENT,
                      "tensor \"%s\" is neither in the arena nor in a tier where the step was given up",
                      tide_program_tensor(run->options.program, tensor)->name);
}

tide_status tide_run_rescue(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes) {
    TIDE_NEED(run, data);
    const tide_tensor *t = tide_program_tensor(run->options.program, tensor);
    if (!run->stopped) return tide__fail(TIDE_E_ARGUMENT, "no pulled step of this run was given up");
    if (!t || t->size_bytes != size_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "there is no tensor %u of %llu bytes", tensor,
                          (unsigned long long)size_bytes);
    const tide_plan *plan = run->options.plan;
    for (tide_id i = 0; i < tide_plan_residency_count(plan); i++) {
        const tide_residency *r = tide_plan_residency(plan, i);
        if (r->tensor != tensor || !is_there(r->begin, r->end, r->at_start, r->at_end, run)) continue;
        memcpy(data, (char *)tide_arena_host(run->arena) + run->base + r->offset_bytes, size_bytes);
        return TIDE_OK;
    }
    return rescue_copy(run, tensor, data, size_bytes);
}

tide_arena *tide_run_arena(tide_run *run) { return run->arena; }
