/* See ease.h. */
#include "plan/order/ease.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

/* More ops are not moved at once. */
enum { MAX_MOVED = 96 };

typedef struct easing {
    const tide__order_graph *g;
    tide__order_walk walk;
    tide_id *order, *trial;
    uint32_t *position; /* per op, in order */
    bool *moves;        /* per op: it is among `moved` */
    tide_id moved[MAX_MOVED];
    uint32_t n_moved;
    tide__order_cost cost;
    uint64_t each; /* what measuring an order takes */
    uint64_t *work;
} easing;

static uint32_t make_position(const easing *e, tide_id tensor) {
    tide_id producer = tide_program_producer(e->g->program, tensor);
    return producer == TIDE_NONE ? TIDE_NONE : e->position[producer];
}

/* ---- which ops ---- */

static void forget(easing *e) {
    for (uint32_t i = 0; i < e->n_moved; i++) e->moves[e->moved[i]] = false;
    e->n_moved = 0;
}

static bool add(easing *e, tide_id op) {
    if (e->moves[op]) return true;
    if (e->n_moved == MAX_MOVED) return false;
    e->moves[op] = true;
    e->moved[e->n_moved++] = op;
    return true;
}

/* What they wait for, as far as it is behind the peak; what waits for them, as far as it is not. */
static bool close_set(easing *e, bool pulls) {
    const tide__id_lists *next = pulls ? &e->g->before : &e->g->after;
    for (uint32_t i = 0; i < e->n_moved; i++)
        for (uint32_t k = next->at[e->moved[i]]; k < next->at[e->moved[i] + 1]; k++) {
            uint32_t at = e->position[next->ids[k]];
            if (pulls ? at < e->cost.at : at > e->cost.at) continue;
            if (at == e->cost.at || !add(e, next->ids[k])) return false; /* the peak itself stays where it is */
        }
    return true;
}

/* All uses that are still to come. */
static bool choose_pulled(easing *e, tide_id tensor) {
    const tide__id_lists *readers = &e->g->readers;
    for (uint32_t k = readers->at[tensor]; k < readers->at[tensor + 1]; k++)
        if (e->position[readers->ids[k]] > e->cost.at && !add(e, readers->ids[k])) return false;
    return e->n_moved > 0 && close_set(e, true);
}

static bool choose_pushed(easing *e, tide_id tensor) {
    return add(e, tide_program_producer(e->g->program, tensor)) && close_set(e, false);
}

/* ---- where to ---- */

/* As far from the peak as what stays allows: the position in front of which they go. */
static uint32_t find_target(const easing *e, bool pulls) {
    const tide__id_lists *next = pulls ? &e->g->before : &e->g->after;
    uint32_t target = pulls ? 0 : e->g->n_ops;
    for (uint32_t i = 0; i < e->n_moved; i++)
        for (uint32_t k = next->at[e->moved[i]]; k < next->at[e->moved[i] + 1]; k++) {
            uint32_t at = e->position[next->ids[k]];
            if (e->moves[next->ids[k]]) continue;
            if (pulls && at + 1 > target) target = at + 1;
            if (!pulls && at < target) target = at;
        }
    return target;
}

/* In their own order, in front of what stands at `target`. */
static void write_trial(easing *e, uint32_t target) {
    uint32_t n = 0, n_ops = e->g->n_ops;
    for (uint32_t i = 0; i < target; i++)
        if (!e->moves[e->order[i]]) e->trial[n++] = e->order[i];
    for (uint32_t i = 0; i < n_ops; i++)
        if (e->moves[e->order[i]]) e->trial[n++] = e->order[i];
    for (uint32_t i = target; i < n_ops; i++)
        if (!e->moves[e->order[i]]) e->trial[n++] = e->order[i];
}

static void adopt(easing *e, const tide__order_cost *cost) {
    memcpy(e->order, e->trial, e->g->n_ops * sizeof *e->order);
    for (uint32_t i = 0; i < e->g->n_ops; i++) e->position[e->order[i]] = i;
    e->cost = *cost;
}

static bool is_spent(const easing *e) { return *e->work < e->each; }

