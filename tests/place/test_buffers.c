/* Placement for clients: their own buffers, copied, placed and refused. */
#include <tidemark/place.h>

#include "support/test.h"

#define FREE UINT64_MAX

static void test_buffers_of_a_client(void **state) {
    char name[] = "a";
    tide_buffer list[] = {
        {.name = name, .size_bytes = 64, .align_bytes = 1, .fixed_offset = FREE, .begin = 0, .end = 2},
        {.name = NULL, .size_bytes = 32, .align_bytes = 32, .fixed_offset = FREE, .begin = 1, .end = 3},
        {.name = "c", .size_bytes = 64, .align_bytes = 1, .fixed_offset = FREE, .begin = 2, .end = 4},
    };
    tide_buffers *b;
    uint64_t offsets[3];
    tide_place_result result = {.size = sizeof result};
    assert_ok(tide_buffers_create(list, 3, &b));
    name[0] = 'z';
    list[0].size_bytes = 1000;
    assert_int_equal(tide_buffers_count(b), 3);
    assert_string_equal(tide_buffers_get(b, 0).name, "a");
    assert_string_equal(tide_buffers_get(b, 1).name, "");
    assert_int_equal(tide_buffers_get(b, 0).size_bytes, 64);
    assert_ok(tide_buffers_place(b, NULL, offsets, &result));
    assert_int_equal(result.height_bytes, 96);
    assert_int_equal(result.lower_bound_bytes, 96);
    assert_true(result.optimal);
    assert_true(offsets[1] == 0 || offsets[1] == 64);
    assert_int_equal(offsets[0], offsets[2]);
    tide_buffers_destroy(b);
}

static void test_none_at_all(void **state) {
    tide_buffers *b;
    uint64_t offset;
    tide_place_result result = {.size = sizeof result};
    assert_ok(tide_buffers_create(NULL, 0, &b));
    assert_ok(tide_buffers_place(b, NULL, &offset, &result));
    assert_int_equal(result.height_bytes, 0);
    tide_buffers_destroy(b);
}

static void test_what_makes_no_sense_is_refused(void **state) {
    static const tide_buffer wrong[] = {
        {.name = "backwards", .size_bytes = 1, .align_bytes = 1, .fixed_offset = FREE, .begin = 2, .end = 1},
        {.name = "alignment", .size_bytes = 1, .align_bytes = 3, .fixed_offset = FREE, .end = 1},
        {.name = "askew", .size_bytes = 1, .align_bytes = 8, .fixed_offset = 4, .end = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tide_buffers *b;
        uint64_t offset = 7;
        tide_place_result result = {.size = sizeof result};
        assert_ok(tide_buffers_create(&wrong[i], 1, &b));
        assert_int_equal(tide_buffers_place(b, NULL, &offset, &result), TIDE_E_ARGUMENT);
        tide_buffers_destroy(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffers_of_a_client),
        cmocka_unit_test(test_none_at_all),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
