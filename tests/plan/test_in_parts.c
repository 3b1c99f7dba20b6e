/* Plans in parts: what does not fit whole fits in parts, the plan says its cut, and the verifier takes it for that program alone. */
#include "support/test.h"

#include "plan/files.h"

enum { LAYERS = 4, UNITS = 8, LAYER_BYTES = 8 << 20, WEIGHT_BYTES = 64 << 10 };

static tide_id add(tide_program_builder *b, uint64_t size_bytes, tide_start start, bool keep) {
    tide_id id;
    const tide_tensor t = {.size_bytes = size_bytes, .start = start, .keep = keep};
    assert_ok(tide_program_builder_tensor(b, &t, &id));
    return id;
}

static void op(tide_program_builder *b, tide_id x, tide_id w, tide_id y, tide_along along) {
    static const tide_along reads[] = {TIDE_ALONG_CUT, TIDE_ALONG_WHOLE};
    static const tide_variant variant = {.cost_ns = 2000000};
    const tide_split split = {.units = UNITS, .bits_class = along == TIDE_ALONG_SUM, .reads = reads, .writes = &along};
    const tide_id both[] = {x, w};
    tide_op o = {.rerunnable = true, .n_reads = 2, .n_writes = 1, .n_variants = 1, .reads = both, .writes = &y};
    o.variants = &variant;
    o.split = &split;
    assert_ok(tide_program_builder_op(b, &o, NULL));
}

/* Layers one after the other; at the end a small value, in place of a loss, of all samples. */
static tide_program *make_program(bool sum) {
    tide_program_builder *b;
    tide_program *p;
    assert_ok(tide_program_builder_create("layers", false, &b));
    tide_id x = add(b, LAYER_BYTES, TIDE_START_CLIENT, false);
    const tide_id w = add(b, WEIGHT_BYTES, TIDE_START_PRESENT, true);
    for (uint32_t i = 0; i < LAYERS; i++) {
        const tide_id y = add(b, LAYER_BYTES, TIDE_START_ABSENT, false);
        op(b, x, w, y, TIDE_ALONG_CUT);
        x = y;
    }
    op(b, x, w, add(b, UNITS * 4, TIDE_START_ABSENT, true), sum ? TIDE_ALONG_SUM : TIDE_ALONG_CUT);
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

static tide_plan_options options_for(uint64_t budget_bytes) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.policy = "hybrid";
    o.effort = TIDE_EFFORT_LOW;
    o.budgets.arena_bytes = budget_bytes;
    return o;
}

static tide_machine machine;

static void test_fits(void **state) {
    (void)state;
    tide_program *p = make_program(false), *in_parts = NULL, *again;
    tide_plan *plan = NULL;
    tide_fit_report fit;
    tide_plan_options o = options_for(LAYER_BYTES);
    assert_status(tide_plan_create(p, &machine, &o, &fit, &plan), TIDE_E_FIT);
    assert_ok(tide_plan_create_in_parts(p, &machine, &o, 0, &fit, &in_parts, &plan));
    const uint32_t parts = tide_plan_parts(plan);
    assert_true(parts > 1 && tide_plan_arena_bytes(plan) <= LAYER_BYTES);
    assert_ok(tide_plan_verify(plan, in_parts, &machine, &o.budgets, NULL));
    assert_status(tide_plan_verify(plan, p, &machine, NULL, NULL), TIDE_E_PLAN); /* not whole */
    assert_ok(tide_program_split(p, parts == 2 ? 4 : 2, false, &again));
    assert_status(tide_plan_verify(plan, again, &machine, NULL, NULL), TIDE_E_PLAN); /* nor in other parts */
    tide_program_destroy(again);
    tide_plan_destroy(plan);
    tide_program_destroy(in_parts);
    o.budgets.arena_bytes = 1000;
    fit.op = 7;
    assert_status(tide_plan_create_in_parts(p, &machine, &o, 0, &fit, &in_parts, &plan), TIDE_E_FIT);
    assert_true(fit.op == TIDE_NONE && fit.bound_op == TIDE_NONE);
    uint64_t least = UINT64_MAX;
    for (uint32_t n = 1; n <= UNITS; n *= 2) {
        tide_fit_report own;
        assert_status(tide_plan_create_in_parts(p, &machine, &o, n, &own, &in_parts, &plan), TIDE_E_FIT);
        if (own.bound_bytes < least) least = own.bound_bytes;
    }
    assert_true(least > 0 && fit.bound_bytes == least && fit.needed_bytes >= least);
    assert_status(tide_plan_create_in_parts(p, &machine, &o, 3, &fit, &in_parts, &plan), TIDE_E_ARGUMENT);
    tide_program_destroy(p);
}

/* Enough memory: whole. The smallest budget: in as many parts as there are. */
static void test_choice(void **state) {
    (void)state;
    tide_program *p = make_program(false), *in_parts;
    tide_plan *plan;
    tide_plan_options o = options_for(UINT64_MAX);
    assert_ok(tide_plan_create_in_parts(p, &machine, &o, 0, NULL, &in_parts, &plan));
    const uint64_t whole_ns = tide_plan_prediction(plan)->step_ns;
    tide_plan_destroy(plan);
    tide_program_destroy(in_parts);
    o.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SMALLEST};
    assert_ok(tide_plan_create_in_parts(p, &machine, &o, 0, NULL, &in_parts, &plan));
    assert_int_equal(tide_plan_parts(plan), UNITS);
    assert_in_range(tide_plan_arena_bytes(plan), 2 * LAYER_BYTES / UNITS, 2 * LAYER_BYTES / UNITS + 2 * WEIGHT_BYTES);
    assert_true(tide_plan_prediction(plan)->step_ns >= whole_ns / 2);
    tide_plan_destroy(plan);
    tide_program_destroy(in_parts);
    tide_program_destroy(p);
}

