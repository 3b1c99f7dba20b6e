/* Trainings whose plans copy values inside the arena: the same bits as without, on every device that computes. */
#include "support/test.h"

#include "nn/trainer.h"
#include "support/opencl.h"
#include "support/squeeze.h"
#include "support/training.h"

enum { STEPS = 4 };

/* In hardly more bytes than its load, which takes copies. */
static tide_plan *relocating_plan(const tide_trainer *t, const char *policy) {
    const tide_program *program = t->network.program;
    const tide_machine *machine = &t->network.machine;
    tide_plan *plan;
    tide_plan_options o = t->options.plan;
    o.policy = policy;
    assert_ok(tide_plan_create(program, machine, &o, NULL, &plan));
    assert_true(squeeze_plan(program, machine, plan_load(plan, program, machine) + 4096, plan));
    return plan;
}

/* Both train; one of them from a plan with relocations, from its second step on. */
static void compare(const char *device, const char *model, const char *policy) {
    training t;
    tide_step_report report;
    float loss, plain_loss;
    training_open_on(&t, device, model, 8);
    t.options.plan.policy = "none"; /* room enough */
    tide_trainer *plain = training_start(&t), *other = training_start(&t);
    tide_plan *plan = relocating_plan(other, policy);
    training_run(plain, 1);
    training_run(other, 1);
    assert_ok(tide_run_follow(other->network.run, plan));
    for (int i = 1; i < STEPS; i++) {
        assert_ok(tide_trainer_step(plain, &plain_loss, NULL));
        assert_ok(tide_trainer_step(other, &loss, &report));
        assert_memory_equal(&loss, &plain_loss, sizeof loss);
        assert_true(report.relocated_bytes > 0);
    }
    assert_true(training_hash(other) == training_hash(plain));
    tide_trainer_destroy(plain);
    tide_trainer_destroy(other);
    tide_plan_destroy(plan);
    training_close(&t);
}

static void test_cpu(void **state) {
    (void)state;
    compare("cpu", "lenet", "liveness");
    compare("cpu", "resnet-cifar:1", "liveness");
    compare("cpu", "resnet-cifar:1", "superneurons");
}

static void test_opencl(void **state) {
    (void)state;
    if (!has_opencl()) skip();
    compare("opencl", "lenet", "liveness");
    compare("opencl", "resnet-cifar:1", "superneurons");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpu), cmocka_unit_test(test_opencl)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
