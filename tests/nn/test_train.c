/* Training for real: networks learn, and whatever the plan, the bits are the same. */
#include "support/test.h"

#include "device/device_vtable.h"
#include "support/training.h"

enum { STEPS = 4 };

typedef struct result {
    float loss[STEPS];
    uint64_t hash, arena_bytes, saved_bytes, tier_bytes;
    uint32_t n_reruns;
} result;

typedef struct setup {
    const char *model, *policy, *decisions;
    uint32_t batch, threads;
    tide_step_options step;
    bool timed, traced;
} setup;

static setup setup_of(const char *model, const char *policy, uint32_t threads) {
    setup s = {.model = model, .policy = policy, .batch = 8, .threads = threads};
    tide_step_options_init(&s.step);
    s.step.optimizer = TIDE_MOMENTUM;
    return s;
}

static tide_device *open_cpu(uint32_t threads) {
    tide_device_options o;
    tide_device *device;
    tide_device_options_init(&o);
    o.threads = threads;
    assert_ok(tide_device_open("cpu", &o, &device));
    return device;
}

static tide_model *open_model(const char *spec, uint32_t batch) {
    tide_model_options o;
    tide_model *model;
    tide_model_options_init(&o);
    o.batch = batch;
    o.channels = 1;
    o.height = o.width = 28;
    o.classes = 10;
    assert_ok(tide_model_create(spec, &o, &model));
    return model;
}

/* Every op takes time, and all of them together no more than the step. */
static void step_timed(tide_trainer *trainer, float *loss, tide_step_report *report) {
    uint32_t n = tide_program_op_count(tide_step_program(tide_trainer_step_program(trainer)));
    uint64_t *op_ns = calloc(n, sizeof *op_ns), sum = 0;
    assert_non_null(op_ns);
    assert_ok(tide_trainer_step_timed(trainer, loss, report, op_ns));
    for (uint32_t i = 0; i < n; i++) {
        assert_true(op_ns[i] > 0);
        sum += op_ns[i];
    }
    assert_true(sum <= report->compute_ns && report->compute_ns <= report->step_ns);
    assert_true(report->n_reruns == 0 || sum < report->compute_ns);
    free(op_ns);
}

/* Actions keep the order of their queue and their waits, and end within the step. */
static void step_traced(tide_trainer *trainer, float *loss, tide_step_report *report) {
    uint64_t ready_ns[1 + TIDE_MACHINE_MAX_CHANNELS] = {0};
    tide_timeline *t;
    assert_ok(tide_trainer_step_traced(trainer, loss, report, &t));
    assert_int_equal(t->n_actions, report->n_actions);
    for (uint32_t i = 0; i < t->n_actions; i++) {
        tide_action a = tide_plan_action(tide_trainer_plan(trainer), i);
        assert_true(ready_ns[a.queue] <= t->start_ns[i] && t->start_ns[i] <= t->end_ns[i]);
        assert_true(t->end_ns[i] <= report->step_ns);
        for (uint32_t k = 0; k < a.n_waits; k++) assert_true(t->end_ns[a.waits[k]] <= t->start_ns[i]);
        ready_ns[a.queue] = t->end_ns[i];
    }
    assert_true(t->prediction.compute_ns > 0 && t->prediction.step_ns <= report->step_ns);
    assert_true(t->prediction.peak_bytes <= report->arena_bytes);
    tide_timeline_destroy(t);
}

static result train(const setup *s) {
    result r = {.saved_bytes = 0};
    tide_device *device = open_cpu(s->threads);
    tide_model *model = open_model(s->model, s->batch);
    tide_machine machine;
    tide_digits digits = {.seed = 3, .channels = 1, .height = 28, .width = 28};
    tide_data data;
    tide_trainer_options o;
    tide_trainer *trainer;
    assert_ok(tide_machine_load("cpu", &machine));
    assert_ok(tide_data_digits(&digits, 20, &data)); /* an epoch ends in the middle of a batch */
    tide_trainer_options_init(&o);
    o.model = model;
    o.device = device;
    o.machine = &machine;
    o.data = &data;
    o.step = s->step;
    o.plan.policy = s->policy;
    o.plan.decisions = s->decisions;
    assert_ok(tide_trainer_create(&o, NULL, &trainer));
    for (int i = 0; i < STEPS; i++) {
        tide_step_report report;
        if (s->timed)
            step_timed(trainer, &r.loss[i], &report);
        else if (s->traced)
            step_traced(trainer, &r.loss[i], &report);
        else
            assert_ok(tide_trainer_step(trainer, &r.loss[i], &report));
        r.saved_bytes = report.saved_bytes;
        r.n_reruns = report.n_reruns;
        assert_true(report.step_ns > 0);
    }
    assert_ok(tide_trainer_hash(trainer, &r.hash));
    r.arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer));
    for (uint32_t t = 0; t < machine.n_tiers; t++) r.tier_bytes += tide_plan_tier_bytes(tide_trainer_plan(trainer), t);
    tide_trainer_destroy(trainer);
    tide_model_destroy(model);
    tide_device_close(device);
    return r;
}

