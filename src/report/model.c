/* The report's model: when things are there and who waits for whom. What the plan decided is in choices.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/size.h"
#include "report/report.h"
#include "report/choices.h"
#include "report/run_file.h"

/* ---- residencies ---- */

static void find_ends(tide_report *r) {
    const tide_timeline *t = r->timeline;
    for (uint32_t i = 0; i < t->n_actions; i++) {
        tide_action a = tide_plan_action(r->plan, i);
        for (uint32_t k = 0; k < a.n_uses; k++) {
            tide_stay *s = &r->stays[a.uses[k]];
            if (s->until != TIDE_NONE && t->end_ns[i] < s->to_ns) continue;
            s->until = i;
            s->to_ns = t->end_ns[i];
        }
    }
}

static void open_stays(tide_report *r) {
    const tide_timeline *t = r->timeline;
    uint32_t n = tide_plan_residency_count(r->plan);
    for (uint32_t i = 0; i < n; i++) {
        const tide_residency *d = tide_plan_residency(r->plan, i);
        uint64_t from = d->at_start || d->begin >= t->n_actions ? 0 : t->start_ns[d->begin];
        r->stays[i] = (tide_stay){.begin = d->begin, .end = d->end, .until = TIDE_NONE, .from_ns = from, .to_ns = from};
    }
    find_ends(r);
    for (uint32_t i = 0; i < n; i++) {
        if (r->stays[i].end < t->n_actions) continue;
        r->stays[i].until = TIDE_NONE;
        r->stays[i].to_ns = t->prediction.step_ns;
    }
}

static void make_way(tide_report *r, uint32_t i, tide_id residency) {
    r->stays[residency].end = i;
    r->stays[residency].to_ns = tide__max_u64(r->stays[residency].from_ns, r->timeline->start_ns[i]);
}

/* Two values in one place: the read makes room as the op starts. */
static void hand_over(tide_report *r, uint32_t i, const tide_action *a) {
    const tide_op *op = tide_program_op(r->program, a->op);
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        tide_id read = a->uses[op->inplace[k].read], write = a->uses[op->n_reads + op->inplace[k].write];
        const tide_residency *x = tide_plan_residency(r->plan, read), *y = tide_plan_residency(r->plan, write);
        if (x->end == i + 1 && x->offset_bytes == y->offset_bytes) make_way(r, i, read);
    }
}

/* The same where a value moves over bytes of its own. */
static void slide(tide_report *r, uint32_t i, const tide_action *a) {
    const tide_residency *x = tide_plan_residency(r->plan, a->uses[0]), *y = tide_plan_residency(r->plan, a->uses[1]);
    bool apart =
        x->offset_bytes + x->size_bytes <= y->offset_bytes || y->offset_bytes + y->size_bytes <= x->offset_bytes;
    if (x->end != i + 1 || apart) return;
    make_way(r, i, a->uses[0]);
}

/* ---- actions ---- */

static void find_wait(const tide_report *r, const tide_action *a, uint64_t ready_ns, uint32_t i, tide__act *out) {
    const tide_timeline *t = r->timeline;
    out->cause = TIDE_NONE;
    if (t->start_ns[i] <= ready_ns) return;
    out->wait_ns = t->start_ns[i] - ready_ns;
    for (uint32_t k = 0; k < a->n_waits; k++)
        if (out->cause == TIDE_NONE || t->end_ns[a->waits[k]] > t->end_ns[out->cause]) out->cause = a->waits[k];
}

static void walk_actions(tide_report *r) {
    uint64_t ready_ns[1 + TIDE_MACHINE_MAX_CHANNELS] = {0};
    for (uint32_t i = 0; i < r->timeline->n_actions; i++) {
        tide_action a = tide_plan_action(r->plan, i);
        find_wait(r, &a, ready_ns[a.queue], i, &r->acts[i]);
        ready_ns[a.queue] = r->timeline->end_ns[i];
        if (a.kind == TIDE_RELOCATE) slide(r, i, &a);
        if (a.kind != TIDE_RUN) continue;
        r->acts[i].rerun = r->first_run[a.op] != TIDE_NONE;
        if (!r->acts[i].rerun) r->first_run[a.op] = i;
        hand_over(r, i, &a);
    }
}

/* ---- copies ---- */

