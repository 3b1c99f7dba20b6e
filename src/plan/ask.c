/* See ask.h. */
#include "plan/ask.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/decide/swaps/tiers.h"

/* Policies decide on loads, budgets bind the arena, and placement may stay above the load. */
enum { MAX_TRIES = 8, MAX_STALLS = 3 };

bool tide__narrow(tide__narrowing *n, uint64_t budget_bytes, uint64_t arena_bytes, uint64_t *target_bytes) {
    bool stalled = arena_bytes >= n->last_bytes;
    if (arena_bytes <= budget_bytes) return true;
    n->stalls += stalled;
    n->step = tide__max_u64(arena_bytes - budget_bytes, stalled ? 2 * n->step : 0);
    if (n->step >= *target_bytes || n->stalls > MAX_STALLS) return false;
    n->last_bytes = arena_bytes;
    *target_bytes -= n->step;
    return true;
}

tide_status tide__ask(const tide__policy *policy, const tide__policy_input *in, tide__plans *plans) {
    tide__narrowing n = {.last_bytes = UINT64_MAX};
    tide__policy_input asked = *in;
    uint64_t budget = in->options->budgets.arena_bytes;
    tide__evaluate_options placed = {.capacity_bytes = policy->budgeted ? budget : UINT64_MAX,
                                     .place_work = TIDE__ASK_PLACE_WORK,
                                     .relocates = true};
    asked.target_bytes = budget;
    for (int i = 1; i <= MAX_TRIES; i++) {
        tide__decisions d = {0};
        tide__plans_outcome o = {0};
        tide_status status = policy->decide(&asked, &d);
        if (status == TIDE_OK) status = tide__plans_offer(plans, &d, &placed, &o);
        tide__decisions_free(&d);
        TIDE_TRY(status);
        if ((o.arena_bytes <= budget && o.holds_tiers) || !policy->budgeted) break;
        if (!tide__narrow(&n, budget, o.arena_bytes, &asked.target_bytes)) break;
        if (!o.holds_tiers) (void)tide__tiers_shrink(&asked, o.tier_bytes);
    }
    return TIDE_OK;
}
