/* The exact search, against brute force on small problems and on larger ones whose answer is known by construction. */
#include "plan/place/exact.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "plan/place/exact_state.h"
#include "support/brute_placement.h"
#include "support/check_placement.h"
#include "support/cpu_time.h"
#include "support/draw_placement.h"
#include "support/test.h"

static uint32_t draw(uint64_t seed, uint64_t index, uint32_t below) {
    return (uint32_t)(tide__random_u64(seed, 1, index) % below);
}

static tide__place_item item(uint64_t size, uint32_t begin, uint32_t end) {
    return (tide__place_item){.size = size, .align = 1, .fixed = TIDE__PLACE_FREE, .begin = begin, .end = end};
}

/* ---- small problems ---- */

enum { FEW = 7 };

static void test_agrees_with_brute_force(void **state) {
    for (uint64_t seed = 0; seed < rounds(1000); seed++) {
        tide__place_item items[FEW];
        uint64_t offsets[FEW];
        size_t n = FEW;
        draw_few(seed, n, items);
        tide__place_options o = {.node_limit = 100000, .seed = seed};
        tide__place_result result;
        assert_ok(tide__place(items, n, &o, offsets, &result));
        assert_placement(items, n, offsets, &result);
        assert_int_equal(result.height, least_height(items, n));
        assert_int_equal(result.lower_bound, result.height);
        assert_true(result.optimal);
    }
}

/* Seeds whose least height is above the load: the proof is the search's own, and every order confirms it. */
static void test_proves_bounds_above_the_load(void **state) {
    static const uint32_t seeds[] = {690, 8746, 16253, 23475, 29797, 30446, 31758, 44822};
    for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++) {
        tide__place_item items[MOST_BRUTE_ITEMS];
        uint64_t offsets[MOST_BRUTE_ITEMS];
        draw_few(seeds[k], MOST_BRUTE_ITEMS, items);
        tide__place_options o = {.node_limit = 100000};
        tide__place_result fast, result;
        assert_ok(tide__place(items, MOST_BRUTE_ITEMS, NULL, offsets, &fast));
        assert_ok(tide__place(items, MOST_BRUTE_ITEMS, &o, offsets, &result));
        assert_placement(items, MOST_BRUTE_ITEMS, offsets, &result);
        assert_true(result.lower_bound > fast.lower_bound);
        assert_int_equal(result.lower_bound, least_height(items, MOST_BRUTE_ITEMS));
        assert_true(result.optimal);
    }
}

/* The search itself, at and just below the least height: heuristics answer most small problems before it is asked. */
static void test_answers_are_right_around_the_least_height(void **state) {
    for (uint64_t seed = 0; seed < rounds(1000); seed++) {
        tide__place_item items[FEW];
        uint64_t offsets[FEW], nodes, least;
        size_t n = FEW;
        draw_few(seed, n, items);
        tide__place_problem p;
        tide__place_exact_answer answer;
        assert_ok(tide__place_problem_init(&p, items, n));
        least = least_height(items, n) / p.unit;
        tide__place_exact_options o = {.capacity = least, .node_limit = 100000};
        assert_ok(tide__place_exact(&p, &o, offsets, &answer, &nodes));
        assert_int_equal(answer, TIDE__PLACE_EXACT_FOUND);
        assert_int_equal(tide__place_height(&p, offsets), least);
        o.capacity = least - 1;
        assert_ok(tide__place_exact(&p, &o, offsets, &answer, &nodes));
        assert_int_equal(answer, TIDE__PLACE_EXACT_NONE_EXISTS);
        tide__place_problem_deinit(&p);
    }
}

/* ---- what plans need: second lifetimes, alignments, fixed offsets ---- */

static uint64_t least_alignment(const tide__place_item *items, size_t n) {
    uint64_t least = items[0].align;
    for (size_t i = 1; i < n; i++) least = items[i].align < least ? items[i].align : least;
    return least;
}

/* Sizes are rounded up to the smallest alignment, so only less than that may be given away, on top of all. */
static void test_agrees_with_brute_force_on_features(void **state) {
    for (uint64_t k = 0; k < rounds(2400); k++) {
        tide__place_item items[FEW];
        uint64_t offsets[FEW];
        size_t n = 3 + draw(k, 700, FEW - 2);
        draw_featured(k, 1 + (int)(k % ALL_FEATURES), n, items);
        tide__place_options o = {.node_limit = 100000, .seed = k};
        tide__place_result result;
        assert_ok(tide__place(items, n, &o, offsets, &result));
        assert_placement(items, n, offsets, &result);
        uint64_t least = least_height(items, n);
        assert_true(result.lower_bound <= least);
        assert_true(result.height < least + least_alignment(items, n));
    }
}

