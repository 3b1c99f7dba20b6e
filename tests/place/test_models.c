/* Steps whose load the fast heuristics miss: a plan's own search must reach it. */
#include <tidemark/tidemark.h>

#include "plan/place_plan.h"
#include "support/test.h"

/* The bound of the items that policy liveness has to place. */
static uint64_t bound_of(const tide_program *program, const tide_machine *machine) {
    tide__place_item *items;
    tide_id *tensors;
    size_t n;
    assert_ok(tide__place_items(program, machine, &items, &tensors, &n));
    uint64_t *offsets = calloc(n + 1, sizeof *offsets);
    assert_non_null(offsets);
    tide__place_result result;
    assert_ok(tide__place(items, n, &(tide__place_options){.algorithm = "skyline"}, offsets, &result));
    assert_true(result.height > result.lower_bound);
    free(offsets);
    free(items);
    free(tensors);
    return result.lower_bound;
}

static void check(const char *spec, uint32_t batch) {
    tide_machine machine;
    tide_model_options model_options;
    tide_step_options step_options;
    tide_plan_options plan_options;
    tide_model *model;
    tide_step *step;
    tide_plan *plan;
    tide_machine_init_default(&machine);
    tide_model_options_init(&model_options);
    model_options.batch = batch;
    tide_step_options_init(&step_options);
    step_options.machine = &machine;
    tide_plan_options_init(&plan_options);
    plan_options.policy = "liveness";
    assert_ok(tide_model_create(spec, &model_options, &model));
    assert_ok(tide_step_create(model, &step_options, &step));
    assert_ok(tide_plan_create(tide_step_program(step), &machine, &plan_options, NULL, &plan));
    assert_int_equal(tide_plan_arena_bytes(plan), bound_of(tide_step_program(step), &machine));
    tide_plan_destroy(plan);
    tide_step_destroy(step);
    tide_model_destroy(model);
}

static void test_arena_is_the_load(void **state) {
    check("resnet50", 20);
    check("resnet101", 20);
    check("inception-v4", 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arena_is_the_load)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
