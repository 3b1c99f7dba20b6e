/* The core of a problem fits what is left for it exactly when the whole fits the capacity. */
#include "plan/place/core.h"

#include "plan/place/exact.h"
#include "support/brute_placement.h"
#include "support/check_placement.h"
#include "support/draw_placement.h"
#include "support/test.h"

enum { FEW = 7 };

/* Searches the core; a placement of it is completed and checked. */
static tide__place_exact_answer search_core(const tide__place_problem *p, uint64_t capacity, size_t *n_left) {
    tide__place_core core;
    tide__place_exact_answer answer;
    uint64_t core_offsets[FEW], offsets[FEW], nodes;
    assert_ok(tide__place_core_init(&core, p, capacity));
    *n_left = core.problem.n;
    tide__place_exact_options o = {.capacity = core.capacity, .node_limit = 100000};
    assert_ok(tide__place_exact(&core.problem, &o, core_offsets, &answer, &nodes));
    if (answer == TIDE__PLACE_EXACT_FOUND) {
        assert_ok(tide__place_core_complete(&core, core_offsets, offsets));
        uint64_t height = tide__place_height(p, offsets);
        assert_true(height <= capacity);
        assert_null(check_placement(p->items, p->n, offsets, height));
    }
    tide__place_core_deinit(&core);
    return answer;
}

static void test_core_fits_if_and_only_if_the_whole_does(void **state) {
    size_t smaller = 0, empty = 0, refused = 0, n_left;
    for (uint64_t k = 0; k < rounds(3000); k++) {
        tide__place_item items[FEW];
        tide__place_problem p;
        draw_featured(k, (int)(k % (ALL_FEATURES + 1)), FEW, items);
        assert_ok(tide__place_problem_init(&p, items, FEW));
        uint64_t least = least_height(p.items, p.n);
        assert_int_equal(search_core(&p, least, &n_left), TIDE__PLACE_EXACT_FOUND);
        smaller += n_left < p.n;
        assert_int_equal(search_core(&p, 3 * least, &n_left), TIDE__PLACE_EXACT_FOUND);
        empty += n_left == 0;
        if (least > p.lower_bound) {
            assert_int_equal(search_core(&p, least - 1, &n_left), TIDE__PLACE_EXACT_NONE_EXISTS);
            refused++;
        }
        tide__place_problem_deinit(&p);
    }
    assert_true(smaller > rounds(300));
    assert_true(empty > rounds(300));
    assert_true(refused > rounds(300));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_core_fits_if_and_only_if_the_whole_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