/* The search itself: it finds the least height, in units, and proves that nothing is lower. */
static void test_searches_features_around_the_least_height(void **state) {
    size_t above_load = 0;
    for (uint64_t k = 0; k < rounds(2400); k++) {
        tide__place_item items[FEW];
        uint64_t offsets[FEW], nodes;
        size_t n = 3 + draw(k, 700, FEW - 2);
        draw_featured(k, 1 + (int)(k % ALL_FEATURES), n, items);
        tide__place_problem p;
        tide__place_exact_answer answer;
        assert_ok(tide__place_problem_init(&p, items, n));
        tide__place_exact_options o = {.capacity = least_height(p.items, p.n), .node_limit = 100000};
        assert_ok(tide__place_exact(&p, &o, offsets, &answer, &nodes));
        assert_int_equal(answer, TIDE__PLACE_EXACT_FOUND);
        assert_null(check_placement(p.items, p.n, offsets, o.capacity));
        above_load += o.capacity > p.lower_bound;
        o.capacity--;
        assert_ok(tide__place_exact(&p, &o, offsets, &answer, &nodes));
        assert_int_equal(answer, TIDE__PLACE_EXACT_NONE_EXISTS);
        tide__place_problem_deinit(&p);
    }
    assert_true(above_load > rounds(200));
}

/* ---- problems with a known answer ---- */

enum { MANY = 160 };

typedef struct piece {
    uint32_t begin, end, low, high;
} piece;

/* Cuts a rectangle of times x addresses into n pieces: as high as the load everywhere, and it fits exactly. */
static void draw_perfect(uint64_t seed, size_t n, uint32_t times, uint32_t height, tide__place_item *items) {
    piece pieces[MANY] = {{0, times, 0, height}};
    uint64_t at = 0;
    for (size_t k = 1; k < n;) {
        piece *whole = &pieces[draw(seed, at++, (uint32_t)k)], part = *whole;
        bool in_time = draw(seed, at++, 2);
        uint32_t extent = in_time ? part.end - part.begin : part.high - part.low;
        if (extent < 2) continue;
        uint32_t cut = 1 + draw(seed, at++, extent - 1);
        if (in_time)
            whole->end = part.begin = part.begin + cut;
        else
            whole->high = part.low = part.low + cut;
        pieces[k++] = part;
    }
    for (size_t k = 0; k < n; k++) items[k] = item(pieces[k].high - pieces[k].low, pieces[k].begin, pieces[k].end);
}

static void test_finds_perfect_packings(void **state) {
    for (uint64_t seed = 0; seed < rounds(30); seed++) {
        tide__place_item items[MANY];
        uint64_t offsets[MANY];
        size_t n = 60 + 3 * seed;
        draw_perfect(seed, n, 4000, 100000, items);
        tide__place_options o = {.capacity = 100000, .node_limit = 400000};
        tide__place_result result;
        assert_ok(tide__place(items, n, &o, offsets, &result));
        assert_placement(items, n, offsets, &result);
        assert_int_equal(result.height, 100000);
        assert_true(result.optimal);
    }
}

/* Too small a capacity, next to parts that fit anywhere. */
static void test_proves_that_nothing_fits(void **state) {
    tide__place_item items[MANY];
    uint64_t offsets[MANY];
    size_t proved = 0;
    for (uint64_t seed = 0; seed < rounds(200); seed++) {
        size_t n = FEW;
        draw_few(seed, n, items);
        uint64_t least = least_height(items, n);
        for (size_t k = 0; k < 20; k++) items[n + k] = item(1, (uint32_t)(100 + k), (uint32_t)(102 + k));
        tide__place_options o = {.capacity = least - 1, .node_limit = 100000};
        tide__place_result result;
        if (least == 1) continue;
        assert_ok(tide__place(items, n + 20, &o, offsets, &result));
        assert_placement(items, n + 20, offsets, &result);
        assert_true(result.lower_bound > o.capacity);
        proved += result.lower_bound == least;
    }
    assert_true(proved > rounds(100));
}

/* ---- limits ---- */

static void test_same_seed_same_answer(void **state) {
    tide__place_item items[MANY];
    uint64_t first[MANY], second[MANY];
    draw_perfect(5, 120, 300, 1000, items);
    for (uint64_t seed = 0; seed < 5; seed++) {
        tide__place_options o = {.node_limit = 20000, .seed = seed};
        tide__place_result a, b;
        assert_ok(tide__place(items, 120, &o, first, &a));
        assert_ok(tide__place(items, 120, &o, second, &b));
        assert_memory_equal(first, second, 120 * sizeof *first);
        assert_int_equal(a.lower_bound, b.lower_bound);
        assert_string_equal(a.algorithm, b.algorithm);
    }
}

