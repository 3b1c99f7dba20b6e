/* Training with activations and gradients of bf16 on the CPU device: half the bytes of them and of nothing else, the same bits
 * under every budget, losses like those of float32, checkpoints that know no dtype. Other families: test_train_families. */
#include "support/test.h"

#include <math.h>
#include <tidemark/tidemark.h>
#include <unistd.h>

#include "support/training.h"

static void open_bf16(training *t, const char *model, uint32_t batch) {
    training_open(t, model, batch);
    t->options.step.dtype = TIDE_BF16;
}

/* ---- which values ---- */

static tide_step *create_step(const training *t, tide_dtype dtype) {
    tide_step_options o = t->options.step;
    tide_step *step;
    o.device = t->device;
    o.machine = &t->machine;
    o.dtype = dtype;
    assert_ok(tide_step_create(t->model, &o, &step));
    return step;
}

/* Both have the same values and ops but for bytes. */
static void compare_tensors(const tide_program *wide, const tide_program *half, const char *model) {
    uint32_t n_halves = 0;
    assert_int_equal(tide_program_op_count(wide), tide_program_op_count(half));
    assert_int_equal(tide_program_tensor_count(wide), tide_program_tensor_count(half));
    for (tide_id i = 0; i < tide_program_tensor_count(wide); i++) {
        const tide_tensor *a = tide_program_tensor(wide, i), *b = tide_program_tensor(half, i);
        const bool is_half = b->dtype == TIDE_BF16;
        n_halves += is_half;
        if (strcmp(a->name, b->name) != 0 || a->size_bytes != b->size_bytes * (is_half ? 2 : 1))
            fail_msg("%s: %s has %llu bytes, of bf16 %llu", model, a->name, (unsigned long long)a->size_bytes,
                     (unsigned long long)b->size_bytes);
        const bool state =
            b->cls == TIDE_CLASS_WEIGHT || b->cls == TIDE_CLASS_OPTIMIZER || b->cls == TIDE_CLASS_GRADIENT;
        if (state && is_half) fail_msg("%s: %s is of bf16", model, b->name);
        if (b->cls == TIDE_CLASS_ACTIVATION_GRADIENT && !is_half) fail_msg("%s: %s is no bf16", model, b->name);
    }
    assert_true(n_halves > 0);
}

static void test_halves(void **state) {
    static const char *const models[] = {
        "mlp:784,48,32,10", "lenet", "resnet-cifar:1", "densenet121", "gpt2:2,32,4,12,256",
        "lstm:2,24,6,256",  "vgg11", "alexnet",        "unet:4"};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        tide_model_options m;
        training t;
        training_open(&t, "lenet", 2);
        tide_model_destroy(t.model);
        tide_model_options_init(&m);
        m.batch = 4;
        if (strcmp(models[i], "unet:4") == 0) m.height = m.width = 32;
        assert_ok(tide_model_create(models[i], &m, &t.model));
        tide_step *wide = create_step(&t, TIDE_F32), *half = create_step(&t, TIDE_BF16);
        compare_tensors(tide_step_program(wide), tide_step_program(half), models[i]);
        tide_step_destroy(wide);
        tide_step_destroy(half);
        training_close(&t);
    }
}

/* Where activations are most of it, so is the arena. */
static void test_half_the_arena(void **state) {
    uint64_t bytes[2];
    training t;
    (void)state;
    training_open(&t, "resnet-cifar:1", 256);
    t.options.plan.policy = "liveness";
    for (int k = 0; k < 2; k++) {
        tide_step *step = create_step(&t, k ? TIDE_BF16 : TIDE_F32);
        tide_plan *plan;
        assert_ok(tide_plan_create(tide_step_program(step), &t.machine, &t.options.plan, NULL, &plan));
        bytes[k] = tide_plan_arena_bytes(plan);
        tide_plan_destroy(plan);
        tide_step_destroy(step);
    }
    print_message("arena %llu and %llu bytes\n", (unsigned long long)bytes[0], (unsigned long long)bytes[1]);
    assert_true(bytes[1] * 100 <= bytes[0] * 54);
    training_close(&t);
}

