/* Mutations of whole actions: drop, repeat or move them and keep the rest of the plan consistent. See mutations.h.
 *
 * A new list of actions, given by the old indices (left out, repeated, in another order): waits follow where they
 * still point backwards, and every interval becomes what the accesses now say. Only the order can be wrong. */
#include "support/mutations.h"

#include "support/mutations_pick.h"

typedef struct rebuilding {
    random_case *c;
    uint32_t *order; /* old indices */
    uint32_t n;
} rebuilding;

static rebuilding begin_rebuild(random_case *c) {
    rebuilding r = {c, malloc((c->plan->actions.count + 2) * sizeof *r.order), (uint32_t)c->plan->actions.count};
    assert_non_null(r.order);
    for (uint32_t i = 0; i < r.n; i++) r.order[i] = i;
    return r;
}

static void order_remove(rebuilding *r, uint32_t at) {
    memmove(r->order + at, r->order + at + 1, (r->n - at - 1) * sizeof *r->order);
    r->n--;
}

static void order_insert(rebuilding *r, uint32_t at, uint32_t old) {
    memmove(r->order + at + 1, r->order + at, (r->n - at) * sizeof *r->order);
    r->order[at] = old;
    r->n++;
}

/* Waits of the action, through `where` (per old index: the new one, or TIDE_NONE), ascending. */
static void remap_waits(tide_plan *plan, tide__action *a, uint32_t i, const uint32_t *where) {
    size_t first = plan->waits.count;
    assert_ok(tide__vec_reserve(&plan->waits, a->n_waits));
    for (uint32_t k = 0; k < a->n_waits; k++) {
        uint32_t wait = where[plan->waits.data[a->waits + k]];
        if (wait == TIDE_NONE || wait >= i) continue;
        size_t at = plan->waits.count++;
        for (; at > first && plan->waits.data[at - 1] > wait; at--) plan->waits.data[at] = plan->waits.data[at - 1];
        plan->waits.data[at] = wait;
    }
    a->waits = first;
    a->n_waits = (uint32_t)(plan->waits.count - first);
}

static void copy_uses(tide_plan *plan, tide__action *a) {
    size_t first = plan->uses.count;
    assert_ok(tide__vec_reserve(&plan->uses, a->n_uses));
    for (uint32_t k = 0; k < a->n_uses; k++) plan->uses.data[plan->uses.count++] = plan->uses.data[a->uses + k];
    a->uses = first;
}

static void stretch_interval(uint32_t *begin, uint32_t *end, uint32_t i) {
    if (*end == 0 && *begin == TIDE_NONE) *begin = i;
    *end = i + 1;
}

static void derive_intervals(tide_plan *plan) {
    uint32_t n = (uint32_t)plan->actions.count;
    for (size_t i = 0; i < plan->residencies.count; i++) {
        plan->residencies.data[i].begin = plan->residencies.data[i].at_start ? 0 : TIDE_NONE;
        plan->residencies.data[i].end = 0;
    }
    for (size_t i = 0; i < plan->copies.count; i++) {
        plan->copies.data[i].begin = plan->copies.data[i].at_start ? 0 : TIDE_NONE;
        plan->copies.data[i].end = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const tide__action *a = &plan->actions.data[i];
        for (uint32_t k = 0; k < a->n_uses; k++) {
            tide_residency *r = &plan->residencies.data[plan->uses.data[a->uses + k]];
            stretch_interval(&r->begin, &r->end, i);
        }
        if (a->copy != TIDE_NONE)
            stretch_interval(&plan->copies.data[a->copy].begin, &plan->copies.data[a->copy].end, i);
    }
    for (size_t i = 0; i < plan->residencies.count; i++)
        if (plan->residencies.data[i].at_end) plan->residencies.data[i].end = n;
    for (size_t i = 0; i < plan->copies.count; i++)
        if (plan->copies.data[i].at_end) plan->copies.data[i].end = n;
}

/* Residencies and copies that nothing mentions any more leave the tables. */
static void drop_unused(tide_plan *plan) {
    for (uint32_t i = 0; i < plan->residencies.count;) {
        tide_residency *r = &plan->residencies.data[i];
        uint32_t last = (uint32_t)plan->residencies.count - 1;
        if (r->at_start || r->at_end || r->begin != TIDE_NONE) {
            i++;
            continue;
        }
        *r = plan->residencies.data[last];
        for (size_t k = 0; k < plan->uses.count; k++)
            if (plan->uses.data[k] == last) plan->uses.data[k] = i;
        plan->residencies.count--;
    }
    for (uint32_t i = 0; i < plan->copies.count;) {
        tide_copy *c = &plan->copies.data[i];
        uint32_t last = (uint32_t)plan->copies.count - 1;
        if (c->at_start || c->at_end || c->begin != TIDE_NONE) {
            i++;
            continue;
        }
        *c = plan->copies.data[last];
        for (size_t k = 0; k < plan->actions.count; k++)
            if (plan->actions.data[k].copy == last) plan->actions.data[k].copy = i;
        plan->copies.count--;
    }
}

