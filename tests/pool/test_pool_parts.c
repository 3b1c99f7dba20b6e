/* The pool's parts alone: the table of blocks, the spans, the search for the period, reading an iteration, the proof. */
#include "support/test.h"

#include "base/rng.h"
#include "pool/blocks.h"
#include "pool/plan.h"
#include "pool/repeat.h"
#include "pool/spans.h"

static uint64_t draw(uint64_t *state, uint64_t bound) { return tide__random_u64(11, 0, (*state)++) % bound; }

/* ---- blocks, spans ---- */

static void table_keeps_what_it_is_given(void **state) {
    (void)state;
    enum { N = 3000 };
    static char memory[N];
    static bool present[N];
    uint64_t random = 0, count = 0;
    tide__pool_blocks blocks;
    assert_ok(tide__blocks_init(&blocks));
    for (int i = 0; i < 200000; i++) {
        uint64_t k = draw(&random, N);
        tide__pool_block found, block = {.size_bytes = k};
        assert_ok(tide__blocks_reserve(&blocks, 1));
        if (draw(&random, 2)) {
            assert_int_equal(tide__blocks_add(&blocks, &memory[k], block), !present[k]);
            count += !present[k];
            present[k] = true;
        } else {
            assert_int_equal(tide__blocks_take(&blocks, &memory[k], &found), present[k]);
            if (present[k]) assert_int_equal(found.size_bytes, k);
            count -= present[k];
            present[k] = false;
        }
        assert_int_equal(blocks.count, count);
    }
    tide__blocks_deinit(&blocks);
}

static void spans_answer_like_a_bitmap(void **state) {
    (void)state;
    enum { BYTES = 200, CAPACITY = 12 };
    bool taken[BYTES] = {false}, listed[BYTES] = {false};
    uint64_t length[BYTES] = {0}, random = 0; /* per begin of a member; 0: none */
    tide__spans spans;
    assert_ok(tide__spans_init(&spans, CAPACITY));
    for (int i = 0; i < 100000; i++) {
        uint64_t begin = draw(&random, BYTES - 20), end = begin + 1 + draw(&random, 19);
        bool hit = false;
        for (uint64_t b = begin; b < end; b++) hit = hit || taken[b];
        assert_int_equal(tide__spans_hit(&spans, (tide__pool_span){begin, end}), hit || spans.unlisted > 0);
        if (!hit) {
            listed[begin] = tide__spans_add(&spans, (tide__pool_span){begin, end});
            length[begin] = end - begin;
        } else if (length[begin]) {
            end = begin + length[begin];
            tide__spans_remove(&spans, (tide__pool_span){begin, end}, listed[begin]);
            length[begin] = 0;
        } else {
            continue;
        }
        for (uint64_t b = begin; b < end; b++) taken[b] = !hit;
    }
    tide__spans_clear(&spans);
    assert_true(tide__spans_empty(&spans));
    tide__spans_deinit(&spans);
}

/* ---- the period ---- */

typedef struct listener {
    tide__history history;
    tide__repeat repeat;
    uint64_t found_at, period; /* 0: not found */
} listener;

static void listen_begin(listener *l, uint64_t max_period) {
    *l = (listener){0};
    assert_ok(tide__history_init(&l->history, 2 * max_period + 64));
    assert_ok(tide__repeat_init(&l->repeat, &l->history, max_period));
}

static void listen_to(listener *l, tide__symbol symbol) {
    tide__history_push(&l->history, (tide__pool_event){.symbol = symbol});
    bool due = tide__repeat_feed(&l->repeat, &l->history);
    uint64_t p = l->repeat.period, n = l->history.count;
    if (!due) return;
    assert_true(p > 0 && l->repeat.run >= p && n >= 2 * p);
    for (uint64_t i = n - p; i < n; i++) /* what it says is true */
        assert_int_equal(tide__history_at(&l->history, i)->symbol, tide__history_at(&l->history, i - p)->symbol);
    l->found_at = n;
    l->period = p;
}

static void listen_end(listener *l) {
    tide__history_deinit(&l->history);
    tide__repeat_deinit(&l->repeat);
}

/* Iterations with loops inside, after a start that looks like them but is not. */
static void finds_the_period_in_time(void **state) {
    (void)state;
    uint64_t random = 0;
    for (int trial = 0; trial < 300; trial++) {
        static tide__symbol word[2000];
        uint64_t n = 0, start = draw(&random, 500), alphabet = 2 + draw(&random, 6);
        while (n < 100 + draw(&random, 900)) { /* a loop of a few symbols, a few times, and something between loops */
            uint64_t length = 1 + draw(&random, 6), times = 1 + draw(&random, 8);
            for (uint64_t i = 0; i < length * times; i++, n++)
                word[n] = i < length ? draw(&random, alphabet) : word[n - length];
            word[n++] = 100 + draw(&random, 3);
        }
        word[0] = 1000; /* so that the word has no shorter period of its own */
        listener l;
        listen_begin(&l, 4096);
        for (uint64_t i = 0; i < start; i++) listen_to(&l, word[i % 37]);
        l.period = 0;
        for (uint64_t i = 0; i < 3 * n && l.period != n; i++) listen_to(&l, word[i % n]);
        assert_int_equal(l.period, n);
        assert_true(l.found_at <= start + 2 * n + n / 4 + 1);
        listen_end(&l);
    }
}

