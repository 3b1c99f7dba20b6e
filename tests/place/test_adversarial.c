/* Items that are made to hurt: every algorithm answers or says why not, inside its limits, and every answer passes the
 * independent checker. */
#include "base/rng.h"
#include "plan/place/place.h"
#include "support/check_placement.h"
#include "support/cpu_time.h"
#include "support/test.h"

enum { MOST = 1500, N_ALGORITHMS = 5 };
static const char *const algorithms[N_ALGORITHMS] = {"auto", "smartpool", "first-fit", "skyline", "exact"};

typedef struct shape {
    const char *name;
    void (*fill)(tide__place_item *items, size_t n);
} shape;

static tide__place_item item(uint64_t size, uint64_t begin, uint64_t end) {
    return (tide__place_item){
        .size = size, .align = 1, .fixed = TIDE__PLACE_FREE, .begin = (uint32_t)begin, .end = (uint32_t)end};
}

static uint64_t draw(uint64_t stream, uint64_t i, uint64_t below) { return tide__random_u64(3, stream, i) % below; }

/* ---- shapes ---- */

static void all_equal(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(7, 5, 9);
}

static void one_after_the_other(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(1 + i % 5, i, i + 1);
}

static void staircase_up(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(1 + i, i, i + 3);
}

static void staircase_down(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(n - i, i, 2 * n);
}

/* Each a unit longer in time than the one before, and all end together. */
static void staircase_ends(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(1 + i % 3, 0, 1 + i);
}

static void nested(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(1 + i % 7, i, 2 * n - i);
}

/* Long and thin across short and wide. */
static void crossed(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = i % 2 ? item(1, 0, n) : item(1000000, i, i + 1);
}

static void powers_of_two(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(UINT64_C(1) << i % 48, draw(1, i, n), n + 1 + draw(2, i, n));
}

static void coprime_sizes(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(1000003 + 2 * i, i / 2, i / 2 + 20);
}

static void empty_lifetimes(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(i % 3 ? 100 : UINT64_C(1) << 62, i, i);
}

static void some_empty(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(i % 4 ? 100 + i : 0, i, i + i % 3);
}

static void ends_of_time(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) items[i] = item(10 + i % 9, i % 2 ? 0 : UINT32_MAX - 1 - i, UINT32_MAX - i % 2);
}

static void fine_next_to_coarse(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        items[i] = item(1 + draw(1, i, 5000), i, i + 1 + draw(2, i, 30));
        items[i].align = UINT64_C(1) << i % 13;
    }
}

/* Around the border of a circle, all of them. */
static void all_twice(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        items[i] = item(1 + i % 11, 0, 1 + draw(1, i, n));
        items[i].begin2 = items[i].end + 1 + (uint32_t)draw(2, i, n);
        items[i].end2 = (uint32_t)(3 * n);
    }
}

/* Every second unit is taken. */
static void comb(tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        items[i] = item(i % 2 ? 1 : 2, 0, 10);
        if (i % 2) items[i].fixed = 2 * i;
    }
}

static const shape shapes[] = {
    {"all equal", all_equal},
    {"one after the other", one_after_the_other},
    {"staircase up", staircase_up},
    {"staircase down", staircase_down},
    {"staircase of ends", staircase_ends},
    {"nested", nested},
    {"crossed", crossed},
    {"powers of two", powers_of_two},
    {"coprime sizes", coprime_sizes},
    {"empty lifetimes", empty_lifetimes},
    {"some empty", some_empty},
    {"ends of time", ends_of_time},
    {"fine next to coarse", fine_next_to_coarse},
    {"all twice", all_twice},
    {"comb", comb},
};

/* ---- all of them, by all algorithms ---- */

/* An algorithm may refuse what it does not handle; auto may not. */
static void place_checked(const shape *s, size_t n, const char *algorithm) {
    static tide__place_item items[MOST];
    static uint64_t offsets[MOST];
    tide__place_options o = {.algorithm = algorithm, .time_limit_s = 0.05, .node_limit = 2000};
    tide__place_result result;
    s->fill(items, n);
    uint64_t start = cpu_ns();
    tide_status status = tide__place(items, n, &o, offsets, &result);
    double seconds = (double)(cpu_ns() - start) * 1e-9;
    if (status != TIDE_OK) {
        if (strcmp(algorithm, "auto") == 0) fail_msg("%s, %zu items: %s", s->name, n, tide_last_error());
        assert_status(status, TIDE_E_UNSUPPORTED);
        return;
    }
    assert_placement(items, n, offsets, &result);
    if (seconds > 10) fail_msg("%s, %zu items by %s: %.1f s", s->name, n, algorithm, seconds);
}

static void test_every_shape_by_every_algorithm(void **state) {
    static const size_t sizes[] = {1, 2, 17, 300, MOST};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (int a = 0; a < N_ALGORITHMS; a++) place_checked(&shapes[s], sizes[k], algorithms[a]);
}

/* Shapes whose load is the answer, whatever the order. */
static void test_heights_that_are_known(void **state) {
    static tide__place_item items[MOST];
    static uint64_t offsets[MOST];
    tide__place_result r;
    all_equal(items, MOST);
    assert_ok(tide__place(items, MOST, NULL, offsets, &r));
    assert_int_equal(r.height, 7 * MOST);
    assert_true(r.optimal);
    nested(items, 300);
    assert_ok(tide__place(items, 300, NULL, offsets, &r));
    assert_true(r.optimal);
    staircase_down(items, 300);
    assert_ok(tide__place(items, 300, NULL, offsets, &r));
    assert_int_equal(r.height, 300 * 301 / 2);
    empty_lifetimes(items, 300);
    assert_ok(tide__place(items, 300, NULL, offsets, &r));
    assert_int_equal(r.height, UINT64_C(1) << 62); /* alive never, but each has its bytes */
    assert_true(r.optimal);
}