static void end_rebuild(rebuilding *r) {
    tide_plan *plan = r->c->plan;
    size_t n_old = plan->actions.count;
    uint32_t *where = malloc(n_old * sizeof *where);
    tide__action *actions = malloc((r->n + 1) * sizeof *actions);
    assert_true(where && actions);
    memset(where, 0xff, n_old * sizeof *where);
    for (uint32_t i = r->n; i-- > 0;) where[r->order[i]] = i;
    for (uint32_t i = 0; i < r->n; i++) {
        actions[i] = plan->actions.data[r->order[i]];
        remap_waits(plan, &actions[i], i, where);
        copy_uses(plan, &actions[i]);
    }
    free(plan->actions.data);
    plan->actions.data = actions;
    plan->actions.count = r->n;
    plan->actions.capacity = r->n + 1;
    derive_intervals(plan);
    drop_unused(plan);
    free(where);
    free(r->order);
}

/* ---- the mutations ---- */
static bool drop_index(random_case *c, uint32_t i) {
    rebuilding r = begin_rebuild(c);
    order_remove(&r, i);
    end_rebuild(&r);
    return true;
}

static bool move_index(random_case *c, uint32_t from, uint32_t to) {
    rebuilding r = begin_rebuild(c);
    order_remove(&r, from);
    order_insert(&r, to, from);
    end_rebuild(&r);
    return from != to;
}

static bool drop_run(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RUN);
    return drop_index(c, index_of(c, a));
}

static bool drop_save(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_SAVE);
    return drop_index(c, index_of(c, a));
}

static bool drop_load(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_LOAD);
    return drop_index(c, index_of(c, a));
}

static bool drop_relocate(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RELOCATE);
    return drop_index(c, index_of(c, a));
}

static bool exchange_neighbours(random_case *c, uint64_t *random) {
    if (c->plan->actions.count < 2) return false;
    uint32_t i = pick(random, c->plan->actions.count - 1);
    return move_index(c, i, i + 1);
}

static bool move_action(random_case *c, uint64_t *random) {
    uint32_t n = (uint32_t)c->plan->actions.count;
    return n > 0 && move_index(c, pick(random, n), pick(random, n));
}

/* Two actions change places and nothing else follows. */
static bool exchange_blindly(random_case *c, uint64_t *random) {
    PICK_ACTION(a, true);
    PICK_ACTION(b, x != a);
    tide__action old = *a;
    *a = *b;
    *b = old;
    return true;
}

static bool load_before_save(random_case *c, uint64_t *random) {
    PICK_ACTION(load, x->kind == TIDE_LOAD && !c->plan->copies.data[x->copy].at_start);
    return move_index(c, index_of(c, load), c->plan->copies.data[load->copy].begin);
}

static bool repeat_action(random_case *c, uint64_t *random) {
    PICK_ACTION(a, true);
    uint32_t i = index_of(c, a);
    rebuilding r = begin_rebuild(c);
    order_insert(&r, i + 1, i);
    end_rebuild(&r);
    return true;
}

static bool shares_bytes(const random_case *c, const tide__action *a) {
    const tide_op *op = tide_program_op(c->program, a->op);
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        const tide_residency *read = &c->plan->residencies.data[c->plan->uses.data[a->uses + op->inplace[k].read]];
        if (op->inplace[k].must || read->end == index_of(c, a) + 1) return true;
    }
    return false;
}

/* Results of action i go to new bytes beyond the arena, which grows. */
static void write_beyond(random_case *c, uint32_t i) {
    tide_plan *plan = c->plan;
    uint32_t n_reads = tide_program_op(c->program, plan->actions.data[i].op)->n_reads;
    for (uint32_t k = n_reads; k < plan->actions.data[i].n_uses; k++) {
        tide_id *use = use_of(c, &plan->actions.data[i], k);
        tide_residency fresh = plan->residencies.data[*use];
        fresh.offset_bytes = (plan->arena_bytes + 63) / 64 * 64;
        fresh.at_end = false;
        plan->arena_bytes = fresh.offset_bytes + fresh.size_bytes;
        assert_ok(tide__vec_push(&plan->residencies, fresh));
        *use = (tide_id)plan->residencies.count - 1;
    }
    c->budgets.arena_bytes = UINT64_MAX;
    derive_intervals(plan);
}

