/* Decisions: what a policy says, before anything is ordered or placed.
 *
 * Slot k is the moment just before op k of the program; slot n_ops is after the last op. Without any decision a
 * value is in the arena from the op that writes it (or the start) to its last use, every op runs once with its
 * default variant, and a CLIENT tensor is loaded just before its first use.
 *
 *   op        0        1        2        3        4        5
 *   slot    0 │      1 │      2 │      3 │      4 │      5 │      6
 *             x=...          (x unused)                    use x
 *                      SAVE x (save_slot 1)   LOAD x (load_slot 4)
 */
#ifndef TIDE_PLAN_DECIDE_DECIDE_H
#define TIDE_PLAN_DECIDE_DECIDE_H

#include <tidemark/plan.h>

#include "base/vec.h"

/* One absence of a tensor from the arena. With neither slot a PRESENT tensor is in the tier from start to end. SAVEs of
 * one slot go in the order of the decisions. A SAVE may stand before the last use: the bytes are free after both. */
typedef struct tide__swap {
    tide_id tensor;
    uint32_t tier;
    uint32_t save_slot;   /* TIDE_NONE: the tier has it already (start map, client tier, an earlier SAVE) */
    uint32_t load_slot;   /* TIDE_NONE: never back in this step (it stays in the tier to the end) */
    uint32_t needed_slot; /* LOADs of one slot go in this order, then in that of the decisions; 0: as good as any */
} tide__swap;

/* Re-run `op` just before the original `slot`; within a slot re-runs go by ascending op. The new instance of each
 * output lives to the last use before the next instance. */
typedef struct tide__rerun {
    uint32_t slot;
    tide_id op;
} tide__rerun;

/* One thing that happens in a slot, for those who say in which order: `index` is into swaps or reruns. */
typedef enum tide__step_kind { TIDE__STEP_SAVE, TIDE__STEP_LOAD, TIDE__STEP_RERUN } tide__step_kind;
typedef struct tide__step {
    uint32_t slot;
    tide__step_kind kind;
    uint32_t index;
} tide__step;

typedef struct tide__decisions {
    bool keep_everything; /* policy `none`: every value stays for the whole step, nothing is shared */
    TIDE_VEC(tide__swap) swaps;
    TIDE_VEC(tide__rerun) reruns;
    TIDE_VEC(uint32_t) variants; /* per op, or empty: all default */
    /* Empty, or every SAVE, LOAD and re-run once, in the order in which they are issued, by ascending slot. Re-runs may
     * then come in any order that finds its operands, also several times in one slot. */
    TIDE_VEC(tide__step) sequence;
} tide__decisions;

void tide__decisions_free(tide__decisions *d);
/* *to keeps its room. */
tide_status tide__decisions_copy(const tide__decisions *from, tide__decisions *to);

/* An order of ops that is not the program's (order/order.h). */
typedef struct tide__order tide__order;

/* What a policy decides on. */
typedef struct tide__policy_input {
    const tide_program *program;
    const tide__order *order; /* whose program that is; NULL: the one to be planned */
    const tide_machine *machine;
    const tide_plan_options *options;
    const char *argument; /* what follows the ':' of its name: "swdoa" of "autoswap:swdoa"; "" if nothing does */
    /* The load that its decisions should stay within: the arena's budget, or less where placement missed that.
     * UINT64_MAX: unconstrained. */
    uint64_t target_bytes;
    /* Likewise of each tier: what decisions have to stay below its budget by (decide/tiers.h). */
    uint64_t tier_missed_bytes[TIDE_MACHINE_MAX_TIERS];
} tide__policy_input;

/* A policy: program, machine, budgets -> decisions. One file each, one entry in the table of decide.c. One that
 * cannot reach the target gives the smallest load it can; the pipeline then says that it does not fit. */
typedef tide_status (*tide__policy_fn)(const tide__policy_input *in, tide__decisions *out);
/* A policy that looks for budgets of its own fills the pool of plans, from which every budget is answered. */
struct tide__plans;
typedef tide_status (*tide__generate_fn)(const tide__policy_input *in, struct tide__plans *plans);
typedef struct tide__policy {
    const char *name, *summary;
    tide__policy_fn decide;
    tide__generate_fn generate; /* NULL: it decides for the budget that is asked for */
    bool takes_argument;
    bool budgeted; /* heeds target_bytes: worth asking again for less when placement misses the budget */
    bool stays;    /* it never moves a value to a tier */
} tide__policy;
/* `name` with or without ":argument"; NULL if there is none of this name, or if it gets an argument that is empty or
 * that it does not take. */
const tide__policy *tide__policy_find(const char *name);
/* Is `word` one of the comma-separated words of `argument`? */
bool tide__policy_has(const char *argument, const char *word);

#endif
