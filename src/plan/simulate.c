/* Simulate: a plan on a machine's virtual clock. Times, exposed waits, load curve, peak.
 *
 * A residency counts from the start of the action that makes it to the end of its last access; where a write takes
 * over the bytes of a read, from where that one ends, so that no byte counts twice. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/vclock.h"
#include "plan/plan_data.h"

typedef struct simulator {
    const tide_plan *plan;
    const tide_program *program;
    const tide_machine *machine;
    const uint64_t *start_ns, *end_ns; /* measured; NULL: to be simulated */
    tide_timeline *out;
    bool times_only; /* without the load curve and its peak */
} simulator;

/* ---- times ---- */

/* Both sides of a message move at once: what a rank waits for the other one is not known here. */
static uint64_t message_bytes(const tide_program *program, tide_id id) {
    const tide_op *op = tide_program_op(program, id);
    return tide_program_tensor(program, op->n_reads ? op->reads[0] : op->writes[0])->size_bytes;
}

static tide__vjob job_of(const simulator *s, const tide_action *a) {
    tide__vjob job = {.queue = a->queue, .waits = a->waits, .n_waits = a->n_waits};
    if (a->kind == TIDE_RUN && a->queue == 0) {
        job.fixed_ns = tide_program_op(s->program, a->op)->variants[a->variant].cost_ns;
        job.dragged = true;
        return job;
    }
    if (a->kind == TIDE_RELOCATE) {
        const tide_residency *from = tide_plan_residency(s->plan, a->uses[0]),
                             *to = tide_plan_residency(s->plan, a->uses[1]);
        job.fixed_ns = tide__relocate_ns(s->machine, from, to);
        job.dragged = true;
        return job;
    }
    const tide_machine_channel *channel = &s->machine->channel[a->queue - 1];
    job.fixed_ns = channel->latency_ns;
    job.work = a->kind == TIDE_RUN ? message_bytes(s->program, a->op) : s->plan->copies.data[a->copy].size_bytes;
    job.rate_per_s = channel->bytes_per_s;
    job.share = channel->share;
    job.drag_percent = channel->drag_percent;
    return job;
}

static tide_status run_clock(const simulator *s, tide__vclock *clock) {
    uint32_t id;
    for (uint32_t i = 0; i < s->out->n_actions; i++) {
        tide_action a = tide_plan_action(s->plan, i);
        tide__vjob job = job_of(s, &a);
        TIDE_TRY(tide__vclock_submit(clock, &job, &id));
    }
    TIDE_TRY(tide__vclock_run(clock));
    for (uint32_t i = 0; i < s->out->n_actions; i++) {
        s->out->start_ns[i] = tide__vclock_start(clock, i);
        s->out->end_ns[i] = tide__vclock_end(clock, i);
    }
    s->out->prediction.step_ns = tide__vclock_now(clock);
    return TIDE_OK;
}

static tide_status simulate_times(const simulator *s) {
    tide__vclock *clock;
    TIDE_TRY(tide__vclock_create(s->plan->n_queues, &clock));
    tide_status status = run_clock(s, clock);
    tide__vclock_destroy(clock);
    return status;
}

static tide_status copy_times(const simulator *s) {
    for (uint32_t i = 0; i < s->out->n_actions; i++) {
        if (s->end_ns[i] < s->start_ns[i]) return tide__fail(TIDE_E_ARGUMENT, "action %u ends before it begins", i);
        s->out->start_ns[i] = s->start_ns[i];
        s->out->end_ns[i] = s->end_ns[i];
        s->out->prediction.step_ns = tide__max_u64(s->out->prediction.step_ns, s->end_ns[i]);
    }
    return TIDE_OK;
}

static tide_status find_times(const simulator *s) { return s->start_ns ? copy_times(s) : simulate_times(s); }

static tide_status sum_up(const simulator *s) {
    tide_prediction *p = &s->out->prediction;
    bool *ran = calloc(tide_program_op_count(s->program) + 1, sizeof *ran);
    if (!ran) return tide__fail_memory();
    for (uint32_t i = 0; i < s->out->n_actions; i++) {
        const tide__action *a = &s->plan->actions.data[i];
        uint64_t ns = s->out->end_ns[i] - s->out->start_ns[i];
        if (a->kind == TIDE_RUN && a->queue != 0) {
            p->transfer_ns = tide__add_capped(p->transfer_ns, ns);
            p->moved_bytes = tide__add_capped(p->moved_bytes, message_bytes(s->program, a->op));
            continue;
        }
        if (a->kind == TIDE_RUN) {
            p->compute_ns = tide__add_capped(p->compute_ns, ns);
            p->recomputed_ns = tide__add_capped(p->recomputed_ns, ran[a->op] ? ns : 0);
            ran[a->op] = true;
            continue;
        }
        if (a->kind == TIDE_RELOCATE) {
            p->relocated_ns = tide__add_capped(p->relocated_ns, ns);
            p->relocated_bytes =
                tide__add_capped(p->relocated_bytes, s->plan->residencies.data[s->plan->uses.data[a->uses]].size_bytes);
            continue;
        }
        const tide_copy *c = &s->plan->copies.data[a->copy];
        p->transfer_ns = tide__add_capped(p->transfer_ns, ns);
        if (s->machine->tier[c->tier].kind != TIDE_TIER_CLIENT)
            p->moved_bytes = tide__add_capped(p->moved_bytes, c->size_bytes);
    }
    p->exposed_ns = p->step_ns - tide__min_u64(tide__add_capped(p->compute_ns, p->relocated_ns), p->step_ns);
    free(ran);
    return TIDE_OK;
}