/* ---- bits ---- */

static void test_budgets(void **state) {
    static const char *const models[] = {"mlp:784,32,32,10", "lenet", "resnet-cifar:1"};
    static const uint64_t shares[] = {95, 85, 75};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        training t;
        uint32_t n_moved = 0;
        open_bf16(&t, models[i], 128);
        t.options.plan.policy = "liveness";
        tide_trainer *free_one = training_start(&t);
        const float loss = training_run(free_one, 4);
        const uint64_t hash = training_hash(free_one), arena = tide_plan_arena_bytes(tide_trainer_plan(free_one));
        tide_trainer_destroy(free_one);
        t.options.plan.policy = "hybrid";
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            t.options.plan.budgets.arena_bytes = arena * shares[k] / 100 / 4096 * 4096;
            tide_trainer *tight = training_start(&t);
            tide_step_report report = {0};
            training_run(tight, 3);
            float last;
            assert_ok(tide_trainer_step(tight, &last, &report));
            assert_true(report.arena_bytes <= t.options.plan.budgets.arena_bytes);
            n_moved += report.saved_bytes > 0 || report.n_reruns > 0;
            if (last != loss || training_hash(tight) != hash)
                fail_msg("%s: other bits in %u %%", models[i], (unsigned)shares[k]);
            tide_trainer_destroy(tight);
        }
        assert_true(n_moved > 0);
        training_close(&t);
    }
}

/* ---- learning ---- */

static float mean_of_last(const training *t, int steps, int last) {
    tide_trainer *trainer = training_start(t);
    float sum = 0, loss;
    training_run(trainer, steps - last);
    for (int i = 0; i < last; i++) {
        assert_ok(tide_trainer_step(trainer, &loss, NULL));
        sum += loss;
    }
    tide_trainer_destroy(trainer);
    return sum / (float)last;
}

static void test_learns(void **state) {
    training t;
    (void)state;
    training_open(&t, "lenet", 16);
    t.options.learning_rate = 0.02f;
    t.options.step.weight_decay = 0;
    const float before = mean_of_last(&t, 5, 5), wide = mean_of_last(&t, 120, 20);
    t.options.step.dtype = TIDE_BF16;
    const float half = mean_of_last(&t, 120, 20);
    print_message("losses: %.4f at first, then %.4f in float32, %.4f in bf16\n", (double)before, (double)wide,
                  (double)half);
    assert_true(wide < before / 4);
    assert_true(fabsf(half - wide) < before / 10);
    training_close(&t);
}

/* ---- checkpoints ---- */

/* Weights and states are float32 in both: either goes on from where the other stopped. */
static void test_checkpoints(void **state) {
    char path[] = "/tmp/tidemark-bf16-XXXXXX";
    training t;
    (void)state;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    open_bf16(&t, "lenet", 8);
    tide_trainer *first = training_start(&t);
    training_run(first, 3);
    assert_ok(tide_trainer_save(first, path));
    const uint64_t hash = training_hash(first);
    const float next = training_run(first, 2);
    tide_trainer *same = training_start(&t);
    assert_ok(tide_trainer_load(same, path));
    assert_true(training_run(same, 2) == next);
    t.options.step.dtype = TIDE_F32;
    tide_trainer *wide = training_start(&t);
    assert_ok(tide_trainer_load(wide, path));
    assert_true(training_hash(wide) == hash);
    assert_true(fabsf(training_run(wide, 2) - next) < 0.1f * fabsf(next));
    tide_trainer_destroy(first);
    tide_trainer_destroy(same);
    tide_trainer_destroy(wide);
    training_close(&t);
    unlink(path);
}

static void test_refused(void **state) {
    tide_step *step = NULL;
    training t;
    (void)state;
    training_open(&t, "lenet", 2);
    t.options.step.device = t.device;
    t.options.step.dtype = TIDE_F16;
    assert_status(tide_step_create(t.model, &t.options.step, &step), TIDE_E_UNSUPPORTED);
    assert_error_has("f16");
    assert_null(step);
    training_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves), cmocka_unit_test(test_half_the_arena), cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_learns), cmocka_unit_test(test_checkpoints),    cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
