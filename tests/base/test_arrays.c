/* Arrays of one life: zero or all ones, aligned, and what cannot be had is said once. */
#include "support/test.h"

#include <stdint.h>
#include <string.h>

#include "base/arrays.h"

static void test_values(void **state) {
    (void)state;
    tide__arrays a = {0};
    uint64_t *zeros;
    uint32_t *ones;
    bool *none;
    tide__array(&a, zeros, 1000);
    tide__array_ones(&a, ones, 1000);
    tide__array(&a, none, 0);
    assert_ok(tide__arrays_check(&a));
    assert_non_null(none);
    assert_int_equal((uintptr_t)zeros % _Alignof(max_align_t), 0);
    for (size_t i = 0; i < 1000; i++) assert_true(zeros[i] == 0 && ones[i] == UINT32_MAX);
    memset(zeros, 0x55, 1000 * sizeof *zeros);
    for (size_t i = 0; i < 1000; i++) assert_int_equal(ones[i], UINT32_MAX);
    tide__arrays_free(&a);
    tide__arrays_free(&a);
}

static void test_failure(void **state) {
    (void)state;
    tide__arrays a = {0};
    uint64_t *fits, *overflows, *after;
    tide__array(&a, fits, 3);
    tide__array(&a, overflows, SIZE_MAX / 4);
    tide__array(&a, after, 3);
    assert_null(overflows);
    assert_true(fits && after);
    assert_status(tide__arrays_check(&a), TIDE_E_MEMORY);
    tide__arrays_free(&a);
    assert_ok(tide__arrays_check(&a));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
