/* Policy `superneurons` on random programs and random budgets: every plan is proved and runs on symbolic values, or the
 * answer is an honest "does not fit". And what its parts promise, one by one. */
#include "support/test.h"

#include "support/hand_made.h"
#include "support/interpreter.h"
#include "support/random_program.h"

static tide_status try_make(const tide_program *p, const tide_machine *m, const char *policy, uint64_t arena_bytes,
                            tide_plan **plan) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.budgets.arena_bytes = arena_bytes;
    return tide_plan_create(p, m, &o, NULL, plan);
}

static void check_by_running(const tide_plan *plan, const tide_program *p, const tide_machine *m, uint64_t seed) {
    for (uint64_t timing = 0; plan->arena_bytes <= 8192 && timing < 2; timing++) {
        interpretation result = interpret(plan, p, m, NULL, seed + timing);
        if (!result.ok) fail_msg("seed %llu: action %u %s", (unsigned long long)seed, result.action, result.why);
    }
}

static const char *const settings[] = {
    "superneurons",      "superneurons:speed",       "superneurons:eager", "superneurons:memory,noworkspace",
    "superneurons:cost", "superneurons:norecompute",
};

static void random_programs(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    uint32_t made = 0, refused = 0, with_moves = 0, with_reruns = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        uint64_t rng = seed * 31 + 7;
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        tide_plan *live = NULL, *plan = NULL;
        if (try_make(p, &m, "liveness", UINT64_MAX, &live) == TIDE_OK) {
            uint64_t most = tide_plan_arena_bytes(live) + 1, budget = most / 4 + random_below(&rng, most);
            if (random_below(&rng, 8) == 0) budget = UINT64_MAX;
            const char *policy = settings[random_below(&rng, sizeof settings / sizeof *settings)];
            tide_status status = try_make(p, &m, policy, budget, &plan);
            if (status == TIDE_OK) { /* tide_plan_create has verified it */
                assert_true(tide_plan_arena_bytes(plan) <= budget);
                check_by_running(plan, p, &m, seed);
                made++;
                with_moves += tide_plan_prediction(plan)->moved_bytes > 0;
                with_reruns += tide_plan_prediction(plan)->recomputed_ns > 0;
            } else {
                if (status != TIDE_E_FIT) fail_msg("seed %llu: %s", (unsigned long long)seed, tide_last_error());
                assert_int_not_equal(budget, UINT64_MAX);
                refused++;
            }
        }
        tide_plan_destroy(live);
        tide_plan_destroy(plan);
        tide_program_destroy(p);
    }
    print_message("%u plans, %u with moves, %u with re-runs; %u do not fit\n", made, with_moves, with_reruns, refused);
    assert_true(made > 500 && with_moves > 100 && with_reruns > 100 && refused > 50);
}

static void arguments(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    random_program_options o = random_program_defaults(1);
    tide_program *p = random_program(&o);
    tide_plan *plan;
    assert_status(try_make(p, &m, "superneurons:quick", UINT64_MAX, &plan), TIDE_E_ARGUMENT);
    assert_error_has("quick");
    assert_status(try_make(p, &m, "superneurons:speed,memory", UINT64_MAX, &plan), TIDE_E_ARGUMENT);
    assert_status(try_make(p, &m, "superneurons:speed,,noswap", UINT64_MAX, &plan), TIDE_E_ARGUMENT);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs), cmocka_unit_test(arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
