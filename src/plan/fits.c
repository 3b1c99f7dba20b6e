/* Whether a plan exists at all, without making a good one. */
#include <string.h>

#include "plan/budget.h"
#include "plan/decide/bounds/least.h"
#include "plan/decide/hybrid/shuttle.h"

/* A policy that searches has a plan wherever there is a shuttle, which is quick to make. */
static bool can_shuttle(const char *name, const char *argument) {
    const tide__policy *policy = tide__policy_find(name);
    return policy && policy->generate && tide__policy_moves(policy, argument);
}

tide_status tide_plan_fits(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                           bool *fits) {
    TIDE_NEED(program, machine, options, fits);
    tide_plan_options settled;
    tide_plan *plan = NULL;
    TIDE_TRY(tide__budget_settle(program, machine, options, &settled, NULL));
    const char *name = settled.policy ? settled.policy : "liveness", *colon = strchr(name, ':');
    tide__policy_input in = {.program = program,
                             .machine = machine,
                             .options = &settled,
                             .argument = "",
                             .target_bytes = settled.budgets.arena_bytes};
    if (can_shuttle(name, colon ? colon + 1 : "")) TIDE_TRY(tide__shuttle(&in, &plan));
    *fits = plan != NULL;
    tide_plan_destroy(plan);
    return TIDE_OK;
}