static bool try_target(easing *e, uint32_t target) {
    if (is_spent(e)) return false;
    *e->work -= e->each;
    write_trial(e, target);
    tide__order_cost cost = tide__order_measure(&e->walk, e->trial);
    if (!tide__order_is_better(&cost, &e->cost)) return false;
    adopt(e, &cost);
    return true;
}

/* Far from the peak, or right beside it. */
static bool try_move(easing *e, tide_id tensor, bool pulls) {
    bool better = false;
    if (pulls ? choose_pulled(e, tensor) : choose_pushed(e, tensor)) {
        uint32_t far = find_target(e, pulls), near = pulls ? e->cost.at : e->cost.at + 1;
        better = try_target(e, far) || (far != near && try_target(e, near));
    }
    forget(e);
    return better;
}

/* ---- the search ---- */

/* It is there at the peak, and the op there does not use it. */
static bool is_idle(const easing *e, tide_id tensor) {
    const tide__id_lists *readers = &e->g->readers;
    uint32_t at = e->cost.at, made = make_position(e, tensor);
    bool later = tide_program_tensor(e->g->program, tensor)->keep;
    if (made == at ||
        (made == TIDE_NONE ? tide_program_tensor(e->g->program, tensor)->start != TIDE_START_PRESENT : made > at))
        return false;
    for (uint32_t k = readers->at[tensor]; k < readers->at[tensor + 1]; k++) {
        if (e->position[readers->ids[k]] == at) return false;
        later = later || e->position[readers->ids[k]] > at;
    }
    return later && e->g->bytes[tensor] > 0;
}

typedef struct idle {
    uint64_t bytes;
    tide_id tensor;
} idle;

static int by_bytes(const void *a, const void *b) {
    const idle *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static size_t list_idle(const easing *e, idle *list) {
    size_t n = 0;
    for (tide_id t = 0; t < e->g->n_tensors; t++)
        if (is_idle(e, t)) list[n++] = (idle){e->g->bytes[t], t};
    qsort(list, n, sizeof *list, by_bytes);
    return n;
}

/* The largest first; *moved: something was. Where the peak is another one afterwards, the rest of the list is out of date. */
static void ease_peak(easing *e, idle *list, bool *moved) {
    size_t n = list_idle(e, list);
    *moved = false;
    for (size_t i = 0; i < n && !is_spent(e); i++) {
        tide_id t = list[i].tensor;
        if (*moved && !is_idle(e, t)) continue;
        bool keep = tide_program_tensor(e->g->program, t)->keep;
        bool made = tide_program_producer(e->g->program, t) != TIDE_NONE;
        if ((!keep && try_move(e, t, true)) || (made && try_move(e, t, false))) *moved = true;
    }
}

static uint64_t sum_operands(const tide__order_graph *g) {
    uint64_t sum = g->n_tensors;
    for (tide_id o = 0; o < g->n_ops; o++) {
        const tide_op *op = tide_program_op(g->program, o);
        sum += UINT64_C(4) + op->n_reads + op->n_writes;
    }
    return sum;
}

static void search(easing *e, idle *list) {
    bool moved = true;
    for (uint32_t i = 0; i < e->g->n_ops; i++) e->position[e->order[i]] = i;
    e->each = sum_operands(e->g);
    e->cost = tide__order_measure(&e->walk, e->order);
    while (moved && !is_spent(e)) ease_peak(e, list, &moved);
}

tide_status tide__order_ease(const tide__order_graph *g, uint64_t *work, tide_id *order) {
    easing e = {.g = g, .order = order, .work = work};
    size_t n = g->n_ops + (size_t)1;
    TIDE_TRY(tide__order_walk_init(g, &e.walk));
    e.trial = malloc(n * sizeof *e.trial);
    e.position = malloc(n * sizeof *e.position);
    e.moves = calloc(n, sizeof *e.moves);
    idle *list = malloc((g->n_tensors + (size_t)1) * sizeof *list);
    tide_status status = e.trial && e.position && e.moves && list ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) search(&e, list);
    tide__order_walk_deinit(&e.walk);
    free(e.trial);
    free(e.position);
    free(e.moves);
    free(list);
    return status;
}
