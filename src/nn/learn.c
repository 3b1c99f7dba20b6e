/* Learn, then plan. The first plan of a training is made from the costs that the machine's profile gives; where it swaps or
 * re-runs anything, the second step is timed, op by op, and the third follows a plan made from what was measured. A
 * training that began online has measured its first step. When steps take far longer or shorter than predicted, one is
 * timed again. Plans are made just before the step that follows them, so a plan holds from one step's end to the next
 * step's begin. */
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/trainer.h"
#include "run/guest.h"

/* Without a budget there is nothing to decide, and decisions from a file stay as they are. */
static bool can_gain(const tide_trainer *t) {
    const tide_plan *plan = t->network.plan;
    if (t->options.plan.budgets.arena_bytes == UINT64_MAX || t->options.plan.decisions || !plan) return false;
    const tide_prediction *p = tide_plan_prediction(plan);
    return p->moved_bytes > 0 || p->recomputed_ns > 0 || p->relocated_bytes > 0;
}

void tide__learning_open(tide_trainer *t) { t->learning.measured = t->network.recalled; }

void tide__learning_close(tide_trainer *t) { free(t->learning.costs); }

bool tide__learning_wants_times(const tide_trainer *t) {
    return can_gain(t) && !t->learning.measured && t->learning.warm;
}

/* ---- costs ---- */

static tide_status open_costs(tide_trainer *t) {
    size_t n = tide_program_op_count(t->network.program);
    if (!t->learning.costs) t->learning.costs = calloc(n + 1, sizeof *t->learning.costs);
    return t->learning.costs ? TIDE_OK : tide__fail_memory();
}

static tide_status take_online_costs(tide_trainer *t) {
    const uint64_t *measured = tide_run_costs(t->network.run);
    TIDE_TRY(open_costs(t));
    for (tide_id op = 0; op < tide_program_op_count(t->network.program); op++) t->learning.costs[op] = measured[op];
    return TIDE_OK;
}

/* Of the default variant, whichever ran: the ratio of the two is all that is known. */
static uint64_t default_cost(const tide_op *op, uint32_t variant, uint64_t took_ns) {
    const tide_variant *ran = &op->variants[variant];
    if (variant == 0 || ran->cost_ns == 0) return took_ns;
    double cost = (double)took_ns * ((double)op->variants[0].cost_ns / (double)ran->cost_ns);
    return cost < 0x1p62 ? (uint64_t)cost : UINT64_C(1) << 62;
}

/* Of ops that are run again the last run counts. */
static tide_status take_times(tide_trainer *t, const tide_timeline *timeline) {
    const tide_plan *plan = t->network.plan;
    TIDE_TRY(open_costs(t));
    for (uint32_t i = 0; i < timeline->n_actions; i++) {
        tide_action a = tide_plan_action(plan, i);
        if (a.kind != TIDE_RUN || a.queue != 0) continue; /* messages take what the other side makes them take */
        uint64_t took = timeline->end_ns[i] - timeline->start_ns[i];
        t->learning.costs[a.op] = default_cost(tide_program_op(t->network.program, a.op), a.variant, took);
    }
    return TIDE_OK;
}

tide_status tide__learning_note(tide_trainer *t, const tide_timeline *timeline, const tide_step_report *report) {
    tide__learning *l = &t->learning;
    l->warm = true;
    if (t->network.plan && !can_gain(t)) return TIDE_OK;
    if (!t->network.plan) {
        if (t->options.mode != TIDE_MODE_AUTO) return TIDE_OK;
        TIDE_TRY(take_online_costs(t));
    } else if (timeline && !l->measured) {
        TIDE_TRY(take_times(t, timeline));
    } else {
        if (l->measured && tide__run_drift_note(&l->drift, t->network.plan, report->step_ns)) l->measured = false;
        return TIDE_OK;
    }
    l->measured = l->due = true;
    return TIDE_OK;
}

/* ---- plans ---- */

static tide_status plan_from_costs(const tide_trainer *t, tide_plan **plan) {
    const tide__network *n = &t->network;
    tide_plan_options options = t->options.plan;
    tide_program *measured;
    TIDE_TRY(tide_run_budgets(t->options.device, &n->machine, &options.budgets));
    uint64_t arena = tide__run_guest_bytes(n->run);
    if (n->plan && arena < options.budgets.arena_bytes) options.budgets.arena_bytes = arena; /* that has its size */
    TIDE_TRY(tide_run_rest(n->run)); /* the planner may have the memory */
    TIDE_TRY(tide_program_with_costs(n->program, t->learning.costs, &measured));
    tide_status status = tide_plan_create(measured, &n->machine, &options, NULL, plan);
    tide_program_destroy(measured);
    tide__memory_give_back();
    return status;
}

/* A plan that cannot be written is a plan all the same. */
static void remember(const tide_trainer *t) {
    const tide__network *n = &t->network;
    tide_plan_options options = t->options.plan; /* as the network is opened with */
    if (t->options.plan_folder && tide_run_budgets(t->options.device, &n->machine, &options.budgets) == TIDE_OK)
        (void)tide_plan_remember(t->options.plan_folder, n->program, &n->machine, &options, n->plan);
}

static tide_status adopt(tide_trainer *t, tide_plan *plan) {
    TIDE_TRY(tide_run_follow(t->network.run, plan));
    tide_plan_destroy(t->network.plan);
    t->network.plan = plan;
    remember(t);
    tide__memory_give_back(); /* the proof's, and the old plan's */
    return TIDE_OK;
}

tide_status tide__learning_settle(tide_trainer *t) {
    tide_plan *plan = NULL;
    if (!t->learning.due) return TIDE_OK;
    t->learning.due = false;
    tide_status status = plan_from_costs(t, &plan);
    if (status == TIDE_OK) status = adopt(t, plan);
    if (status == TIDE_OK) return TIDE_OK;
    tide_plan_destroy(plan);
    if (!tide_status_is_misfit(status)) return status;
    if (t->network.plan)
        remember(t); /* the one that is followed: by the measured costs none was found in its bytes */
    else
        t->options.mode = TIDE_MODE_ONLINE; /* for good: no plan fits, or none can be reached */
    return TIDE_OK;
}
