/* Prediction: a file's weights say what the training that wrote it would have said, inside a budget as well. */
#include "support/test.h"

#include <tidemark/predict.h>

#include "support/scratch_file.h"
#include "support/training.h"

static tide_predictor *open_predictor(const training *t, tide_budget budget) {
    tide_predictor_options o;
    tide_predictor *p;
    tide_predictor_options_init(&o);
    o.model = t->model;
    o.device = t->device;
    o.machine = &t->machine;
    o.plan.policy = "hybrid";
    o.plan.effort = TIDE_EFFORT_LOW;
    o.plan.arena_budget = budget;
    assert_ok(tide_predictor_create(&o, NULL, &p));
    return p;
}

/* The mean loss and accuracy of an evaluation, again, from probabilities. */
static void test_as_evaluated(void **state) {
    (void)state;
    static const char *const models[] = {"lenet", "resnet-cifar:1"};
    static const tide_budget budgets[] = {{.bytes = UINT64_MAX}, {.kind = TIDE_BUDGET_SMALLEST}};
    for (int i = 0; i < 2; i++) {
        training t;
        tide_evaluation e;
        float pixels[8 * 784], row[10], other[10];
        int32_t labels[8];
        double right = 0;
        training_open(&t, models[i], 8);
        tide_trainer *trainer = training_start(&t);
        training_run(trainer, 3);
        assert_ok(tide_trainer_test(trainer, &t.data, 8, &e));
        assert_ok(tide_trainer_save(trainer, scratch_path));
        for (int k = 0; k < 8; k++) assert_ok(t.data.sample(t.data.context, (uint64_t)k, pixels + 784 * k, &labels[k]));
        tide_predictor *p[2];
        for (int b = 0; b < 2; b++) {
            p[b] = open_predictor(&t, budgets[b]);
            assert_ok(tide_predictor_load(p[b], scratch_path, NULL));
            assert_ok(tide_predictor_run(p[b], pixels));
        }
        for (int k = 0; k < 8; k++) {
            int best = 0;
            assert_ok(tide_predictor_read(p[0], (uint64_t)k, row));
            assert_ok(tide_predictor_read(p[1], (uint64_t)k, other));
            assert_memory_equal(row, other, sizeof row);
            for (int c = 1; c < 10; c++) best = row[c] > row[best] ? c : best;
            right += best == labels[k];
        }
        assert_float_equal(right / 8, e.accuracy, 1e-9);
        for (int b = 0; b < 2; b++) tide_predictor_destroy(p[b]);
        tide_trainer_destroy(trainer);
        training_close(&t);
    }
}

static void test_order_of_calls(void **state) {
    (void)state;
    training t;
    float pixels[784] = {0}, row[10];
    training_open(&t, "lenet", 1);
    tide_predictor *p = open_predictor(&t, (tide_budget){.bytes = UINT64_MAX});
    assert_status(tide_predictor_run(p, pixels), TIDE_E_ARGUMENT);
    assert_error_has("needs weights");
    tide_trainer *trainer = training_start(&t);
    assert_ok(tide_trainer_save_weights(trainer, scratch_path));
    assert_ok(tide_predictor_load(p, scratch_path, NULL));
    assert_status(tide_predictor_read(p, 0, row), TIDE_E_ARGUMENT);
    assert_ok(tide_predictor_run(p, pixels));
    assert_ok(tide_predictor_read(p, 0, row));
    assert_status(tide_predictor_read(p, 1, row), TIDE_E_ARGUMENT);
    assert_status(tide_predictor_load(p, "/no/such/file", NULL), TIDE_E_IO);
    assert_status(tide_predictor_run(p, pixels), TIDE_E_ARGUMENT);
    tide_predictor_destroy(p);
    tide_trainer_destroy(trainer);
    training_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_evaluated),
        cmocka_unit_test(test_order_of_calls),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
