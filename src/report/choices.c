/* See choices.h. A plan keeps what it does, not what was decided; but every absence shows between two residencies of a
 * tensor, and what ends it (a LOAD, a re-run) says which decision it was. */
#include "report/choices.h"

#include <stdlib.h>

#include "base/size.h"

typedef struct finder {
    tide_report *r;
    uint32_t *saves;        /* per copy: its SAVE; TIDE_NONE */
    uint32_t *leaving;      /* per residency: the last SAVE from it; TIDE_NONE */
    uint64_t *blamed;       /* per action: how long compute stood still for it */
    uint32_t *first, *last; /* per residency: the first and the last RUN that uses it; TIDE_NONE */
    uint32_t peak;          /* the first action of the op at the peak of liveness; TIDE_NONE */
} finder;

typedef struct place {
    tide_id tensor;
    uint32_t begin;
    tide_id id;
} place;

static int by_tensor(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->tensor != y->tensor) return x->tensor < y->tensor ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_away(const finder *f, const tide_choice *c) {
    const tide_stay *stays = f->r->stays;
    if (f->peak == TIDE_NONE) return false;
    return (c->before == TIDE_NONE || stays[c->before].end <= f->peak) &&
           (c->after == TIDE_NONE || stays[c->after].begin > f->peak);
}

static uint64_t duration(const finder *f, uint32_t action) {
    const tide_timeline *t = f->r->timeline;
    return action == TIDE_NONE ? 0 : t->end_ns[action] - t->start_ns[action];
}

/* Times and costs from the actions at both ends. */
static tide_status add(finder *f, tide_choice c) {
    const tide_timeline *t = f->r->timeline;
    c.from_ns = c.before == TIDE_NONE ? 0 : f->r->stays[c.before].to_ns;
    c.to_ns = c.in == TIDE_NONE ? t->prediction.step_ns : t->start_ns[c.in];
    c.to_ns = tide__max_u64(c.from_ns, c.to_ns);
    c.cost_ns = duration(f, c.out) + duration(f, c.in);
    c.wait_ns = (c.out == TIDE_NONE ? 0 : f->blamed[c.out]) + (c.in == TIDE_NONE ? 0 : f->blamed[c.in]);
    c.at_peak = is_away(f, &c);
    c.last_run = c.before == TIDE_NONE ? TIDE_NONE : f->last[c.before];
    c.next_run = c.after == TIDE_NONE ? TIDE_NONE : f->first[c.after];
    return tide__vec_push(&f->r->choices, c);
}

/* What brought residency `after`, and so what was decided about the time before it. */
static tide_status add_arrival(finder *f, tide_id before, tide_id after) {
    const tide_residency *d = tide_plan_residency(f->r->plan, after);
    if (d->at_start || d->begin >= f->r->timeline->n_actions) return TIDE_OK;
    tide_action a = tide_plan_action(f->r->plan, d->begin);
    tide_choice c = {
        .tensor = d->tensor, .before = before, .after = after, .tier = TIDE_NONE, .out = TIDE_NONE, .in = d->begin};
    if (a.kind == TIDE_LOAD) {
        c.tier = tide_plan_copy(f->r->plan, a.copy)->tier;
        c.kind = f->r->machine->tier[c.tier].kind == TIDE_TIER_CLIENT ? TIDE_CHOICE_INPUT : TIDE_CHOICE_SWAP;
        c.out = f->saves[a.copy];
        return add(f, c);
    }
    c.kind = TIDE_CHOICE_RECOMPUTE;
    return before != TIDE_NONE && f->r->acts[d->begin].rerun ? add(f, c) : TIDE_OK;
}

/* Saved and not back before the step ends. */
static tide_status add_departure(finder *f, tide_id last) {
    uint32_t out = f->leaving[last];
    const tide_residency *d = tide_plan_residency(f->r->plan, last);
    if (out == TIDE_NONE || d->at_end) return TIDE_OK;
    const tide_copy *copy = tide_plan_copy(f->r->plan, tide_plan_action(f->r->plan, out).copy);
    if (!copy->at_end) return TIDE_OK;
    return add(f, (tide_choice){.kind = TIDE_CHOICE_SWAP,
                                .tensor = d->tensor,
                                .before = last,
                                .after = TIDE_NONE,
                                .tier = copy->tier,
                                .out = out,
                                .in = TIDE_NONE});
}

