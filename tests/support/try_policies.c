/* See try_policies.h. */
#include "support/try_policies.h"

#include "support/test.h"

#include "plan/plan_data.h"
#include "support/hand_made.h"
#include "support/interpreter.h"
#include "support/random_program.h"

enum { LARGEST_RUN_BYTES = 8192 };

tide_status try_policy(const tide_program *p, const tide_machine *m, const char *policy, tide_effort effort,
                       uint64_t arena_bytes, tide_plan **plan) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.effort = effort;
    o.order = TIDE_ORDER_PROGRAM; /* tests of orders are in test_order.c */
    o.budgets.arena_bytes = arena_bytes;
    return tide_plan_create(p, m, &o, NULL, plan);
}

void check_by_running(const tide_plan *plan, const tide_program *p, const tide_machine *m, uint64_t seed) {
    for (uint64_t timing = 0; plan->arena_bytes <= LARGEST_RUN_BYTES && timing < 2; timing++) {
        interpretation result = interpret(plan, p, m, NULL, seed + timing);
        if (!result.ok) fail_msg("seed %llu: action %u %s", (unsigned long long)seed, result.action, result.why);
    }
}

/* tide_plan_create proves what it returns; here it is only run. */
static void try_budget(const tide_program *p, const char *policy, tide_effort effort, uint64_t budget, uint64_t seed,
                       policy_tally *tally) {
    tide_machine m = machine_with_disk();
    tide_plan *plan = NULL;
    tide_status status = try_policy(p, &m, policy, effort, budget, &plan);
    if (status == TIDE_E_FIT) {
        assert_int_not_equal(budget, UINT64_MAX);
        tally->refused++;
        return;
    }
    if (status != TIDE_OK) fail_msg("%s, seed %llu: %s", policy, (unsigned long long)seed, tide_last_error());
    assert_true(tide_plan_arena_bytes(plan) <= budget);
    check_by_running(plan, p, &m, seed);
    tally->made++;
    tally->with_moves += tide_plan_prediction(plan)->moved_bytes > 0;
    tally->with_reruns += tide_plan_prediction(plan)->recomputed_ns > 0;
    tide_plan_destroy(plan);
}

policy_tally try_policies(const char *const policies[], uint32_t n_policies, tide_effort effort, uint64_t n_seeds) {
    policy_tally tally = {0};
    tide_machine m = machine_with_disk();
    for (uint64_t seed = 0; seed < n_seeds; seed++) {
        uint64_t rng = seed * 31 + 7;
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        tide_plan *live = NULL;
        if (try_policy(p, &m, "liveness", effort, UINT64_MAX, &live) == TIDE_OK) {
            uint64_t most = tide_plan_arena_bytes(live) + 1, budget = most / 4 + random_below(&rng, most);
            if (random_below(&rng, 8) == 0) budget = UINT64_MAX;
            try_budget(p, policies[random_below(&rng, n_policies)], effort, budget, seed, &tally);
        }
        tide_plan_destroy(live);
        tide_program_destroy(p);
    }
    print_message("%u plans, %u with moves, %u with re-runs; %u do not fit\n", tally.made, tally.with_moves,
                  tally.with_reruns, tally.refused);
    return tally;
}