/* ---- the load curve ---- */

/* A moment: an instant, and a place in issue order for what happens at the same instant. Action i starts at order
 * 2 i + 1 and ends at 2 i + 2, so that actions without duration leave their mark, too. */
typedef struct moment {
    uint64_t t_ns, order;
} moment;

static moment start_of(const tide_timeline *t, uint32_t i) { return (moment){t->start_ns[i], 2 * (uint64_t)i + 1}; }
static moment end_of(const tide_timeline *t, uint32_t i) { return (moment){t->end_ns[i], 2 * (uint64_t)i + 2}; }

static int compare_moments(moment a, moment b) {
    if (a.t_ns != b.t_ns) return a.t_ns < b.t_ns ? -1 : 1;
    return a.order < b.order ? -1 : a.order > b.order;
}

typedef struct change {
    moment at;
    uint64_t bytes;
    bool arrives;
} change;

/* Leaving first: bytes freed at a moment are there for whoever comes at it. */
static int by_time(const void *a, const void *b) {
    const change *x = a, *y = b;
    int order = compare_moments(x->at, y->at);
    return order ? order : (int)x->arrives - (int)y->arrives;
}

/* Per residency: when its bytes are first and last in use. */
typedef struct stretch {
    moment from, to;
} stretch;

/* From the start of what makes it to the end of its last access; what the plan holds to the end, to the end. */
static void measure_stretches(const simulator *s, stretch *stretches) {
    const tide_residency *all = s->plan->residencies.data;
    uint32_t n = s->out->n_actions;
    for (uint32_t i = 0; i < n; i++) {
        const tide__action *a = &s->plan->actions.data[i];
        for (uint32_t k = 0; k < a->n_uses; k++) {
            tide_id id = s->plan->uses.data[a->uses + k];
            if (!all[id].at_start && all[id].begin == i) stretches[id].from = start_of(s->out, i);
            if (compare_moments(end_of(s->out, i), stretches[id].to) > 0) stretches[id].to = end_of(s->out, i);
        }
    }
    for (size_t i = 0; i < s->plan->residencies.count; i++)
        if (all[i].end == n) stretches[i].to = (moment){s->out->prediction.step_ns, UINT64_MAX};
}

/* Bytes of a relocation that are the read's and the new residency's count once: the new one counts from where the read stops
 * counting, if they have any in common. */
static void slide(const simulator *s, uint32_t i, stretch *stretches) {
    const tide__action *a = &s->plan->actions.data[i];
    tide_id from = s->plan->uses.data[a->uses], to = s->plan->uses.data[a->uses + 1];
    const tide_residency *x = &s->plan->residencies.data[from], *y = &s->plan->residencies.data[to];
    if (x->end == i + 1 && tide__distance_bytes(x, y) < x->size_bytes) stretches[to].from = stretches[from].to;
}

/* What takes over the bytes of a read counts from where the read stops counting. */
static void hand_over(const simulator *s, uint32_t i, stretch *stretches) {
    const tide__action *a = &s->plan->actions.data[i];
    const tide_id *uses = s->plan->uses.data + a->uses;
    const tide_residency *all = s->plan->residencies.data;
    const tide_op *op = tide_program_op(s->program, a->op);
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        tide_id read = uses[op->inplace[k].read], write = uses[op->n_reads + op->inplace[k].write];
        if (all[read].end == i + 1 && all[read].offset_bytes == all[write].offset_bytes)
            stretches[write].from = stretches[read].to;
    }
}

/* Sorted changes -> points, one per instant. */
static void sum_changes(tide_timeline *out, const change *changes, size_t n) {
    uint64_t load = 0;
    for (size_t i = 0; i < n; i++) {
        load = changes[i].arrives ? load + changes[i].bytes : load - changes[i].bytes;
        out->prediction.peak_bytes = tide__max_u64(out->prediction.peak_bytes, load);
        bool last_of_instant = i + 1 == n || changes[i + 1].at.t_ns != changes[i].at.t_ns;
        if (!last_of_instant) continue;
        out->t_ns[out->n_points] = changes[i].at.t_ns;
        out->load_bytes[out->n_points++] = load;
    }
}