static tide_status walk(finder *f, const place *places, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || places[i - 1].tensor != places[i].tensor;
        bool last = i + 1 == n || places[i + 1].tensor != places[i].tensor;
        TIDE_TRY(add_arrival(f, first ? TIDE_NONE : places[i - 1].id, places[i].id));
        if (last) TIDE_TRY(add_departure(f, places[i].id));
    }
    return TIDE_OK;
}

static tide_status walk_tensors(finder *f) {
    uint32_t n = tide_plan_residency_count(f->r->plan);
    size_t count = 0;
    place *places = malloc(((size_t)n + 1) * sizeof *places);
    if (!places) return tide__fail_memory();
    for (uint32_t i = 0; i < n; i++) {
        const tide_residency *d = tide_plan_residency(f->r->plan, i);
        if (d->tensor != TIDE_NONE) places[count++] = (place){d->tensor, d->begin, i};
    }
    qsort(places, count, sizeof *places, by_tensor);
    tide_status status = walk(f, places, count);
    free(places);
    return status;
}

static void note_uses(finder *f, uint32_t i, const tide_action *a) {
    for (uint32_t k = 0; k < a->n_uses; k++) {
        bool makes = tide_plan_residency(f->r->plan, a->uses[k])->begin == i;
        f->last[a->uses[k]] = i;
        if (!makes && f->first[a->uses[k]] == TIDE_NONE) f->first[a->uses[k]] = i;
    }
}

static void scan_actions(finder *f) {
    for (uint32_t i = 0; i < f->r->timeline->n_actions; i++) {
        const tide__act *act = &f->r->acts[i];
        tide_action a = tide_plan_action(f->r->plan, i);
        if (act->cause != TIDE_NONE && a.queue == 0) f->blamed[act->cause] += act->wait_ns;
        if (a.kind == TIDE_RUN) note_uses(f, i, &a);
        if (a.kind != TIDE_SAVE) continue;
        f->saves[a.copy] = i;
        f->leaving[a.uses[0]] = i;
    }
    tide_id op = f->r->liveness->peak_op;
    f->peak = op == TIDE_NONE ? TIDE_NONE : f->r->first_run[op];
}

static void set_fates(tide_report *r) {
    static const tide_fate arriving[] = {TIDE_FATE_INPUT, TIDE_FATE_SWAP_IN, TIDE_FATE_RECOMPUTE};
    for (uint32_t i = 0; i < tide_plan_residency_count(r->plan); i++)
        r->stays[i].fate = tide_plan_residency(r->plan, i)->tensor == TIDE_NONE ? TIDE_FATE_WORKSPACE : TIDE_FATE_KEEP;
    for (size_t i = 0; i < r->choices.count; i++)
        if (r->choices.data[i].after != TIDE_NONE)
            r->stays[r->choices.data[i].after].fate = arriving[r->choices.data[i].kind];
    for (size_t i = 0; i < r->choices.count; i++) {
        const tide_choice *c = &r->choices.data[i];
        if (c->before == TIDE_NONE || c->kind == TIDE_CHOICE_INPUT) continue;
        r->stays[c->before].fate = c->kind == TIDE_CHOICE_SWAP ? TIDE_FATE_SWAP_OUT : TIDE_FATE_DROP;
    }
}

static uint32_t *all_none(size_t n) {
    uint32_t *list = malloc((n + 1) * sizeof *list);
    for (size_t i = 0; list && i < n; i++) list[i] = TIDE_NONE;
    return list;
}

tide_status tide__report_find_choices(tide_report *r) {
    finder f = {.r = r,
                .saves = all_none(tide_plan_copy_count(r->plan)),
                .leaving = all_none(tide_plan_residency_count(r->plan)),
                .first = all_none(tide_plan_residency_count(r->plan)),
                .last = all_none(tide_plan_residency_count(r->plan)),
                .blamed = calloc((size_t)r->timeline->n_actions + 1, sizeof *f.blamed)};
    tide_status status = f.saves && f.leaving && f.first && f.last && f.blamed ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        scan_actions(&f);
        status = walk_tensors(&f);
    }
    if (status == TIDE_OK) set_fates(r);
    free(f.saves);
    free(f.leaving);
    free(f.first);
    free(f.last);
    free(f.blamed);
    return status;
}
