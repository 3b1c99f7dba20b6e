/* The run: prepares everything a plan needs, then steps. Invariant: between steps every queue is idle, and the arena
 * and the tiers hold the plan's start map (or, after a step, its end map). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "run/online.h"
#include "run/run_data.h"

void tide_run_options_init(tide_run_options *options) {
    *options = (tide_run_options){.size = sizeof *options};
    tide_budgets_init(&options->budgets);
}

/* ---- preparing ---- */

static tide_status check_options(const tide_run_options *o) {
    if (o->size != sizeof *o) return tide__fail(TIDE_E_ARGUMENT, "tide_run_options: wrong size");
    if (!o->device || !o->program || !o->machine || (!o->plan && !o->online) || !o->op)
        return tide__fail(TIDE_E_ARGUMENT,
                          "a run needs a device, a program, a machine, op closures, and a plan or an online policy");
    for (tide_id t = 0; t < tide_program_tensor_count(o->program) && !o->input; t++)
        if (tide_program_tensor(o->program, t)->start == TIDE_START_CLIENT)
            return tide__fail(TIDE_E_ARGUMENT, "the program has inputs, the run no input function");
    return o->plan ? tide_plan_verify(o->plan, o->program, o->machine, &o->budgets, NULL) : TIDE_OK;
}

static void *zeros(size_t n, size_t size) { return calloc(n ? n : 1, size); }

static uint32_t *nones(size_t n) {
    uint32_t *ids = malloc((n ? n : 1) * sizeof *ids);
    if (ids) memset(ids, 0xff, n * sizeof *ids); /* TIDE_NONE in each */
    return ids;
}

static tide_status allocate(tide_run *run) {
    const tide_plan *plan = run->options.plan;
    size_t n = run->n_actions, tensors = tide_program_tensor_count(run->options.program), uses = 0;
    for (uint32_t i = 0; i < n; i++) uses += tide_plan_action(plan, i).n_uses;
    run->done = zeros(n, sizeof *run->done);
    run->moves = zeros(n, sizeof *run->moves);
    run->offsets = zeros(uses, sizeof *run->offsets);
    run->first_offset = zeros(n, sizeof *run->first_offset);
    run->rerun = zeros(n, sizeof *run->rerun);
    run->starts = nones(tensors);
    run->ends = nones(tensors);
    bool complete =
        run->done && run->moves && run->offsets && run->first_offset && run->rerun && run->starts && run->ends;
    return complete ? TIDE_OK : tide__fail_memory();
}

static tide_status add_spot(tide_run *run, tide__spot spot, uint32_t *list) {
    spot.next = *list;
    TIDE_TRY(tide__vec_push(&run->spots, spot));
    *list = (uint32_t)(run->spots.count - 1);
    return TIDE_OK;
}

/* Copies first and residencies in front of them: the head of a list is the quickest to read. */
static tide_status read_maps(tide_run *run) {
    const tide_plan *plan = run->options.plan;
    for (tide_id i = 0; i < tide_plan_copy_count(plan); i++) {
        const tide_copy *c = tide_plan_copy(plan, i);
        tide__spot spot = {.residency = TIDE_NONE, .copy = i};
        if (run->options.machine->tier[c->tier].kind == TIDE_TIER_CLIENT) continue;
        if (c->at_start) TIDE_TRY(add_spot(run, spot, &run->starts[c->tensor]));
        if (c->at_end) TIDE_TRY(add_spot(run, spot, &run->ends[c->tensor]));
    }
    for (tide_id i = 0; i < tide_plan_residency_count(plan); i++) {
        const tide_residency *r = tide_plan_residency(plan, i);
        tide__spot spot = {.residency = i, .copy = TIDE_NONE};
        if (r->at_start) TIDE_TRY(add_spot(run, spot, &run->starts[r->tensor]));
        if (r->at_end) TIDE_TRY(add_spot(run, spot, &run->ends[r->tensor]));
    }
    return TIDE_OK;
}

static void prepare_move(tide_run *run, uint32_t i, const tide_action *a) {
    const tide_copy *c = tide_plan_copy(run->options.plan, a->copy);
    run->moves[i] = (tide__move){.slot = {.tier = run->tier[c->tier], .offset = c->offset_bytes},
                                 .run = run,
                                 .tensor = c->tensor,
                                 .size_bytes = tide_program_tensor(run->options.program, c->tensor)->size_bytes};
    if (a->kind == TIDE_SAVE)
        run->saved_bytes += c->size_bytes;
    else
        run->loaded_bytes += c->size_bytes;
}