/* A second run, right after the first, that is flawless but for what the op says of itself. */
static bool rerun(random_case *c, uint64_t *random, bool rerunnable) {
    PICK_ACTION(a, x->kind == TIDE_RUN && op_of(c, x)->rerunnable == rerunnable && !shares_bytes(c, x));
    uint32_t i = index_of(c, a);
    rebuilding r = begin_rebuild(c);
    order_insert(&r, i + 1, i);
    end_rebuild(&r);
    write_beyond(c, i + 1);
    return true;
}

static bool rerun_fixed(random_case *c, uint64_t *random) { return rerun(c, random, false); }
static bool rerun_once_more(random_case *c, uint64_t *random) { return rerun(c, random, true); }

/* A run at the end of the step, when its inputs may be gone. */
static bool rerun_late(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RUN && op_of(c, x)->rerunnable && !shares_bytes(c, x));
    uint32_t i = index_of(c, a), n = (uint32_t)c->plan->actions.count;
    rebuilding r = begin_rebuild(c);
    order_insert(&r, n, i);
    end_rebuild(&r);
    write_beyond(c, n);
    return true;
}

/* What must be updated in place goes to new bytes, with nobody in the way. */
static bool must_beyond(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RUN && op_of(c, x)->n_inplace > 0);
    for (uint32_t k = 0; k < op_of(c, a)->n_inplace; k++) {
        tide_residency *read = &c->plan->residencies.data[*use_of(c, a, op_of(c, a)->inplace[k].read)];
        if (op_of(c, a)->inplace[k].must && read->size_bytes > 0) {
            write_beyond(c, index_of(c, a));
            drop_unused(c->plan);
            return true;
        }
    }
    return false;
}

/* It has an order of its own and does not say so. Only the program's order would make that true. */
static bool deny_order(random_case *c, uint64_t *random) {
    (void)random;
    tide_id last = 0;
    bool differs = false;
    bool ran[64] = {false};
    if (!c->plan->reordered) return false;
    for (size_t i = 0; i < c->plan->actions.count; i++) {
        const tide__action *a = &c->plan->actions.data[i];
        if (a->kind != TIDE_RUN || a->op >= 64 || ran[a->op]) continue;
        ran[a->op] = true;
        differs = differs || a->op < last;
        last = a->op;
    }
    c->plan->reordered = false;
    return differs;
}

/* Two first runs change places in a plan that may have any order: what they need, or who needs them, is too late. */
static bool exchange_runs(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RUN && x != c->plan->actions.data + c->plan->actions.count - 1);
    uint32_t i = index_of(c, a), k = i + 1;
    while (k < c->plan->actions.count && c->plan->actions.data[k].kind != TIDE_RUN) k++;
    if (k == c->plan->actions.count) return false;
    rebuilding r = begin_rebuild(c);
    r.order[i] = k;
    r.order[k] = i;
    end_rebuild(&r);
    c->plan->reordered = true;
    return true;
}

/* Effects that are not in values, in the wrong order. */
static bool exchange_effects(random_case *c, uint64_t *random) {
    PICK_ACTION(a, x->kind == TIDE_RUN && !op_of(c, x)->rerunnable && op_of(c, x)->n_inplace == 0);
    uint32_t i = index_of(c, a), k = i + 1;
    const tide__action *all = c->plan->actions.data;
    while (k < c->plan->actions.count &&
           (all[k].kind != TIDE_RUN || op_of(c, &all[k])->rerunnable || op_of(c, &all[k])->n_inplace > 0))
        k++;
    if (k == c->plan->actions.count) return false;
    rebuilding r = begin_rebuild(c);
    order_remove(&r, i);
    order_insert(&r, k, i);
    end_rebuild(&r);
    c->plan->reordered = true;
    return true;
}

static const mutation table[] = {
    {"deny order", deny_order, 0, 0},
    {"exchange runs", exchange_runs, 60, 60},
    {"exchange effects", exchange_effects, 0, 90},
    {"drop run", drop_run, 10, 85},
    {"drop save", drop_save, 50, 80},
    {"drop load", drop_load, 10, 80},
    {"drop relocate", drop_relocate, 40, 50},
    {"exchange neighbours", exchange_neighbours, 40, 65},
    {"move action", move_action, 20, 75},
    {"exchange blindly", exchange_blindly, 5, 80},
    {"load before save", load_before_save, 0, 75},
    {"repeat action", repeat_action, 0, 35},
    {"rerun fixed", rerun_fixed, 0, 100},
    {"rerun once more", rerun_once_more, 99, 50},
    {"rerun late", rerun_late, 60, 80},
    {"must beyond", must_beyond, 0, 100},
};

const mutation *mutation_order_table(size_t *n) {
    *n = sizeof table / sizeof table[0];
    return table;
}
