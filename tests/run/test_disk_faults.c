/* Whole trainings on a disk that fails at the n-th request, for every n: the result is right or there is none. A fault
 * that can be made good leaves no trace in the bits; any other ends the step with a text, poisons the run, and never
 * hangs. */
#include "support/test.h"

#include <unistd.h>

#include <tidemark/tidemark.h>

#include "support/faulty_disk.h"
#include "support/training.h"

enum { STEPS = 2, MOST_STEPS = 4, PATIENCE_S = 900 };

/* The linker puts it before the library's own list; the names are its. NOLINTBEGIN(bugprone-reserved-identifier) */
const tide__disk_engine *const *__wrap_tide__disk_engines(void);
const tide__disk_engine *const *__wrap_tide__disk_engines(void) { return faulty_disk_engines(); }
/* NOLINTEND(bugprone-reserved-identifier) */

typedef struct setting {
    tide_device *device;
    tide_model *model;
    tide_machine machine;
    tide_digits digits;
    tide_data data;
    tide_trainer_options options;
    char decisions[64];
    int steps;
} setting;

typedef struct result {
    tide_status status; /* the first failure */
    char text[512];
    float loss[MOST_STEPS];
    uint64_t hash, saved_bytes;
} result;

static void write_decisions(setting *s) {
    snprintf(s->decisions, sizeof s->decisions, "/tmp/tidemark-faults-XXXXXX");
    int fd = mkstemp(s->decisions);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    fputs("{\"tidemark\":\"decisions\",\"version\":1}\n"
          "{\"swap\":\"pool1\",\"tier\":\"disk\",\"after\":\"conv2\",\"before\":\"conv2.bwd-weights\"}\n"
          "{\"swap\":\"pool2\",\"tier\":\"disk\",\"after\":\"fc1\",\"before\":\"fc1.bwd-weights\"}\n",
          f);
    assert_int_equal(fclose(f), 0);
}

static void open_setting(setting *s) {
    tide_device_options d;
    tide_model_options m;
    tide_device_options_init(&d);
    tide_model_options_init(&m);
    d.threads = 1;
    m.batch = 96; /* the swapped tensors take more than one request */
    m.channels = 1;
    m.height = m.width = 28;
    m.classes = 10;
    assert_ok(tide_machine_load("cpu", &s->machine));
    assert_ok(tide_device_open("cpu", &d, &s->device));
    assert_ok(tide_model_create("lenet", &m, &s->model));
    s->digits = (tide_digits){.seed = 3, .channels = 1, .height = 28, .width = 28};
    assert_ok(tide_data_digits(&s->digits, 100, &s->data));
    write_decisions(s);
    s->steps = STEPS;
    tide_trainer_options_init(&s->options);
    s->options.model = s->model;
    s->options.device = s->device;
    s->options.machine = &s->machine;
    s->options.data = &s->data;
    s->options.plan.policy = "manual";
    s->options.plan.decisions = s->decisions;
}

static void close_setting(setting *s) {
    tide_model_destroy(s->model);
    tide_device_close(s->device);
    unlink(s->decisions);
}

/* After a failed step the trainer refuses everything that would use its values. */
static void check_poisoned(tide_trainer *t) {
    float loss;
    uint64_t hash;
    double accuracy;
    tide_data data;
    tide_digits digits = {.seed = 3, .channels = 1, .height = 28, .width = 28};
    assert_ok(tide_data_digits(&digits, 8, &data));
    assert_status(tide_trainer_step(t, &loss, NULL), TIDE_E_POISONED);
    assert_error_has("failed");
    assert_status(tide_trainer_hash(t, &hash), TIDE_E_POISONED);
    assert_status(tide_trainer_evaluate(t, &data, 8, &accuracy), TIDE_E_POISONED);
}

static result train(const setting *s) {
    result r = {.status = TIDE_OK};
    tide_trainer *t = NULL;
    r.status = tide_trainer_create(&s->options, NULL, &t);
    for (int i = 0; i < s->steps && r.status == TIDE_OK; i++) {
        tide_step_report report;
        r.status = tide_trainer_step(t, &r.loss[i], &report);
        if (r.status == TIDE_OK) r.saved_bytes = report.saved_bytes;
    }
    bool stepped = r.status == TIDE_OK;
    if (stepped) r.status = tide_trainer_hash(t, &r.hash);
    snprintf(r.text, sizeof r.text, "%s", tide_last_error());
    if (!stepped && t) check_poisoned(t);
    tide_trainer_destroy(t);
    return r;
}

