/* One way to show a plan's figures, for every command that has some. */
#ifndef TIDE_CLI_PLAN_OUTPUT_H
#define TIDE_CLI_PLAN_OUTPUT_H

#include "cli.h"

typedef struct plan_figures {
    const tide_plan *plan;
    const tide_program *program;
    const tide_machine *machine;
    tide_prediction prediction;
    uint64_t unconstrained_bytes, unconstrained_ns; /* 0: not known */
} plan_figures;

void print_plan(const plan_figures *f, bool json);

#endif
