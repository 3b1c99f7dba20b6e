/* What the files of the verifier share: verify.c (the list of calls), verify_shape.c (what can be said of one entry or
 * action alone), verify_walk.c (what depends on order), verify_ends.c (start map, end map, carries). */
#ifndef TIDE_PLAN_VERIFY_STATE_H
#define TIDE_PLAN_VERIFY_STATE_H

#include "plan/plan_data.h"
#include "plan/verify/verify_ranges.h"
#include "plan/verify/verify_rules.h"

/* A residency or a copy: a value that owns bytes of a space for a while. Residencies come first, in the plan's order,
 * then the copies; the rules are the same for both. */
typedef struct tide__holding {
    tide_id tensor; /* TIDE_NONE: workspace */
    uint32_t space; /* 0: the arena; 1 + t: tier t */
    uint64_t offset, size;
    uint32_t begin, end; /* issue indices, half-open */
    bool at_start, at_end;
    bool created;
    uint32_t creator; /* the action that created it; TIDE_NONE: it was there at the start */
    uint32_t partner; /* what its creator reads in its place: of an in-place pair, of a RELOCATE; else TIDE_NONE */
} tide__holding;

typedef struct tide__verifier {
    const tide_plan *plan;
    const tide_program *program;
    const tide_machine *machine;
    const tide_budgets *budgets; /* NULL: none */
    tide_verdict *verdict;

    uint32_t n_actions, n_queues, n_tensors, n_ops, n_residencies, n_holdings;
    tide__holding *holding;
    uint32_t *first_variant; /* per op: of its first run; TIDE_NONE: has not run yet */
    uint32_t next_op;        /* the op whose first run comes next; of a reordered plan: the first that has not run */
    tide_id last_fixed;    /* of a reordered plan: the last first run of an op that keeps its place; TIDE_NONE: none */
    bool all_fixed;        /* no op may run again: all keep their place */
    uint64_t next_message; /* numbers below are behind */

    /* Vector clocks. clock[i * n_queues + q] = 1 + the last action of queue q that is ordered before action i or is
     * i itself; 0: none is. touched[h * n_queues + q] = 1 + the last action of queue q that touched holding h. */
    uint32_t *clock, *touched;
    tide__verify_ranges space[1 + TIDE_MACHINE_MAX_TIERS];
} tide__verifier;

/* Fills the verdict; returns TIDE_E_PLAN. action: TIDE_NONE if it is not at one action. */
tide_status tide__broken(tide__verifier *v, tide__rule rule, uint32_t action, const char *format, ...)
    TIDE_PRINTF(4, 5);

/* `return` unless the condition holds, with the rule it stands for; needs the verifier as `v`. */
#define TIDE__DEMAND(condition, rule, action, ...)                                          \
    do {                                                                                    \
        if (!(condition)) return tide__broken(v, TIDE__RULE_##rule, (action), __VA_ARGS__); \
    } while (0)

/* Names for messages, cut to a length that fits: `tensor 3 "conv1.out"`, `residency 7 of tensor 3 "conv1.out"`. */
typedef struct tide__label {
    char text[96];
} tide__label;
tide__label tide__label_tensor(const tide__verifier *v, tide_id tensor);
tide__label tide__label_op(const tide__verifier *v, tide_id op);
tide__label tide__label_holding(const tide__verifier *v, uint32_t holding);

/* The residency that action i uses at this position of its list. */
static inline uint32_t tide__use(const tide__verifier *v, uint32_t i, uint32_t position) {
    return v->plan->uses.data[v->plan->actions.data[i].uses + position];
}

static inline bool tide__in_client_tier(const tide__verifier *v, const tide__holding *h) {
    return h->space > 0 && v->machine->tier[h->space - 1].kind == TIDE_TIER_CLIENT;
}

/* The parts of the proof, in this order: each relies on those before it. */
tide_status tide__verify_shape(tide__verifier *v);
tide_status tide__verify_start(tide__verifier *v);
tide_status tide__verify_walk(tide__verifier *v);
tide_status tide__verify_end(tide__verifier *v);

#endif