/* Events only where an action of another queue waits. */
static tide_status prepare_waits(tide_run *run, const tide_action *a) {
    for (uint32_t k = 0; k < a->n_waits; k++) {
        uint32_t on = a->waits[k];
        if (run->done[on] || tide_plan_action(run->options.plan, on).queue == a->queue) continue;
        TIDE_TRY(tide_event_create(run->options.device, &run->done[on]));
    }
    return TIDE_OK;
}

static tide_status prepare_actions(tide_run *run) {
    const tide_plan *plan = run->options.plan;
    bool *ran = zeros(tide_program_op_count(run->options.program), sizeof *ran);
    if (!ran) return tide__fail_memory();
    tide_status status = TIDE_OK;
    size_t at = 0;
    for (uint32_t i = 0; i < run->n_actions && status == TIDE_OK; i++) {
        tide_action a = tide_plan_action(plan, i);
        run->first_offset[i] = at;
        for (uint32_t k = 0; k < a.n_uses; k++)
            run->offsets[at++] = run->base + tide_plan_residency(plan, a.uses[k])->offset_bytes;
        if (a.kind == TIDE_RUN) {
            run->rerun[i] = ran[a.op];
            run->n_reruns += ran[a.op];
            ran[a.op] = true;
        } else {
            prepare_move(run, i, &a);
        }
        status = prepare_waits(run, &a);
    }
    free(ran);
    return status;
}

tide_status tide__run_open_tier(tide_run *run, uint32_t t, uint64_t size_bytes) {
    const tide_run_options *o = &run->options;
    const tide__tier_options options = {.kind = o->machine->tier[t].kind,
                                        .capacity_bytes = size_bytes,
                                        .block_bytes = o->machine->tier[t].block_bytes,
                                        .path = o->disk_path,
                                        .checksums = o->disk_checksums};
    return tide__tier_open(&options, &run->tier[t]);
}

static tide_status open_memory(tide_run *run) {
    const tide_run_options *o = &run->options;
    run->arena_bytes = tide__max_u64(tide_plan_arena_bytes(o->plan), 1);
    TIDE_TRY(o->host ? tide__run_enter(run, o->host) : tide_arena_create(o->device, run->arena_bytes, &run->arena));
    for (uint32_t t = 0; t < o->machine->n_tiers; t++) {
        const tide_machine_tier *tier = &o->machine->tier[t];
        uint64_t bytes = tide_plan_tier_bytes(o->plan, t);
        if (bytes == 0 || tier->kind == TIDE_TIER_CLIENT) continue;
        TIDE_TRY(tide__run_open_tier(run, t, bytes));
    }
    return TIDE_OK;
}

static tide_status open_queues(tide_run *run) {
    tide_device *device = run->options.device;
    for (uint32_t q = 0; q < run->n_queues; q++) {
        TIDE_TRY(tide_queue_create(device, q ? TIDE_QUEUE_COPY : TIDE_QUEUE_COMPUTE, &run->queue[q]));
        TIDE_TRY(tide_event_create(device, &run->drained[q]));
    }
    TIDE_TRY(tide_event_create(device, &run->begin));
    return tide_event_create(device, &run->end);
}

tide_status tide__run_read_carries(tide_run *run) {
    free(run->carried_from);
    run->carried_from = nones(tide_program_tensor_count(run->options.program));
    if (!run->carried_from) return tide__fail_memory();
    for (uint32_t i = 0; i < tide_program_carry_count(run->options.program); i++) {
        const tide_carry *c = tide_program_carry(run->options.program, i);
        run->carried_from[c->to] = c->from;
    }
    return TIDE_OK;
}

static tide_status prepare_online(tide_run *run) {
    if (run->options.host) return tide__fail(TIDE_E_UNSUPPORTED, "an online run needs an arena of its own");
    run->n_queues = 1 + run->options.machine->n_channels;
    TIDE_TRY(tide__run_read_carries(run));
    TIDE_TRY(open_queues(run));
    return tide__run_online_open(run);
}

static tide_status prepare(tide_run *run) {
    if (!run->options.plan) return prepare_online(run);
    run->n_actions = tide_plan_action_count(run->options.plan);
    run->n_queues = 1 + run->options.machine->n_channels;
    TIDE_TRY(allocate(run));
    TIDE_TRY(open_memory(run));
    TIDE_TRY(open_queues(run));
    TIDE_TRY(read_maps(run));
    TIDE_TRY(tide__run_read_carries(run));
    return prepare_actions(run);
}

