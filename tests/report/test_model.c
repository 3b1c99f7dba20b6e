/* The report's model: what a plan decided is found again in its residencies, times agree with the simulator, and the
 * packed numbers, the pickle and the assets are what their readers expect. */
#include "support/test.h"

#include <unistd.h>

#include <tidemark/nn.h>

#include "report/assets.h"
#include "report/pack.h"
#include "report/pickle.h"
#include "report/report.h"
#include "report/run_file.h"

static const char *const decisions_text =
    "{\"tidemark\":\"decisions\",\"version\":1}\n"
    "{\"swap\":\"pool1\",\"tier\":\"ram\",\"after\":\"conv2\",\"before\":\"conv2.bwd-weights\"}\n"
    "{\"rerun\":\"conv2\",\"before\":\"relu2.bwd\"}\n";

typedef struct fixture {
    tide_machine machine;
    tide_model *model;
    tide_step *step;
    tide_plan *plan;
    tide_report *report;
} fixture;

static void open_fixture(fixture *f, const char *policy) {
    char path[] = "/tmp/tide-report-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs(decisions_text, file);
    fclose(file);
    tide_step_options step;
    tide_plan_options plan;
    tide_report_options options;
    tide_report_options_init(&options);
    tide_step_options_init(&step);
    tide_plan_options_init(&plan);
    tide_machine_init_default(&f->machine);
    step.machine = &f->machine;
    step.optimizer = TIDE_MOMENTUM;
    plan.policy = policy;
    plan.decisions = strcmp(policy, "manual") == 0 ? path : NULL;
    assert_ok(tide_model_create("lenet", NULL, &f->model));
    assert_ok(tide_step_create(f->model, &step, &f->step));
    assert_ok(tide_plan_create(tide_step_program(f->step), &f->machine, &plan, NULL, &f->plan));
    assert_ok(tide_report_create(tide_step_program(f->step), &f->machine, f->plan, &options, &f->report));
    remove(path);
}

static void close_fixture(fixture *f) {
    tide_report_destroy(f->report);
    tide_plan_destroy(f->plan);
    tide_step_destroy(f->step);
    tide_model_destroy(f->model);
}

static const char *tensor_name(const fixture *f, tide_id tensor) {
    return tide_program_tensor(f->report->program, tensor)->name;
}

/* ---- decisions ---- */

static void decisions_are_found_again(void **state) {
    fixture f;
    open_fixture(&f, "manual");
    uint32_t counts[3] = {0};
    for (size_t i = 0; i < f.report->choices.count; i++) {
        const tide_choice *c = &f.report->choices.data[i];
        counts[c->kind]++;
        assert_true(c->from_ns <= c->to_ns);
        if (c->kind == TIDE_CHOICE_SWAP) {
            assert_string_equal(tensor_name(&f, c->tensor), "pool1");
            assert_string_equal(f.machine.tier[c->tier].name, "ram");
            assert_int_equal(tide_plan_action(f.plan, c->out).kind, TIDE_SAVE);
            assert_int_equal(tide_plan_action(f.plan, c->in).kind, TIDE_LOAD);
            assert_string_equal(tide_program_op(f.report->program, tide_plan_action(f.plan, c->next_run).op)->name,
                                "conv2.bwd-weights");
            assert_int_equal(f.report->stays[c->before].fate, TIDE_FATE_SWAP_OUT);
            assert_int_equal(f.report->stays[c->after].fate, TIDE_FATE_SWAP_IN);
        }
        if (c->kind == TIDE_CHOICE_RECOMPUTE) {
            assert_string_equal(tensor_name(&f, c->tensor), "conv2");
            assert_true(f.report->acts[c->in].rerun);
            assert_int_equal(f.report->stays[c->before].fate, TIDE_FATE_DROP);
            assert_int_equal(f.report->stays[c->after].fate, TIDE_FATE_RECOMPUTE);
        }
    }
    assert_int_equal(counts[TIDE_CHOICE_INPUT], 2);
    assert_int_equal(counts[TIDE_CHOICE_SWAP], 1);
    assert_int_equal(counts[TIDE_CHOICE_RECOMPUTE], 1);
    close_fixture(&f);
}

static void liveness_decides_nothing(void **state) {
    fixture f;
    open_fixture(&f, "liveness");
    for (size_t i = 0; i < f.report->choices.count; i++)
        assert_int_equal(f.report->choices.data[i].kind, TIDE_CHOICE_INPUT);
    for (uint32_t i = 0; i < tide_plan_residency_count(f.plan); i++)
        assert_true(f.report->stays[i].fate == TIDE_FATE_KEEP || f.report->stays[i].fate == TIDE_FATE_INPUT ||
                    f.report->stays[i].fate == TIDE_FATE_WORKSPACE);
    close_fixture(&f);
}

