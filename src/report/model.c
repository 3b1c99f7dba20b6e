/* The report's model: when things are there and who waits for whom. What the plan decided is in choices.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "report/report.h"
#include "report/choices.h"

/* ---- residencies ---- */

static void find_ends(tide__report *r) {
    const tide_timeline *t = r->timeline;
    for (uint32_t i = 0; i < t->n_actions; i++) {
        tide_action a = tide_plan_action(r->plan, i);
        for (uint32_t k = 0; k < a.n_uses; k++) {
            tide__stay *s = &r->stays[a.uses[k]];
            if (s->until != TIDE_NONE && t->end_ns[i] < s->to_ns) continue;
            s->until = i;
            s->to_ns = t->end_ns[i];
        }
    }
}

static void open_stays(tide__report *r) {
    const tide_timeline *t = r->timeline;
    uint32_t n = tide_plan_residency_count(r->plan);
    for (uint32_t i = 0; i < n; i++) {
        const tide_residency *d = tide_plan_residency(r->plan, i);
        uint64_t from = d->at_start || d->begin >= t->n_actions ? 0 : t->start_ns[d->begin];
        r->stays[i] =
            (tide__stay){.begin = d->begin, .end = d->end, .until = TIDE_NONE, .from_ns = from, .to_ns = from};
    }
    find_ends(r);
    for (uint32_t i = 0; i < n; i++) {
        if (r->stays[i].end < t->n_actions) continue;
        r->stays[i].until = TIDE_NONE;
        r->stays[i].to_ns = t->prediction.step_ns;
    }
}

static void make_way(tide__report *r, uint32_t i, tide_id residency) {
    r->stays[residency].end = i;
    r->stays[residency].to_ns = tide__max_u64(r->stays[residency].from_ns, r->timeline->start_ns[i]);
}

/* Two values in one place: the read makes room as the op starts. */
static void hand_over(tide__report *r, uint32_t i, const tide_action *a) {
    const tide_op *op = tide_program_op(r->program, a->op);
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        tide_id read = a->uses[op->inplace[k].read], write = a->uses[op->n_reads + op->inplace[k].write];
        const tide_residency *x = tide_plan_residency(r->plan, read), *y = tide_plan_residency(r->plan, write);
        if (x->end == i + 1 && x->offset_bytes == y->offset_bytes) make_way(r, i, read);
    }
}

/* The same where a value moves over bytes of its own. */
static void slide(tide__report *r, uint32_t i, const tide_action *a) {
    const tide_residency *x = tide_plan_residency(r->plan, a->uses[0]), *y = tide_plan_residency(r->plan, a->uses[1]);
    bool apart =
        x->offset_bytes + x->size_bytes <= y->offset_bytes || y->offset_bytes + y->size_bytes <= x->offset_bytes;
    if (x->end != i + 1 || apart) return;
    make_way(r, i, a->uses[0]);
}

/* ---- actions ---- */

static void find_wait(const tide__report *r, const tide_action *a, uint64_t ready_ns, uint32_t i, tide__act *out) {
    const tide_timeline *t = r->timeline;
    out->cause = TIDE_NONE;
    if (t->start_ns[i] <= ready_ns) return;
    out->wait_ns = t->start_ns[i] - ready_ns;
    for (uint32_t k = 0; k < a->n_waits; k++)
        if (out->cause == TIDE_NONE || t->end_ns[a->waits[k]] > t->end_ns[out->cause]) out->cause = a->waits[k];
}

