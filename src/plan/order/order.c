/* See order.h. */
#include "plan/order/order.h"

#include <stdlib.h>
#include <string.h>

#include "plan/order/ease.h"
#include "plan/order/lists.h"
#include "program/program_data.h"

void tide__order_destroy(tide__order *o) {
    if (!o) return;
    tide_program_destroy(o->program);
    free(o->ops);
    free(o);
}

/* ---- finding one ---- */

/* Looks at operands, for each of the orders that are eased. */
enum { EASE_WORK = 20 * 1000 * 1000 };
/* Less than this part of the peak is not worth another order. */
enum { WORTH_PART = 100 };

typedef struct finding {
    tide__order_graph graph;
    tide__order_walk walk;
    tide_id *best, *trial;
    tide__order_cost cost; /* of the best */
} finding;

static void list_program(const finding *f, tide_id *order) {
    for (tide_id o = 0; o < f->graph.n_ops; o++) order[o] = o;
}

/* The trial is the best from now on, if it is. */
static void compare(finding *f) {
    tide__order_cost cost = tide__order_measure(&f->walk, f->trial);
    if (!tide__order_is_better(&cost, &f->cost)) return;
    f->cost = cost;
    memcpy(f->best, f->trial, f->graph.n_ops * sizeof *f->best);
}

static tide_status ease(finding *f) {
    uint64_t work = EASE_WORK;
    TIDE_TRY(tide__order_ease(&f->graph, &work, f->trial));
    compare(f);
    return TIDE_OK;
}

/* From each of several beginnings; *worth: the best is so much better than the program's. */
static tide_status find(finding *f, bool *worth) {
    list_program(f, f->best);
    f->cost = tide__order_measure(&f->walk, f->best);
    const tide__order_cost own = f->cost;
    TIDE_TRY(tide__order_eager(&f->graph, f->trial));
    TIDE_TRY(ease(f));
    TIDE_TRY(tide__order_gathered(&f->graph, f->trial));
    TIDE_TRY(ease(f));
    TIDE_TRY(tide__order_on_demand(&f->graph, f->trial));
    TIDE_TRY(ease(f));
    list_program(f, f->trial);
    TIDE_TRY(ease(f));
    *worth = own.peak_bytes - f->cost.peak_bytes > own.peak_bytes / WORTH_PART;
    return TIDE_OK;
}

/* Takes the ops over. */
static tide_status make_order(const tide_program *program, tide_id **ops, tide__order **out) {
    tide__order *o = calloc(1, sizeof *o);
    if (!o) return tide__fail_memory();
    tide_status status = tide__program_reorder(program, *ops, &o->program);
    if (status != TIDE_OK) return tide__order_destroy(o), status;
    o->ops = *ops;
    *ops = NULL;
    *out = o;
    return TIDE_OK;
}

tide_status tide__order_find(const tide_program *program, tide__order **out) {
    finding f = {.cost = {0}};
    bool worth = false;
    size_t n = tide_program_op_count(program) + (size_t)1;
    *out = NULL;
    TIDE_TRY(tide__order_graph_init(program, &f.graph));
    f.best = malloc(n * sizeof *f.best);
    f.trial = malloc(n * sizeof *f.trial);
    tide_status status = f.best && f.trial ? tide__order_walk_init(&f.graph, &f.walk) : tide__fail_memory();
    if (status == TIDE_OK) status = find(&f, &worth);
    if (status == TIDE_OK && worth) status = make_order(program, &f.best, out);
    tide__order_walk_deinit(&f.walk);
    tide__order_graph_deinit(&f.graph);
    free(f.best);
    free(f.trial);
    return status;
}

/* ---- planning in it ---- */

void tide__order_restore(const tide__order *o, const tide_program *original, tide_plan *plan) {
    plan->signature = tide_program_signature(original);
    plan->reordered = true;
    for (size_t i = 0; i < plan->actions.count; i++) {
        tide__action *a = &plan->actions.data[i];
        if (a->op != TIDE_NONE) a->op = o->ops[a->op];
    }
}

tide_status tide__order_generate(const tide__policy *policy, const tide__policy_input *in, tide__plans *plans) {
    TIDE_TRY(policy->generate(in, plans));
    if (in->options->order == TIDE_ORDER_PROGRAM) return TIDE_OK;
    tide__policy_input other = *in;
    TIDE_TRY(tide__order_find(in->program, &plans->order));
    if (!plans->order) return TIDE_OK;
    other.program = plans->order->program;
    other.order = plans->order;
    return policy->generate(&other, plans);
}