/* ---- times ---- */

/* Bytes of all stays at the report's peak, which must be what the simulator calls the peak. */
static void stays_add_up_to_the_peak(void **state) {
    fixture f;
    open_fixture(&f, "manual");
    const tide_report *r = f.report;
    uint64_t at_action = 0, arena = tide_plan_arena_bytes(f.plan);
    for (uint32_t i = 0; i < tide_plan_residency_count(f.plan); i++) {
        const tide_stay *s = &r->stays[i];
        assert_true(s->from_ns <= s->to_ns && s->to_ns <= r->timeline->prediction.step_ns);
        assert_true(s->begin <= s->end);
        if (s->begin <= r->peak_action && r->peak_action < s->end)
            at_action += tide_plan_residency(f.plan, i)->size_bytes;
    }
    assert_true(at_action <= arena);
    assert_int_equal(at_action, r->timeline->prediction.peak_bytes);
    close_fixture(&f);
}

static void waits_have_causes(void **state) {
    fixture f;
    open_fixture(&f, "manual");
    uint64_t waited = 0;
    for (uint32_t i = 0; i < f.report->timeline->n_actions; i++) {
        const tide__act *act = &f.report->acts[i];
        assert_true((act->wait_ns > 0) == (act->cause != TIDE_NONE));
        if (act->cause != TIDE_NONE)
            assert_int_equal(f.report->timeline->end_ns[act->cause], f.report->timeline->start_ns[i]);
        if (tide_plan_action(f.plan, i).queue == 0) waited += act->wait_ns;
    }
    assert_true(waited > 0 && waited <= f.report->timeline->prediction.exposed_ns);
    close_fixture(&f);
}

/* ---- packing ---- */

static uint64_t number_at(const void *context, size_t i) { return ((const uint64_t *)context)[i]; }
static const char *text_at(const void *context, size_t i) { return ((const char *const *)context)[i]; }

static void columns_are_varints(void **state) {
    const uint64_t numbers[] = {0, 127, 128, UINT64_MAX};
    const uint8_t plain[] = {0, 127, 0x80, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
    const uint64_t steps[] = {5, 3, 4};
    const uint8_t delta[] = {10, 3, 2};
    tide__pack p = {0};
    tide__pack_column(&p, numbers, number_at, 4, 0);
    assert_ok(p.status);
    assert_int_equal(p.bytes.count, sizeof plain);
    assert_memory_equal(p.bytes.data, plain, sizeof plain);
    p.bytes.count = 0;
    tide__pack_column(&p, steps, number_at, 3, 1);
    assert_int_equal(p.bytes.count, sizeof delta);
    assert_memory_equal(p.bytes.data, delta, sizeof delta);
    tide__pack_free(&p);
}

static void names_share_their_beginnings(void **state) {
    const char *const names[] = {"conv1", "conv1.dx", "", "a\nb"};
    const uint8_t wanted[] = {0, 5, 'c', 'o', 'n', 'v', '1', 5, 3, '.', 'd', 'x', 0, 0, 0, 3, 'a', '?', 'b'};
    tide__pack p = {0};
    tide__pack_names(&p, names, text_at, 4);
    assert_ok(p.status);
    assert_int_equal(p.bytes.count, sizeof wanted);
    assert_memory_equal(p.bytes.data, wanted, sizeof wanted);
    tide__pack_free(&p);
}

static void base64_pads(void **state) {
    static const char *const wanted[] = {"", "TQ==", "TWE=", "TWFu"};
    for (size_t n = 0; n < 4; n++) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        tide__base64_write(f, (const uint8_t *)"Man", n);
        fclose(f);
        assert_string_equal(text, wanted[n]);
        free(text);
    }
}

/* ---- pickle ---- */