/* A packing that is no longer perfect: the search does not end soon. */
static void test_stops_at_its_limits(void **state) {
    tide__place_item items[MANY];
    uint64_t offsets[MANY], nodes;
    draw_perfect(3, MANY, 80, 5000, items);
    for (size_t i = 0; i < MANY; i++) items[i].size += i % 3;
    tide__place_problem p;
    assert_ok(tide__place_problem_init(&p, items, MANY));
    tide__place_exact_options o = {.capacity = p.lower_bound, .node_limit = 500};
    tide__place_exact_answer answer;
    assert_ok(tide__place_exact(&p, &o, offsets, &answer, &nodes));
    assert_true(nodes <= 500);
    o = (tide__place_exact_options){.capacity = p.lower_bound, .deadline_ns = tide__now_ns() + 50000000};
    uint64_t before = cpu_ns();
    assert_ok(tide__place_exact(&p, &o, offsets, &answer, &nodes));
    assert_true(cpu_ns() - before < 500000000);
    tide__place_problem_deinit(&p);
}

/* Few searches go deep: what they may take is far more than they do take, also where it counts though it is never touched. */
static void test_takes_memory_as_it_goes(void **state) {
    enum { N = 1500 };
    tide__place_item *items = calloc(N, sizeof *items);
    uint32_t n_decided = 0;
    for (uint32_t i = 0; i < N; i++) items[i] = item(1 + i % 7, i, i + 40);
    tide__place_problem p;
    tide__place_exact_state s;
    assert_ok(tide__place_problem_init(&p, items, N));
    assert_ok(tide__place_exact_state_init(&s, &p, 400));
    for (uint32_t i = 0; i < N; i++) s.rank[i] = i;
    tide__place_exact_reset(&s);
    for (uint32_t i = 0; i < N && tide__place_exact_make_room(&s); i += 40, n_decided++)
        assert_true(tide__place_exact_place(&s, i, n_decided));
    assert_int_equal(n_decided, (N + 39) / 40);
    assert_in_range(s.trail_room * sizeof *s.trail + s.sets_room * s.n_words * sizeof *s.sets, 1, 2 << 20);
    tide__place_exact_state_deinit(&s);
    tide__place_problem_deinit(&p);
    free(items);
}

static void test_refuses_what_it_does_not_handle(void **state) {
    tide__place_item huge[] = {item((UINT64_C(1) << 62) + 1, 0, 2), item(UINT64_C(1) << 61, 1, 3)};
    tide__place_options o = {.node_limit = 100, .algorithm = "exact"};
    tide__place_result result;
    uint64_t offsets[2];
    assert_status(tide__place(huge, 2, &o, offsets, &result), TIDE_E_UNSUPPORTED);
    o.algorithm = NULL;
    assert_ok(tide__place(huge, 2, &o, offsets, &result));
    assert_placement(huge, 2, offsets, &result);
}

static void test_algorithms_by_name(void **state) {
    tide__place_item items[MANY];
    uint64_t offsets[MANY];
    draw_perfect(1, 100, 300, 1000, items);
    const char *const names[] = {"auto", "smartpool", "first-fit", "skyline", "exact"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        tide__place_options o = {.node_limit = 1000, .algorithm = names[k]};
        tide__place_result result;
        assert_ok(tide__place(items, 100, &o, offsets, &result));
        assert_placement(items, 100, offsets, &result);
        if (k == 1 || k == 2) assert_string_equal(result.algorithm, names[k]);
    }
    tide__place_options o = {.algorithm = "slow"};
    tide__place_result result;
    assert_status(tide__place(items, 100, &o, offsets, &result), TIDE_E_ARGUMENT);
    assert_error_has("first-fit");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_brute_force),
        cmocka_unit_test(test_proves_bounds_above_the_load),
        cmocka_unit_test(test_answers_are_right_around_the_least_height),
        cmocka_unit_test(test_agrees_with_brute_force_on_features),
        cmocka_unit_test(test_searches_features_around_the_least_height),
        cmocka_unit_test(test_finds_perfect_packings),
        cmocka_unit_test(test_proves_that_nothing_fits),
        cmocka_unit_test(test_same_seed_same_answer),
        cmocka_unit_test(test_stops_at_its_limits),
        cmocka_unit_test(test_takes_memory_as_it_goes),
        cmocka_unit_test(test_refuses_what_it_does_not_handle),
        cmocka_unit_test(test_algorithms_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
