/* The run: prepares everything a plan needs, then steps. Invariant: between steps the arena and the tiers hold the plan's
 * start map (or, after a step, its end map), and every queue is idle, but for transfers of a run that is `unsettled`: they
 * go on into the next step, or until tide__run_check_rests. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/size.h"
#include "run/online.h"
#include "run/run_data.h"

void tide_run_options_init(tide_run_options *options) {
    *options = (tide_run_options){.size = sizeof *options, .disk_checksums = true, .disk_packing = true};
#ifndef NDEBUG
    options->journal = true;
#endif
    tide_budgets_init(&options->budgets);
}

/* ---- preparing ---- */

static tide_status check_options(const tide_run_options *o) {
    if (!o->device || !o->program || !o->machine || (!o->plan && (!o->online || !o->op)))
        return tide__fail(
            TIDE_E_ARGUMENT,
            "a run needs a device, a program, a machine, and a plan or an online policy with op closures");
    if (o->arena_bytes > o->budgets.arena_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "an arena of %llu bytes, the budget is %llu",
                          (unsigned long long)o->arena_bytes, (unsigned long long)o->budgets.arena_bytes);
    if (tide_program_message_count(o->program) > 0 && !o->plan)
        return tide__fail(TIDE_E_UNSUPPORTED, "a program with messages needs a plan");
    if (tide_program_message_count(o->program) > 0 && (!o->message || !o->op))
        return tide__fail(TIDE_E_ARGUMENT, "the program has messages, the run no function for them, or none for ops");
    for (tide_id t = 0; t < tide_program_tensor_count(o->program) && !o->input; t++)
        if (tide_program_tensor(o->program, t)->start == TIDE_START_CLIENT)
            return tide__fail(TIDE_E_ARGUMENT, "the program has inputs, the run no input function");
    return TIDE_OK;
}

tide_status tide_run_budgets(const tide_device *device, const tide_machine *machine, tide_budgets *budgets) {
    TIDE_NEED(device, machine, budgets);
    tide_device_info info;
    uint32_t ram = tide_machine_find_tier(machine, TIDE_TIER_RAM);
    TIDE_TRY(tide_device_get_info(device, &info));
    if (!info.staging_bytes || ram == TIDE_NONE || budgets->tier_bytes[ram] == UINT64_MAX) return TIDE_OK;
    if (budgets->tier_bytes[ram] < info.staging_bytes)
        return tide__fail(TIDE_E_TIER_FULL,
                          "a budget of %llu bytes (%.1f MiB) of the host's memory is less than the %.1f MiB of pinned "
                          "memory that copies of device %s go through",
                          (unsigned long long)budgets->tier_bytes[ram], (double)budgets->tier_bytes[ram] / 0x1p20,
                          (double)info.staging_bytes / 0x1p20, info.name);
    budgets->tier_bytes[ram] -= info.staging_bytes;
    return TIDE_OK;
}

/* From here on the run's budgets are without the device's share. */
static tide_status settle_budgets(tide_run *run) {
    tide_run_options *o = &run->options;
    tide_device_info info;
    TIDE_TRY(tide_device_get_info(o->device, &info));
    run->staging_bytes = info.staging_bytes;
    TIDE_TRY(tide_run_budgets(o->device, o->machine, &o->budgets));
    return o->plan ? tide_plan_verify(o->plan, o->program, o->machine, &o->budgets, NULL) : TIDE_OK;
}

tide_status tide__run_open_tier(tide_run *run, uint32_t t, uint64_t size_bytes) {
    const tide_run_options *o = &run->options;
    const tide__tier_options options = {.kind = o->machine->tier[t].kind,
                                        .capacity_bytes = size_bytes,
                                        .block_bytes = o->machine->tier[t].block_bytes,
                                        .path = o->disk_path,
                                        .checksums = o->disk_checksums,
                                        .packs = o->disk_packing,
                                        .loan = o->loan};
    return tide__tier_open(&options, &run->tier[t]);
}

uint64_t tide__run_tier_bytes(const tide_run *run, uint32_t t) {
    return run->tier[t] ? tide__tier_get_stats(run->tier[t]).capacity_bytes : 0;
}

