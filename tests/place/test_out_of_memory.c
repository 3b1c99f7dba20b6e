/* tide__place when memory runs out: an answer that was there before is given all the same, as long as there is one. */
#include "base/rng.h"
#include "plan/place/place.h"
#include "support/short_memory.h"
#include "support/test.h"

enum { N = 40, TIMES = 30, NODES = 20000 };

typedef struct trial {
    tide__place_item items[N];
    uint64_t lowest; /* with all the memory there is */
    int n_lowest, n_higher;
} trial;

static uint64_t draw(uint64_t seed, uint64_t index, uint64_t below) { return tide__random_u64(seed, 1, index) % below; }

static void draw_items(uint64_t seed, tide__place_item *items) {
    for (uint64_t i = 0; i < N; i++) {
        uint32_t begin = (uint32_t)draw(seed, 3 * i, TIMES);
        items[i] = (tide__place_item){.size = 1 + draw(seed, 3 * i + 1, 50),
                                      .align = 1,
                                      .fixed = TIDE__PLACE_FREE,
                                      .begin = begin,
                                      .end = begin + 1 + (uint32_t)draw(seed, 3 * i + 2, 12)};
    }
}

/* The checker the other tests use takes memory itself. */
static void assert_apart(const tide__place_item *items, const uint64_t *offsets) {
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++) {
            bool at_once = items[i].begin < items[k].end && items[k].begin < items[i].end;
            bool share = offsets[i] < offsets[k] + items[k].size && offsets[k] < offsets[i] + items[i].size;
            assert_false(at_once && share);
        }
}

static tide_status place(void *context) {
    trial *t = context;
    uint64_t offsets[N];
    tide__place_result result;
    TIDE_TRY(tide__place(t->items, N, &(tide__place_options){.node_limit = NODES}, offsets, &result));
    assert_apart(t->items, offsets);
    assert_true(result.height >= t->lowest);
    t->n_lowest += result.height == t->lowest;
    t->n_higher += result.height > t->lowest;
    return TIDE_OK;
}

/* Items that only the search brings down to the bound. */
static void find_items(trial *t) {
    uint64_t offsets[N];
    tide__place_result fast, searched;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        draw_items(seed, t->items);
        assert_ok(tide__place(t->items, N, NULL, offsets, &fast));
        assert_ok(tide__place(t->items, N, &(tide__place_options){.node_limit = NODES}, offsets, &searched));
        t->lowest = searched.height;
        if (searched.height < fast.height) return;
    }
    fail_msg("no items need the search");
}

static void test_search_without_memory_leaves_the_heuristics_answer(void **state) {
    trial t = {0};
    find_items(&t);
    exhaust(place, &t);
    assert_true(t.n_lowest > 0);
    assert_true(t.n_higher > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_search_without_memory_leaves_the_heuristics_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
