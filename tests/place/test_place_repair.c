/* Repair: whatever the problem's features, placements stay right and get lower. */
#include "support/test.h"

#include "plan/place/repair.h"
#include "support/check_placement.h"
#include "support/draw_placement.h"

enum { N = 40, WORK = 300 };

typedef struct repaired {
    uint64_t before, after, bound; /* units */
    uint64_t offsets[N];           /* bytes */
} repaired;

static repaired repair(const tide__place_item *items, uint64_t work) {
    repaired r = {0};
    tide__place_problem p;
    tide__place_attempt a;
    assert_ok(tide__place_problem_init(&p, items, N));
    assert_ok(tide__place_attempt_init(&a, &p, p.lower_bound, p.lower_bound));
    assert_ok(tide__place_try_classics(&a));
    r.before = a.height;
    assert_ok(tide__place_repair(&a, work, 0));
    r.after = a.height;
    r.bound = p.lower_bound;
    for (size_t i = 0; i < p.n; i++) r.offsets[p.origin[i]] = a.best[i] * p.unit;
    tide__place_attempt_deinit(&a);
    tide__place_problem_deinit(&p);
    return r;
}

static void check(const tide__place_item *items, const repaired *r) {
    uint64_t height = 0;
    for (size_t i = 0; i < N; i++)
        if (r->offsets[i] + items[i].size > height) height = r->offsets[i] + items[i].size;
    const char *wrong = check_placement(items, N, r->offsets, height);
    if (wrong) fail_msg("%s", wrong);
    assert_true(r->bound <= r->after && r->after <= r->before);
}

static void test_stays_right_and_gets_lower(void **state) {
    uint64_t high = 0, lower = 0;
    for (uint64_t k = 0; k < rounds(400); k++) {
        tide__place_item items[N];
        draw_featured(k, (int)(k % (ALL_FEATURES + 1)), N, items);
        repaired r = repair(items, WORK);
        check(items, &r);
        high += r.before > r.bound;
        lower += r.after < r.before;
    }
    assert_true(high > rounds(200) && 2 * lower > high);
}

static void test_the_same_every_time(void **state) {
    tide__place_item items[N];
    draw_featured(5, WITH_SECOND | WITH_ALIGN, N, items);
    repaired a = repair(items, WORK), b = repair(items, WORK);
    assert_memory_equal(a.offsets, b.offsets, sizeof a.offsets);
}

/* The least of work is one question, whose answer is no. */
static void test_without_work_nothing_changes(void **state) {
    for (uint64_t k = 0; k < rounds(40); k++) {
        tide__place_item items[N];
        draw_featured(k, 0, N, items);
        repaired r = repair(items, 0);
        check(items, &r);
        assert_int_equal(r.before, r.after);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stays_right_and_gets_lower),
        cmocka_unit_test(test_the_same_every_time),
        cmocka_unit_test(test_without_work_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
