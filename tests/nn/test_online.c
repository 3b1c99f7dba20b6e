/* Online training: no plan, decisions at the moment memory is short, and the bits of the unconstrained run. */
#include "support/test.h"

#include <tidemark/tidemark.h>

#include "run/ranges.h"

enum { STEPS = 3 };

typedef struct result {
    float loss[STEPS];
    uint64_t hash, arena_bytes, saved_bytes;
    uint32_t n_reruns;
    double accuracy;
    bool follows_plan;
} result;

typedef struct rig {
    tide_device *device;
    tide_model *model;
    tide_machine machine;
    tide_digits digits;
    tide_data data;
    tide_trainer_options options;
} rig;

static void rig_open(rig *r, const char *spec) {
    tide_device_options d;
    tide_model_options m;
    *r = (rig){.digits = {.seed = 3, .channels = 1, .height = 28, .width = 28}};
    tide_device_options_init(&d);
    d.threads = 1;
    assert_ok(tide_device_open("cpu", &d, &r->device));
    tide_model_options_init(&m);
    m.batch = 8;
    m.channels = 1;
    m.height = m.width = 28;
    m.classes = 10;
    assert_ok(tide_model_create(spec, &m, &r->model));
    assert_ok(tide_machine_load("cpu", &r->machine));
    assert_ok(tide_data_digits(&r->digits, 20, &r->data));
    tide_trainer_options_init(&r->options);
    r->options.model = r->model;
    r->options.device = r->device;
    r->options.machine = &r->machine;
    r->options.data = &r->data;
}

static void rig_close(rig *r) {
    tide_model_destroy(r->model);
    tide_device_close(r->device);
}

static tide_status train(const rig *r, result *out) {
    tide_trainer *trainer;
    tide_status status = tide_trainer_create(&r->options, NULL, &trainer);
    if (status != TIDE_OK) return status;
    for (int i = 0; i < STEPS && status == TIDE_OK; i++) {
        tide_step_report report = {0};
        status = tide_trainer_step(trainer, &out->loss[i], &report);
        out->saved_bytes = report.saved_bytes;
        out->n_reruns += report.n_reruns;
        out->arena_bytes = report.arena_bytes;
    }
    out->follows_plan = tide_trainer_plan(trainer) != NULL;
    if (status == TIDE_OK) status = tide_trainer_hash(trainer, &out->hash);
    if (status == TIDE_OK) status = tide_trainer_evaluate(trainer, &r->data, 8, &out->accuracy);
    tide_trainer_destroy(trainer);
    return status;
}

static tide_status train_online(rig *r, const char *policy, uint64_t budget, bool disk, result *out) {
    *out = (result){.hash = 0};
    r->options.mode = TIDE_MODE_ONLINE;
    r->options.plan.policy = policy;
    tide_budgets_init(&r->options.plan.budgets);
    r->options.plan.budgets.arena_bytes = budget;
    for (uint32_t t = 0; t < r->machine.n_tiers; t++)
        if (r->machine.tier[t].kind != TIDE_TIER_CLIENT) r->options.plan.budgets.tier_bytes[t] = disk ? 64 << 20 : 0;
    return train(r, out);
}

static void assert_same(const result *a, const result *b) {
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_true(a->hash == b->hash);
    assert_true(a->accuracy == b->accuracy);
}

/* From all of the unconstrained arena to as little as the policy can do with. */
static void try_budgets(const char *spec, const char *policy, bool disk, uint64_t enough_percent) {
    rig r;
    result whole = {.hash = 0}, online;
    uint32_t n_moved = 0;
    rig_open(&r, spec);
    assert_ok(train(&r, &whole));
    for (uint64_t percent = 100; percent >= 20; percent -= 10) {
        uint64_t budget = whole.arena_bytes * percent / 100;
        tide_status status = train_online(&r, policy, budget, disk, &online);
        if (status == TIDE_E_FIT && percent < enough_percent) continue;
        if (status != TIDE_OK)
            fail_msg("%s, %s, %llu %%: %s", spec, policy, (unsigned long long)percent, tide_last_error());
        assert_true(online.arena_bytes <= budget);
        assert_same(&whole, &online);
        n_moved += online.saved_bytes > 0 || online.n_reruns > 0;
    }
    assert_true(n_moved > 0 || !disk);
    rig_close(&r);
}