static void judge(const result *r, const result *whole, fault_kind kind, long n) {
    if (faulty_disk_fired() && !fault_is_benign(kind)) {
        if (r->status != TIDE_E_IO || !strstr(r->text, "the spill file"))
            fail_msg("%s at %ld: %s: %s", fault_name(kind), n, tide_status_name(r->status), r->text);
        return;
    }
    if (r->status != TIDE_OK) fail_msg("%s at %ld: %s", fault_name(kind), n, r->text);
    if (r->hash != whole->hash || memcmp(r->loss, whole->loss, sizeof r->loss) != 0)
        fail_msg("%s at %ld: other bits", fault_name(kind), n);
}

/* Faults at every stride-th request, from another first one for each kind. */
static void try_engine(const setting *s, const tide__disk_engine *engine, long stride) {
    faulty_disk_arm(engine, FAULT_NONE, 0);
    result whole = train(s);
    assert_int_equal(whole.status, TIDE_OK);
    long total = faulty_disk_requests();
    assert_true(whole.saved_bytes > 0 && total > 4 * STEPS);
    for (int kind = FAULT_NONE + 1; kind < FAULT_COUNT; kind++) {
        if (kind == FAULT_LOST) continue; /* the arena may not be written to by nobody knows whom */
        long first = kind == FAULT_RESERVE ? 0 : kind % stride, end = kind == FAULT_RESERVE ? 1 : total;
        for (long n = first; n < end; n += stride) {
            alarm(PATIENCE_S); /* never a hang */
            faulty_disk_arm(engine, (fault_kind)kind, n);
            result r = train(s);
            judge(&r, &whole, (fault_kind)kind, n);
            assert_true(faulty_disk_fired() || kind == FAULT_FLIP); /* which only reads suffer */
        }
    }
    alarm(0);
}

static void test_every_request(void **state) {
    (void)state;
    setting s;
    open_setting(&s);
    try_engine(&s, &tide__disk_threads, round_share());
    void *lane;
    if (tide__disk_uring.open(-1, 8, &lane) == 0) {
        tide__disk_uring.close(lane);
        try_engine(&s, &tide__disk_uring, 3 * round_share()); /* the tier treats both alike */
    }
    close_setting(&s);
}

/* ---- plans that change ---- */

/* Between two steps values move to where the next plan has them, and files change their sizes. */
static void let_plans_change(setting *s) {
    tide_trainer *t;
    s->options.plan.policy = NULL;
    s->options.plan.decisions = NULL;
    assert_ok(tide_trainer_create(&s->options, NULL, &t));
    s->options.plan.budgets.arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(t)) * 75 / 100;
    tide_trainer_destroy(t);
    for (uint32_t i = 0; i < s->machine.n_tiers; i++)
        if (s->machine.tier[i].kind == TIDE_TIER_RAM) s->options.plan.budgets.tier_bytes[i] = 0;
    s->options.plan.policy = "hybrid:norerun"; /* so that something moves */
    s->options.plan.effort = TIDE_EFFORT_LOW;
    s->steps = MOST_STEPS;
}

/* Plans are made from measured times: the n-th request is not the same one each time, and a later reservation that fails,
 * or a bit that flips where nobody has written, does no harm. */
static void judge_changing(const result *r, const result *whole, fault_kind kind, long n) {
    bool harmless = fault_is_benign(kind) || kind == FAULT_FLIP || (kind == FAULT_RESERVE && n > 0);
    bool same = r->hash == whole->hash && memcmp(r->loss, whole->loss, sizeof r->loss) == 0;
    bool said = r->status == TIDE_E_IO && strstr(r->text, "the spill file");
    bool right = r->status == TIDE_OK && same && (harmless || !faulty_disk_fired());
    if (!right && (fault_is_benign(kind) || !said))
        fail_msg("%s at %ld: %s: %s", fault_name(kind), n, tide_status_name(r->status), r->text);
}

