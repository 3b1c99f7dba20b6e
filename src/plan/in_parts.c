/* Plans in parts: the number of parts as a decision. The program in parts is planned like any other; of several numbers the best
 * plan is taken. */
#include <tidemark/plan.h>

#include "base/error.h"
#include "plan/budget.h"
#include "plan/plan_data.h"

enum { MOST_PARTS = 64 }; /* that are tried */

/* The best so far. */
typedef struct choice {
    tide_program *program;
    tide_plan *plan;
} choice;

static void drop(choice *c) {
    tide_program_destroy(c->program);
    tide_plan_destroy(c->plan);
    *c = (choice){0};
}

/* Takes over the program, which is in so many parts. */
static tide_status plan_in(tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                           uint32_t parts, tide_fit_report *fit, choice *out) {
    choice c = {.program = program};
    tide_status status = tide_plan_create(c.program, machine, options, fit, &c.plan);
    if (status != TIDE_OK && parts > 1 && fit) fit->op = fit->bound_op = fit->tier_tensor = TIDE_NONE;
    if (status != TIDE_OK) return drop(&c), status;
    c.plan->parts = parts;
    *out = c;
    return TIDE_OK;
}

static bool is_better(const tide_plan_options *options, const choice *a, const choice *b) {
    if (!b->plan) return true;
    if (options->arena_budget.kind == TIDE_BUDGET_SMALLEST) return a->plan->arena_bytes < b->plan->arena_bytes;
    return a->plan->prediction.step_ns < b->plan->prediction.step_ns;
}

static bool is_misfit(tide_status status) { return status == TIDE_E_FIT || status == TIDE_E_TIER_FULL; }

/* *tried: the number is one that the program can be cut into. */
static tide_status try_number(const tide_program *program, const tide_machine *machine,
                              const tide_plan_options *options, uint32_t parts, tide_fit_report *fit, choice *best,
                              bool *tried) {
    choice c;
    tide_program *in_parts;
    tide_status status = tide_program_split(program, parts, options->bits_any, &in_parts);
    *tried = status == TIDE_OK;
    if (status != TIDE_OK) return status == TIDE_E_ARGUMENT ? TIDE_OK : status;
    TIDE_TRY(plan_in(in_parts, machine, options, parts, fit, &c));
    choice *worse = is_better(options, &c, best) ? best : &c;
    drop(worse);
    if (worse == best) *best = c;
    return TIDE_OK;
}

/* All numbers, whatever was found: so a larger budget never takes longer. */
static tide_status choose(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                          tide_fit_report *fit, choice *best) {
    const uint32_t units = tide_program_units(program);
    tide_status last = TIDE_OK;
    for (uint32_t parts = 1; parts <= units && parts <= MOST_PARTS; parts *= 2) {
        bool tried = false;
        tide_status status = try_number(program, machine, options, parts, fit, best, &tried);
        if (status != TIDE_OK && !is_misfit(status)) return status;
        if (tried) last = status;
    }
    return best->plan ? TIDE_OK : last;
}

tide_status tide_plan_create_in_parts(const tide_program *program, const tide_machine *machine,
                                      const tide_plan_options *options, uint32_t parts, tide_fit_report *fit,
                                      tide_program **in_parts, tide_plan **out) {
    TIDE_NEED(program, machine, options, in_parts, out);
    choice best = {0};
    tide_program *asked = NULL;
    tide_plan_options limited;
    TIDE_TRY(tide__budget_limit(program, machine, options, &limited));
    if (options->arena_budget.kind == TIDE_BUDGET_SMALLEST) limited.arena_budget = options->arena_budget;
    if (parts) TIDE_TRY(tide_program_split(program, parts, limited.bits_any, &asked));
    tide_status status =
        parts ? plan_in(asked, machine, &limited, parts, fit, &best) : choose(program, machine, &limited, fit, &best);
    if (status != TIDE_OK) return status;
    *in_parts = best.program;
    *out = best.plan;
    return TIDE_OK;
}
