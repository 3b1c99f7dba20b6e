/* See place_workspaces.h. Two walks in issue order, with the residencies of the moment sorted by their offsets: the first finds the
 * room that an op has in all its runs, which must be of one variant, the second takes it. */
#include "plan/place_workspaces.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/policies/workspaces.h"

typedef struct filler {
    const tide_program *program;
    tide_plan *plan;
    uint64_t capacity_bytes, align_bytes;
    size_t n_given;         /* residencies before any was added */
    tide_id *by_begin;      /* of those */
    tide_id *live;          /* of the action at hand, by offset; n_live of them */
    size_t n_begun, n_live; /* how many of by_begin have begun */
    uint64_t *room;         /* per op: the largest hole, in the tightest of its runs */
    TIDE_VEC(tide_id) uses; /* of all actions so far, as they become */
} filler;

_Static_assert(sizeof((filler *)0)->uses == sizeof((tide_plan *)0)->uses, "uses are handed over as they are");

/* ---- which residencies are there ---- */

static tide_status sort_by_begin(filler *f) {
    const tide_residency *r = f->plan->residencies.data;
    size_t n_actions = f->plan->actions.count;
    size_t *at = calloc(n_actions + 2, sizeof *at);
    if (!at) return tide__fail_memory();
    for (size_t i = 0; i < f->n_given; i++) at[r[i].begin + 1]++;
    for (size_t i = 1; i <= n_actions + 1; i++) at[i] += at[i - 1];
    for (size_t i = 0; i < f->n_given; i++) f->by_begin[at[r[i].begin]++] = (tide_id)i;
    free(at);
    return TIDE_OK;
}

static void remove_ended(filler *f, uint32_t action) {
    const tide_residency *r = f->plan->residencies.data;
    size_t n = 0;
    for (size_t i = 0; i < f->n_live; i++)
        if (r[f->live[i]].end > action) f->live[n++] = f->live[i];
    f->n_live = n;
}

static void add_begun(filler *f, uint32_t action) {
    const tide_residency *r = f->plan->residencies.data;
    for (; f->n_begun < f->n_given && r[f->by_begin[f->n_begun]].begin <= action; f->n_begun++) {
        tide_id id = f->by_begin[f->n_begun];
        if (r[id].end <= action) continue;
        size_t i = f->n_live++;
        for (; i > 0 && r[f->live[i - 1]].offset_bytes > r[id].offset_bytes; i--) f->live[i] = f->live[i - 1];
        f->live[i] = id;
    }
}

/* Actions between this one and the last that was walked to are passed over. */
static void walk_to(filler *f, uint32_t action) {
    remove_ended(f, action);
    add_begun(f, action);
}

/* ---- holes ---- */

typedef struct hole {
    uint64_t offset_bytes, size_bytes;
} hole;

/* The largest hole, `without` counting as one; an aligned beginning. */
static hole find_hole(const filler *f, tide_id without) {
    const tide_residency *r = f->plan->residencies.data;
    hole best = {0};
    uint64_t begin = 0;
    for (size_t i = 0; i <= f->n_live; i++) {
        bool last = i == f->n_live;
        if (!last && f->live[i] == without) continue;
        uint64_t end = last ? f->capacity_bytes : r[f->live[i]].offset_bytes;
        if (end > begin && end - begin > best.size_bytes) best = (hole){begin, end - begin};
        if (last) break;
        uint64_t next = end + r[f->live[i]].size_bytes;
        if (!tide__align_up(next, f->align_bytes, &next)) break;
        begin = tide__max_u64(begin, next);
    }
    return best;
}

/* ---- one run ---- */

static tide_status set_workspace(filler *f, uint32_t action, hole h, uint64_t bytes, tide_id own) {
    tide_residency *r;
    if (own == TIDE_NONE) {
        tide_residency added = {.tensor = TIDE_NONE, .begin = action, .end = action + 1};
        own = (tide_id)f->plan->residencies.count;
        TIDE_TRY(tide__vec_push(&f->plan->residencies, added));
        TIDE_TRY(tide__vec_push(&f->uses, own));
    }
    r = &f->plan->residencies.data[own];
    r->offset_bytes = h.offset_bytes;
    r->size_bytes = bytes;
    f->plan->arena_bytes = tide__max_u64(f->plan->arena_bytes, h.offset_bytes + bytes);
    return TIDE_OK;
}

/* The workspace that a run has so far; TIDE_NONE: none. */
static tide_id own_workspace(const filler *f, const tide__action *a) {
    const tide_op *op = tide_program_op(f->program, a->op);
    return op->variants[a->variant].workspace_bytes ? f->plan->uses.data[a->uses + a->n_uses - 1] : TIDE_NONE;
}

static void measure_run(filler *f, const tide__action *a) {
    hole h = find_hole(f, own_workspace(f, a));
    f->room[a->op] = tide__min_u64(f->room[a->op], h.size_bytes);
}

