/* What every test program includes: cmocka with the headers it wants before it, and a check for tide_status that
 * prints the error text. */
#ifndef TIDE_TESTS_TEST_H
#define TIDE_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tidemark/status.h>

#define assert_ok(expression)                                                                         \
    do {                                                                                              \
        tide_status assert_status_ = (expression);                                                    \
        if (assert_status_ != TIDE_OK)                                                                \
            fail_msg("%s: %s: %s", #expression, tide_status_name(assert_status_), tide_last_error()); \
    } while (0)

#define assert_status(expression, expected) \
    assert_string_equal(tide_status_name(expression), tide_status_name(expected))

/* The last error contains this text. */
#define assert_error_has(text)                                                          \
    do {                                                                                \
        if (!strstr(tide_last_error(), (text)))                                         \
            fail_msg("expected \"%s\" in the error \"%s\"", (text), tide_last_error()); \
    } while (0)

#endif