static void test_delta(void **state) {
    (void)state;
    try_budgets("resnet-cifar:1", "delta", true, 50);
    try_budgets("mlp:784,64,512,512,64,10", "delta", true, 80);
}

static void test_cache(void **state) {
    (void)state;
    try_budgets("resnet-cifar:1", "cache", true, 50);
}

/* Without a tier what fits depends on what was dropped, and that on measured times. */
static void test_dtr(void **state) {
    (void)state;
    try_budgets("resnet-cifar:1", "dtr", false, 100);
}

/* One step online, then from a plan with the costs of that step: the same bits, and a plan to show. */
static void test_auto(void **state) {
    (void)state;
    rig r;
    result whole = {.hash = 0}, learned = {.hash = 0};
    rig_open(&r, "resnet-cifar:1");
    assert_ok(train(&r, &whole));
    r.options.mode = TIDE_MODE_AUTO;
    r.options.plan.policy = "delta";
    r.options.plan.budgets.arena_bytes = whole.arena_bytes * 60 / 100;
    assert_ok(train(&r, &learned));
    assert_true(learned.arena_bytes <= r.options.plan.budgets.arena_bytes);
    assert_true(learned.follows_plan);
    assert_same(&whole, &learned);
    rig_close(&r);
}

/* No plan fits: it stays online. */
static void test_auto_without_plan(void **state) {
    (void)state;
    rig r;
    result whole = {.hash = 0}, learned = {.hash = 0};
    rig_open(&r, "resnet-cifar:1");
    assert_ok(train(&r, &whole));
    r.options.mode = TIDE_MODE_AUTO;
    r.options.plan.policy = "liveness";
    r.options.plan.budgets.arena_bytes = whole.arena_bytes * 60 / 100;
    assert_ok(train(&r, &learned));
    assert_false(learned.follows_plan);
    assert_same(&whole, &learned);
    rig_close(&r);
}

/* Refused at the first op that cannot fit; the run says so from then on. */
static void test_too_small(void **state) {
    (void)state;
    rig r;
    result online;
    rig_open(&r, "resnet-cifar:1");
    assert_status(train_online(&r, "delta", 64 << 10, true, &online), TIDE_E_FIT);
    assert_status(train_online(&r, "liveness", UINT64_MAX, true, &online), TIDE_E_ARGUMENT);
    assert_error_has("not an online policy");
    rig_close(&r);
}

static void test_ranges(void **state) {
    (void)state;
    tide__ranges r = {0};
    uint64_t a = 0, b = 0, c = 0, d = 0;
    assert_ok(tide__ranges_init(&r, 100));
    assert_true(tide__ranges_take(&r, 30, &a) && tide__ranges_take(&r, 20, &b) && tide__ranges_take(&r, 50, &c));
    assert_false(tide__ranges_take(&r, 1, &d));
    assert_true(tide__ranges_take(&r, 0, &d));
    assert_ok(tide__ranges_give(&r, a, 30));
    assert_ok(tide__ranges_give(&r, c, 50));
    assert_int_equal(r.free.count, 2);
    assert_true(tide__ranges_take(&r, 25, &d)); /* best fit */
    assert_int_equal(d, a);
    assert_ok(tide__ranges_give(&r, d, 25));
    assert_ok(tide__ranges_give(&r, b, 20));
    assert_int_equal(r.free.count, 1);
    assert_int_equal(r.free_bytes, 100);
    tide__ranges_deinit(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_delta),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_dtr),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_auto_without_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