/* Sums that would take longer than a program may: the program stays whole. And options of an older caller have no smallest. */
static void test_no_parts(void **state) {
    (void)state;
    static const tide_along cut = TIDE_ALONG_CUT, sum = TIDE_ALONG_SUM;
    static const tide_variant variant = {.cost_ns = 100};
    const tide_split split = {.units = UNITS, .sum_cost_ns = UINT64_MAX, .reads = &cut, .writes = &sum};
    tide_program_builder *b;
    tide_program *p, *in_parts;
    tide_plan *plan;
    assert_ok(tide_program_builder_create("sum", false, &b));
    const tide_id x = add(b, LAYER_BYTES, TIDE_START_CLIENT, false), y = add(b, 64, TIDE_START_ABSENT, true);
    tide_op o = {.n_reads = 1, .n_writes = 1, .n_variants = 1, .reads = &x, .writes = &y, .variants = &variant};
    o.split = &split;
    assert_ok(tide_program_builder_op(b, &o, NULL));
    assert_ok(tide_program_builder_finish(b, &p));
    tide_plan_options options = options_for(UINT64_MAX);
    options.arena_budget.kind = TIDE_BUDGET_SMALLEST;
    options.size = offsetof(tide_plan_options, arena_budget);
    assert_ok(tide_plan_create_in_parts(p, &machine, &options, 0, NULL, &in_parts, &plan));
    assert_true(tide_plan_parts(plan) <= 1);
    assert_status(tide_plan_create_in_parts(p, &machine, &options, 2, NULL, &in_parts, &plan), TIDE_E_OVERFLOW);
    tide_plan_destroy(plan);
    tide_program_destroy(in_parts);
    tide_program_destroy(p);
}

/* Less memory is never faster, and what fits with less is never refused. */
static void test_budgets(void **state) {
    (void)state;
    tide_program *p = make_program(false), *in_parts;
    uint64_t last_ns = UINT64_MAX;
    for (uint64_t budget = LAYER_BYTES / 2; budget <= 4 * (uint64_t)LAYER_BYTES; budget += LAYER_BYTES / 2) {
        const tide_plan_options o = options_for(budget);
        tide_plan *plan = NULL;
        tide_status status = tide_plan_create_in_parts(p, &machine, &o, 0, NULL, &in_parts, &plan);
        if (status == TIDE_E_FIT && last_ns == UINT64_MAX) continue;
        assert_ok(status);
        assert_true(tide_plan_prediction(plan)->step_ns <= last_ns);
        last_ns = tide_plan_prediction(plan)->step_ns;
        tide_plan_destroy(plan);
        tide_program_destroy(in_parts);
    }
    assert_true(last_ns != UINT64_MAX);
    tide_program_destroy(p);
}

/* A sum has other bits in parts: it is cut where bits may differ. */
static void test_bits(void **state) {
    (void)state;
    tide_program *p = make_program(true), *in_parts;
    tide_plan *plan;
    tide_plan_options o = options_for(LAYER_BYTES);
    assert_status(tide_plan_create_in_parts(p, &machine, &o, 0, NULL, &in_parts, &plan), TIDE_E_FIT);
    o.bits_any = true;
    assert_ok(tide_plan_create_in_parts(p, &machine, &o, 0, NULL, &in_parts, &plan));
    assert_true(tide_plan_bits_any(plan) && tide_plan_parts(plan) > 1);
    tide_plan_destroy(plan);
    tide_program_destroy(in_parts);
    tide_program_destroy(p);
}

static void refuse(const char *text, const char *from, const char *to, const char *because) {
    tide_plan *plan;
    const char *at = strstr(text, from);
    assert_non_null(at);
    char *other = malloc(strlen(text) + 100);
    sprintf(other, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_status(tide_plan_read_memory(other, strlen(other), "plan", &plan), TIDE_E_FORMAT);
    assert_error_has(because);
    free(other);
}

static void test_file(void **state) {
    (void)state;
    tide_program *p = make_program(false), *in_parts;
    tide_plan *plan, *read;
    const tide_plan_options o = options_for(LAYER_BYTES);
    char *text = NULL;
    size_t size;
    assert_ok(tide_plan_create_in_parts(p, &machine, &o, 4, NULL, &in_parts, &plan));
    FILE *f = open_memstream(&text, &size);
    tide__plan_write_stream(plan, f);
    fclose(f);
    assert_ok(tide_plan_read_memory(text, size, "plan", &read));
    assert_int_equal(tide_plan_parts(read), 4);
    assert_true(tide_plan_fingerprint(read) == tide_plan_fingerprint(plan));
    assert_ok(tide_plan_verify(read, in_parts, &machine, NULL, NULL));
    refuse(text, "\"parts\":4", "\"parts\":8", "fingerprint");
    refuse(text, "\"parts\":4", "\"parts\":1", "2 or more");
    refuse(text, "\"parts\":4", "\"parts\":-4", "parts");
    refuse(text, "\"parts\":4,", "", "parts");
    refuse(text, "\"version\":4", "\"version\":2", "version 4");
    refuse(text, "\"version\":4", "\"version\":5", "version 5");
    free(text);
    tide_plan_destroy(read);
    tide_plan_destroy(plan);
    tide_program_destroy(in_parts);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),    cmocka_unit_test(test_choice), cmocka_unit_test(test_no_parts),
        cmocka_unit_test(test_budgets), cmocka_unit_test(test_bits),   cmocka_unit_test(test_file),
    };
    if (tide_machine_load("default", &machine) != TIDE_OK) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
