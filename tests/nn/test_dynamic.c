/* Networks that change from step to step: a ResNet that leaves out blocks at random, and an LSTM over sequences of any
 * length, train under a tight budget to the same bits as in an arena that is large enough. */
#include "support/test.h"

#include <tidemark/train.h>

#include "support/random_program.h"

enum { MAX_MODELS = 66, STEPS = 10 };

typedef struct rig {
    tide_device *device;
    tide_machine machine;
    tide_model *models[MAX_MODELS];
    uint32_t n_models;
    uint64_t n_values, n_labels; /* of the largest model's batch */
} rig;

static void rig_open(rig *r) {
    tide_device_options o;
    *r = (rig){0};
    tide_device_options_init(&o);
    o.threads = 1;
    assert_ok(tide_device_open("cpu", &o, &r->device));
    assert_ok(tide_machine_load("cpu", &r->machine));
}

static void rig_close(rig *r) {
    for (uint32_t i = 0; i < r->n_models; i++) tide_model_destroy(r->models[i]);
    tide_device_close(r->device);
}

static void add_model(rig *r, const char *spec, const tide_model_options *o) {
    tide_model *m;
    assert_ok(tide_model_create(spec, o, &m));
    tide_shape in = tide_model_input(m);
    uint64_t values = (uint64_t)(in.n * in.c * in.h * in.w), labels = (uint64_t)in.n * tide_model_labels(m);
    r->models[r->n_models++] = m;
    r->n_values = values > r->n_values ? values : r->n_values;
    r->n_labels = labels > r->n_labels ? labels : r->n_labels;
}

/* What the first model needs if nothing leaves. */
static uint64_t whole_bytes(const rig *r) {
    tide_step_options so;
    tide_plan_options po;
    tide_step *step;
    tide_plan *plan;
    tide_step_options_init(&so);
    so.device = r->device;
    so.optimizer = TIDE_MOMENTUM;
    tide_plan_options_init(&po);
    assert_ok(tide_step_create(r->models[0], &so, &step));
    assert_ok(tide_plan_create(tide_step_program(step), &r->machine, &po, NULL, &plan));
    uint64_t bytes = tide_plan_arena_bytes(plan);
    tide_plan_destroy(plan);
    tide_step_destroy(step);
    return bytes;
}

typedef struct result {
    uint64_t hash;
    float loss[STEPS];
    tide_session_stats stats;
    uint64_t moved_bytes;
} result;

/* Which model comes next is random, but some come twice in a row, as batches of sorted sequences do. */
static tide_status train(const rig *r, uint64_t arena_bytes, result *out) {
    tide_dynamic_options o;
    tide_dynamic *d;
    float *values = malloc((r->n_values + 1) * sizeof *values);
    int32_t *labels = malloc((r->n_labels + 1) * sizeof *labels);
    uint32_t classes = tide_model_classes(r->models[0]);
    bool tokens = tide_model_takes_tokens(r->models[0]);
    uint64_t seed = 5, model = 0;
    tide_dynamic_options_init(&o);
    o.session.device = r->device;
    o.session.machine = &r->machine;
    o.session.budgets.arena_bytes = arena_bytes;
    o.session.policy = QUICK_POLICY; /* any plan will do */
    o.session.effort = TIDE_EFFORT_LOW;
    o.session.journal = true;
    *out = (result){0};
    tide_status status = tide_dynamic_create(&o, &d);
    assert_ok(status);
    for (uint32_t step = 0; step < STEPS && status == TIDE_OK; step++) {
        tide_step_report report = {0};
        for (uint64_t i = 0; i < r->n_values; i++)
            values[i] = tokens ? (float)random_below(&seed, classes) : (float)random_below(&seed, 200) / 100 - 1;
        for (uint64_t i = 0; i < r->n_labels; i++) labels[i] = (int32_t)random_below(&seed, classes);
        if (step % 4 == 0) model = random_below(&seed, r->n_models);
        status = tide_dynamic_step(d, r->models[model], values, labels, &out->loss[step], &report);
        out->moved_bytes += report.saved_bytes + report.n_reruns;
    }
    if (status == TIDE_OK) assert_ok(tide_dynamic_hash(d, &out->hash));
    out->stats = tide_dynamic_get_stats(d);
    tide_dynamic_destroy(d);
    free(values);
    free(labels);
    return status;
}

/* All budgets fit: what an op needs at once is less than 40 % of what the whole step does. */
static void try_budgets(const rig *r) {
    uint64_t whole = whole_bytes(r);
    result wide, tight;
    uint64_t moved = 0, planned = 0;
    assert_ok(train(r, 4 * whole + (8 << 20), &wide));
    assert_int_equal(wide.moved_bytes, 0);
    for (uint64_t percent = 100; percent >= 40; percent -= 30) {
        tide_status status = train(r, whole * percent / 100, &tight);
        if (status != TIDE_OK) fail_msg("%llu %%: %s", (unsigned long long)percent, tide_last_error());
        assert_int_equal(wide.hash, tight.hash);
        assert_memory_equal(wide.loss, tight.loss, sizeof wide.loss);
        moved += tight.moved_bytes;
        planned += tight.stats.n_planned;
    }
    assert_true(moved > 0);
    assert_true(planned + wide.stats.n_planned > 0);
}