/* Words on which naive searches take quadratic time: one symbol, Fibonacci's word, powers of two, noise. */
static void takes_linear_time_on_hard_words(void **state) {
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        listener l;
        uint64_t random = 0;
        listen_begin(&l, 1 << 16);
        for (uint64_t i = 0; i < 400000; i++) {
            double golden = 0.6180339887498949;
            tide__symbol fibonacci = (uint64_t)((double)(i + 2) * golden) - (uint64_t)((double)(i + 1) * golden);
            const tide__symbol symbols[] = {1, fibonacci, (uint64_t)__builtin_ctzll(i + 1), draw(&random, 2),
                                            i % 255 / 2};
            listen_to(&l, symbols[kind]);
        }
        listen_end(&l);
    }
}

/* ---- iterations and plans ---- */

/* Events of a stream as the pool records them: Malloc k opens, Free k closes. */
typedef struct recorder {
    tide__history history;
    uint64_t event[64], size[64];
} recorder;

static void record_malloc(recorder *r, int k, uint64_t size_bytes) {
    r->event[k] = r->history.count;
    r->size[k] = size_bytes;
    tide__history_push(&r->history, (tide__pool_event){.symbol = tide__malloc_symbol(size_bytes)});
}

static void record_free(recorder *r, int k) {
    tide__history_push(&r->history, (tide__pool_event){.symbol = tide__free_symbol(r->size[k]),
                                                       .distance = (uint32_t)(r->history.count - r->event[k])});
}

/* One iteration: 1 crosses the border, 2 and 3 overlap. Its 8 events can be recorded from any of them on. */
enum { PERIOD = 8 };
static void record_step(recorder *r, int step) {
    switch (step % PERIOD) {
    case 0: record_malloc(r, 2, 4000); break;
    case 1: record_free(r, 1); break;
    case 2: record_malloc(r, 3, 700); break;
    case 3: record_free(r, 2); break;
    case 4: record_malloc(r, 4, 700); break;
    case 5: record_free(r, 3); break;
    case 6: record_free(r, 4); break;
    default: record_malloc(r, 1, 512); break;
    }
}

static void reads_the_same_wherever_it_stands(void **state) {
    (void)state;
    tide__iteration first = {0};
    for (int shift = 0; shift < 2 * PERIOD; shift++) {
        recorder r;
        bool steady = false;
        tide__iteration it;
        assert_ok(tide__history_init(&r.history, 64));
        record_malloc(&r, 1, 512);
        for (int i = 0; i < 3 * PERIOD + shift; i++) record_step(&r, i);
        assert_ok(tide__iteration_read(&r.history, PERIOD, true, &it, &steady));
        assert_true(steady);
        assert_int_equal(it.n_items, 4);
        if (shift == 0) first = it;
        assert_int_equal(it.signature, first.signature);
        assert_memory_equal(it.symbols, first.symbols, PERIOD * sizeof *it.symbols);
        assert_memory_equal(it.item, first.item, PERIOD * sizeof *it.item);
        assert_memory_equal(it.life, first.life, it.n_items * sizeof *it.life);
        record_step(&r, 3 * PERIOD + shift); /* the event that comes next is the one it says */
        assert_int_equal(tide__history_at(&r.history, r.history.count - 1)->symbol, it.symbols[it.next]);
        if (shift) tide__iteration_deinit(&it);
        tide__history_deinit(&r.history);
    }
    tide__iteration_deinit(&first);
}

/* Every pair at every moment. */
static bool overlaps_somewhere(const tide__pool_plan *plan) {
    bool found = false;
    for (uint32_t now = 0; now < plan->length; now++) {
        bool taken[16384] = {false};
        for (uint32_t at = 0; at < plan->length; at++) {
            if (tide__symbol_is_free(plan->symbols[at])) continue;
            const tide__pool_item *item = &plan->items[plan->item[at]];
            if ((now + plan->length - at) % plan->length >= item->life) continue;
            for (uint64_t b = item->offset; b < item->offset + tide__item_bytes(plan, item); b++) {
                found = found || taken[b];
                taken[b] = true;
            }
        }
    }
    return found;
}

static void proof_finds_every_overlap(void **state) {
    (void)state;
    recorder r;
    bool steady = false;
    tide__iteration it;
    tide__pool_plan *plan;
    assert_ok(tide__history_init(&r.history, 64));
    record_malloc(&r, 1, 512);
    for (int i = 0; i < 3 * PERIOD; i++) record_step(&r, i);
    assert_ok(tide__iteration_read(&r.history, PERIOD, true, &it, &steady));
    assert_ok(tide__pool_plan_create(&it, NULL, 256, 0, &plan));
    assert_ok(tide__pool_plan_check(plan));
    assert_true(plan->height >= plan->lower_bound);
    int n_refused = 0, n_accepted = 0;
    for (uint32_t i = 0; i < plan->n_items; i++)
        for (uint64_t to = 0; to + tide__item_bytes(plan, &plan->items[i]) <= plan->height; to += 64) {
            uint64_t offset = plan->items[i].offset;
            plan->items[i].offset = to;
            bool bad = tide__pool_plan_check(plan) != TIDE_OK;
            assert_int_equal(bad, overlaps_somewhere(plan));
            n_refused += bad;
            n_accepted += !bad;
            plan->items[i].offset = offset;
        }
    assert_true(n_refused > 10 && n_accepted > 10);
    plan->items[0].offset = plan->height;
    assert_status(tide__pool_plan_check(plan), TIDE_E_INTERNAL);
    tide__pool_plan_destroy(plan);
    tide__iteration_deinit(&it);
    tide__history_deinit(&r.history);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_keeps_what_it_is_given),      cmocka_unit_test(spans_answer_like_a_bitmap),
        cmocka_unit_test(finds_the_period_in_time),          cmocka_unit_test(takes_linear_time_on_hard_words),
        cmocka_unit_test(reads_the_same_wherever_it_stands), cmocka_unit_test(proof_finds_every_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
