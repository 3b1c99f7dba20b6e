/* The virtual clock: queue order, waits, shared links, exact numbers. */
#include "support/test.h"

#include "base/vclock.h"

static uint32_t submit(tide__vclock *c, tide__vjob job) {
    uint32_t id = 0;
    assert_ok(tide__vclock_submit(c, &job, &id));
    return id;
}

static void test_order_and_waits(void **state) {
    (void)state;
    tide__vclock *c;
    assert_ok(tide__vclock_create(2, &c));
    uint32_t a = submit(c, (tide__vjob){.queue = 0, .fixed_ns = 100});
    uint32_t b = submit(
        c, (tide__vjob){.queue = 1, .fixed_ns = 10, .work = 1000, .rate_per_s = 1000000000, .waits = &a, .n_waits = 1});
    uint32_t d = submit(c, (tide__vjob){.queue = 0, .fixed_ns = 50});
    uint32_t e = submit(c, (tide__vjob){.queue = 0, .fixed_ns = 5, .waits = &b, .n_waits = 1});
    assert_ok(tide__vclock_run(c));
    assert_int_equal(tide__vclock_end(c, a), 100);
    assert_int_equal(tide__vclock_end(c, b), 1110);
    assert_int_equal(tide__vclock_start(c, d), 100);
    assert_int_equal(tide__vclock_start(c, e), 1110);
    assert_int_equal(tide__vclock_now(c), 1115);
    uint32_t f = submit(c, (tide__vjob){.queue = 1, .fixed_ns = 1}); /* after a run nothing starts in the past */
    assert_ok(tide__vclock_run(c));
    assert_int_equal(tide__vclock_start(c, f), 1115);
    tide__vjob late = {.queue = 0, .waits = &(uint32_t){77}, .n_waits = 1};
    assert_status(tide__vclock_submit(c, &late, &f), TIDE_E_ARGUMENT);
    tide__vclock_destroy(c);
}

static void test_shared_link(void **state) {
    (void)state;
    tide__vclock *c;
    assert_ok(tide__vclock_create(3, &c));
    /* Two transfers of 1000 and 3000 bytes at 1 byte/ns on one link: half speed until the short one ends at 2000,
     * then full speed for the 2000 bytes left: 4000. A third queue is not affected. */
    uint32_t a = submit(c, (tide__vjob){.queue = 0, .share = 1, .work = 1000, .rate_per_s = 1000000000});
    uint32_t b = submit(c, (tide__vjob){.queue = 1, .share = 1, .work = 3000, .rate_per_s = 1000000000});
    uint32_t d = submit(c, (tide__vjob){.queue = 2, .work = 1500, .rate_per_s = 1000000000});
    assert_ok(tide__vclock_run(c));
    assert_int_equal(tide__vclock_end(c, a), 2000);
    assert_int_equal(tide__vclock_end(c, b), 4000);
    assert_int_equal(tide__vclock_end(c, d), 1500);
    tide__vclock_destroy(c);
}

/* A copy of 100 ns that takes half of a kernel's speed, from 30 ns on: of the kernel's 120 ns, 30 are done then, 50 more
 * while it moves, 40 afterwards. What is not dragged does not notice; two copies together take at most 90 %. */
static void test_drag(void **state) {
    (void)state;
    for (uint32_t share = 0; share < 2; share++) {
        const tide__vjob copy = {
            .queue = 1, .share = share, .fixed_ns = 30, .work = 100, .rate_per_s = 1000000000, .drag_percent = 50};
        tide__vclock *c;
        assert_ok(tide__vclock_create(4, &c));
        uint32_t kernel = submit(c, (tide__vjob){.queue = 0, .fixed_ns = 120, .dragged = true});
        uint32_t moved = submit(c, copy);
        uint32_t other = submit(c, (tide__vjob){.queue = 2, .fixed_ns = 120});
        uint32_t next = submit(c, (tide__vjob){.queue = 0, .fixed_ns = 7, .dragged = true});
        assert_ok(tide__vclock_run(c));
        assert_int_equal(tide__vclock_end(c, moved), 130);
        assert_int_equal(tide__vclock_end(c, kernel), 170);
        assert_int_equal(tide__vclock_end(c, other), 120);
        assert_int_equal(tide__vclock_end(c, next), 177);
        tide__vjob again = copy;
        submit(c, again);
        again.queue = 3;
        again.share = 0;
        submit(c, again);
        kernel = submit(c, (tide__vjob){.queue = 0, .fixed_ns = 35, .dragged = true});
        assert_ok(tide__vclock_run(c));
        assert_int_equal(tide__vclock_end(c, kernel), 177 + 30 + 50);
        tide__vclock_destroy(c);
    }
}

/* Nothing overflows and nothing hangs at the end of time; large work alone on its link is exact to the byte. */
static void test_end_of_time(void **state) {
    (void)state;
    tide__vclock *c;
    assert_ok(tide__vclock_create(4, &c));
    uint64_t odd = (UINT64_C(1) << 60) + 1; /* no double */
    uint32_t a = submit(c, (tide__vjob){.queue = 0, .work = odd, .rate_per_s = 1000000000});
    uint32_t b = submit(c, (tide__vjob){.queue = 0, .fixed_ns = UINT64_MAX});
    uint32_t d = submit(c, (tide__vjob){.queue = 1, .share = 1, .work = UINT64_MAX, .rate_per_s = 1});
    uint32_t e = submit(c, (tide__vjob){.queue = 2, .share = 1, .work = 10, .rate_per_s = 1});
    uint32_t f = submit(c, (tide__vjob){.queue = 3, .work = UINT64_MAX, .rate_per_s = 1});
    uint32_t g = submit(c, (tide__vjob){.queue = 1, .share = 1, .fixed_ns = 1, .work = 1, .rate_per_s = 1});
    assert_ok(tide__vclock_run(c));
    assert_true(tide__vclock_end(c, a) == odd);
    assert_true(tide__vclock_end(c, b) == UINT64_MAX);
    assert_true(tide__vclock_end(c, d) == UINT64_MAX);
    assert_true(tide__vclock_end(c, e) == UINT64_C(20000000000));
    assert_true(tide__vclock_end(c, f) == UINT64_MAX);
    assert_true(tide__vclock_start(c, g) == UINT64_MAX && tide__vclock_end(c, g) == UINT64_MAX);
    tide__vclock_destroy(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_waits),
        cmocka_unit_test(test_shared_link),
        cmocka_unit_test(test_drag),
        cmocka_unit_test(test_end_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
