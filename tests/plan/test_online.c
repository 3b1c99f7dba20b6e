/* Online policies in simulation: random programs, budgets and machines. Every plan is proved by the verifier and run by
 * the symbolic interpreter, or the policy says that it does not fit. */
#include "support/test.h"

#include "support/hand_made.h"
#include "support/random_program.h"
#include "support/try_policies.h"

typedef struct tally {
    uint32_t fitted, refused, below_liveness, moved, reran;
} tally;

/* tide_plan_create proves what it returns; here it is only run. */
static void try_online(const tide_program *p, const tide_machine *m, const char *policy, uint64_t budget,
                       uint64_t liveness, uint64_t seed, tally *t) {
    tide_plan_options o;
    tide_fit_report fit = {0};
    tide_plan *plan = NULL;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.budgets.arena_bytes = budget;
    tide_status status = tide_plan_create(p, m, &o, &fit, &plan);
    if (status == TIDE_E_FIT) {
        t->refused++;
        assert_true(fit.needed_bytes > budget);
        return;
    }
    if (status != TIDE_OK)
        fail_msg("%s, seed %llu, budget %llu: %s: %s", policy, (unsigned long long)seed, (unsigned long long)budget,
                 tide_status_name(status), tide_last_error());
    assert_true(tide_plan_arena_bytes(plan) <= budget);
    check_by_running(plan, p, m, seed);
    t->fitted++;
    t->below_liveness += budget < liveness;
    t->moved += tide_plan_prediction(plan)->moved_bytes > 0;
    t->reran += tide_plan_prediction(plan)->recomputed_ns > 0;
    tide_plan_destroy(plan);
}

static bool plan_unconstrained(const tide_program *p, const tide_machine *m, uint64_t *arena) {
    tide_plan_options o;
    tide_plan *plan = NULL;
    tide_plan_options_init(&o);
    tide_status status = tide_plan_create(p, m, &o, NULL, &plan);
    if (status == TIDE_E_UNSUPPORTED) return false; /* the next batch's place is taken by a kept value */
    assert_ok(status);
    *arena = tide_plan_arena_bytes(plan);
    tide_plan_destroy(plan);
    return true;
}

static tally try_all(const char *policy, uint64_t n_seeds) {
    tally t = {0};
    tide_machine m = machine_with_disk();
    for (uint64_t seed = 0; seed < n_seeds; seed++) {
        uint64_t rng = seed * 7919 + 3, arena;
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        for (int i = 0; i < 4 && plan_unconstrained(p, &m, &arena); i++) {
            uint64_t budget = i == 0 ? UINT64_MAX : arena * (20 + random_below(&rng, 80)) / 100;
            try_online(p, &m, policy, budget, arena, seed, &t);
        }
        tide_program_destroy(p);
    }
    return t;
}

static void test_cache(void **state) {
    (void)state;
    tally t = try_all("cache", rounds(250));
    print_message("cache: %u fit, %u refused, %u below liveness, %u moved\n", t.fitted, t.refused, t.below_liveness,
                  t.moved);
    assert_true(t.below_liveness > rounds(100) && t.moved > rounds(100));
    assert_int_equal(t.reran, 0);
}

static void test_delta(void **state) {
    (void)state;
    tally t = try_all("delta", rounds(250));
    print_message("delta: %u fit, %u refused, %u below liveness, %u moved, %u re-ran\n", t.fitted, t.refused,
                  t.below_liveness, t.moved, t.reran);
    assert_true(t.below_liveness > rounds(100) && t.moved > rounds(50) && t.reran > rounds(50));
}

/* Recompute only: nothing moves but inputs. */
static void test_dtr(void **state) {
    (void)state;
    static const char *const policies[] = {"dtr", "dtr:full", "dtr:local", "dtr:msps", "dtr:lru", "dtr:delta"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        tally t = try_all(policies[i], rounds(60));
        print_message("%s: %u fit, %u refused, %u below liveness, %u re-ran\n", policies[i], t.fitted, t.refused,
                      t.below_liveness, t.reran);
        assert_true(t.below_liveness > rounds(10) && t.reran > rounds(10));
        assert_int_equal(t.moved, 0);
    }
}

static void test_wrong_argument(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    random_program_options o = random_program_defaults(1);
    tide_program *p = random_program(&o);
    tide_plan_options options;
    tide_plan *plan = NULL;
    tide_plan_options_init(&options);
    options.policy = "dtr:best";
    assert_status(tide_plan_create(p, &m, &options, NULL, &plan), TIDE_E_ARGUMENT);
    assert_error_has("\"best\"");
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cache), cmocka_unit_test(test_delta),
                                       cmocka_unit_test(test_dtr), cmocka_unit_test(test_wrong_argument)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
