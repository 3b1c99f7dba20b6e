/* The smallest budget: what is said to work works, what is said not to does not, and nothing works below the bound. */
#include <tidemark/tidemark.h>

#include "support/test.h"

static tide_step *make_step(const char *spec, const tide_machine *machine, tide_model **model) {
    tide_model_options m;
    tide_step_options o;
    tide_step *step;
    tide_model_options_init(&m);
    m.batch = 8;
    tide_step_options_init(&o);
    o.machine = machine;
    assert_int_equal(tide_model_create(spec, &m, model), TIDE_OK);
    assert_int_equal(tide_step_create(*model, &o, &step), TIDE_OK);
    return step;
}

static tide_status plan_in(const tide_program *p, const tide_machine *m, const char *policy, uint64_t budget,
                           tide_fit_report *fit) {
    tide_plan_options o;
    tide_plan *plan = NULL;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.budgets.arena_bytes = budget;
    o.effort = TIDE_EFFORT_LOW;
    tide_status status = tide_plan_create(p, m, &o, fit, &plan);
    if (status == TIDE_OK) assert_true(tide_plan_arena_bytes(plan) <= budget);
    tide_plan_destroy(plan);
    return status;
}

static void check_policy(const tide_program *p, const tide_machine *m, const char *policy) {
    tide_plan_options o;
    tide_smallest s;
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_plan_options_init(&o);
    o.policy = policy;
    o.effort = TIDE_EFFORT_LOW;
    assert_int_equal(tide_plan_smallest(p, m, &o, 0.02, &s), TIDE_OK);
    assert_true(s.bound_bytes <= s.failed_bytes + 1);
    assert_true(s.failed_bytes < s.works_bytes);
    assert_true((double)(s.works_bytes - s.failed_bytes) <= 0.02 * (double)s.works_bytes);
    assert_true(s.op < tide_program_op_count(p));
    assert_int_equal(plan_in(p, m, policy, s.works_bytes, &fit), TIDE_OK);
    assert_int_equal(plan_in(p, m, policy, s.failed_bytes, &fit), TIDE_E_FIT);
}

static void every_policy_has_one(void **state) {
    (void)state;
    tide_machine machine;
    tide_model *model;
    assert_int_equal(tide_machine_load("v100-16gb-pcie", &machine), TIDE_OK);
    tide_step *step = make_step("lenet", &machine, &model);
    const char *name;
    for (uint32_t i = 0; (name = tide_policy_name(i, NULL)) != NULL; i++)
        if (strcmp(name, "manual") != 0) check_policy(tide_step_program(step), &machine, name);
    tide_step_destroy(step);
    tide_model_destroy(model);
}

static void below_the_largest_op_is_refused_at_once(void **state) {
    (void)state;
    tide_machine machine;
    tide_model *model;
    tide_liveness *l;
    tide_fit_report fit = {.op = TIDE_NONE};
    assert_int_equal(tide_machine_load("v100-16gb-pcie", &machine), TIDE_OK);
    tide_step *step = make_step("resnet-cifar:2", &machine, &model);
    const tide_program *p = tide_step_program(step);
    assert_int_equal(tide_liveness_create(p, &l), TIDE_OK);
    assert_int_equal(plan_in(p, &machine, "hybrid", l->largest_op_bytes - 1, &fit), TIDE_E_FIT);
    assert_true(fit.is_bound);
    assert_int_equal(fit.needed_bytes, l->largest_op_bytes);
    assert_int_equal(fit.op, l->largest_op);
    assert_int_equal(plan_in(p, &machine, "liveness", 1, &fit), TIDE_E_FIT); /* knows what it needs */
    assert_false(fit.is_bound);
    assert_true(fit.needed_bytes >= l->peak_bytes);
    tide_liveness_destroy(l);
    tide_step_destroy(step);
    tide_model_destroy(model);
}

static void wrong_arguments(void **state) {
    (void)state;
    tide_machine machine;
    tide_model *model;
    tide_plan_options o;
    tide_smallest s;
    tide_machine_init_default(&machine);
    tide_step *step = make_step("lenet", &machine, &model);
    tide_plan_options_init(&o);
    o.policy = "nosuch";
    assert_int_equal(tide_plan_smallest(tide_step_program(step), &machine, &o, 0.01, &s), TIDE_E_ARGUMENT);
    o.policy = "dtr";
    assert_int_equal(tide_plan_smallest(tide_step_program(step), &machine, &o, -1, &s), TIDE_E_ARGUMENT);
    o.budgets.arena_bytes = 1; /* a start that does not work */
    assert_int_equal(tide_plan_smallest(tide_step_program(step), &machine, &o, 0.01, &s), TIDE_E_FIT);
    tide_step_destroy(step);
    tide_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_has_one),
        cmocka_unit_test(below_the_largest_op_is_refused_at_once),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
