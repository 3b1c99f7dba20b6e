/* DTR logs: what each instruction means for storages, ops and the load, and that broken logs are refused with their
 * line. Logs are written with ' for ", which makes them readable here. */
#include "support/test.h"

#include <tidemark/program.h>

#include "program/import/import.h"

#define START "{'INSTRUCTION':'ANNOTATE','ANNOTATION':'START'}\n"
#define BACKWARD "{'INSTRUCTION':'ANNOTATE','ANNOTATION':'BACKWARD'}\n"
#define CONSTANT(name, bytes)                        \
    "{'INSTRUCTION':'CONSTANT','NAME':'" name "'}\n" \
    "{'INSTRUCTION':'MEMORY','MEMORY':'" bytes "','NAME':'" name "'}\n"
#define CALL(name, args, results, time) \
    "{'INSTRUCTION':'CALL','NAME':'" name "','ARGS':[" args "],'RESULT':[" results "],'TIME':'" time "'}\n"
#define RESULT(name, bytes, alias)                                      \
    "{'INSTRUCTION':'MEMORY','MEMORY':'" bytes "','NAME':'" name "'}\n" \
    "{'INSTRUCTION':'ALIAS','ALIAS':'" alias "','NAME':'" name "'}\n"
#define MUTATE(name, args, indices, time) \
    "{'INSTRUCTION':'MUTATE','NAME':'" name "','ARGS':[" args "],'MUTATE':[" indices "],'TIME':'" time "'}\n"
#define COPY(dst, src) "{'INSTRUCTION':'COPY','DST':'" dst "','SRC':'" src "'}\n"
#define COPY_FROM(dst, src) "{'INSTRUCTION':'COPY_FROM','DST':'" dst "','SRC':'" src "'}\n"
#define RELEASE(name) "{'INSTRUCTION':'RELEASE','NAME':'" name "'}\n"

static tide_status import(const char *log, tide_program **out, tide_import_stats *stats) {
    char *text = strdup(log);
    assert_non_null(text);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    tide_status status = tide__import_memory(text, strlen(text), "log", NULL, out, stats);
    free(text);
    return status;
}

static tide_program *import_good(const char *log, tide_import_stats *stats) {
    tide_program *p = NULL;
    assert_ok(import(log, &p, stats));
    assert_string_equal(stats->format, "dtr");
    assert_false(tide_program_is_repeating(p));
    assert_true(stats->total_ns == tide_program_cost_ns(p));
    return p;
}

static void refuse(const char *log, const char *place, const char *text) {
    tide_program *p = NULL;
    assert_status(import(log, &p, NULL), TIDE_E_FORMAT);
    assert_null(p);
    assert_error_has(place);
    assert_error_has(text);
}

/* Does the op list exactly these ids? `expected` ends with TIDE_NONE. */
static void check_list(const tide_id *list, uint32_t n, const tide_id *expected) {
    uint32_t i = 0;
    for (; expected[i] != TIDE_NONE; i++) {
        assert_true(i < n);
        assert_int_equal(list[i], expected[i]);
    }
    assert_int_equal(i, n);
}
#define IDS(...) ((const tide_id[]){__VA_ARGS__, TIDE_NONE})
#define NO_IDS ((const tide_id[]){TIDE_NONE})

static void check_op(const tide_program *p, tide_id id, const char *name, const tide_id *reads, const tide_id *writes) {
    const tide_op *op = tide_program_op(p, id);
    assert_non_null(op);
    assert_string_equal(op->name, name);
    check_list(op->reads, op->n_reads, reads);
    check_list(op->writes, op->n_writes, writes);
}

static void check_keep(const tide_program *p, const tide_id *kept) {
    for (tide_id i = 0; i < tide_program_tensor_count(p); i++) {
        bool expected = false;
        for (const tide_id *k = kept; *k != TIDE_NONE; k++) expected |= *k == i;
        assert_int_equal(tide_program_tensor(p, i)->keep, expected);
    }
}