static void walk_actions(tide__report *r) {
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

static void open_slots(tide__report *r) {
    const tide_timeline *t = r->timeline;
    for (uint32_t i = 0; i < t->n_actions; i++) {
        tide_action a = tide_plan_action(r->plan, i);
        if (a.copy == TIDE_NONE) continue;
        tide__slot *s = &r->slots[a.copy];
        if (a.kind == TIDE_SAVE && !tide_plan_copy(r->plan, a.copy)->at_start) s->from_ns = t->start_ns[i];
        s->to_ns = tide__max_u64(s->to_ns, t->end_ns[i]);
    }
    for (uint32_t i = 0; i < tide_plan_copy_count(r->plan); i++)
        if (tide_plan_copy(r->plan, i)->end >= t->n_actions) r->slots[i].to_ns = t->prediction.step_ns;
}

/* ---- peaks ---- */

static tide_status find_peaks(tide__report *r) {
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

static tide_status allocate(tide__report *r) {
    size_t n_ops = tide_program_op_count(r->program);
    r->stays = calloc((size_t)tide_plan_residency_count(r->plan) + 1, sizeof *r->stays);
    r->acts = calloc((size_t)tide_plan_action_count(r->plan) + 1, sizeof *r->acts);
    r->slots = calloc((size_t)tide_plan_copy_count(r->plan) + 1, sizeof *r->slots);
    r->first_run = malloc((n_ops + 1) * sizeof *r->first_run);
    if (!r->stays || !r->acts || !r->slots || !r->first_run) return tide__fail_memory();
    for (size_t i = 0; i < n_ops; i++) r->first_run[i] = TIDE_NONE;
    return TIDE_OK;
}

static tide_status derive(tide__report *r) {
    TIDE_TRY(tide_liveness_create(r->program, &r->liveness));
    TIDE_TRY(allocate(r));
    open_stays(r);
    walk_actions(r);
    open_slots(r);
    TIDE_TRY(find_peaks(r));
    return tide__report_find_choices(r);
}

static tide_status derive_ran(tide__report *r, const uint64_t *start_ns, const uint64_t *end_ns) {
    r->ran = malloc(sizeof *r->ran);
    if (!r->ran) return tide__fail_memory();
    *r->ran = (tide__report){.program = r->program,
                             .machine = r->machine,
                             .plan = r->plan,
                             .shapes = r->shapes,
                             .budget_bytes = r->budget_bytes,
                             .whole_bytes = r->whole_bytes,
                             .whole_ns = r->whole_ns,
                             .peak_action = TIDE_NONE};
    TIDE_TRY(tide_timeline_create(r->plan, r->program, r->machine, start_ns, end_ns, &r->ran->timeline));
    return derive(r->ran);
}

tide_status tide__report_init(const tide_program *program, const tide_machine *machine, const tide_plan *plan,
                              const tide__report_options *options, tide__report *out) {
    *out = (tide__report){.program = program,
                          .machine = machine,
                          .plan = plan,
                          .shapes = options->shapes,
                          .budget_bytes = options->budget_bytes,
                          .whole_bytes = options->whole_bytes,
                          .whole_ns = options->whole_ns,
                          .peak_action = TIDE_NONE};
    tide_status status = tide_plan_simulate(plan, program, machine, &out->timeline);
    if (status == TIDE_OK) status = derive(out);
    if (status == TIDE_OK && options->start_ns) status = derive_ran(out, options->start_ns, options->end_ns);
    if (status != TIDE_OK) tide__report_deinit(out);
    return status;
}

void tide__report_deinit(tide__report *r) {
    if (r->ran) tide__report_deinit(r->ran);
    free(r->ran);
    tide_timeline_destroy(r->timeline);
    tide_liveness_destroy(r->liveness);
    free(r->stays);
    free(r->acts);
    free(r->slots);
    free(r->first_run);
    tide__vec_free(&r->choices);
    tide__measured_free(&r->measured);
    tide__compared_free(&r->compared);
    *r = (tide__report){0};
}

/* ---- names ---- */

void tide__report_queue_name(const tide__report *r, uint32_t queue, char *text, size_t size) {
    if (queue == 0) {
        snprintf(text, size, "compute");
        return;
    }
    const tide_machine_channel *c = &r->machine->channel[queue - 1];
    snprintf(text, size, "%s %s", r->machine->tier[c->tier].name, c->out ? "out" : "in");
}

const char *tide__report_stay_name(const tide__report *r, tide_id residency) {
    const tide_residency *d = tide_plan_residency(r->plan, residency);
    if (d->tensor != TIDE_NONE) return tide_program_tensor(r->program, d->tensor)->name;
    if (d->begin >= r->timeline->n_actions) return "";
    tide_action a = tide_plan_action(r->plan, d->begin);
    return a.kind == TIDE_RUN ? tide_program_op(r->program, a.op)->name : "";
}

tide_class tide__report_stay_class(const tide__report *r, tide_id residency) {
    tide_id tensor = tide_plan_residency(r->plan, residency)->tensor;
    return tensor == TIDE_NONE ? TIDE_CLASS_WORKSPACE : tide_program_tensor(r->program, tensor)->cls;
}

const char *tide__class_name(tide_class cls) {
    static const char *const names[] = {
#define NAME(e, text) text,
        TIDE_CLASS_TABLE(NAME)
#undef NAME
    };
    return names[cls];
}

const char *tide__phase_name(tide_phase phase) {
    static const char *const names[] = {
#define NAME(e, text) text,
        TIDE_PHASE_TABLE(NAME)
#undef NAME
    };
    return names[phase];
}
