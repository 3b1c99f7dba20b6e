/* Losses that are not finite: a training stops before they reach a checkpoint, or leaves out the updates they would make. */
#include "support/test.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "support/training.h"

enum { BATCH = 4, BAD_SAMPLE = 9 };

static char path[] = "/tmp/tidemark-diverged-XXXXXX";

/* Drawn digits, of which one is infinitely bright. */
static tide_status sample_with_fault(void *context, uint64_t index, float *pixels, int32_t *label) {
    const tide_data *digits = context;
    tide_status status = digits->sample(digits->context, index, pixels, label);
    if (index == BAD_SAMPLE) pixels[300] = INFINITY;
    return status;
}

static tide_data faulty(const tide_data *digits) {
    static tide_data inner;
    inner = *digits;
    tide_data out = *digits;
    out.sample = sample_with_fault;
    out.context = &inner;
    return out;
}

/* How many steps go well, up to `most`. */
static int run_until_diverged(tide_trainer *trainer, int most) {
    float loss;
    int i = 0;
    while (i < most) {
        tide_status status = tide_trainer_step(trainer, &loss, NULL);
        if (status == TIDE_E_DIVERGED) break;
        assert_ok(status);
        assert_true(isfinite(loss));
        i++;
    }
    return i;
}

static void test_stops(void **state) {
    (void)state;
    training t;
    tide__file before, after;
    training_open(&t, "lenet", BATCH);
    t.options.learning_rate = 1e30f;
    tide_trainer *trainer = training_start(&t);
    assert_ok(tide_trainer_save(trainer, path));
    assert_ok(tide__file_open(path, &before));
    assert_true(run_until_diverged(trainer, 10) < 10);
    assert_error_has("the loss of step");
    assert_status(tide_trainer_save(trainer, path), TIDE_E_DIVERGED);
    assert_error_has("is not finite; the file stays as it is");
    assert_ok(tide__file_open(path, &after));
    assert_true(before.size == after.size && memcmp(before.text, after.text, after.size) == 0);
    assert_ok(tide_trainer_load(trainer, path)); /* from there it goes on */
    assert_int_equal(run_until_diverged(trainer, 1), 1);
    tide__file_close(&before);
    tide__file_close(&after);
    tide_trainer_destroy(trainer);
    training_close(&t);
}

/* Every epoch has one batch that is skipped; weights and running statistics stay finite. */
static void skip_in(const char *model, tide_optimizer optimizer, float clip_norm) {
    training t;
    training_open(&t, model, BATCH);
    t.data.n_samples = 5 * BATCH;
    tide_data data = faulty(&t.data);
    t.options.data = &data;
    t.options.step.optimizer = optimizer;
    t.options.step.clip_norm = clip_norm;
    t.options.step.skip_nonfinite = true;
    t.options.learning_rate = 0.01f;
    tide_trainer *trainer = training_start(&t);
    float loss;
    for (int i = 0; i < 10; i++) assert_ok(tide_trainer_step(trainer, &loss, NULL));
    assert_true(tide_trainer_steps_skipped(trainer) == 2 && tide_trainer_steps_done(trainer) == 10);
    assert_ok(tide_trainer_save(trainer, path)); /* so everything is finite */
    tide_trainer_destroy(trainer);
    training_close(&t);
}

static void test_skips(void **state) {
    (void)state;
    skip_in("resnet-cifar:1", TIDE_MOMENTUM, 0);
    skip_in("lenet", TIDE_SGD, 1);
    skip_in("lenet", TIDE_ADAMW, 0);
}

static void test_skipping_in_vain(void **state) {
    (void)state;
    training t;
    training_open(&t, "lenet", BATCH);
    t.data.n_samples = BATCH;
    t.options.data = &t.data;
    t.options.learning_rate = 1e30f;
    t.options.step.skip_nonfinite = true;
    tide_trainer *trainer = training_start(&t);
    float loss;
    tide_status status = TIDE_OK;
    for (int i = 0; i < 40 && status == TIDE_OK; i++) status = tide_trainer_step(trainer, &loss, NULL);
    assert_status(status, TIDE_E_DIVERGED);
    assert_error_has("is the 16th in a row");
    tide_trainer_destroy(trainer);
    training_close(&t);
}

/* Where everything is finite, nothing changes. */
static void test_same_bits(void **state) {
    (void)state;
    uint64_t hash[2];
    for (int i = 0; i < 2; i++) {
        training t;
        training_open(&t, "lenet", BATCH);
        t.options.step.skip_nonfinite = i == 1;
        tide_trainer *trainer = training_start(&t);
        training_run(trainer, 3);
        hash[i] = training_hash(trainer);
        tide_trainer_destroy(trainer);
        training_close(&t);
    }
    assert_true(hash[0] == hash[1]);
}

static void test_refusals(void **state) {
    (void)state;
    training t;
    tide_trainer *trainer;
    training_open(&t, "lenet", BATCH);
    t.options.step.skip_nonfinite = t.options.step.fused_update = true;
    assert_status(tide_trainer_create(&t.options, NULL, &trainer), TIDE_E_ARGUMENT);
    assert_error_has("cannot be skipped");
    training_close(&t);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops),     cmocka_unit_test(test_skips),    cmocka_unit_test(test_skipping_in_vain),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_refusals),
    };
    int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    return cmocka_run_group_tests(tests, NULL, remove_file);
}