static void pickled_numbers_are_signed(void **state) {
    static const struct {
        uint64_t value;
        const char *bytes;
        size_t n;
    } cases[] = {
        {0, "K\x00", 2},
        {255, "K\xff", 2},
        {256, "J\x00\x01\x00\x00", 5},
        {INT32_MAX, "J\xff\xff\xff\x7f", 5},
        {UINT64_C(1) << 31, "\x8a\x05\x00\x00\x00\x80\x00", 7},
        {UINT64_MAX, "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", 11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t size;
        tide__pickle p;
        FILE *f = open_memstream(&text, &size);
        tide__pickle_open(&p, f);
        tide__pickle_u64(&p, cases[i].value);
        fclose(f);
        assert_int_equal(size, 2 + cases[i].n);
        assert_memory_equal(text + 2, cases[i].bytes, cases[i].n);
        free(text);
    }
}

/* ---- a run's record ---- */

/* The record of a run that took twice as long as predicted, on one rank or on several alike that begin 500 ns apart, the last
 * first. The caller frees it. */
static char *make_record(const fixture *f, const char *path, uint32_t n_ranks) {
    uint32_t n = f->report->timeline->n_actions, tensors = tide_program_tensor_count(f->report->program);
    tide_timeline slow = *f->report->timeline;
    tide_shape *shapes = calloc(tensors, sizeof *shapes);
    slow.start_ns = calloc(n, sizeof *slow.start_ns);
    slow.end_ns = calloc(n, sizeof *slow.end_ns);
    for (uint32_t i = 0; i < n; i++) {
        slow.start_ns[i] = 2 * f->report->timeline->start_ns[i];
        slow.end_ns[i] = 2 * f->report->timeline->end_ns[i];
    }
    shapes[3] = (tide_shape){32, 6, 28, 28};
    const tide_record_parts record = {.size = sizeof record,
                                      .machine = &f->machine,
                                      .program = f->report->program,
                                      .plan = f->plan,
                                      .timeline = &slow,
                                      .shapes = shapes,
                                      .budget_bytes = 12345678};
    static const char measured[] = "{\"model\":\"lenet\",\"steps\":2,\"runs\":[{\"policy\":\"manual\","
                                   "\"arena_bytes\":10,\"step_ns\":7}]}";
    char *text;
    size_t size;
    assert_ok(tide_record_begin(&record, &text, &size));
    tide_record_rank ranks[3];
    for (uint32_t i = 0; i < n_ranks; i++)
        ranks[i] = (tide_record_rank){text, size, i ? "second" : "first", UINT64_C(500) * (n_ranks - 1 - i)};
    if (n_ranks > 1)
        assert_ok(tide_record_write_ranks(ranks, n_ranks, measured, sizeof measured - 1, path));
    else
        assert_ok(tide_record_write(text, size, measured, sizeof measured - 1, path));
    free(text);
    free(shapes);
    free(slow.start_ns);
    free(slow.end_ns);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text = calloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void records_come_back(void **state) {
    char path[] = "/tmp/tide-record-XXXXXX";
    close(mkstemp(path));
    fixture f;
    open_fixture(&f, "manual");
    char *text = make_record(&f, path, 1);
    tide_record *r;
    assert_true(tide_record_is(text, strlen(text)));
    assert_ok(tide_record_read_memory(text, strlen(text), "record", &r));
    assert_int_equal(tide_record_budget_bytes(r), 12345678);
    assert_true(tide_plan_fingerprint(tide_record_plan(r)) == tide_plan_fingerprint(f.plan));
    assert_int_equal(r->shapes.data[3].c, 6);
    assert_int_equal(r->measured.runs.count, 1);
    tide_report_options options;
    tide_report *report;
    tide_report_options_init(&options);
    options.record = r;
    assert_ok(tide_report_create(r->program, &r->machine, r->plan, &options, &report));
    assert_ptr_equal(report->shapes, r->shapes.data);
    assert_ptr_equal(tide__report_measured(report), &r->measured);
    const tide_prediction *planned = &report->timeline->prediction, *ran = &report->ran->timeline->prediction;
    assert_int_equal(planned->step_ns, f.report->timeline->prediction.step_ns);
    assert_int_equal(ran->step_ns, 2 * planned->step_ns);
    assert_int_equal(ran->exposed_ns, 2 * planned->exposed_ns);
    assert_int_equal(ran->peak_bytes, planned->peak_bytes);
    tide_report_destroy(report);
    tide_record_destroy(r);
    free(text);
    remove(path);
    close_fixture(&f);
}

static void ranks_are_on_one_clock(void **state) {
    char path[] = "/tmp/tide-record-XXXXXX";
    close(mkstemp(path));
    fixture f;
    open_fixture(&f, "manual");
    char *text = make_record(&f, path, 3);
    tide_record *r;
    assert_ok(tide_record_read_memory(text, strlen(text), "record", &r));
    assert_int_equal(tide_record_rank_count(r), 3);
    assert_ptr_equal(tide_record_of_rank(r, 0), r);
    assert_null(tide_record_of_rank(r, 3));
    assert_true(tide_plan_fingerprint(tide_record_plan(tide_record_of_rank(r, 2))) == tide_plan_fingerprint(f.plan));
    tide_report_options options;
    tide_report *report;
    tide_report_options_init(&options);
    options.record = r;
    assert_ok(tide_report_create(r->program, &r->machine, r->plan, &options, &report));
    assert_int_equal(report->ranks.count, 3);
    assert_string_equal(report->ranks.data[2].host, "second");
    uint32_t n = report->timeline->n_actions;
    assert_int_equal(report->rank_acts.count, 3 * n);
    for (uint32_t i = 0; i < n; i++) {
        const tide__rank_act *first = &report->rank_acts.data[i], *last = &report->rank_acts.data[2 * n + i];
        assert_int_equal(last->rank, 2);
        assert_int_equal(first->start_ns, last->start_ns + 1000);
        assert_int_equal(last->start_ns, report->ran->timeline->start_ns[i]);
        assert_int_equal(last->wait_ns, report->ran->acts[i].wait_ns);
        assert_int_equal(last->cause, first->cause == TIDE_NONE ? TIDE_NONE : 2 * n + first->cause);
        assert_string_equal(first->name, last->name);
    }
    tide_report_destroy(report);
    tide_record_destroy(r);
    free(text);
    remove(path);
    close_fixture(&f);
}

/* A reader would refuse them. */
static void ranks_that_cannot_be_read_are_not_written(void **state) {
    static const char path[] = "/tmp/tide-record-of-nobody";
    char host[65] = {0};
    memset(host, 'h', 64);
    tide_record_rank rank = {.begun = "", .host = host};
    assert_int_equal(tide_record_write_ranks(&rank, 1, "", 0, path), TIDE_E_ARGUMENT);
    host[63] = 0;
    rank.begin_ns = (UINT64_C(1) << 62) + 1;
    assert_int_equal(tide_record_write_ranks(&rank, 1, "", 0, path), TIDE_E_ARGUMENT);
    assert_int_equal(access(path, F_OK), -1);
}

/* A cut anywhere is noticed, and so is a part that is not what it says. */
static void damaged_records_are_refused(void **state) {
    char path[] = "/tmp/tide-record-XXXXXX";
    close(mkstemp(path));
    fixture f;
    open_fixture(&f, "liveness");
    char *text = make_record(&f, path, 2);
    size_t size = strlen(text);
    tide_record *r;
    for (size_t cut = 0; cut + 1 < size; cut += 1 + cut / 40) /* without the last newline it is whole */
        assert_int_equal(tide_record_read_memory(text, cut, "record", &r), TIDE_E_FORMAT);
    static const char *const words[] = {
        "\"run\"",  "\"version\":1,", "\"part\":\"times\"", "\"start_ns\":",      "\"shape\":[", "\"part\":\"ranks\"",
        "\"host\"", "\"begin_ns\"",   "\"part\":\"rank\"",  "{\"end\":{\"parts\""};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *at = strstr(text, words[i]);
        assert_non_null(at);
        at[2] ^= 4;
        assert_int_equal(tide_record_read_memory(text, size, "record", &r), TIDE_E_FORMAT);
        at[2] ^= 4;
    }
    assert_ok(tide_record_read_memory(text, size, "record", &r));
    tide_record_destroy(r);
    free(text);
    remove(path);
    close_fixture(&f);
}

/* ---- assets ---- */

static void assets_are_there(void **state) {
    static const char *const names[] = {"report.html", "report.css", TIDE__REPORT_SCRIPTS};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tide__asset *a = tide__asset_find(names[i]);
        if (!a || a->size == 0) fail_msg("%s is not part of the library", names[i]);
        for (size_t k = 0; a && k + 8 < a->size; k++) /* the page would end there */
            if (i > 0 && memcmp(a->bytes + k, "</script", 8) == 0) fail_msg("%s ends its own script", names[i]);
    }
    assert_null(tide__asset_find("nosuch"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions_are_found_again),
        cmocka_unit_test(liveness_decides_nothing),
        cmocka_unit_test(stays_add_up_to_the_peak),
        cmocka_unit_test(waits_have_causes),
        cmocka_unit_test(columns_are_varints),
        cmocka_unit_test(names_share_their_beginnings),
        cmocka_unit_test(base64_pads),
        cmocka_unit_test(pickled_numbers_are_signed),
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(ranks_are_on_one_clock),
        cmocka_unit_test(ranks_that_cannot_be_read_are_not_written),
        cmocka_unit_test(damaged_records_are_refused),
        cmocka_unit_test(assets_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
