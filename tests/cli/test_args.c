/* Command lines by tables: a table may have any number of rows. */
#include "support/test.h"

#include "args.h"

enum { OPTIONS = 100 };

static bool flags[OPTIONS];

static bool parse(char *first, char *second, int *exit_code) {
    static char names[OPTIONS][16];
    arg_option options[OPTIONS];
    char command_name[] = "test", *argv[] = {command_name, first, second};
    for (int i = 0; i < OPTIONS; i++) {
        snprintf(names[i], sizeof names[i], "--o%d", i);
        options[i] = (arg_option){names[i], ARG_FLAG, &flags[i], NULL, ""};
        flags[i] = false;
    }
    const arg_command command = {.usage = "test", .options = options, .n_options = OPTIONS};
    return args_parse(&command, 3, argv, exit_code);
}

static void test_options_are_told_apart(void **state) {
    (void)state;
    char third[] = "--o3", other[] = "--o67", last[] = "--o99";
    int exit_code = 0;
    assert_true(parse(third, other, &exit_code));
    assert_true(flags[3] && flags[67] && !flags[66]);
    assert_false(parse(last, last, &exit_code)); /* given twice */
    assert_int_equal(exit_code, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options_are_told_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
