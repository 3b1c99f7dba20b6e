/* See order.h. */
#include "plan/order/order.h"

#include <stdlib.h>
#include <string.h>

#include "plan/order/ease.h"
#include "plan/order/lists.h"
#include "program/program_data.h"

void tide__order_destroy(tide__order *o) {
    while (o) {
        tide__order *next = o->next;
        tide_program_destroy(o->program);
        free(o->ops);
        free(o);
        o = next;
    }
}

/* ---- finding them ---- */

/* Looks at operands, for each of the orders that are eased. */
enum { EASE_WORK = 20 * 1000 * 1000 };
/* Less than this part of the peak is not worth another order. */
enum { WORTH_PART = 100 };

typedef struct finding {
    tide__order_graph graph;
    tide__order_walk walk;
    tide_id *best, *eager, *trial;
    tide__order_cost cost; /* of the best */
    uint64_t own_bytes;    /* the peak of the program's */
} finding;

static size_t order_bytes(const finding *f) { return f->graph.n_ops * sizeof(tide_id); }

static bool is_worth(const finding *f, uint64_t peak_bytes) {
    return peak_bytes < f->own_bytes && f->own_bytes - peak_bytes > f->own_bytes / WORTH_PART;
}

static void list_program(const finding *f, tide_id *order) {
    for (tide_id o = 0; o < f->graph.n_ops; o++) order[o] = o;
}

/* The trial is the best from now on, if it is. */
static void compare(finding *f) {
    tide__order_cost cost = tide__order_measure(&f->walk, f->trial);
    if (!tide__order_is_better(&cost, &f->cost)) return;
    f->cost = cost;
    memcpy(f->best, f->trial, order_bytes(f));
}

static tide_status ease(finding *f) {
    uint64_t work = EASE_WORK;
    TIDE_TRY(tide__order_ease(&f->graph, &work, f->trial));
    compare(f);
    return TIDE_OK;
}

/* From each of several beginnings. */
static tide_status find(finding *f) {
    list_program(f, f->best);
    f->cost = tide__order_measure(&f->walk, f->best);
    f->own_bytes = f->cost.peak_bytes;
    TIDE_TRY(tide__order_eager(&f->graph, f->trial));
    TIDE_TRY(ease(f));
    memcpy(f->eager, f->trial, order_bytes(f));
    TIDE_TRY(tide__order_gathered(&f->graph, f->trial));
    TIDE_TRY(ease(f));
    TIDE_TRY(tide__order_on_demand(&f->graph, f->trial));
    TIDE_TRY(ease(f));
    list_program(f, f->trial);
    return ease(f);
}

/* In front of *list; takes the ops over. */
static tide_status add_order(const tide_program *program, tide_id **ops, tide__order **list) {
    tide__order *o = calloc(1, sizeof *o);
    if (!o) return tide__fail_memory();
    tide_status status = tide__program_reorder(program, *ops, &o->program);
    if (status != TIDE_OK) return tide__order_destroy(o), status;
    o->ops = *ops;
    o->next = *list;
    *ops = NULL;
    *list = o;
    return TIDE_OK;
}

static tide_status list_orders(finding *f, const tide_program *program, tide__order **list) {
    bool differs = memcmp(f->best, f->eager, order_bytes(f)) != 0;
    if (!is_worth(f, f->cost.peak_bytes)) return TIDE_OK;
    if (differs && is_worth(f, tide__order_measure(&f->walk, f->eager).peak_bytes))
        TIDE_TRY(add_order(program, &f->eager, list));
    return add_order(program, &f->best, list);
}

tide_status tide__order_find(const tide_program *program, tide__order **out) {
    finding f = {.cost = {0}};
    tide__order *list = NULL;
    size_t n = tide_program_op_count(program) + (size_t)1;
    TIDE_TRY(tide__order_graph_init(program, &f.graph));
    f.best = malloc(n * sizeof *f.best);
    f.eager = malloc(n * sizeof *f.eager);
    f.trial = malloc(n * sizeof *f.trial);
    tide_status status = f.best && f.eager && f.trial ? tide__order_walk_init(&f.graph, &f.walk) : tide__fail_memory();
    if (status == TIDE_OK) status = find(&f);
    if (status == TIDE_OK) status = list_orders(&f, program, &list);
    tide__order_walk_deinit(&f.walk);
    tide__order_graph_deinit(&f.graph);
    free(f.best);
    free(f.eager);
    free(f.trial);
    if (status == TIDE_OK)
        *out = list;
    else
        tide__order_destroy(list);
    return status;
}

/* ---- planning in them ---- */

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
    TIDE_TRY(tide__order_find(in->program, &plans->orders));
    for (const tide__order *o = plans->orders; o; o = o->next) {
        tide__policy_input other = *in;
        other.program = o->program;
        other.order = o;
        TIDE_TRY(policy->generate(&other, plans));
    }
    return TIDE_OK;
}
