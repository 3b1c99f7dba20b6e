/* Evaluation inside the trainer's arena: it changes no bit of the training, whether it fits beside the values that are
 * kept or they have to make room on disk, and it refuses what the budgets do not allow. */
#include "support/test.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/training.h"

enum { SAMPLES = 40 };

static double evaluate_first(tide_trainer *trainer, const tide_data *data, uint64_t n) {
    double accuracy;
    assert_ok(tide_trainer_evaluate(trainer, data, n, &accuracy));
    return accuracy;
}

static double evaluate(tide_trainer *trainer, const tide_data *data) { return evaluate_first(trainer, data, SAMPLES); }

/* The smallest arena that the plan needs. */
static uint64_t tighten(training *t) {
    tide_trainer *trainer = training_start(t);
    uint64_t bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer));
    tide_trainer_destroy(trainer);
    t->options.plan.budgets.arena_bytes = bytes;
    return bytes;
}

/* One model has room for an evaluation beside its weights and momentum, the other is nearly all weights. */
static void test_changes_nothing(void **state) {
    (void)state;
    static const char *const models[] = {"resnet-cifar:1", "mlp:784,700,10"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        training t;
        training_open(&t, models[i], 8);
        tighten(&t);
        tide_trainer *a = training_start(&t), *b = training_start(&t);
        training_run(a, 3);
        training_run(b, 3);
        uint64_t before = training_hash(a);
        double accuracy = evaluate(a, &t.data);
        assert_true(before == training_hash(a));
        assert_true(accuracy == evaluate(a, &t.data));
        training_run(a, 2);
        training_run(b, 2);
        assert_true(training_hash(a) == training_hash(b));
        tide_trainer_destroy(a);
        tide_trainer_destroy(b);
        training_close(&t);
    }
}

/* The weights of an untrained network are values of the start map. */
static void test_before_the_first_step(void **state) {
    (void)state;
    training t;
    training_open(&t, "mlp:784,700,10", 8);
    tide_trainer *a = training_start(&t), *b = training_start(&t);
    evaluate(a, &t.data);
    training_run(a, 2);
    training_run(b, 2);
    assert_true(training_hash(a) == training_hash(b));
    tide_trainer_destroy(a);
    tide_trainer_destroy(b);
    training_close(&t);
}

/* oneDNN 2 evaluates with weights in another layout, for which others have to make room. Later ones need none. */
static void test_refuses_over_budget(void **state) {
    (void)state;
    training t;
    tide_device_info info;
    double accuracy = -1;
    training_open(&t, "mlp:784,700,10", 8);
    assert_ok(tide_device_get_info(t.device, &info));
    bool parks = strstr(info.description, "oneDNN 2.") != NULL;
    uint32_t disk = tide_machine_find_tier(&t.machine, TIDE_TIER_DISK);
    t.options.plan.budgets.tier_bytes[disk] = 1;
    uint64_t arena = tighten(&t);
    tide_trainer *trainer = training_start(&t);
    training_run(trainer, 1);
    uint64_t before = training_hash(trainer);
    assert_status(tide_trainer_evaluate(trainer, &t.data, SAMPLES, &accuracy), parks ? TIDE_E_FIT : TIDE_OK);
    if (parks) assert_error_has("evaluation does not fit: parking");
    if (parks) assert_error_has("its budget is 1");
    assert_true((accuracy == -1) == parks && before == training_hash(trainer));
    training_run(trainer, 1);
    tide_trainer_destroy(trainer);
    t.options.plan.budgets.arena_bytes = 2 * arena; /* room for an arena of its own */
    trainer = training_start(&t);
    training_run(trainer, 1);
    evaluate(trainer, &t.data);
    assert_true(before == training_hash(trainer));
    tide_trainer_destroy(trainer);
    training_close(&t);
}

/* No tier, and no room for a second copy of the weights: an evaluation reads them one by one where they are. */
static void test_borrows_weights(void **state) {
    (void)state;
    training t;
    tide_evaluation wide, tight;
    training_open(&t, "lenet", 8);
    uint64_t arena = tighten(&t);
    tide_trainer *a = training_start(&t);
    for (uint32_t i = 0; i < t.machine.n_tiers; i++)
        if (t.machine.tier[i].kind != TIDE_TIER_CLIENT) t.options.plan.budgets.tier_bytes[i] = 0;
    t.options.plan.budgets.arena_bytes = arena * 9 / 10;
    t.options.plan.policy = "hybrid";
    tide_trainer *b = training_start(&t);
    training_run(a, 3);
    training_run(b, 3);
    assert_ok(tide_trainer_test(a, &t.data, SAMPLES, &wide));
    assert_ok(tide_trainer_test(b, &t.data, SAMPLES, &tight));
    assert_true(wide.accuracy == tight.accuracy && wide.loss == tight.loss);
    training_run(a, 1);
    training_run(b, 1);
    assert_true(training_hash(a) == training_hash(b));
    tide_trainer_destroy(a);
    tide_trainer_destroy(b);
    training_close(&t);
}