/* ---- huge sizes ---- */

/* Sizes around 2^63, 2^62 and the end: an answer that holds, or a refusal, never an offset that wrapped. */
static void test_random_huge_sizes(void **state) {
    static const uint64_t around[] = {UINT64_C(1) << 61, UINT64_C(1) << 62, INT64_MAX, UINT64_MAX / 3, UINT64_MAX - 9};
    size_t n_placed = 0, n_refused = 0;
    for (uint64_t seed = 0; seed < rounds(3000); seed++) {
        tide__place_item items[6];
        uint64_t offsets[6];
        size_t n = 1 + (size_t)(seed % 6);
        for (size_t i = 0; i < n; i++) {
            uint64_t at = 10 * (6 * seed + i), begin = draw(4, at, 4);
            items[i] = item(around[draw(5, at, 5)] + draw(6, at, 9) - 4, begin, begin + draw(7, at, 3));
            items[i].align = draw(8, at, 3) ? 1 : UINT64_C(1) << draw(9, at, 64);
            if (draw(10, at, 8) == 0) items[i].size = draw(11, at, 100);
        }
        for (int a = 0; a < N_ALGORITHMS; a++) {
            tide__place_options o = {.algorithm = algorithms[a], .node_limit = 200};
            tide__place_result result;
            tide_status status = tide__place(items, n, &o, offsets, &result);
            if (status == TIDE_OK) {
                assert_placement(items, n, offsets, &result);
                n_placed++;
            } else {
                assert_true(status == TIDE_E_OVERFLOW || status == TIDE_E_UNSUPPORTED);
                n_refused++;
            }
        }
    }
    assert_true(n_placed > rounds(1000) && n_refused > rounds(1000));
}

/* ---- random, with every feature ---- */

static void random_item(tide__place_item *it, uint64_t seed, uint64_t at) {
    uint64_t begin = draw(seed, at, 60);
    *it = item(draw(seed, at + 1, 300), begin, begin + draw(seed, at + 2, 20));
    it->align = UINT64_C(1) << draw(seed, at + 3, 6);
    if (draw(seed, at + 4, 3) == 0) {
        it->begin2 = it->end + (uint32_t)draw(seed, at + 5, 20);
        it->end2 = it->begin2 + (uint32_t)draw(seed, at + 6, 10);
    }
}

/* Fixed offsets that cannot overlap: each in a lane of its own. */
static void fix_some(tide__place_item *items, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++)
        if (draw(seed, 5000 + i, 6) == 0) items[i].fixed = 320 * draw(seed, 6000 + i, 3) + 1024 * i;
}

static void test_random_features_by_every_algorithm(void **state) {
    enum { FEW = 40 };
    size_t n_placed[N_ALGORITHMS] = {0};
    for (uint64_t seed = 100; seed < 700; seed++) {
        tide__place_item items[FEW];
        uint64_t offsets[FEW];
        size_t n = 1 + (size_t)draw(seed, 0, FEW);
        for (size_t i = 0; i < n; i++) random_item(&items[i], seed, 10 + 10 * i);
        if (seed % 2) fix_some(items, n, seed);
        for (int a = 0; a < N_ALGORITHMS; a++) {
            tide__place_options o = {.algorithm = algorithms[a], .node_limit = 300};
            tide__place_result result;
            tide_status status = tide__place(items, n, &o, offsets, &result);
            if (status == TIDE_OK) assert_placement(items, n, offsets, &result);
            if (status != TIDE_OK) assert_status(status, TIDE_E_UNSUPPORTED);
            n_placed[a] += status == TIDE_OK;
        }
    }
    assert_int_equal(n_placed[0], 600);
    assert_int_equal(n_placed[1], 600);
    assert_int_equal(n_placed[2], 600);
    assert_true(n_placed[3] > 100);
}

/* Whatever the capacity says, it only ends the search. */
static void test_capacities(void **state) {
    tide__place_item items[40];
    uint64_t offsets[40];
    for (uint64_t seed = 0; seed < 40; seed++) {
        for (size_t i = 0; i < 40; i++) {
            uint64_t begin = draw(seed, 10 + 3 * i, 50);
            items[i] = item(1 + draw(seed, 11 + 3 * i, 500), begin, begin + 1 + draw(seed, 12 + 3 * i, 20));
        }
        tide__place_result low, r;
        assert_ok(tide__place(items, 40, &(tide__place_options){.node_limit = 5000}, offsets, &low));
        const uint64_t capacities[] = {1, low.lower_bound - 1, low.lower_bound, low.height, 2 * low.height, UINT64_MAX};
        for (size_t k = 0; k < sizeof capacities / sizeof *capacities; k++) {
            tide__place_options o = {.capacity = capacities[k], .node_limit = 5000};
            assert_ok(tide__place(items, 40, &o, offsets, &r));
            assert_placement(items, 40, offsets, &r);
            if (capacities[k] >= low.height) assert_true(r.height <= capacities[k]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape_by_every_algorithm),
        cmocka_unit_test(test_heights_that_are_known),
        cmocka_unit_test(test_random_huge_sizes),
        cmocka_unit_test(test_random_features_by_every_algorithm),
        cmocka_unit_test(test_capacities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
