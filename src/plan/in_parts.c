/* Plans in parts: the number of parts as a decision. The program in parts is planned like any other; of several numbers the best
 * plan is taken. */
#include <tidemark/plan.h>

#include "base/error.h"
#include "plan/budget.h"
#include "plan/plan_data.h"

#include <stdio.h>

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

/* What to say where no number fits: of the one that needs least. */
typedef struct refusal {
    tide_status status; /* TIDE_OK: none yet */
    tide_fit_report fit;
    char text[512];
} refusal;

/* An arena that works says more than a bound. */
static bool needs_less(const tide_fit_report *a, const tide_fit_report *b) {
    if (!a->needed_bytes || !b->needed_bytes) return a->needed_bytes != 0;
    if (a->is_bound != b->is_bound) return b->is_bound;
    return a->needed_bytes < b->needed_bytes;
}

/* The bound is that of all numbers, so it is known if that of each is. */
static void note_refusal(refusal *r, tide_status status, const tide_fit_report *fit) {
    const tide_fit_report before = r->fit;
    const bool first = r->status == TIDE_OK;
    if (first || needs_less(fit, &before)) {
        r->status = status;
        r->fit = *fit;
        snprintf(r->text, sizeof r->text, "%s", tide_last_error());
    }
    if (first) return;
    const tide_fit_report *lower = before.bound_bytes < fit->bound_bytes ? &before : fit;
    r->fit.bound_bytes = lower->bound_bytes;
    r->fit.bound_op = lower->bound_op;
}

/* A number that the program cannot be cut into, or only with sums beyond measure, is none. */
static tide_status try_number(const tide_program *program, const tide_machine *machine,
                              const tide_plan_options *options, uint32_t parts, tide_fit_report *fit, choice *best) {
    choice c;
    tide_program *in_parts;
    tide_status status = tide_program_split(program, parts, options->bits_any, &in_parts);
    if (status != TIDE_OK) return status == TIDE_E_ARGUMENT || status == TIDE_E_OVERFLOW ? TIDE_OK : status;
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
    refusal least = {.status = TIDE_OK};
    for (uint32_t parts = 1; parts <= units && parts <= MOST_PARTS; parts *= 2) {
        tide_fit_report own = {.op = TIDE_NONE, .bound_op = TIDE_NONE, .tier = TIDE_NONE, .tier_tensor = TIDE_NONE};
        tide_status status = try_number(program, machine, options, parts, &own, best);
        if (status != TIDE_OK && !tide_status_is_misfit(status)) return drop(best), status;
        if (status != TIDE_OK) note_refusal(&least, status, &own);
    }
    if (best->plan) return TIDE_OK;
    if (fit) *fit = least.fit;
    return tide__fail(least.status, "%s", least.text);
}

tide_status tide_plan_create_in_parts(const tide_program *program, const tide_machine *machine,
                                      const tide_plan_options *options, uint32_t parts, tide_fit_report *fit,
                                      tide_program **in_parts, tide_plan **out) {
    TIDE_NEED(program, machine, options, in_parts, out);
    choice best = {0};
    tide_program *asked = NULL;
    tide_plan_options limited;
    TIDE_TRY(tide__budget_limit(program, machine, options, &limited));
    if (tide__budget_wants_smallest(options)) limited.arena_budget.kind = TIDE_BUDGET_SMALLEST;
    if (parts) TIDE_TRY(tide_program_split(program, parts, limited.bits_any, &asked));
    tide_status status =
        parts ? plan_in(asked, machine, &limited, parts, fit, &best) : choose(program, machine, &limited, fit, &best);
    if (status != TIDE_OK) return status;
    *in_parts = best.program;
    *out = best.plan;
    return TIDE_OK;
}