static void assert_same_bits(const result *a, const result *b) {
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_true(a->hash == b->hash);
}

static void test_policies_agree(void **state) {
    (void)state;
    static const char *const models[] = {"lenet", "resnet-cifar:3", "mlp:784,32,10"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (uint32_t threads = 1; threads <= MAX_THREADS; threads++) {
            setup none = setup_of(models[i], "none", threads), live = setup_of(models[i], "liveness", threads);
            result a = train(&none), b = train(&live), again = train(&live);
            assert_same_bits(&a, &b);
            assert_same_bits(&b, &again);
            assert_true(b.arena_bytes < a.arena_bytes);
            assert_true(a.loss[0] != a.loss[STEPS - 1]);
        }
}

/* Activations swapped to RAM and to disk, and ops re-run. */
static void test_hand_made_plan(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= MAX_THREADS; threads++) {
        setup live = setup_of("resnet-cifar:3", "liveness", threads),
              manual = setup_of("resnet-cifar:3", "manual", threads);
        manual.decisions = TIDE_SOURCE_DIR "/examples/resnet-cifar3.decisions.jsonl";
        result a = train(&live), b = train(&manual);
        assert_same_bits(&a, &b);
        assert_int_equal(b.n_reruns, 2);
        assert_true(b.saved_bytes > 0 && b.tier_bytes > 0);
        assert_true(b.arena_bytes < a.arena_bytes);
    }
}

/* Timing ops changes nothing but the time. The papers' policies train to the same bits. */
static void test_timed_and_planned(void **state) {
    (void)state;
    static const char *const policies[] = {"checkpoint:block", "superneurons:eager", "superneurons:memory"};
    setup live = setup_of("resnet-cifar:3", "liveness", 1);
    result a = train(&live);
    live.timed = true;
    result b = train(&live);
    assert_same_bits(&a, &b);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        setup other = setup_of("resnet-cifar:3", policies[i], 1);
        other.timed = true;
        result c = train(&other);
        assert_same_bits(&a, &c);
        assert_true(c.n_reruns > 0);
        assert_true(i != 1 || c.saved_bytes > 0);
        other.timed = false;
        other.traced = true;
        result d = train(&other);
        assert_same_bits(&a, &d);
    }
}

/* Optimizers, fused updates, accumulation, clipping: each under two policies. */
static void test_options_agree(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        setup none = setup_of("lenet", "none", 1), live;
        none.step.optimizer = (tide_optimizer)(i % 4);
        none.step.weight_decay = i % 2 ? 0.01f : 0;
        none.step.fused_update = i == 1 || i == 3;
        none.step.accumulate = i >= 3 ? 2 : 0;
        none.step.clip_norm = i == 4 || i == 5 ? 0.5f : 0;
        live = none;
        live.policy = "liveness";
        result a = train(&none), b = train(&live);
        assert_same_bits(&a, &b);
    }
}

/* Every epoch shows each sample once, and in an order of its own. */
typedef struct witness {
    tide_data inner;
    uint64_t seen[64];
    uint32_t n;
} witness;

static tide_status watch(void *context, uint64_t index, float *pixels, int32_t *label) {
    witness *w = context;
    if (w->n < 64) w->seen[w->n++] = index;
    return w->inner.sample(w->inner.context, index, pixels, label);
}

static void test_epochs(void **state) {
    (void)state;
    tide_device *device = open_cpu(1);
    tide_model *model = open_model("mlp:784,16,10", 10);
    tide_machine machine;
    tide_digits digits = {.seed = 3, .channels = 1, .height = 28, .width = 28};
    tide_data data;
    witness w = {.n = 0};
    tide_trainer_options o;
    tide_trainer *trainer;
    float loss;
    assert_ok(tide_machine_load("cpu", &machine));
    assert_ok(tide_data_digits(&digits, 15, &w.inner));
    data = w.inner;
    data.sample = watch;
    data.context = &w;
    tide_trainer_options_init(&o);
    o.model = model;
    o.device = device;
    o.machine = &machine;
    o.data = &data;
    assert_ok(tide_trainer_create(&o, NULL, &trainer));
    for (int i = 0; i < 3; i++) assert_ok(tide_trainer_step(trainer, &loss, NULL));
    for (int epoch = 0; epoch < 2; epoch++) {
        unsigned present = 0;
        for (int i = 0; i < 15; i++) present |= 1u << w.seen[15 * epoch + i];
        assert_int_equal(present, (1u << 15) - 1);
    }
    assert_memory_not_equal(w.seen, w.seen + 15, 15 * sizeof *w.seen);
    tide_trainer_destroy(trainer);
    tide_model_destroy(model);
    tide_device_close(device);
}

