/* Learn, then plan: the first step ran online and measured every op; from the second on a plan is followed that was
 * made from those measurements. Where no plan fits the budget, or none can be reached, the training stays online. */
#include "base/error.h"
#include "nn/trainer.h"

static tide_status plan_from_costs(tide_trainer *t, tide_plan **plan) {
    tide_plan_options options = t->options.plan;
    tide_program *measured;
    TIDE_TRY(tide_run_budgets(t->options.device, &t->network.machine, &options.budgets));
    TIDE_TRY(tide_program_with_costs(t->network.program, tide_run_costs(t->network.run), &measured));
    tide_status status = tide_plan_create(measured, &t->network.machine, &options, NULL, plan);
    tide_program_destroy(measured);
    return status;
}

tide_status tide__trainer_settle(tide_trainer *t) {
    tide_plan *plan = NULL;
    tide_status status = plan_from_costs(t, &plan);
    if (status == TIDE_OK) status = tide_run_follow(t->network.run, plan);
    if (status == TIDE_OK) {
        t->network.plan = plan;
        return TIDE_OK;
    }
    tide_plan_destroy(plan);
    if (status != TIDE_E_FIT && status != TIDE_E_TIER_FULL) return status;
    t->options.mode = TIDE_MODE_ONLINE;
    return TIDE_OK;
}
