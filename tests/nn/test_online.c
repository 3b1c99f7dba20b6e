/* Online training: no plan, decisions at the moment memory is short, and the bits of the unconstrained run. */
#include "support/test.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <tidemark/tidemark.h>

#include "run/drift.h"
#include "run/ranges.h"

enum { STEPS = 4 };

typedef struct result {
    float loss[STEPS];
    uint64_t hash, arena_bytes, saved_bytes;
    uint32_t n_reruns;
    double accuracy;
    bool follows_plan;
    uint64_t plan[STEPS]; /* the fingerprint of what each step followed; 0: none */
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
    r->options.plan.effort = TIDE_EFFORT_LOW; /* any plan will do */
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
        const tide_plan *plan = tide_trainer_plan(trainer);
        out->plan[i] = plan ? tide_plan_fingerprint(plan) : 0;
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

/* Under a budget the first plan is from estimates; the second step is timed, and the third follows a plan from that. */
static void test_planned_learns(void **state) {
    (void)state;
    rig r;
    result whole = {.hash = 0}, learned = {.hash = 0};
    rig_open(&r, "resnet-cifar:1");
    assert_ok(train(&r, &whole));
    for (int i = 1; i < STEPS; i++) assert_true(whole.plan[i] == whole.plan[0]); /* nothing to decide */
    r.options.plan.policy = "hybrid";
    r.options.plan.budgets.arena_bytes = whole.arena_bytes * 55 / 100;
    assert_ok(train(&r, &learned));
    assert_true(learned.arena_bytes <= r.options.plan.budgets.arena_bytes);
    assert_true(learned.plan[1] == learned.plan[0]);
    assert_true(learned.plan[2] != learned.plan[1]); /* its costs differ, so its prediction does */
    assert_same(&whole, &learned);
    rig_close(&r);
}

static int count_files(const char *folder) {
    DIR *d = opendir(folder);
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* What one training learned, the next one begins with, planned or automatic; for another budget there is nothing. */
static void test_plan_folder(void **state) {
    (void)state;
    rig r;
    char folder[] = "/tmp/tidemark-plans-XXXXXX", command[64];
    result whole = {.hash = 0}, first = {.hash = 0}, second = {.hash = 0}, third = {.hash = 0}, other = {.hash = 0};
    assert_non_null(mkdtemp(folder));
    rig_open(&r, "resnet-cifar:1");
    assert_ok(train(&r, &whole));
    r.options.plan.policy = "hybrid";
    r.options.plan.budgets.arena_bytes = whole.arena_bytes * 55 / 100;
    r.options.plan_folder = folder;
    assert_ok(train(&r, &first));
    assert_int_equal(count_files(folder), 1);
    assert_ok(train(&r, &second));
    r.options.mode = TIDE_MODE_AUTO;
    assert_ok(train(&r, &third));
    assert_true(second.plan[0] == first.plan[STEPS - 1] && third.plan[0] == first.plan[STEPS - 1]);
    r.options.plan.budgets.arena_bytes = whole.arena_bytes * 60 / 100;
    assert_ok(train(&r, &other));
    assert_true(other.plan[0] == 0); /* online */
    assert_int_equal(count_files(folder), 2);
    assert_same(&whole, &second);
    assert_same(&whole, &third);
    rig_close(&r);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* Predictions that do not come true, four times in a row, are a reason to plan anew, three times. */
static void test_drift(void **state) {
    (void)state;
    rig r;
    tide_trainer *trainer;
    tide__run_drift drift = {0};
    uint32_t n_replans = 0;
    rig_open(&r, "lenet");
    assert_ok(tide_trainer_create(&r.options, NULL, &trainer));
    const tide_plan *plan = tide_trainer_plan(trainer);
    uint64_t predicted = tide_plan_prediction(plan)->step_ns;
    for (int i = 0; i < 20; i++) assert_false(tide__run_drift_note(&drift, plan, predicted + predicted / 3));
    for (int i = 0; i < 3; i++) assert_false(tide__run_drift_note(&drift, plan, predicted * 2));
    assert_false(tide__run_drift_note(&drift, plan, predicted));
    for (int i = 0; i < 40; i++) n_replans += tide__run_drift_note(&drift, plan, i % 2 ? predicted * 2 : predicted / 2);
    assert_int_equal(n_replans, 3);
    tide_trainer_destroy(trainer);
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
    assert_status(train_online(&r, "cache:zzz", UINT64_MAX, true, &online), TIDE_E_ARGUMENT);
    assert_error_has("takes no argument");
    assert_status(train_online(&r, "delta:", UINT64_MAX, true, &online), TIDE_E_ARGUMENT);
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
        cmocka_unit_test(test_planned_learns),
        cmocka_unit_test(test_plan_folder),
        cmocka_unit_test(test_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