static tide_status open_memory(tide_run *run) {
    const tide_run_options *o = &run->options;
    run->arena_bytes = tide__max_u64(tide_plan_arena_bytes(o->plan), 1);
    if (!o->host) run->arena_bytes = tide__max_u64(run->arena_bytes, o->arena_bytes);
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

static tide_status prepare_online(tide_run *run) {
    if (run->options.host) return tide__fail(TIDE_E_UNSUPPORTED, "an online run needs an arena of its own");
    run->n_queues = 1 + run->options.machine->n_channels;
    TIDE_TRY(tide__run_read_carries(run));
    TIDE_TRY(open_queues(run));
    return tide__run_online_open(run);
}

static tide_status prepare(tide_run *run) {
    TIDE_TRY(settle_budgets(run));
    if (!run->options.plan) return prepare_online(run);
    run->n_queues = 1 + run->options.machine->n_channels;
    TIDE_TRY(tide__run_read_carries(run));
    TIDE_TRY(open_memory(run));
    TIDE_TRY(open_queues(run));
    return tide__run_prepare_plan(run);
}

tide_status tide_run_create(const tide_run_options *options, tide_run **out) {
    tide_run_options taken;
    tide_run_options_init(&taken);
    if (!out) return tide__fail(TIDE_E_ARGUMENT, "a run needs a place for its handle");
    TIDE_TRY(tide__options_take("tide_run_options", options, sizeof taken, &taken));
    TIDE_TRY(check_options(&taken));
    return tide__run_create(&taken, false, out);
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
    tide__run_forget_plan(run);
    tide__run_online_close(run);
    tide_event_destroy(run->begin);
    tide_event_destroy(run->end);
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) tide__tier_destroy(run->tier[t]);
    if (run->host)
        tide__run_leave(run);
    else
        tide_arena_destroy(run->arena);
    tide__vec_free(&run->parked);
    tide__vec_free(&run->watches);
    tide__store_free(&run->calls);
    free(run->carried_from);
    free(run);
}

/* ---- stepping ---- */

/* The compute queue ends after all others, so that begin to end spans the whole step. */
static tide_status close_step(tide_run *run) {
    for (uint32_t q = 1; q < run->n_queues; q++) {
        TIDE_TRY(tide_event_record(run->drained[q], run->queue[q]));
        TIDE_TRY(tide_event_wait(run->drained[q], run->queue[0]));
    }
    TIDE_TRY(tide_event_record(run->end, run->queue[0]));
    return tide__run_enqueue_watches(run);
}

tide_status tide__run_sync(tide_run *run, tide_status status) {
    for (uint32_t q = 0; q < run->n_queues; q++) {
        if (status == TIDE_OK)
            status = tide_queue_sync(run->queue[q]);
        else
            (void)tide_queue_sync(run->queue[q]);
    }
    return status;
}

/* What moved to and from disk in all, and the memory that packing took. */
static tide__tier_stats disk_traffic(const tide_run *run) {
    tide__tier_stats all = {0};
    for (uint32_t t = 0; t < run->options.machine->n_tiers; t++) {
        if (!run->tier[t]) continue;
        tide__tier_stats one = tide__tier_get_stats(run->tier[t]);
        all.written_bytes += one.written_bytes;
        all.read_bytes += one.read_bytes;
        all.staging_bytes += one.staging_bytes;
    }
    return all;
}

void tide__run_mark_traffic(tide_run *run) { run->traffic = disk_traffic(run); }

void tide__run_report_traffic(tide_run *run, tide_step_report *report) {
    tide__tier_stats now = disk_traffic(run);
    report->disk_written_bytes = run->late.written_bytes + now.written_bytes - run->traffic.written_bytes;
    report->disk_read_bytes = run->late.read_bytes + now.read_bytes - run->traffic.read_bytes;
    report->staging_bytes = run->staging_bytes + now.staging_bytes;
    run->traffic = now;
    run->late = (tide__tier_stats){0};
}

/* What was still on its way after the last report belongs to the next. */
static void keep_late_traffic(tide_run *run) {
    tide__tier_stats now = disk_traffic(run);
    run->late.written_bytes += now.written_bytes - run->traffic.written_bytes;
    run->late.read_bytes += now.read_bytes - run->traffic.read_bytes;
}

tide_status tide__run_begin_step(tide_run *run) {
    if (!run->unsettled) tide__run_mark_traffic(run); /* else what was on its way counts from the last report on */
    return tide_event_record(run->begin, run->queue[0]);
}