static tide_status draw_load(const simulator *s) {
    size_t n = s->plan->residencies.count, room = 2 * n + 1, count = 0;
    stretch *stretches = calloc(n + 1, sizeof *stretches);
    change *changes = malloc(room * sizeof *changes);
    s->out->t_ns = malloc(room * sizeof *s->out->t_ns);
    s->out->load_bytes = malloc(room * sizeof *s->out->load_bytes);
    tide_status status = TIDE_OK;
    if (!stretches || !changes || !s->out->t_ns || !s->out->load_bytes) {
        status = tide__fail_memory();
        goto done;
    }
    measure_stretches(s, stretches);
    for (uint32_t i = 0; i < s->out->n_actions; i++) {
        if (s->plan->actions.data[i].kind == TIDE_RUN) hand_over(s, i, stretches);
        if (s->plan->actions.data[i].kind == TIDE_RELOCATE) slide(s, i, stretches);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes = s->plan->residencies.data[i].size_bytes;
        if (bytes == 0 || compare_moments(stretches[i].to, stretches[i].from) <= 0) continue;
        changes[count++] = (change){.at = stretches[i].from, .bytes = bytes, .arrives = true};
        changes[count++] = (change){.at = stretches[i].to, .bytes = bytes};
    }
    qsort(changes, count, sizeof *changes, by_time);
    sum_changes(s->out, changes, count);
done:
    free(stretches);
    free(changes);
    return status;
}

/* ---- the whole ---- */

void tide_timeline_destroy(tide_timeline *t) {
    if (!t) return;
    free(t->start_ns);
    free(t->end_ns);
    free(t->t_ns);
    free(t->load_bytes);
    free(t);
}

/* What the simulation looks things up by; everything else of a plan that was never verified is only wrong. */
static bool is_known(const simulator *s, const tide__action *a) {
    if (a->kind == TIDE_RUN) {
        const tide_op *op = tide_program_op(s->program, a->op);
        if (!op || a->variant >= op->n_variants || a->n_uses < (uint64_t)op->n_reads + op->n_writes) return false;
        return op->message ? a->queue > 0 && a->queue < s->plan->n_queues : a->queue == 0;
    }
    if (a->kind == TIDE_RELOCATE) return a->queue == 0 && a->n_uses == 2;
    return a->queue > 0 && a->queue < s->plan->n_queues && a->copy < s->plan->copies.count &&
           s->plan->copies.data[a->copy].tier < s->machine->n_tiers;
}

static tide_status check_actions(const simulator *s) {
    for (uint32_t i = 0; i < s->plan->actions.count; i++)
        if (!is_known(s, &s->plan->actions.data[i]))
            return tide__fail(TIDE_E_PLAN, "action %u is nothing that this program and machine have", i);
    return TIDE_OK;
}

static tide_status check(const simulator *s) {
    if (s->plan->n_queues != 1 + s->machine->n_channels)
        return tide__fail(TIDE_E_ARGUMENT, "the plan has %u queues, machine \"%s\" has %u", s->plan->n_queues,
                          s->machine->name, 1 + s->machine->n_channels);
    tide_signature a = s->plan->signature, b = tide_program_signature(s->program);
    if (a.word[0] != b.word[0] || a.word[1] != b.word[1])
        return tide__fail(TIDE_E_ARGUMENT, "the plan is for another program");
    return check_actions(s);
}

static tide_status make_timeline(simulator *s, tide_timeline **out) {
    size_t n = s->plan->actions.count + 1;
    TIDE_TRY(check(s));
    s->out = calloc(1, sizeof *s->out);
    if (!s->out) return tide__fail_memory();
    s->out->n_actions = (uint32_t)s->plan->actions.count;
    s->out->start_ns = calloc(n, sizeof *s->out->start_ns);
    s->out->end_ns = calloc(n, sizeof *s->out->end_ns);
    tide_status status = s->out->start_ns && s->out->end_ns ? find_times(s) : tide__fail_memory();
    if (status == TIDE_OK) status = sum_up(s);
    if (status == TIDE_OK && !s->times_only) status = draw_load(s);
    if (status == TIDE_OK)
        *out = s->out;
    else
        tide_timeline_destroy(s->out);
    return status;
}

tide_status tide_plan_simulate(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                               tide_timeline **out) {
    TIDE_NEED(plan, program, machine, out);
    simulator s = {.plan = plan, .program = program, .machine = machine};
    return make_timeline(&s, out);
}

tide_status tide__plan_predict_times(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                     tide_prediction *out) {
    simulator s = {.plan = plan, .program = program, .machine = machine, .times_only = true};
    tide_timeline *timeline;
    TIDE_TRY(make_timeline(&s, &timeline));
    *out = timeline->prediction;
    tide_timeline_destroy(timeline);
    return TIDE_OK;
}

tide_status tide_timeline_create(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                 const uint64_t *start_ns, const uint64_t *end_ns, tide_timeline **out) {
    TIDE_NEED(plan, program, machine, start_ns, end_ns, out);
    simulator s = {.plan = plan, .program = program, .machine = machine, .start_ns = start_ns, .end_ns = end_ns};
    return make_timeline(&s, out);
}
