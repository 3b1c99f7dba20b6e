/* The figures of a plan, for people and as JSON: the same for `plan` and `simulate`. */
#ifndef TIDE_CLI_PLAN_OUTPUT_H
#define TIDE_CLI_PLAN_OUTPUT_H

#include "cli.h"

typedef struct plan_figures {
    const tide_plan *plan;
    const tide_program *program;
    const tide_machine *machine;
    tide_prediction prediction;
    unconstrained whole; /* what percentages refer to; zeros: none are shown */
    uint64_t bound_ns;   /* no plan for this budget is faster; 0: not known */
} plan_figures;

void print_plan(const plan_figures *figures, bool json);

#endif