tide_status tide__run_end_step(tide_run *run, tide_status status) {
    if (status == TIDE_OK) status = close_step(run);
    status = tide__run_sync(run, status);
    tide__store_free(&run->calls);
    return status;
}

/* Only compute, and queues that nothing proves otherwise, are waited for. A queue that flows has had its part in what was
 * computed, so its transfers of the step before are complete. */
static tide_status await_flowing(tide_run *run) {
    TIDE_TRY(tide_queue_sync(run->queue[0]));
    for (uint32_t q = 1; q < run->n_queues; q++)
        TIDE_TRY(run->flows[q] ? tide_queue_check(run->queue[q]) : tide_queue_sync(run->queue[q]));
    return TIDE_OK;
}

static tide_status end_flowing(tide_run *run, tide_status status) {
    if (status == TIDE_OK) status = tide_event_record(run->end, run->queue[0]);
    if (status == TIDE_OK) status = tide__run_enqueue_watches(run);
    if (status == TIDE_OK) status = await_flowing(run);
    run->unsettled = status == TIDE_OK;
    if (status != TIDE_OK) status = tide__run_sync(run, status);
    tide__store_free(&run->calls);
    return status;
}

static tide_status step(tide_run *run, const tide_step_args *args) {
    bool flows = false;
    for (uint32_t q = 1; q < run->n_queues && !run->trace; q++) flows = flows || run->flows[q];
    tide_status status = tide__run_begin_step(run);
    if (status == TIDE_OK) status = tide__run_issue(run, args, 0, run->n_actions);
    run->unsettled = false;
    return flows ? end_flowing(run, status) : tide__run_end_step(run, status);
}

tide_status tide__run_report_step(tide_run *run, tide_step_report *report) {
    *report = (tide_step_report){.arena_bytes = run->arena_bytes,
                                 .saved_bytes = run->saved_bytes,
                                 .loaded_bytes = run->loaded_bytes,
                                 .relocated_bytes = run->relocated_bytes,
                                 .n_actions = run->n_actions,
                                 .n_reruns = run->n_reruns};
    for (uint32_t t = 0; t < run->options.machine->n_tiers; t++) report->tier_bytes[t] = tide__run_tier_bytes(run, t);
    tide__run_report_traffic(run, report);
    return tide_event_elapsed(run->begin, run->end, &report->step_ns);
}

tide_status tide__run_fail_poisoned(const tide_run *run) {
    if (run->lost == TIDE_OK) return tide__fail(TIDE_E_POISONED, "an earlier step of this run failed half-way");
    return tide__fail(TIDE_E_POISONED, "an earlier guest of this run failed to leave: %s", run->lost_text);
}

static tide_status check_between_steps(const tide_run *run) {
    if (run->poisoned) return tide__run_fail_poisoned(run);
    return run->pulling ? tide__fail(TIDE_E_ARGUMENT, "a pulled step of this run has not come to its end") : TIDE_OK;
}

tide_status tide__run_check_rests(tide_run *run) {
    TIDE_TRY(check_between_steps(run));
    if (!run->unsettled) return TIDE_OK;
    run->unsettled = false;
    tide_status status = tide__run_sync(run, TIDE_OK);
    keep_late_traffic(run);
    run->poisoned = status != TIDE_OK;
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "the last step's transfers");
}

tide_status tide__run_check_steps(const tide_run *run) {
    if (!run->stepped || tide_program_is_repeating(run->options.program)) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "a one-shot program runs once");
}

tide_status tide_run_step(tide_run *run, const tide_step_args *args, tide_step_report *report) {
    TIDE_NEED(run, args);
    TIDE_TRY(run->trace ? tide__run_check_rests(run) : check_between_steps(run));
    if (run->guest) return tide__fail(TIDE_E_ARGUMENT, "a run cannot step while it has a guest");
    if (!run->options.op) return tide__fail(TIDE_E_ARGUMENT, "a run without op closures cannot step by itself");
    TIDE_TRY(tide__run_check_steps(run));
    tide_status status = run->online ? tide__run_online_step(run, args, report) : step(run, args);
    run->stepped |= status == TIDE_OK;
    if (status == TIDE_OK) status = tide__run_finish_watches(run);
    if (status != TIDE_OK) {
        run->poisoned = true;
        return tide__fail_in(status, "step %llu", (unsigned long long)args->step);
    }
    tide_step_report unread;
    return run->online ? TIDE_OK : tide__run_report_step(run, report ? report : &unread);
}