tide_status tide_run_create(const tide_run_options *options, tide_run **out) {
    TIDE_TRY(check_options(options));
    return tide__run_create(options, false, out);
}

tide_status tide__run_create(const tide_run_options *options, bool growing, tide_run **out) {
    tide_run *run = calloc(1, sizeof *run);
    if (!run) return tide__fail_memory();
    run->options = *options;
    run->growing = growing;
    tide_status status = prepare(run);
    if (status == TIDE_OK)
        *out = run;
    else
        tide_run_destroy(run);
    return status;
}

void tide_run_destroy(tide_run *run) {
    if (!run) return;
    for (uint32_t q = 0; q < run->n_queues; q++) tide_queue_destroy(run->queue[q]);
    for (uint32_t q = 0; q < run->n_queues; q++) tide_event_destroy(run->drained[q]);
    for (uint32_t i = 0; run->done && i < run->n_actions; i++) tide_event_destroy(run->done[i]);
    tide__run_online_close(run);
    tide_event_destroy(run->begin);
    tide_event_destroy(run->end);
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) tide__tier_destroy(run->tier[t]);
    if (run->host)
        tide__run_leave(run);
    else
        tide_arena_destroy(run->arena);
    tide__vec_free(&run->parked);
    tide__store_free(&run->calls);
    free(run->done);
    free(run->moves);
    free(run->offsets);
    free(run->first_offset);
    free(run->rerun);
    free(run->starts);
    free(run->ends);
    free(run->carried_from);
    tide__vec_free(&run->spots);
    free(run);
}

/* ---- stepping ---- */

/* The compute queue ends after all others, so that begin to end spans the whole step. */
static tide_status close_step(tide_run *run) {
    for (uint32_t q = 1; q < run->n_queues; q++) {
        TIDE_TRY(tide_event_record(run->drained[q], run->queue[q]));
        TIDE_TRY(tide_event_wait(run->drained[q], run->queue[0]));
    }
    return tide_event_record(run->end, run->queue[0]);
}

/* Waits for every queue, also when one failed; the first failure counts. */
static tide_status sync_queues(tide_run *run, tide_status status) {
    for (uint32_t q = 0; q < run->n_queues; q++) {
        if (status == TIDE_OK)
            status = tide_queue_sync(run->queue[q]);
        else
            (void)tide_queue_sync(run->queue[q]);
    }
    return status;
}

static tide_status step(tide_run *run, const tide_step_args *args) {
    tide_status status = tide_event_record(run->begin, run->queue[0]);
    if (status == TIDE_OK) status = tide__run_issue(run, args);
    if (status == TIDE_OK) status = close_step(run);
    status = sync_queues(run, status);
    tide__store_free(&run->calls);
    return status;
}

static tide_status report_step(const tide_run *run, tide_step_report *report) {
    *report = (tide_step_report){.arena_bytes = tide_plan_arena_bytes(run->options.plan),
                                 .saved_bytes = run->saved_bytes,
                                 .loaded_bytes = run->loaded_bytes,
                                 .n_actions = run->n_actions,
                                 .n_reruns = run->n_reruns};
    for (uint32_t t = 0; t < run->options.machine->n_tiers; t++)
        report->tier_bytes[t] = tide_plan_tier_bytes(run->options.plan, t);
    return tide_event_elapsed(run->begin, run->end, &report->step_ns);
}

tide_status tide_run_step(tide_run *run, const tide_step_args *args, tide_step_report *report) {
    if (run->poisoned) return tide__fail(TIDE_E_POISONED, "an earlier step of this run failed half-way");
    if (run->guest) return tide__fail(TIDE_E_ARGUMENT, "a run cannot step while it has a guest");
    if (run->stepped && !tide_program_is_repeating(run->options.program))
        return tide__fail(TIDE_E_ARGUMENT, "a one-shot program runs once");
    tide_status status = run->online ? tide__run_online_step(run, args, report) : step(run, args);
    if (status != TIDE_OK) {
        run->poisoned = true;
        return tide__fail_in(status, "step %llu", (unsigned long long)args->step);
    }
    run->stepped = true;
    return report && !run->online ? report_step(run, report) : TIDE_OK;
}