static void test_learns(void **state) {
    (void)state;
    tide_device *device = open_cpu(1);
    tide_model *model = open_model("lenet", 32);
    tide_machine machine;
    tide_digits train_digits = {.seed = 1, .channels = 1, .height = 28, .width = 28}, test_digits = train_digits;
    test_digits.seed = 2;
    tide_data data, test;
    tide_trainer_options o;
    tide_trainer *trainer;
    double before, after;
    float loss = 0;
    assert_ok(tide_machine_load("cpu", &machine));
    assert_ok(tide_data_digits(&train_digits, 4096, &data));
    assert_ok(tide_data_digits(&test_digits, 300, &test));
    tide_trainer_options_init(&o);
    o.model = model;
    o.device = device;
    o.machine = &machine;
    o.data = &data;
    o.learning_rate = 0.02f;
    assert_ok(tide_trainer_create(&o, NULL, &trainer));
    assert_ok(tide_trainer_evaluate(trainer, &test, 300, &before));
    for (int i = 0; i < 120; i++) assert_ok(tide_trainer_step(trainer, &loss, NULL));
    assert_ok(tide_trainer_evaluate(trainer, &test, 300, &after));
    print_message("accuracy %.3f -> %.3f, loss %.3f\n", before, after, (double)loss);
    assert_true(before < 0.3 && after > 0.8);
    assert_status(tide_trainer_evaluate(trainer, &test, 301, &after), TIDE_E_ARGUMENT);
    tide_trainer_destroy(trainer);
    tide_model_destroy(model);
    tide_device_close(device);
}

static void test_refusals(void **state) {
    (void)state;
    tide_device *device = open_cpu(1);
    tide_model *model = open_model("lenet", 8);
    tide_machine machine;
    tide_digits digits = {.seed = 3, .channels = 1, .height = 28, .width = 28}, small = {3, 1, 14, 14};
    tide_data data, wrong;
    tide_trainer_options o;
    tide_trainer *trainer = NULL;
    tide_fit_report fit = {0};
    assert_ok(tide_machine_load("cpu", &machine));
    assert_ok(tide_data_digits(&digits, 16, &data));
    assert_ok(tide_data_digits(&small, 16, &wrong));
    tide_trainer_options_init(&o);
    o.model = model;
    o.device = device;
    o.machine = &machine;
    assert_status(tide_trainer_create(&o, &fit, &trainer), TIDE_E_ARGUMENT);
    o.data = &wrong;
    assert_status(tide_trainer_create(&o, &fit, &trainer), TIDE_E_ARGUMENT);
    assert_error_has("14x14");
    o.data = &data;
    o.plan.budgets.arena_bytes = 100000;
    assert_status(tide_trainer_create(&o, &fit, &trainer), TIDE_E_FIT);
    assert_true(fit.needed_bytes > 100000);
    o.plan.budgets.arena_bytes = fit.needed_bytes; /* what it asked for is enough */
    assert_ok(tide_trainer_create(&o, &fit, &trainer));
    tide_trainer_destroy(trainer);
    tide_model_destroy(model);
    tide_device_close(device);
}

/* The device's own table, and how many kernels were made. */
static const tide__device_vtable *real;
static uint32_t n_kernels;

static tide_status count_kernel(tide_device *device, const tide_op_desc *desc, tide_kernel **out) {
    n_kernels++;
    return real->kernel_create(device, desc, out);
}

/* A trainer under a share runs with the kernels that its step was sized with, and settles its budget by the same step. */
static void test_kernels_are_made_once(void **state) {
    (void)state;
    training t;
    tide_step *step;
    training_open(&t, "lenet", 4);
    real = t.device->v;
    tide__device_vtable counting = *real;
    counting.kernel_create = count_kernel;
    t.device->v = &counting;
    tide_step_options o = t.options.step;
    o.device = t.device;
    o.machine = &t.machine;
    assert_ok(tide_step_create(t.model, &o, &step));
    tide_step_destroy(step);
    uint32_t once = n_kernels;
    n_kernels = 0;
    t.options.plan.policy = "hybrid";
    t.options.plan.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = 0.8};
    tide_trainer *trainer = training_start(&t);
    training_run(trainer, 1);
    assert_int_equal(n_kernels, once);
    tide_trainer_destroy(trainer);
    t.device->v = real;
    training_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies_agree),
        cmocka_unit_test(test_hand_made_plan),
        cmocka_unit_test(test_timed_and_planned),
        cmocka_unit_test(test_options_agree),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_kernels_are_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