static void calls_and_releases(void **state) {
    tide_import_stats stats;
    tide_program *p =
        import_good(START CONSTANT("w", "100") CONSTANT("in", "10") CALL("conv", "'in','w','w'", "'x'", "7")
                        RESULT("x", "50", "-1") CALL("relu", "'x'", "'y'", "5") RESULT("y", "30", "-1") RELEASE("x")
                            BACKWARD CALL("sum", "'y','w'", "'z','mask'", "3") RESULT("z", "40", "-1")
                                RESULT("mask", "1", "-1") RELEASE("y") RELEASE("in") RELEASE("mask"),
                    &stats);
    assert_int_equal(tide_program_op_count(p), 3);
    assert_int_equal(tide_program_tensor_count(p), 6);
    check_op(p, 0, "conv", IDS(1, 0), IDS(2));
    check_op(p, 1, "relu", IDS(2), IDS(3));
    check_op(p, 2, "sum", IDS(3, 0), IDS(4, 5));
    check_keep(p, IDS(0, 4));
    assert_int_equal(stats.total_ns, 15);
    assert_int_equal(stats.release_peak_bytes, 110 + 50 + 30);
    assert_int_equal(tide_program_tensor(p, 0)->start, TIDE_START_PRESENT);
    assert_int_equal(tide_program_tensor(p, 0)->cls, TIDE_CLASS_OTHER);
    assert_int_equal(tide_program_tensor(p, 2)->start, TIDE_START_ABSENT);
    assert_int_equal(tide_program_tensor(p, 2)->cls, TIDE_CLASS_ACTIVATION);
    assert_string_equal(tide_program_tensor(p, 2)->name, "x");
    assert_int_equal(tide_program_op(p, 1)->phase, TIDE_FORWARD);
    assert_int_equal(tide_program_op(p, 2)->phase, TIDE_BACKWARD);
    assert_true(tide_program_op(p, 0)->rerunnable);
    assert_int_equal(tide_program_op(p, 0)->variants[0].cost_ns, 7);
    tide_program_destroy(p);
}

/* A late RELEASE keeps bytes in the log's load though nobody reads them again. */
static void the_peak_is_that_of_the_releases(void **state) {
    tide_import_stats early, late;
    tide_program *p = import_good(START CONSTANT("c", "1") CALL("f", "'c'", "'a'", "1") RESULT("a", "100", "-1")
                                      RELEASE("a") CALL("f", "'c'", "'b'", "1") RESULT("b", "100", "-1"),
                                  &early);
    tide_program_destroy(p);
    p = import_good(START CONSTANT("c", "1") CALL("f", "'c'", "'a'", "1") RESULT("a", "100", "-1")
                        CALL("f", "'c'", "'b'", "1") RESULT("b", "100", "-1") RELEASE("a"),
                    &late);
    tide_program_destroy(p);
    assert_int_equal(early.release_peak_bytes, 101);
    assert_int_equal(late.release_peak_bytes, 201);
}

static void views_share_their_storage(void **state) {
    tide_import_stats stats;
    tide_program *p = import_good(START CONSTANT("c", "8") CALL("f", "'c'", "'x'", "10") RESULT("x", "64", "-1")
                                      CALL("view", "'x'", "'v'", "2") RESULT("v", "64", "0")
                                          RELEASE("x") /* the view still holds the storage */
                                  CALL("split", "'c','v'", "'l','r','n'", "3") RESULT("l", "32", "1")
                                      RESULT("r", "32", "1") RESULT("n", "4", "-1") CALL("g", "'l','r','c'", "'y'", "4")
                                          RESULT("y", "16", "-1") RELEASE("l") RELEASE("v") RELEASE("r"),
                                  &stats);
    assert_int_equal(tide_program_tensor_count(p), 4); /* c, x, n, y */
    check_op(p, 1, "view", IDS(1), NO_IDS);
    assert_false(tide_program_op(p, 1)->rerunnable);
    check_op(p, 2, "split", IDS(0, 1), IDS(2));
    check_op(p, 3, "g", IDS(1, 0), IDS(3));
    check_keep(p, IDS(0, 2, 3));
    assert_int_equal(stats.release_peak_bytes, 8 + 64 + 4 + 16);
    assert_int_equal(stats.total_ns, 19);
    tide_program_destroy(p);
}

static void mutation_copies_on_write(void **state) {
    tide_import_stats stats;
    tide_program *p =
        import_good(START CONSTANT("c", "8") CALL("f", "'c'", "'x'", "1") RESULT("x", "64", "-1") COPY("old", "x")
                        MUTATE("add_", "'x','c','x'", "0,2", "5") CALL("g", "'x','old'", "'y'", "1")
                            RESULT("y", "2", "-1") RELEASE("old") MUTATE("relu_", "'x'", "'0'", "6"),
                    &stats);
    /* c 0, x 1, x' 2, y 3, x'' 4 */
    check_op(p, 1, "add_", IDS(1, 0), IDS(2)); /* the argument listed twice is changed once */
    check_op(p, 2, "g", IDS(2, 1), IDS(3));    /* the copy still means the old value */
    check_op(p, 3, "relu_", IDS(2), IDS(4));
    const tide_op *relu = tide_program_op(p, 3);
    assert_int_equal(relu->n_inplace, 1);
    assert_false(relu->inplace[0].must);
    assert_int_equal(tide_program_tensor(p, 4)->size_bytes, 64);
    check_keep(p, IDS(0, 3, 4));
    assert_int_equal(stats.release_peak_bytes, 8 + 64 + 64 + 2 + 0); /* old + new; relu_: 8 + 64 + 2 + 64, the same */
    tide_program_destroy(p);
}