/* ---- what is on the disk ---- */

/* The bytes of all spill files that this process has open; they have no names any more. */
static uint64_t spilled_bytes(void) {
    uint64_t sum = 0;
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *e;
    assert_non_null(folder);
    while ((e = readdir(folder))) {
        char path[300], target[512];
        struct stat st;
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        if (strstr(target, "tidemark-spill") && stat(path, &st) == 0) sum += (uint64_t)st.st_size;
    }
    closedir(folder);
    return sum;
}

/* Draws digits, and notes the most that was on the disk meanwhile. */
typedef struct spy {
    tide_data digits;
    uint64_t most;
} spy;

static tide_status sample_and_look(void *context, uint64_t index, float *pixels, int32_t *label) {
    spy *s = context;
    uint64_t now = spilled_bytes();
    s->most = now > s->most ? now : s->most;
    return s->digits.sample(s->digits.context, index, pixels, label);
}

/* With plans that change, at several budgets: steps report what there is on disk, and neither they nor evaluations ever
 * have more than the budget. */
static void test_disk_budget(void **state) {
    (void)state;
    static const uint64_t budgets[] = {UINT64_C(1310000), UINT64_C(1000000), UINT64_C(700000)};
    for (size_t i = 0; i < rounds(sizeof budgets / sizeof *budgets); i++) {
        training t;
        training_open(&t, "lenet", 16);
        uint32_t ram = tide_machine_find_tier(&t.machine, TIDE_TIER_RAM);
        uint32_t disk = tide_machine_find_tier(&t.machine, TIDE_TIER_DISK);
        spy s = {.digits = t.data};
        tide_data data = t.data;
        data.sample = sample_and_look;
        data.context = &s;
        t.options.plan.budgets.arena_bytes = tighten(&t) * 45 / 100;
        t.options.plan.policy = "hybrid";
        t.options.plan.budgets.tier_bytes[disk] = budgets[i];
        if (ram != TIDE_NONE) t.options.plan.budgets.tier_bytes[ram] = 0;
        tide_trainer *trainer;
        if (tide_trainer_create(&t.options, NULL, &trainer) == TIDE_OK) {
            for (int k = 0; k < 4; k++) {
                tide_step_report report;
                tide_evaluation e;
                float loss;
                assert_ok(tide_trainer_step(trainer, &loss, &report));
                assert_int_equal(report.tier_bytes[disk], spilled_bytes());
                tide_status status = tide_trainer_test(trainer, &data, SAMPLES, &e);
                assert_true(status == TIDE_OK || status == TIDE_E_FIT);
            }
            assert_true(s.most <= budgets[i]);
            tide_trainer_destroy(trainer);
        }
        training_close(&t);
    }
}

/* A step tells the loss of its batch before it learns from it: that of an evaluation on the same samples. */
static void test_loss(void **state) {
    (void)state;
    training t;
    tide_evaluation e, later;
    float loss = 0;
    training_open(&t, "mlp:784,16,10", 10);
    assert_ok(tide_data_digits(&t.digits, 10, &t.data));
    tide_trainer *trainer = training_start(&t);
    training_run(trainer, 2);
    assert_ok(tide_trainer_test(trainer, &t.data, 10, &e));
    assert_ok(tide_trainer_step(trainer, &loss, NULL));
    assert_true(fabs(e.loss - (double)loss) < 1e-5);
    training_run(trainer, 10);
    assert_ok(tide_trainer_test(trainer, &t.data, 10, &later));
    assert_true(later.loss < e.loss && later.loss > 0);
    assert_true(later.accuracy == evaluate_first(trainer, &t.data, 10));
    tide_trainer_destroy(trainer);
    training_close(&t);
}

/* Samples of another size than the model's would be written past its buffers. */
static void test_other_samples(void **state) {
    (void)state;
    training t;
    tide_data other;
    tide_evaluation e;
    tide_digits large = {.seed = 1, .channels = 1, .height = 56, .width = 56},
                by_pixel = {.seed = 1, .channels = 1, .height = 28, .width = 28, .by_pixel = true};
    training_open(&t, "mlp:784,16,10", 10);
    tide_trainer *trainer = training_start(&t);
    assert_ok(tide_data_digits(&large, 100, &other));
    assert_status(tide_trainer_test(trainer, &other, 10, &e), TIDE_E_ARGUMENT);
    assert_error_has("takes 1x28x28");
    assert_ok(tide_data_digits(&by_pixel, 100, &other));
    assert_status(tide_trainer_test(trainer, &other, 10, &e), TIDE_E_ARGUMENT);
    assert_error_has("labels per sample");
    evaluate(trainer, &t.data);
    tide_trainer_destroy(trainer);
    training_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_nothing),       cmocka_unit_test(test_loss),
        cmocka_unit_test(test_before_the_first_step), cmocka_unit_test(test_refuses_over_budget),
        cmocka_unit_test(test_borrows_weights),       cmocka_unit_test(test_disk_budget),
        cmocka_unit_test(test_other_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