static void open_slots(tide_report *r) {
    const tide_timeline *t = r->timeline;
    for (uint32_t i = 0; i < t->n_actions; i++) {
        tide_action a = tide_plan_action(r->plan, i);
        if (a.copy == TIDE_NONE) continue;
        tide__report_slot *s = &r->slots[a.copy];
        if (a.kind == TIDE_SAVE && !tide_plan_copy(r->plan, a.copy)->at_start) s->from_ns = t->start_ns[i];
        s->to_ns = tide__max_u64(s->to_ns, t->end_ns[i]);
    }
    for (uint32_t i = 0; i < tide_plan_copy_count(r->plan); i++)
        if (tide_plan_copy(r->plan, i)->end >= t->n_actions) r->slots[i].to_ns = t->prediction.step_ns;
}

/* ---- peaks ---- */

static tide_status find_peaks(tide_report *r) {
    const tide_timeline *t = r->timeline;
    uint64_t *change = calloc((size_t)t->n_actions + 2, sizeof *change), load = 0, peak = 0; /* modulo 2^64 */
    if (!change) return tide__fail_memory();
    for (uint32_t i = 0; i < tide_plan_residency_count(r->plan); i++) {
        change[r->stays[i].begin] += tide_plan_residency(r->plan, i)->size_bytes;
        change[r->stays[i].end] -= tide_plan_residency(r->plan, i)->size_bytes;
    }
    for (uint32_t i = 0; i < t->n_actions; i++) {
        load += change[i];
        if (r->peak_action != TIDE_NONE && load <= peak) continue;
        peak = load;
        r->peak_action = i;
    }
    free(change);
    for (size_t i = 0, best = 0; i < t->n_points; i++) {
        if (i && t->load_bytes[i] <= t->load_bytes[best]) continue;
        best = i;
        r->peak_ns = t->t_ns[i];
    }
    return TIDE_OK;
}

/* ---- the whole ---- */

static tide_status allocate(tide_report *r) {
    size_t n_ops = tide_program_op_count(r->program);
    r->stays = calloc((size_t)tide_plan_residency_count(r->plan) + 1, sizeof *r->stays);
    r->acts = calloc((size_t)tide_plan_action_count(r->plan) + 1, sizeof *r->acts);
    r->slots = calloc((size_t)tide_plan_copy_count(r->plan) + 1, sizeof *r->slots);
    r->first_run = malloc((n_ops + 1) * sizeof *r->first_run);
    if (!r->stays || !r->acts || !r->slots || !r->first_run) return tide__fail_memory();
    for (size_t i = 0; i < n_ops; i++) r->first_run[i] = TIDE_NONE;
    return TIDE_OK;
}

static tide_status derive(tide_report *r) {
    TIDE_TRY(tide_liveness_create(r->program, &r->liveness));
    TIDE_TRY(allocate(r));
    open_stays(r);
    walk_actions(r);
    open_slots(r);
    TIDE_TRY(find_peaks(r));
    return tide__report_find_choices(r);
}

tide_status tide__report_ran(const tide_record *record, tide_report **out) {
    tide_report *ran = *out = malloc(sizeof *ran);
    if (!ran) return tide__fail_memory();
    *ran = (tide_report){.program = record->program,
                         .machine = &record->machine,
                         .plan = record->plan,
                         .shapes = record->shapes.data,
                         .budget_bytes = record->budget_bytes,
                         .peak_action = TIDE_NONE};
    TIDE_TRY(tide_timeline_create(ran->plan, ran->program, ran->machine, record->start_ns.data, record->end_ns.data,
                                  &ran->timeline));
    return derive(ran);
}

static tide_status derive_all(tide_report *r) {
    TIDE_TRY(tide_plan_simulate(r->plan, r->program, r->machine, &r->timeline));
    TIDE_TRY(derive(r));
    if (!r->record) return TIDE_OK;
    TIDE_TRY(tide__report_ran(r->record, &r->ran));
    return tide__report_find_ranks(r);
}

void tide_report_options_init(tide_report_options *options) {
    *options = (tide_report_options){.size = sizeof *options, .budget_bytes = UINT64_MAX};
}

static tide_status check_options(const tide_plan *plan, const tide_report_options *o) {
    if (o->record && o->record->start_ns.count != tide_plan_action_count(plan))
        return tide__fail(TIDE_E_ARGUMENT, "tide_report_options: the record is of another plan");
    return TIDE_OK;
}

