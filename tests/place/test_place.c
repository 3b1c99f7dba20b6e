/* tide__place on random and adversarial items, every placement through the independent checker. */
#include "plan/place/place.h"

#include "base/rng.h"
#include "support/check_placement.h"
#include "support/test.h"

#define ITEM(bytes, from, to) \
    { .size = (bytes), .align = 1, .fixed = TIDE__PLACE_FREE, .begin = (from), .end = (to) }

static tide__place_result place_checked(const tide__place_item *items, size_t n) {
    uint64_t *offsets = calloc(n + 1, sizeof *offsets);
    assert_non_null(offsets);
    tide__place_result result;
    assert_ok(tide__place(items, n, NULL, offsets, &result));
    assert_placement(items, n, offsets, &result);
    free(offsets);
    return result;
}

static uint32_t draw(uint64_t seed, uint64_t index, uint32_t below) {
    return (uint32_t)(tide__random_u64(seed, 1, index) % below);
}

static void random_item(tide__place_item *it, uint64_t seed, uint64_t at, bool fixed) {
    uint32_t begin = draw(seed, at, 40);
    *it = (tide__place_item){.size = draw(seed, at + 1, 100),
                             .align = UINT64_C(1) << draw(seed, at + 2, 4),
                             .fixed = TIDE__PLACE_FREE,
                             .begin = begin,
                             .end = begin + draw(seed, at + 3, 12)};
    if (draw(seed, at + 4, 4) == 0) {
        it->begin2 = it->end + draw(seed, at + 5, 20);
        it->end2 = it->begin2 + draw(seed, at + 6, 10);
    }
    if (fixed && draw(seed, at + 7, 8) == 0) it->fixed = 64 * draw(seed, at + 8, 20);
}

static void test_random_items_with_every_feature(void **state) {
    enum { MOST = 60 };
    tide__place_item items[MOST];
    uint64_t offsets[MOST];
    size_t refused = 0, runs = 3000;
    for (uint64_t seed = 0; seed < runs; seed++) {
        size_t n = draw(seed, 0, MOST);
        for (size_t i = 0; i < n; i++) random_item(&items[i], seed, 10 + 10 * i, seed % 2);
        tide__place_result result;
        tide_status status = tide__place(items, n, NULL, offsets, &result);
        refused += status == TIDE_E_ARGUMENT;
        if (status != TIDE_E_ARGUMENT) assert_placement(items, n, offsets, &result);
        if (status == TIDE_E_ARGUMENT) assert_error_has("fixed offsets overlap");
    }
    assert_true(refused < runs / 2);
}

static void test_nothing_to_place(void **state) {
    assert_int_equal(place_checked(NULL, 0).height, 0);
    tide__place_item idle[] = {ITEM(0, 0, 9), ITEM(7, 3, 3)};
    tide__place_result result = place_checked(idle, 2);
    assert_int_equal(result.height, 7);
    assert_true(result.optimal);
}

static void test_second_lifetimes_conflict(void **state) {
    tide__place_item items[] = {ITEM(4, 0, 2), ITEM(3, 1, 6), ITEM(5, 3, 7), ITEM(4, 8, 9)};
    items[0].begin2 = 8;
    items[0].end2 = 10;
    tide__place_result result = place_checked(items, 4);
    assert_int_equal(result.height, 8);
    assert_true(result.optimal);
}

static void test_sizes_share_units_and_alignments(void **state) {
    tide__place_item items[] = {ITEM(100, 0, 2), ITEM(100, 0, 2), ITEM(28, 1, 3)};
    for (size_t i = 0; i < 3; i++) items[i].align = 64;
    tide__place_result result = place_checked(items, 3);
    assert_true(result.height <= 320);
    assert_true(result.lower_bound >= 284);
    assert_true(result.optimal);
}

static void test_fixed_offsets(void **state) {
    tide__place_item items[] = {ITEM(10, 0, 4), ITEM(10, 0, 4), ITEM(10, 0, 4), ITEM(10, 4, 8)};
    items[1].fixed = 5;
    items[3].fixed = 7;
    uint64_t offsets[4];
    tide__place_result result;
    assert_ok(tide__place(items, 4, NULL, offsets, &result));
    assert_placement(items, 4, offsets, &result);
    assert_int_equal(result.height, 35);
    items[2].fixed = 14;
    assert_status(tide__place(items, 4, NULL, offsets, &result), TIDE_E_ARGUMENT);
    assert_error_has("fixed offsets overlap");
}

static void test_malformed_items_are_refused(void **state) {
    uint64_t offset;
    tide__place_result result;
    tide__place_item bad[] = {ITEM(1, 2, 1), ITEM(1, 0, 5), ITEM(1, 0, 1), ITEM(1, 0, 1), ITEM(9, 0, 1)};
    bad[1].begin2 = 4, bad[1].end2 = 6;
    bad[2].align = 3;
    bad[3].align = 8, bad[3].fixed = 4;
    bad[4].fixed = UINT64_MAX - 4;
    for (size_t i = 0; i < 4; i++) assert_status(tide__place(&bad[i], 1, NULL, &offset, &result), TIDE_E_ARGUMENT);
    assert_status(tide__place(&bad[4], 1, NULL, &offset, &result), TIDE_E_OVERFLOW);
}

static void test_sizes_near_the_limit(void **state) {
    uint64_t half = UINT64_C(1) << 63;
    tide__place_item apart[] = {ITEM(half, 0, 1), ITEM(half + 1, 1, 2), ITEM(half - 1, 2, 3)};
    assert_int_equal(place_checked(apart, 3).height, half + 1);
    tide__place_item together[] = {ITEM(half - 1, 0, 2), ITEM(half - 2, 1, 3), ITEM(1, 0, 3)};
    assert_int_equal(place_checked(together, 3).height, UINT64_MAX - 1);
    tide__place_item much[] = {ITEM(half, 0, 2), ITEM(half, 1, 3), ITEM(3, 0, 1)};
    uint64_t offsets[3];
    tide__place_result result;
    assert_status(tide__place(much, 3, NULL, offsets, &result), TIDE_E_OVERFLOW);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_items_with_every_feature),
        cmocka_unit_test(test_nothing_to_place),
        cmocka_unit_test(test_second_lifetimes_conflict),
        cmocka_unit_test(test_sizes_share_units_and_alignments),
        cmocka_unit_test(test_fixed_offsets),
        cmocka_unit_test(test_malformed_items_are_refused),
        cmocka_unit_test(test_sizes_near_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
