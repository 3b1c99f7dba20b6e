/* The border between two steps: of plans of every kind it is proved, and every wait across it is needed: without any one of
 * them the verifier finds a way for two steps to go wrong. */
#include "support/test.h"

#include "plan/border.h"
#include "support/hand_made.h"
#include "support/random_program.h"

/* Swaps at random, also of values that outlive the step. */
static tide_status plan_randomly(const tide_program *p, const tide_machine *m, uint64_t seed, tide_plan **out) {
    tide__decisions d = {0};
    tide_gap *gaps;
    size_t n_gaps;
    assert_ok(tide_liveness_gaps(p, &gaps, &n_gaps));
    for (size_t i = 0; i < n_gaps; i++) {
        if (random_below(&seed, 2)) continue;
        tide__swap s = {gaps[i].tensor, (uint32_t)random_below(&seed, 2), gaps[i].after_op + 1, gaps[i].before_op};
        assert_ok(tide__vec_push(&d.swaps, s));
    }
    tide_status status = plan_from_decisions(p, m, &d, out);
    tide__decisions_free(&d);
    free(gaps);
    return status;
}

static void take_out(tide__crossings *crossings, size_t at) {
    memmove(crossings->data + at, crossings->data + at + 1, (--crossings->count - at) * sizeof *crossings->data);
}

/* Without the i-th: refused. A wait for an action of the same step's compute is what the host gives anyway. */
static void check_each_is_needed(const tide_program *p, const tide_machine *m, const tide_plan *plan,
                                 const tide__crossings *all) {
    for (size_t i = 0; i < all->count; i++) {
        tide__crossings some = {0};
        for (size_t k = 0; k < all->count; k++) assert_ok(tide__vec_push(&some, all->data[k]));
        take_out(&some, i);
        assert_status(tide__plan_check_crossings(plan, p, m, NULL, &some), TIDE_E_PLAN);
        tide__vec_free(&some);
    }
}

static void test_random_plans(void **state) {
    (void)state;
    uint64_t seeds = 120 / SANITIZER_SHARE;
    size_t n_plans = 0, n_crossings = 0;
    tide_machine m = machine_with_disk();
    for (uint64_t seed = 0; seed < seeds; seed++) {
        random_program_options o = random_program_varied(seed);
        o.repeating = true;
        o.prefetch = seed % 4 == 0;
        tide_program *p = random_program(&o);
        tide_plan *plan;
        tide__crossings all = {0};
        if (plan_randomly(p, &m, seed, &plan) == TIDE_OK) {
            assert_ok(tide_plan_verify(plan, p, &m, NULL, NULL));
            assert_ok(tide__plan_cross(plan, p, &m, NULL, &all));
            if (seed % 4 == 0) check_each_is_needed(p, &m, plan, &all);
            n_plans++;
            n_crossings += all.count;
            tide_plan_destroy(plan);
        }
        tide__vec_free(&all);
        tide_program_destroy(p);
    }
    print_message("%zu plans, %zu waits across the border\n", n_plans, n_crossings);
    assert_true(n_plans > seeds / 2 && n_crossings > n_plans);
}

static void test_refused(void **state) {
    (void)state;
    random_program_options o = random_program_defaults(1);
    o.repeating = false;
    tide_program *p = random_program(&o);
    tide_machine m = machine_with_disk();
    tide_plan *plan;
    tide__crossings none = {0};
    assert_ok(plan_randomly(p, &m, 1, &plan));
    assert_status(tide__plan_cross(plan, p, &m, NULL, &none), TIDE_E_UNSUPPORTED);
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_plans), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
