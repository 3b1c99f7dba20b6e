/* Relocations on random programs: what fits is proved, runs on symbolic values and costs what was allowed; what does not
 * is left alone. On a machine without alignment the load suffices. */
#include "support/test.h"

#include "plan/plan_data.h"
#include "plan/relocate/relocate.h"
#include "plan/schedule/schedule.h"
#include "support/hand_made.h"
#include "support/random_program.h"
#include "support/squeeze.h"
#include "support/try_policies.h"

static uint64_t largest_block(const tide_plan *plan) {
    uint64_t most = 0;
    for (size_t i = 0; i < plan->residencies.count; i++)
        if (plan->residencies.data[i].size_bytes > most) most = plan->residencies.data[i].size_bytes;
    return most;
}

static uint32_t count_relocations(const tide_plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < tide_plan_action_count(plan); i++) n += tide_plan_action(plan, i).kind == TIDE_RELOCATE;
    return n;
}

/* A plan of some policy in some budget, without the offsets it was given; NULL: that does not fit. */
static tide_plan *make_plan(const tide_program *p, const tide_machine *m, uint64_t seed) {
    static const char *const policies[] = {"liveness", "capuchin", "autoswap", "checkpoint"};
    tide_plan *whole = NULL, *plan = NULL;
    assert_ok(try_policy(p, m, "liveness", TIDE_EFFORT_LOW, UINT64_MAX, &whole));
    uint64_t budget = seed % 4 ? whole->arena_bytes / 2 + random_below(&seed, whole->arena_bytes / 2 + 1) : UINT64_MAX;
    tide_status status = try_policy(p, m, policies[seed % 4], TIDE_EFFORT_LOW, budget, &plan);
    assert_true(status == TIDE_OK || tide_status_is_misfit(status));
    for (size_t i = 0; plan && i < plan->residencies.count; i++)
        if (plan->residencies.data[i].size_bytes) plan->residencies.data[i].offset_bytes = plan->arena_bytes;
    tide_plan_destroy(whole);
    return plan;
}

typedef struct totals {
    uint32_t tried, fitted, relocated;
} totals;

/* The plan is proved. */
static void check_plan(const tide_plan *plan, const tide_program *p, const tide_machine *m, uint64_t seed,
                       totals *sum) {
    tide_timeline *t;
    check_by_running(plan, p, m, seed);
    assert_ok(tide_plan_simulate(plan, p, m, &t));
    assert_true(t->prediction.peak_bytes <= plan->arena_bytes);
    assert_true((t->prediction.relocated_bytes > 0) == (count_relocations(plan) > 0));
    sum->relocated += t->prediction.relocated_bytes > 0;
    tide_timeline_destroy(t);
}

/* The other side of squeeze_plan: as well as it can be done. */
static bool fit_plan(const tide_program *p, const tide_machine *m, uint64_t capacity, tide_plan *plan) {
    tide_budgets budgets;
    bool fits = false;
    tide_budgets_init(&budgets);
    budgets.arena_bytes = capacity;
    assert_ok(tide__relocate_fit(p, m, &budgets, UINT64_MAX, UINT64_MAX, plan, &fits));
    if (!fits) return false;
    assert_ok(tide__sync(plan));
    assert_ok(tide_plan_verify(plan, p, m, &budgets, NULL));
    return true;
}

typedef bool (*fit_fn)(const tide_program *p, const tide_machine *m, uint64_t capacity, tide_plan *plan);

static totals try_programs(const tide_machine *m, fit_fn fit, bool spare_block, uint32_t n) {
    totals sum = {0};
    for (uint64_t seed = 0; seed < n; seed++) {
        random_program_options o = random_program_varied(seed);
        o.prefetch = false;
        tide_program *p = random_program(&o);
        tide_plan *plan = make_plan(p, m, seed);
        if (plan) {
            uint64_t before = tide_plan_fingerprint(plan), slack = spare_block ? largest_block(plan) : 0;
            bool fits = fit(p, m, plan_load(plan, p, m) + slack, plan);
            sum.tried++;
            sum.fitted += fits;
            if (fits)
                check_plan(plan, p, m, seed, &sum);
            else
                assert_true(tide_plan_fingerprint(plan) == before);
        }
        tide_plan_destroy(plan);
        tide_program_destroy(p);
    }
    print_message("%u plans, %u fit, %u of them with relocations\n", sum.tried, sum.fitted, sum.relocated);
    return sum;
}

static void test_the_load_suffices(void **state) {
    (void)state;
    tide_machine m;
    tide_machine_init_default(&m);
    totals sum = try_programs(&m, fit_plan, false, rounds(200));
    assert_true(sum.fitted * 100 >= sum.tried * 99 && sum.relocated > sum.tried / 10);
    sum = try_programs(&m, fit_plan, true, rounds(200));
    assert_true(sum.fitted == sum.tried && sum.relocated == 0);
}

static void test_crude_choices_relocate_much(void **state) {
    (void)state;
    tide_machine m;
    tide_machine_init_default(&m);
    totals sum = try_programs(&m, squeeze_plan, false, rounds(200));
    assert_true(sum.relocated > sum.tried / 2);
}

static void test_with_blocks_of_tiers(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    totals sum = try_programs(&m, squeeze_plan, true, rounds(200));
    assert_true(sum.fitted > sum.tried / 2 && sum.relocated > sum.tried / 20);
}

/* ---- limits ---- */

/* Half of what it takes is not enough, nor is hardly any work; exactly what it takes is. */
static void check_limits(const tide_program *p, const tide_machine *m, const tide_plan *fitted, tide_plan *plan) {
    uint64_t before = tide_plan_fingerprint(plan);
    tide_budgets budgets;
    tide_timeline *t;
    bool fits = true;
    tide_budgets_init(&budgets);
    budgets.arena_bytes = plan_load(plan, p, m);
    assert_ok(tide_plan_simulate(fitted, p, m, &t));
    assert_ok(tide__relocate_fit(p, m, &budgets, t->prediction.relocated_ns / 2, UINT64_MAX, plan, &fits));
    assert_false(fits);
    assert_ok(tide__relocate_fit(p, m, &budgets, UINT64_MAX, 10, plan, &fits));
    assert_false(fits);
    assert_true(tide_plan_fingerprint(plan) == before);
    assert_ok(tide__relocate_fit(p, m, &budgets, t->prediction.relocated_ns, UINT64_MAX, plan, &fits));
    assert_true(fits);
    tide_timeline_destroy(t);
}

static void test_limits_are_kept(void **state) {
    (void)state;
    tide_machine m;
    uint32_t n_limited = 0;
    tide_machine_init_default(&m);
    m.launch_ns = 5;
    for (uint64_t seed = 0; seed < rounds(100); seed++) {
        random_program_options o = random_program_varied(seed);
        o.prefetch = false;
        tide_program *p = random_program(&o);
        tide_plan *fitted = make_plan(p, &m, seed), *plan = NULL;
        if (fitted) assert_ok(tide__plan_clone(fitted, &plan));
        if (fitted && fit_plan(p, &m, plan_load(fitted, p, &m), fitted) && count_relocations(fitted)) {
            check_limits(p, &m, fitted, plan);
            n_limited++;
        }
        tide_plan_destroy(fitted);
        tide_plan_destroy(plan);
        tide_program_destroy(p);
    }
    assert_true(n_limited > rounds(5));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_load_suffices),
        cmocka_unit_test(test_crude_choices_relocate_much),
        cmocka_unit_test(test_with_blocks_of_tiers),
        cmocka_unit_test(test_limits_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
