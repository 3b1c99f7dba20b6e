/* Choosing the importer: by content, by name, and what happens with everything else. */
#include "support/test.h"

#include <tidemark/program.h>

#include <unistd.h>

#include "program/import/import.h"

static const char ACCESS[] = "0 Malloc a 8 1\n1 Free a 8 2\n2 Malloc a 8 3\n3 Free a 8 4\n";
static const char MALLOC[] = "\n \t\r\nMalloc a 8 1\nFree a 2\nMalloc b 8 3\nFree b 4\n";
static const char DTR[] = "{\"INSTRUCTION\":\"CALL\",\"NAME\":\"f\",\"ARGS\":[],\"RESULT\":[],\"TIME\":\"1\"}";

static void check_choice(const char *text, const char *format) {
    tide_program *p = NULL;
    tide_import_stats stats;
    assert_ok(tide__import_memory(text, strlen(text), "log", NULL, &p, &stats));
    assert_string_equal(stats.format, format);
    tide_program_destroy(p);
    tide_import_options options = {.size = sizeof options, .from = format};
    assert_ok(tide__import_memory(text, strlen(text), "log", &options, &p, NULL));
    tide_program_destroy(p);
}

static void formats_are_recognised(void **state) {
    check_choice(ACCESS, "singa-access");
    check_choice(MALLOC, "singa-malloc");
    check_choice(DTR, "dtr");
}

static void refuse(const char *text, const char *from, tide_status status, const char *reason) {
    tide_program *p = NULL;
    tide_import_stats stats = {.total_ns = 77};
    tide_import_options options = {.size = sizeof options, .from = from};
    assert_status(tide__import_memory(text, strlen(text), "log", &options, &p, &stats), status);
    assert_error_has(reason);
    assert_null(p);
    assert_int_equal(stats.total_ns, 77);
}

static void anything_else_is_refused(void **state) {
    refuse("", NULL, TIDE_E_FORMAT, "dtr, singa-access, singa-malloc");
    refuse("\n\n", NULL, TIDE_E_FORMAT, "log: not a log");
    refuse("hello\n", NULL, TIDE_E_FORMAT, "not a log");
    refuse("{\"tensor\":1}\n", NULL, TIDE_E_FORMAT, "not a log");
    refuse(ACCESS, "csv", TIDE_E_ARGUMENT, "\"csv\" is not a format");
    refuse(ACCESS, "dtr", TIDE_E_FORMAT, "log:1:");
    refuse(DTR, "singa-malloc", TIDE_E_FORMAT, "log:1:");
    refuse(MALLOC, "singa-access", TIDE_E_FORMAT, "log:3:");
}

static void options_carry_their_size(void **state) {
    tide_program *p = NULL;
    tide_import_options options = {.size = 0};
    assert_status(tide__import_memory(DTR, strlen(DTR), "log", &options, &p, NULL), TIDE_E_ARGUMENT);
    options.size = sizeof options + 1;
    assert_status(tide__import_memory(DTR, strlen(DTR), "log", &options, &p, NULL), TIDE_E_ARGUMENT);
    options = (tide_import_options){.size = offsetof(tide_import_options, iteration_time_ns), .iteration_time_ns = 5};
    assert_ok(tide__import_memory(DTR, strlen(DTR), "log", &options, &p, NULL)); /* an older, shorter struct */
    tide_program_destroy(p);
}

static void files_are_read(void **state) {
    char path[] = "/tmp/tide-import-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, ACCESS, strlen(ACCESS)), strlen(ACCESS));
    close(fd);
    tide_program *p = NULL;
    tide_import_stats stats;
    assert_ok(tide_program_import_stats(path, NULL, &p, &stats));
    assert_int_equal(stats.period_events, 2);
    assert_string_equal(tide_program_name(p), path + strlen("/tmp/"));
    tide_program_destroy(p);
    assert_ok(tide_program_import(path, NULL, &p));
    tide_program_destroy(p);
    unlink(path);
    assert_status(tide_program_import(path, NULL, &p), TIDE_E_IO);
    assert_status(tide_program_import(NULL, NULL, &p), TIDE_E_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats_are_recognised),
                                       cmocka_unit_test(anything_else_is_refused),
                                       cmocka_unit_test(options_carry_their_size), cmocka_unit_test(files_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