static void two_names_of_one_storage_are_mutated_apart(void **state) {
    tide_import_stats stats;
    tide_program *p = import_good(START CONSTANT("c", "8") COPY("d", "c") MUTATE("swap_", "'c','d'", "0,1", "1")
                                      CALL("g", "'c','d'", "", "1"),
                                  &stats);
    check_op(p, 0, "swap_", IDS(0), IDS(1, 2));
    check_op(p, 1, "g", IDS(1, 2), NO_IDS);
    assert_int_equal(tide_program_op(p, 0)->n_inplace, 1);
    check_keep(p, IDS(1, 2));
    assert_int_equal(stats.release_peak_bytes, 24);
    tide_program_destroy(p);
}

static void copies_bind_names(void **state) {
    tide_import_stats stats;
    tide_program *p = import_good(START CONSTANT("a", "100") CONSTANT("b", "1000") COPY("c", "a") RELEASE("a")
                                      COPY_FROM("c", "c")                       /* nothing changes */
                                  CALL("f", "'c'", "", "1") COPY_FROM("c", "b") /* a's storage has no name now */
                                  CALL("g", "'c'", "'y'", "1") RESULT("y", "50", "-1") RELEASE("b"),
                                  &stats);
    check_op(p, 0, "f", IDS(0), NO_IDS);
    check_op(p, 1, "g", IDS(1), IDS(2));
    check_keep(p, IDS(1, 2));
    assert_int_equal(stats.release_peak_bytes, 1100);
    tide_program_destroy(p);
}

static void what_precedes_start_is_skipped(void **state) {
    tide_import_stats stats;
    tide_program *p =
        import_good("{'INSTRUCTION':'RELEASE','NAME':'unknown'}\n{'INSTRUCTION':'NONSENSE'}\n" CONSTANT("c", "999")
                        START "\n  \r\n" CONSTANT("c", "5") "{'INSTRUCTION':'ANNOTATE','ANNOTATION':'a remark'}\n",
                    &stats);
    assert_int_equal(tide_program_tensor_count(p), 1);
    assert_int_equal(stats.release_peak_bytes, 5);
    tide_program_destroy(p);
    p = import_good(CONSTANT("c", "5") CALL("f", "'c'", "'x'", "1") RESULT("x", "0", "-1"), &stats); /* no START */
    assert_int_equal(tide_program_op_count(p), 1);
    tide_program_destroy(p);
}

static void what_precedes_start_may_be_released_after_it(void **state) {
    tide_import_stats stats;
    tide_program *p =
        import_good(CONSTANT("old", "7") START RELEASE("old") CONSTANT("c", "5") START RELEASE("older"), &stats);
    assert_int_equal(tide_program_tensor_count(p), 1);
    assert_int_equal(stats.release_peak_bytes, 5);
    tide_program_destroy(p);
}

static void numbers_may_be_numbers(void **state) {
    tide_import_stats stats;
    tide_program *p = import_good(
        START "{'INSTRUCTION':'CONSTANT','NAME':'c'}\n{'INSTRUCTION':'MEMORY','MEMORY':6,'NAME':'c'}\n"
              "{'INSTRUCTION':'CALL','NAME':'f','ARGS':['c'],'RESULT':['x','v'],'TIME':12}\n"
              "{'INSTRUCTION':'MEMORY','MEMORY':3,'NAME':'x'}\n{'INSTRUCTION':'ALIAS','ALIAS':-1,'NAME':'x'}\n"
              "{'INSTRUCTION':'MEMORY','MEMORY':6,'NAME':'v'}\n{'INSTRUCTION':'ALIAS','ALIAS':0,'NAME':'v'}\n",
        &stats);
    check_op(p, 0, "f", IDS(0), IDS(1));
    assert_int_equal(stats.release_peak_bytes, 9);
    assert_int_equal(stats.total_ns, 12);
    tide_program_destroy(p);
}

static void large_numbers_are_exact(void **state) {
    tide_import_stats stats;
    tide_program *p =
        import_good(START CONSTANT("c", "1152921504606846977") CALL("f", "'c'", "", "9007199254740993"), &stats);
    assert_true(tide_program_tensor(p, 0)->size_bytes == UINT64_C(1152921504606846977));
    assert_true(stats.total_ns == UINT64_C(9007199254740993));
    tide_program_destroy(p);
}