static void test_plans_that_change(void **state) {
    (void)state;
    const long places = (long)rounds(4);
    static const fault_kind kinds[] = {FAULT_SHORT, FAULT_EIO, FAULT_ENOSPC, FAULT_FLIP, FAULT_RESERVE};
    setting s;
    open_setting(&s);
    let_plans_change(&s);
    faulty_disk_arm(&tide__disk_threads, FAULT_NONE, 0);
    result whole = train(&s);
    assert_int_equal(whole.status, TIDE_OK);
    assert_true(whole.saved_bytes > 0);
    long total = faulty_disk_requests();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (long k = 0; k < places; k++) {
            long n = kinds[i] == FAULT_RESERVE ? k : (2 * k + 1) * total / (2 * places);
            alarm(PATIENCE_S);
            faulty_disk_arm(&tide__disk_threads, kinds[i], n);
            result r = train(&s);
            judge_changing(&r, &whole, kinds[i], n);
        }
    alarm(0);
    close_setting(&s);
}

/* ---- parked values ---- */

/* An evaluation needs the room of weights in the smallest arena, whatever the library and its layouts, so that they wait on the disk. */
static tide_trainer *start_tight(training *t) {
    tide_trainer *trainer;
    training_open(t, "lenet", 2);
    trainer = training_start(t);
    t->options.plan.budgets.arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer));
    tide_trainer_destroy(trainer);
    trainer = training_start(t);
    training_run(trainer, 1);
    return trainer;
}

/* An evaluation that met a fault says so, and afterwards every value is there, or steps say what happened. */
static void judge_parking(training *t, fault_kind kind, long n, float expected, bool *poisoned) {
    tide_trainer *trainer = start_tight(t);
    double accuracy;
    float loss = 0;
    alarm(PATIENCE_S);
    faulty_disk_arm(&tide__disk_threads, kind, n);
    tide_status status = tide_trainer_evaluate(trainer, &t->data, 8, &accuracy);
    bool fatal = faulty_disk_fired() && !fault_is_benign(kind);
    if (kind == FAULT_FLIP && status == TIDE_OK)
        fatal = false; /* in bytes that nobody had written: the loss will tell */
    if (status != (fatal ? TIDE_E_IO : TIDE_OK) || (fatal && !strstr(tide_last_error(), "the spill file")))
        fail_msg("%s at %ld: %s: %s", fault_name(kind), n, tide_status_name(status), tide_last_error());
    faulty_disk_arm(&tide__disk_threads, FAULT_NONE, 0);
    status = tide_trainer_step(trainer, &loss, NULL);
    if (status == TIDE_OK && loss != expected) fail_msg("%s at %ld: another loss", fault_name(kind), n);
    if (status != TIDE_OK && (status != TIDE_E_POISONED || !strstr(tide_last_error(), "the spill file")))
        fail_msg("%s at %ld: %s: %s", fault_name(kind), n, tide_status_name(status), tide_last_error());
    *poisoned |= status != TIDE_OK;
    alarm(0);
    tide_trainer_destroy(trainer);
    training_close(t);
}

static void test_parked_values(void **state) {
    (void)state;
    static const fault_kind kinds[] = {FAULT_SHORT, FAULT_EIO, FAULT_FLIP, FAULT_RESERVE};
    training t;
    double accuracy;
    float expected = 0;
    bool poisoned = false;
    const long stride = round_share() > 1 ? 7 : 1;
    faulty_disk_arm(&tide__disk_threads, FAULT_NONE, 0);
    tide_trainer *trainer = start_tight(&t);
    assert_ok(tide_trainer_evaluate(trainer, &t.data, 8, &accuracy));
    long total = faulty_disk_requests();
    assert_true(total > 4);
    assert_ok(tide_trainer_step(trainer, &expected, NULL));
    tide_trainer_destroy(trainer);
    training_close(&t);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (long n = 0; n < (kinds[i] == FAULT_RESERVE ? 1 : total); n += stride)
            judge_parking(&t, kinds[i], n, expected, &poisoned);
    assert_true(poisoned);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parked_values), cmocka_unit_test(test_plans_that_change),
                                       cmocka_unit_test(test_every_request)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