tide_status tide_report_create(const tide_program *program, const tide_machine *machine, const tide_plan *plan,
                               const tide_report_options *options, tide_report **out) {
    tide_report_options taken;
    tide_report_options_init(&taken);
    if (!program || !plan || !out)
        return tide__fail(TIDE_E_ARGUMENT, "a report needs a program, a plan and a place for its handle");
    TIDE_TRY(tide_machine_validate(machine));
    TIDE_TRY(tide__options_take("tide_report_options", options, sizeof taken, &taken));
    options = &taken;
    TIDE_TRY(check_options(plan, options));
    tide_report *r = malloc(sizeof *r);
    if (!r) return tide__fail_memory();
    *r = (tide_report){.program = program,
                       .machine = machine,
                       .plan = plan,
                       .shapes = options->shapes || !options->record ? options->shapes : options->record->shapes.data,
                       .budget_bytes = options->budget_bytes,
                       .whole_bytes = options->whole_bytes,
                       .whole_ns = options->whole_ns,
                       .record = options->record,
                       .peak_action = TIDE_NONE};
    tide_status status = derive_all(r);
    if (status == TIDE_OK)
        *out = r;
    else
        tide_report_destroy(r);
    return status;
}

void tide_report_destroy(tide_report *r) {
    if (!r) return;
    for (size_t i = 1; i < r->ranks.count; i++) tide_report_destroy(r->ranks.data[i].ran);
    tide__vec_free(&r->ranks);
    tide__vec_free(&r->rank_acts);
    tide_report_destroy(r->ran);
    tide_timeline_destroy(r->timeline);
    tide_liveness_destroy(r->liveness);
    free(r->stays);
    free(r->acts);
    free(r->slots);
    free(r->first_run);
    tide__vec_free(&r->choices);
    tide__measured_free(&r->measured);
    tide__compared_free(&r->compared);
    free(r);
}

tide_status tide_report_add_measured(tide_report *r, const char *path) {
    TIDE_NEED(r, path);
    tide__measured read;
    TIDE_TRY(tide__measured_read(path, &read));
    tide__measured_free(&r->measured);
    r->measured = read;
    return TIDE_OK;
}

tide_status tide_report_add_compared(tide_report *r, const char *path) {
    TIDE_NEED(r, path);
    tide__compared read;
    TIDE_TRY(tide__compared_read(path, &read));
    tide__compared_free(&r->compared);
    r->compared = read;
    return TIDE_OK;
}

const tide__measured *tide__report_measured(const tide_report *r) {
    return r->measured.model[0] || !r->record ? &r->measured : &r->record->measured;
}

/* ---- reading ---- */

const tide_stay *tide_report_stays(const tide_report *r) { return r->stays; }

const tide_choice *tide_report_choices(const tide_report *r, size_t *n) {
    *n = r->choices.count;
    return r->choices.data;
}

const tide_timeline *tide_report_timeline(const tide_report *r) { return r->timeline; }
const tide_liveness *tide_report_liveness(const tide_report *r) { return r->liveness; }
uint32_t tide_report_peak_action(const tide_report *r) { return r->peak_action; }

uint32_t tide_report_first_run(const tide_report *r, tide_id op) {
    return op < tide_program_op_count(r->program) ? r->first_run[op] : TIDE_NONE;
}

/* ---- names ---- */

void tide__report_queue_name(const tide_report *r, uint32_t queue, char *text, size_t size) {
    if (queue == 0) {
        snprintf(text, size, "compute");
        return;
    }
    const tide_machine_channel *c = &r->machine->channel[queue - 1];
    snprintf(text, size, "%s %s", r->machine->tier[c->tier].name, c->out ? "out" : "in");
}

const char *tide_report_stay_name(const tide_report *r, tide_id residency) {
    const tide_residency *d = tide_plan_residency(r->plan, residency);
    if (d->tensor != TIDE_NONE) return tide_program_tensor(r->program, d->tensor)->name;
    if (d->begin >= r->timeline->n_actions) return "";
    tide_action a = tide_plan_action(r->plan, d->begin);
    return a.kind == TIDE_RUN ? tide_program_op(r->program, a.op)->name : "";
}

tide_class tide_report_stay_class(const tide_report *r, tide_id residency) {
    tide_id tensor = tide_plan_residency(r->plan, residency)->tensor;
    return tensor == TIDE_NONE ? TIDE_CLASS_WORKSPACE : tide_program_tensor(r->program, tensor)->cls;
}