static void broken_logs_are_refused(void **state) {
    refuse(START "{'INSTRUCTION':'FLY'}\n", "log:2:", "INSTRUCTION");
    refuse(START "{'NAME':'x'}\n", "log:2:", "INSTRUCTION");
    refuse(START "[1]\n", "log:2:", "object");
    refuse(START "{'INSTRUCTION':\n", "log:2:", "");
    refuse(START CONSTANT("c", "1") RELEASE("c") RELEASE("c"), "log:5:", "c is not known");
    refuse(START CONSTANT("c", "1") CONSTANT("c", "1"), "log:4:", "already exists");
    refuse(START CONSTANT("c", "-1"), "log:3:", "MEMORY");
    refuse(START CONSTANT("c", "18446744073709551616"), "log:3:", "MEMORY");
    refuse(START CONSTANT("c", "4 kB"), "log:3:", "MEMORY");
    refuse(START "{'INSTRUCTION':'CONSTANT','NAME':'c'}\n", "log:2:", "MEMORY");
    refuse(START "{'INSTRUCTION':'CONSTANT','NAME':'c'}\n{'INSTRUCTION':'MEMORY','MEMORY':'1','NAME':'d'}\n",
           "log:3:", "not of c");
    refuse(START "{'INSTRUCTION':'CONSTANT','NAME':7}\n", "log:2:", "NAME");
    refuse(START "{'INSTRUCTION':'MEMORY','MEMORY':'1','NAME':'d'}\n", "log:2:", "MEMORY");
    refuse(START CALL("f", "'nobody'", "", "1"), "log:2:", "nobody");
    refuse(START CALL("f", "1", "", "1"), "log:2:", "name");
    refuse(START CALL("f", "", "", "1.5"), "log:2:", "TIME");
    refuse(START CALL("f", "", "'x'", "1") "{'INSTRUCTION':'MEMORY','MEMORY':'1','NAME':'x'}\n", "log:3:", "ALIAS");
    refuse(START CALL("f", "", "'x'", "1") RESULT("x", "1", "0"), "log:4:", "ALIAS 0");
    refuse(START CALL("f", "", "'x'", "1") RESULT("x", "1", "-2"), "log:4:", "ALIAS");
    refuse(START CALL("f", "", "'x','x'", "1") RESULT("x", "1", "-1") RESULT("x", "1", "-1"), "log:6:", "exists");
    refuse(START CONSTANT("c", "1") CALL("f", "'c'", "'c'", "1") RESULT("c", "1", "-1"), "log:6:", "exists");
    refuse(START CONSTANT("c", "1") MUTATE("f_", "'c'", "1", "1"), "log:4:", "MUTATE");
    refuse(START CONSTANT("c", "1") MUTATE("f_", "'c'", "-1", "1"), "log:4:", "MUTATE");
    refuse(START CONSTANT("c", "1") MUTATE("f_", "'c'", "[]", "1"), "log:4:", "MUTATE");
    refuse(START CONSTANT("c", "1") COPY("d", "e"), "log:4:", "e is not known");
    refuse(START CONSTANT("c", "1") COPY("c", "c"), "log:4:", "exists");
    refuse(START CONSTANT("c", "1") COPY_FROM("d", "c"), "log:4:", "d is not known");
    refuse(START "{'INSTRUCTION':'RELEASE','NAME':'c','COLOUR':'red'}\n", "log:2:", "COLOUR");
}

static void sums_that_overflow_are_refused(void **state) {
    tide_program *p = NULL;
    assert_status(import(START CONSTANT("c", "9223372036854775807") CONSTANT("d", "9223372036854775807"), &p, NULL),
                  TIDE_E_OVERFLOW);
    assert_error_has("log:3");
}

static void an_iteration_time_makes_no_sense_here(void **state) {
    tide_import_options options = {.size = sizeof options, .from = "dtr", .iteration_time_ns = 5};
    tide_program *p = NULL;
    assert_status(tide__import_memory("", 0, "log", &options, &p, NULL), TIDE_E_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_and_releases),
        cmocka_unit_test(the_peak_is_that_of_the_releases),
        cmocka_unit_test(views_share_their_storage),
        cmocka_unit_test(mutation_copies_on_write),
        cmocka_unit_test(two_names_of_one_storage_are_mutated_apart),
        cmocka_unit_test(copies_bind_names),
        cmocka_unit_test(what_precedes_start_is_skipped),
        cmocka_unit_test(what_precedes_start_may_be_released_after_it),
        cmocka_unit_test(numbers_may_be_numbers),
        cmocka_unit_test(large_numbers_are_exact),
        cmocka_unit_test(broken_logs_are_refused),
        cmocka_unit_test(sums_that_overflow_are_refused),
        cmocka_unit_test(an_iteration_time_makes_no_sense_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
