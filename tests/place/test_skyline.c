/* Skylines below items that have their place, and in layers: right wherever the pins are, and low where there are many items. */
#include <stdlib.h>

#include "base/rng.h"
#include "plan/place/skyline.h"
#include "support/check_placement.h"
#include "support/test.h"

enum { SOME = 60, MANY = 20000, SEED = 3 };

static uint64_t draw(uint64_t seed, uint64_t stream, uint64_t i, uint64_t below) {
    return tide__random_u64(seed, stream, i) % below;
}

/* Some of them alive at the turn of the step, some twice within it, some aligned. */
static tide__place_item draw_item(uint64_t seed, uint64_t i, uint64_t times) {
    uint64_t begin = draw(seed, 1, i, times), end = begin + 1 + draw(seed, 2, i, times - begin), gap = end;
    tide__place_item it = {.size = 1 + draw(seed, 3, i, 30),
                           .align = UINT64_C(1) << draw(seed, 4, i, seed % 2 ? 4 : 1),
                           .fixed = TIDE__PLACE_FREE,
                           .begin = (uint32_t)begin,
                           .end = (uint32_t)end};
    if (seed % 3 == 0 || end + 2 > times || draw(seed, 5, i, 3)) return it;
    gap += 1 + draw(seed, 6, i, times - end - 1);
    it.begin2 = (uint32_t)gap, it.end2 = (uint32_t)(gap + 1 + draw(seed, 7, i, times - gap));
    if (draw(seed, 8, i, 2)) it.begin = 0, it.end2 = (uint32_t)times;
    return it;
}

/* A placement of all is the source of the pins; the others are placed again, with what was under some of them gone. */
static void test_places_around_pins(void **state) {
    for (uint64_t seed = 0; seed < rounds(600); seed++) {
        tide__place_item items[SOME];
        uint64_t offsets[SOME], times = 3 + draw(seed, 0, 0, 80);
        uint32_t order[SOME];
        size_t n = 2 + draw(seed, 0, 1, SOME - 1), n_pinned = draw(seed, 0, 2, n);
        for (size_t i = 0; i < n; i++) items[i] = draw_item(seed, i, times), order[i] = (uint32_t)i;
        tide__place_problem p;
        tide__place_skyline *skyline;
        assert_ok(tide__place_problem_init(&p, items, n));
        assert_ok(tide__place_skyline_create(&p, true, &skyline));
        tide__place_skyline_run(skyline, order, n, offsets);
        for (size_t i = 0; i < n_pinned; i++) offsets[i] += draw(seed, 9, 0, 5) * 32;
        assert_ok(tide__place_skyline_pin(skyline, order, n_pinned, offsets));
        uint64_t height = tide__place_skyline_run(skyline, order + n_pinned, n - n_pinned, offsets);
        assert_null(check_placement(p.items, n, offsets, height));
        tide__place_skyline_destroy(skyline);
        tide__place_problem_deinit(&p);
    }
}

/* Lengths and sizes of very different powers of two. Plain skylines leave 0.7 % here. */
static void test_layers_leave_little(void **state) {
    tide__place_item *items = malloc(MANY * sizeof *items);
    uint64_t *offsets = malloc(MANY * sizeof *offsets);
    assert_true(items && offsets);
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t size = UINT64_C(512) << draw(SEED, 1, i, 16), length = UINT64_C(1) << draw(SEED, 2, i, 16);
        uint64_t begin = draw(SEED, 3, i, MANY), end = begin + length + draw(SEED, 4, i, length);
        items[i] = (tide__place_item){.size = size + draw(SEED, 5, i, size) / 512 * 512,
                                      .align = 1,
                                      .fixed = TIDE__PLACE_FREE,
                                      .begin = (uint32_t)begin,
                                      .end = (uint32_t)end};
    }
    tide__place_result result;
    assert_ok(tide__place(items, MANY, NULL, offsets, &result));
    assert_placement(items, MANY, offsets, &result);
    assert_true((double)result.height <= 1.0025 * (double)result.lower_bound);
    free(items);
    free(offsets);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_around_pins),
        cmocka_unit_test(test_layers_leave_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
