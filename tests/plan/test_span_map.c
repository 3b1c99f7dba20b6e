/* The map of spans against an array with an owner per byte: the same owners are reported, however spans are cut, covered and split
 * over chunks. */
#include "support/test.h"

#include <string.h>

#include "base/rng.h"
#include "plan/span_map.h"

enum { BYTES = 3000, ASSIGNMENTS = 6000 };
static const uint32_t NOBODY = UINT32_MAX;

typedef struct report {
    bool seen[ASSIGNMENTS];
    uint32_t count;
} report;

static void note(void *context, uint32_t owner) {
    report *r = context;
    r->seen[owner] = true;
    r->count++;
}

/* Reports the owners of [lo, hi) as the array has them, and gives the bytes to another. */
static void assign_naively(uint32_t *owners, uint64_t lo, uint64_t hi, uint32_t owner, report *r) {
    for (uint64_t k = lo; k < hi; k++) {
        bool first = k == lo || owners[k - 1] != owners[k];
        if (owners[k] != NOBODY && (first || !r->seen[owners[k]])) note(r, owners[k]);
    }
    for (uint64_t k = lo; k < hi; k++) owners[k] = owner;
}

/* most: bytes of a span. */
static void compare(uint64_t seed, uint64_t most) {
    static report expected, found;
    uint32_t owners[BYTES];
    tide__span_map *m;
    for (uint32_t k = 0; k < BYTES; k++) owners[k] = NOBODY;
    assert_ok(tide__span_map_create(&m));
    for (uint32_t i = 0; i < ASSIGNMENTS; i++) {
        bool large = tide__random_u64(seed, 0, i) % 256 == 0; /* covers several chunks now and then */
        uint64_t size = tide__random_u64(seed, 1, i) % (large ? BYTES : most);
        uint64_t lo = tide__random_u64(seed, 2, i) % (BYTES - size);
        memset(&expected, 0, sizeof expected);
        memset(&found, 0, sizeof found);
        assign_naively(owners, lo, lo + size, i, &expected);
        assert_ok(tide__span_map_assign(m, lo, lo + size, i, note, &found));
        assert_memory_equal(expected.seen, found.seen, sizeof expected.seen);
        assert_int_equal(expected.count, found.count);
    }
    tide__span_map_destroy(m);
}

static void test_as_an_array(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < rounds(6); seed++) compare(seed, seed % 2 ? 3 : 40);
}

static void test_empty_spans_change_nothing(void **state) {
    (void)state;
    report r = {.count = 0};
    tide__span_map *m;
    assert_ok(tide__span_map_create(&m));
    assert_ok(tide__span_map_assign(m, 5, 10, 1, note, &r));
    assert_ok(tide__span_map_assign(m, 7, 7, 2, note, &r));
    assert_int_equal(r.count, 0);
    assert_ok(tide__span_map_assign(m, 0, UINT64_MAX, 3, note, &r));
    assert_int_equal(r.count, 1);
    assert_true(r.seen[1]);
    tide__span_map_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_an_array),
        cmocka_unit_test(test_empty_spans_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