static void test_stochastic_depth(void **state) {
    (void)state;
    static const uint8_t skips[][9] = {{0}, {0, 1, 1}, {0, 0, 1, 0, 1}, {0, 1, 0, 0, 0, 1, 0, 1, 1}};
    tide_model_options o;
    tide_model *m;
    rig r;
    rig_open(&r);
    tide_model_options_init(&o);
    o.batch = 4;
    for (size_t i = 0; i < sizeof skips / sizeof *skips; i++) {
        o.skip = skips[i];
        o.n_skip = 9;
        add_model(&r, "resnet-cifar:3", &o);
    }
    try_budgets(&r);
    static const uint8_t first_of_stage[] = {0, 0, 0, 1};
    o.skip = first_of_stage;
    o.n_skip = 4;
    assert_status(tide_model_create("resnet-cifar:3", &o, &m), TIDE_E_ARGUMENT);
    assert_error_has("changes the shape");
    assert_status(tide_model_create("lenet", &o, &m), TIDE_E_ARGUMENT);
    rig_close(&r);
}

static void test_variable_length(void **state) {
    (void)state;
    static const char *const specs[] = {"lstm:2,64,24,40", "lstm:2,64,7,40", "lstm:2,64,12,40", "lstm:2,64,1,40"};
    tide_model_options o;
    rig r;
    rig_open(&r);
    tide_model_options_init(&o);
    o.batch = 4;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) add_model(&r, specs[i], &o);
    try_budgets(&r);
    rig_close(&r);
}

/* More models than stay prepared; nothing is learned, so a model that is prepared again has the loss it had. */
static void test_many_models(void **state) {
    (void)state;
    tide_model_options mo;
    tide_dynamic_options o;
    tide_dynamic *d;
    rig r;
    float tokens[MAX_MODELS] = {0}, first[MAX_MODELS] = {0};
    int32_t labels[MAX_MODELS] = {0};
    rig_open(&r);
    tide_model_options_init(&mo);
    mo.batch = 1;
    for (int i = 0; i < MAX_MODELS; i++) {
        char spec[32];
        snprintf(spec, sizeof spec, "lstm:1,8,%d,8", i + 1);
        add_model(&r, spec, &mo);
    }
    tide_dynamic_options_init(&o);
    o.session.device = r.device;
    o.session.machine = &r.machine;
    o.session.budgets.arena_bytes = 8 << 20;
    o.session.policy = ""; /* plans take time and are not what this is about */
    o.learning_rate = 0;
    assert_ok(tide_dynamic_create(&o, &d));
    for (int step = 0; step < 2 * MAX_MODELS; step++) {
        float loss;
        int i = step % MAX_MODELS;
        assert_ok(tide_dynamic_step(d, r.models[i], tokens, labels, &loss, NULL));
        if (step < MAX_MODELS) first[i] = loss;
        assert_true(loss == first[i]);
    }
    tide_dynamic_destroy(d);
    rig_close(&r);
}

/* A step that cannot begin is refused before it does: the next one works. */
static void test_refuses_arguments(void **state) {
    (void)state;
    tide_model_options mo;
    tide_dynamic_options o;
    tide_dynamic *d;
    rig r;
    float tokens[4] = {0}, loss;
    int32_t labels[4] = {0};
    rig_open(&r);
    tide_model_options_init(&mo);
    mo.batch = 1;
    add_model(&r, "lstm:1,8,4,8", &mo);
    tide_dynamic_options_init(&o);
    o.session.device = r.device;
    o.session.machine = &r.machine;
    o.session.budgets.arena_bytes = 8 << 20;
    assert_ok(tide_dynamic_create(&o, &d));
    assert_status(tide_dynamic_step(d, r.models[0], tokens, NULL, &loss, NULL), TIDE_E_ARGUMENT);
    assert_error_has("tide_dynamic_step");
    assert_status(tide_dynamic_step(d, r.models[0], NULL, labels, &loss, NULL), TIDE_E_ARGUMENT);
    assert_status(tide_dynamic_step(d, r.models[0], tokens, labels, NULL, NULL), TIDE_E_ARGUMENT);
    assert_status(tide_dynamic_step(d, NULL, tokens, labels, &loss, NULL), TIDE_E_ARGUMENT);
    assert_ok(tide_dynamic_step(d, r.models[0], tokens, labels, &loss, NULL));
    tide_dynamic_destroy(d);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stochastic_depth),
        cmocka_unit_test(test_variable_length),
        cmocka_unit_test(test_many_models),
        cmocka_unit_test(test_refuses_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