static tide_status fill_run(filler *f, uint32_t i) {
    tide__action *a = &f->plan->actions.data[i];
    const tide_op *op = tide_program_op(f->program, a->op);
    tide_id own = own_workspace(f, a);
    uint32_t variant = tide__workspaces_pick(op, f->plan->bits_any, f->room[a->op]);
    const tide_variant *v = &op->variants[variant], *had = &op->variants[a->variant];
    if (v->cost_ns >= had->cost_ns || v->workspace_bytes < had->workspace_bytes) return TIDE_OK;
    a->variant = variant;
    if (!v->workspace_bytes) return TIDE_OK;
    walk_to(f, i);
    return set_workspace(f, i, find_hole(f, own), v->workspace_bytes, own);
}

static bool has_choice(const filler *f, const tide__action *a) {
    return a->kind == TIDE_RUN && tide_program_op(f->program, a->op)->n_variants > 1;
}

static void begin_walk(filler *f) { f->n_begun = f->n_live = 0; }

/* The action's uses as they become; then they are no longer in the plan's own list. */
static tide_status fill_action(filler *f, uint32_t i) {
    tide__action *a = &f->plan->actions.data[i];
    size_t first = f->uses.count;
    TIDE_TRY(tide__vec_reserve(&f->uses, a->n_uses));
    if (a->n_uses) memcpy(&f->uses.data[first], &f->plan->uses.data[a->uses], a->n_uses * sizeof *f->uses.data);
    f->uses.count += a->n_uses;
    if (has_choice(f, a)) TIDE_TRY(fill_run(f, i));
    a->uses = first;
    a->n_uses = (uint32_t)(f->uses.count - first);
    return TIDE_OK;
}

/* ---- the whole ---- */

static tide_status fill(filler *f) {
    uint32_t n = (uint32_t)f->plan->actions.count;
    TIDE_TRY(sort_by_begin(f));
    begin_walk(f);
    for (uint32_t i = 0; i < n; i++) {
        if (!has_choice(f, &f->plan->actions.data[i])) continue;
        walk_to(f, i);
        measure_run(f, &f->plan->actions.data[i]);
    }
    begin_walk(f);
    for (uint32_t i = 0; i < n; i++) TIDE_TRY(fill_action(f, i));
    tide__vec_free(&f->plan->uses);
    memcpy(&f->plan->uses, &f->uses, sizeof f->uses);
    memset(&f->uses, 0, sizeof f->uses);
    return TIDE_OK;
}

/* ---- what it can win ---- */

/* Bytes of all residencies but workspaces, per action. */
static void sum_loads(const tide_plan *plan, uint64_t *loads) {
    for (size_t i = 0; i < plan->residencies.count; i++) {
        const tide_residency *r = &plan->residencies.data[i];
        if (r->tensor == TIDE_NONE) continue;
        loads[r->begin] += r->size_bytes;
        loads[r->end] -= r->size_bytes;
    }
    for (size_t i = 1; i < plan->actions.count; i++) loads[i] += loads[i - 1];
}

tide_status tide__place_least_runs(const tide_program *program, uint64_t capacity_bytes, const tide_plan *plan,
                                   uint64_t *least_ns) {
    uint64_t sum = 0;
    uint64_t *loads = calloc(plan->actions.count + 2, sizeof *loads);
    if (!loads) return tide__fail_memory();
    sum_loads(plan, loads);
    for (size_t i = 0; i < plan->actions.count; i++) {
        const tide__action *a = &plan->actions.data[i];
        if (a->kind != TIDE_RUN) continue;
        const tide_op *op = tide_program_op(program, a->op);
        uint64_t room = capacity_bytes - tide__min_u64(loads[i], capacity_bytes);
        uint32_t fastest = tide__workspaces_pick(op, plan->bits_any, room);
        uint64_t cost = op->variants[a->variant].cost_ns;
        sum = tide__add_capped(sum, tide__min_u64(cost, op->variants[fastest].cost_ns));
    }
    free(loads);
    *least_ns = sum;
    return TIDE_OK;
}

tide_status tide__place_workspaces(const tide_program *program, const tide_machine *machine, uint64_t capacity_bytes,
                                   tide_plan *plan) {
    filler f = {.program = program,
                .plan = plan,
                .capacity_bytes = capacity_bytes,
                .align_bytes = machine->align_bytes,
                .n_given = plan->residencies.count};
    uint32_t n_ops = tide_program_op_count(program);
    f.by_begin = malloc((f.n_given + 1) * sizeof *f.by_begin);
    f.live = malloc((f.n_given + 1) * sizeof *f.live);
    f.room = malloc((n_ops + (size_t)1) * sizeof *f.room);
    bool all = f.by_begin && f.live && f.room;
    for (tide_id o = 0; all && o < n_ops; o++) f.room[o] = UINT64_MAX;
    tide_status status = all ? fill(&f) : tide__fail_memory();
    free(f.by_begin);
    free(f.live);
    free(f.room);
    tide__vec_free(&f.uses);
    return status;
}
