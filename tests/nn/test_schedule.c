/* Schedules of the learning rate: their curves, what is refused, and that a training along one resumes to the same bits. */
#include "support/test.h"

#include <math.h>
#include <unistd.h>

#include "support/training.h"

static void assert_rate(const tide_schedule *s, uint64_t step, double expected) {
    double rate = (double)tide_schedule_rate(s, 2, step);
    if (fabs(rate - expected) > 1e-6) fail_msg("step %llu: %g, not %g", (unsigned long long)step, rate, expected);
}

static void test_curves(void **state) {
    (void)state;
    tide_schedule s;
    tide_schedule_init(&s);
    assert_rate(&s, 0, 2);
    assert_rate(&s, UINT64_MAX, 2);
    s.warmup_steps = 3;
    assert_rate(&s, 0, 0.5);
    assert_rate(&s, 2, 1.5);
    assert_rate(&s, 3, 2);
    s.curve = TIDE_CURVE_STEP;
    s.period_steps = 10;
    s.factor = 0.5f;
    assert_rate(&s, 12, 2);
    assert_rate(&s, 13, 1);
    assert_rate(&s, 23, 0.5);
    s.total_steps = 3 + 101;
    s.final_share = 0.1f;
    s.curve = TIDE_CURVE_LINEAR;
    assert_rate(&s, 3, 2);
    assert_rate(&s, 53, 1.1);
    assert_rate(&s, 103, 0.2);
    assert_rate(&s, 1000, 0.2);
    s.curve = TIDE_CURVE_COSINE;
    assert_rate(&s, 3, 2);
    assert_rate(&s, 28, 0.2 + 1.8 * (0.5 + 0.25 * sqrt(2)));
    assert_rate(&s, 53, 1.1);
    assert_rate(&s, 103, 0.2);
}

static void assert_refused(const training *t, const char *text) {
    tide_trainer *trainer = NULL;
    assert_status(tide_trainer_create(&t->options, NULL, &trainer), TIDE_E_ARGUMENT);
    assert_error_has(text);
}

static void test_refused(void **state) {
    (void)state;
    training t;
    training_open(&t, "mlp:784,4,10", 4);
    tide_schedule *s = &t.options.schedule;
    s->curve = TIDE_CURVE_STEP;
    assert_refused(&t, "after how many");
    s->curve = TIDE_CURVE_COSINE;
    s->total_steps = s->warmup_steps = 5;
    assert_refused(&t, "leave nothing");
    s->curve = (tide_curve)9;
    assert_refused(&t, "unknown curve");
    tide_schedule_init(s);
    s->factor = NAN;
    assert_refused(&t, "from 0 to 1");
    training_close(&t);
}

/* Everything that makes a step at once: AdamW with decay, clipping, accumulation, warm-up and cosine. */
static void use_all(training *t) {
    tide_step_options *step = &t->options.step;
    step->optimizer = TIDE_ADAMW;
    step->weight_decay = 0.01f;
    step->clip_norm = 0.5f;
    step->accumulate = 2;
    t->options.learning_rate = 0.01f;
    t->options.schedule = (tide_schedule){.curve = TIDE_CURVE_COSINE, .warmup_steps = 2, .total_steps = 6};
}

static void test_resume(void **state) {
    (void)state;
    char path[] = "/tmp/tidemark-schedule-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    training t;
    training_open(&t, "lenet", 4);
    tide_trainer *constant = training_start(&t);
    use_all(&t);
    tide_trainer *whole = training_start(&t), *first = training_start(&t);
    uint64_t budget = tide_plan_arena_bytes(tide_trainer_plan(whole)) * 9 / 10;
    float loss = training_run(whole, 6);
    assert_true(training_run(constant, 6) != loss);
    training_run(first, 3);
    assert_ok(tide_trainer_save(first, path));
    t.options.plan.policy = "hybrid";
    t.options.plan.budgets.arena_bytes = budget;
    tide_trainer *second = training_start(&t);
    assert_true(tide_plan_arena_bytes(tide_trainer_plan(second)) <= budget);
    assert_ok(tide_trainer_load(second, path));
    assert_true(training_run(second, 3) == loss);
    assert_true(training_hash(second) == training_hash(whole));
    tide_trainer_destroy(constant);
    tide_trainer_destroy(whole);
    tide_trainer_destroy(first);
    tide_trainer_destroy(second);
    training_close(&t);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
