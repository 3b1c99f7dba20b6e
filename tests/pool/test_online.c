/* The online allocators: their rules on streams worked out by hand, and random storms under a shadow checker. */
#include "base/rng.h"
#include "pool/online/requests.h"
#include "support/pool_client.h"
#include "support/test.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

static uint32_t take(tide__online *o, uint64_t size) {
    uint32_t block;
    assert_ok(tide__online_malloc(o, size, &block));
    return block;
}

static uint64_t address(const tide__online *o, uint32_t block) { return tide__heap_at(&o->heap, block)->address; }
static uint64_t size(const tide__online *o, uint32_t block) { return tide__heap_at(&o->heap, block)->size; }

/* ---- first fit and best fit ---- */

/* Blocks of 8, 1, 3, 1 units: then holes of 8 and 3, and a top. */
static void make_holes(tide__online *o, const tide__online_kind *kind, uint64_t base[2]) {
    tide__online_init(o, kind, 256, 0);
    uint32_t a = take(o, 8 * 256), b = take(o, 256), c = take(o, 3 * 256);
    take(o, 256);
    base[0] = address(o, a);
    base[1] = address(o, c);
    assert_int_equal(base[1], base[0] + 9 * 256);
    (void)b;
    tide__online_free(o, a);
    tide__online_free(o, c);
}

static void test_first_fit_takes_the_lowest_hole(void **state) {
    tide__online o;
    uint64_t base[2];
    make_holes(&o, &tide__online_first_fit, base);
    assert_int_equal(address(&o, take(&o, 3 * 256)), base[0]);
    assert_int_equal(address(&o, take(&o, 3 * 256)), base[0] + 3 * 256);
    assert_int_equal(address(&o, take(&o, 3 * 256)), base[1]);
    assert_int_equal(o.heap.peak_held_bytes, 13 * 256);
    tide__online_deinit(&o);
}

static void test_best_fit_takes_the_smallest_hole(void **state) {
    tide__online o;
    uint64_t base[2];
    make_holes(&o, &tide__online_best_fit, base);
    assert_int_equal(address(&o, take(&o, 2 * 256)), base[1]);
    assert_int_equal(address(&o, take(&o, 2 * 256)), base[0]);
    assert_int_equal(address(&o, take(&o, 200)), base[1] + 2 * 256);
    assert_int_equal(o.heap.peak_held_bytes, 13 * 256);
    tide__online_deinit(&o);
}

static void test_fits_use_the_top_last_and_give_it_back(void **state) {
    const tide__online_kind *kinds[] = {&tide__online_first_fit, &tide__online_best_fit};
    for (int k = 0; k < 2; k++) {
        tide__online o;
        tide__online_init(&o, kinds[k], 1, 0);
        uint32_t a = take(&o, 100), b = take(&o, 10), c = take(&o, 50);
        uint64_t top = address(&o, c);
        tide__online_free(&o, a);
        tide__online_free(&o, c); /* the hole of 100 stays, that of 50 is the top now */
        assert_int_equal(o.heap.held_bytes, 110);
        assert_true(address(&o, take(&o, 50)) < top);
        assert_int_equal(address(&o, take(&o, 60)), top);
        assert_int_equal(o.heap.peak_held_bytes, 170);
        (void)b;
        tide__online_deinit(&o);
    }
}

static void test_fits_join_neighbours(void **state) {
    tide__online o;
    tide__online_init(&o, &tide__online_first_fit, 1, 0);
    uint32_t blocks[5];
    for (int i = 0; i < 5; i++) blocks[i] = take(&o, 10);
    uint64_t second = address(&o, blocks[1]);
    tide__online_free(&o, blocks[1]);
    tide__online_free(&o, blocks[3]);
    tide__online_free(&o, blocks[2]); /* joins both */
    assert_int_equal(address(&o, take(&o, 30)), second);
    assert_int_equal(o.heap.peak_held_bytes, 50);
    tide__online_deinit(&o);
}

/* ---- CnMem ---- */

static void test_cnmem_grows_by_what_is_asked(void **state) {
    tide__online o;
    tide__online_init(&o, &tide__online_cnmem, 1, 0);
    take(&o, 1);
    assert_int_equal(o.heap.held_bytes, 512);
    uint32_t b = take(&o, 1000);
    assert_int_equal(o.heap.held_bytes, 512 + 1024);
    tide__online_free(&o, b);
    take(&o, 1025); /* the free 1024 are too few, and do not help: a new allocation of 1536 */
    assert_int_equal(o.heap.held_bytes, 512 + 1024 + 1536);
    assert_int_equal(o.heap.n_segments, 3);
    tide__online_deinit(&o);
}

static void test_cnmem_cuts_without_a_threshold(void **state) {
    tide__online o;
    tide__online_init(&o, &tide__online_cnmem, 1, 0);
    uint32_t large = take(&o, 64 * MIB), small = take(&o, 4 * MIB);
    uint64_t large_at = address(&o, large), small_at = address(&o, small);
    tide__online_free(&o, large);
    tide__online_free(&o, small);
    assert_int_equal(address(&o, take(&o, MIB)), small_at); /* the smallest that is large enough */
    assert_int_equal(address(&o, take(&o, 3 * MIB)), small_at + MIB);
    assert_int_equal(address(&o, take(&o, 512)), large_at); /* cut, however small the part */
    assert_int_equal(o.heap.held_bytes, 68 * MIB);
    tide__online_deinit(&o);
}

static void test_cnmem_joins_inside_an_allocation_only(void **state) {
    tide__online o;
    tide__online_init(&o, &tide__online_cnmem, 1, 0);
    uint32_t a = take(&o, 4 * MIB), b = take(&o, 4 * MIB);
    uint64_t low = address(&o, a);
    tide__online_free(&o, a);
    a = take(&o, MIB);
    uint32_t rest = take(&o, 3 * MIB);
    tide__online_free(&o, a);
    tide__online_free(&o, rest);
    tide__online_free(&o, b);
    assert_int_equal(address(&o, take(&o, 4 * MIB)), low); /* the parts are whole again; the lower of equals */
    take(&o, 5 * MIB);                                     /* b is free beside it, but another allocation */
    assert_int_equal(o.heap.held_bytes, 13 * MIB);
    tide__online_deinit(&o);
}

/* ---- the caching allocator ---- */

static uint64_t held_for(uint64_t bytes) {
    tide__online o;
    tide__online_init(&o, &tide__online_caching, 1, 0);
    take(&o, bytes);
    uint64_t held = o.heap.held_bytes;
    tide__online_deinit(&o);
    return held;
}

static void test_caching_segments(void **state) {
    assert_int_equal(held_for(1), 2 * MIB);
    assert_int_equal(held_for(MIB), 2 * MIB);
    assert_int_equal(held_for(MIB + 1), 20 * MIB);
    assert_int_equal(held_for(10 * MIB - 512), 20 * MIB);
    assert_int_equal(held_for(10 * MIB - 511), 10 * MIB); /* rounds to 10 MiB */
    assert_int_equal(held_for(10 * MIB + 1), 12 * MIB);
    assert_int_equal(held_for(21 * MIB), 22 * MIB);
}

static void test_caching_cuts_small_blocks_to_size(void **state) {
    tide__online o;
    tide__online_init(&o, &tide__online_caching, 1, 0);
    uint32_t a = take(&o, 100), b = take(&o, 513), c = take(&o, MIB);
    assert_int_equal(size(&o, a), 512);
    assert_int_equal(address(&o, b), address(&o, a) + 512);
    assert_int_equal(size(&o, b), 1024);
    assert_int_equal(address(&o, c), address(&o, b) + 1024);
    assert_int_equal(o.heap.held_bytes, 2 * MIB);
    take(&o, MIB - 1536); /* the rest of the segment, exactly */
    assert_int_equal(o.heap.held_bytes, 2 * MIB);
    take(&o, 1);
    assert_int_equal(o.heap.held_bytes, 4 * MIB);
    tide__online_deinit(&o);
}

static void test_caching_cuts_large_blocks_if_more_than_a_mebibyte_is_left(void **state) {
    tide__online o;
    tide__online_init(&o, &tide__online_caching, 1, 0);
    uint32_t a = take(&o, 9 * MIB), b = take(&o, 10 * MIB - 512); /* 20 = 9 + 11, and 11 = 10 - 1/2048 + more */
    assert_int_equal(size(&o, a), 9 * MIB);
    assert_int_equal(size(&o, b), 10 * MIB - 512); /* 1 MiB and 512 bytes were left */
    tide__online_free(&o, b);
    b = take(&o, 10 * MIB);
    assert_int_equal(size(&o, b), 11 * MIB); /* just 1 MiB would be left: not cut */
    assert_int_equal(address(&o, b), address(&o, a) + 9 * MIB);
    assert_int_equal(o.heap.held_bytes, 20 * MIB);
    tide__online_deinit(&o);
}

static void test_caching_keeps_small_and_large_apart(void **state) {
    tide__online o;
    tide__online_init(&o, &tide__online_caching, 1, 0);
    uint32_t large = take(&o, 5 * MIB);
    tide__online_free(&o, large);
    take(&o, 512 * KIB); /* 20 MiB are cached, but not for small ones */
    assert_int_equal(o.heap.held_bytes, 22 * MIB);
    take(&o, MIB + 512); /* 1.5 MiB are free in the small segment, but not for large ones */
    assert_int_equal(o.heap.held_bytes, 22 * MIB);
    assert_int_equal(o.heap.n_segments, 2);
    tide__online_deinit(&o);
}

static void test_caching_takes_the_best_and_joins(void **state) {
    tide__online o;
    tide__online_init(&o, &tide__online_caching, 1, 0);
    uint32_t own = take(&o, 12 * MIB), a = take(&o, 4 * MIB), b = take(&o, 6 * MIB), c = take(&o, 8 * MIB);
    uint64_t own_at = address(&o, own), a_at = address(&o, a);
    assert_int_equal(o.heap.held_bytes, 32 * MIB); /* 20 = 4 + 6 + 8 + 2 */
    tide__online_free(&o, own);
    tide__online_free(&o, a);
    tide__online_free(&o, b); /* 10 MiB in one */
    assert_int_equal(address(&o, take(&o, 9 * MIB)), a_at);
    assert_int_equal(address(&o, take(&o, 9 * MIB)), own_at);
    tide__online_free(&o, c);
    assert_int_equal(o.heap.held_bytes, 32 * MIB); /* nothing is given back */
    tide__online_deinit(&o);
}

static void test_caching_releases_when_memory_is_short(void **state) {
    tide__online o;
    uint32_t block = 77;
    tide__online_init(&o, &tide__online_caching, 1, 42 * MIB);
    uint32_t a = take(&o, 16 * MIB), b = take(&o, 2 * MIB), c = take(&o, 100);
    assert_int_equal(o.heap.held_bytes, 38 * MIB);
    assert_status(tide__online_malloc(&o, 19 * MIB, &block), TIDE_E_MEMORY);
    assert_error_has("limit");
    assert_int_equal(block, 77);
    tide__online_free(&o, a);
    tide__online_free(&o, c); /* both segments are free now, that of b is not */
    take(&o, 19 * MIB);
    assert_int_equal(o.heap.held_bytes, 40 * MIB);
    assert_int_equal(o.heap.peak_held_bytes, 40 * MIB);
    take(&o, 100); /* 2 MiB are left */
    assert_int_equal(o.heap.held_bytes, 42 * MIB);
    (void)b;
    tide__online_deinit(&o);
}

/* ---- whatever the client does ---- */

typedef struct storm {
    tide__online online;
    range_set live;
    uint32_t blocks[400];
    uint64_t sizes[400];
    uint64_t n_blocks, asked, drawn, seed;
} storm;

static uint64_t draw(storm *s, uint64_t below) { return tide__random_u64(s->seed, 5, s->drawn++) % below; }

static const void *pointer(uint64_t at) { return (const void *)(uintptr_t)at; } /* NOLINT: nobody dereferences it */

/* Sizes around every threshold. */
static uint64_t draw_size(storm *s) {
    static const uint64_t around[] = {1, 512, 4 * KIB, 512 * KIB, MIB, 2 * MIB, 9 * MIB, 10 * MIB, 20 * MIB, 33 * MIB};
    return around[draw(s, 10)] + draw(s, 3) * 511 + draw(s, 2);
}

static void storm_take(storm *s) {
    uint64_t bytes = draw_size(s), held = s->online.heap.held_bytes;
    uint32_t block;
    tide_status status = tide__online_malloc(&s->online, bytes, &block);
    if (status != TIDE_OK) {
        assert_status(status, TIDE_E_MEMORY);
        assert_true(s->online.heap.held_bytes <= held);
        return;
    }
    assert_true(size(&s->online, block) >= bytes);
    assert_int_equal(address(&s->online, block) % s->online.rounding, 0);
    assert_true(range_set_add(&s->live, pointer(address(&s->online, block)), size(&s->online, block)));
    s->blocks[s->n_blocks] = block;
    s->sizes[s->n_blocks++] = size(&s->online, block);
}

static void storm_give(storm *s) {
    uint64_t at = draw(s, s->n_blocks), bytes;
    uint32_t block = s->blocks[at];
    assert_int_equal(size(&s->online, block), s->sizes[at]);
    assert_true(range_set_remove(&s->live, pointer(address(&s->online, block)), &bytes));
    tide__online_free(&s->online, block);
    s->blocks[at] = s->blocks[--s->n_blocks];
    s->sizes[at] = s->sizes[s->n_blocks];
}

/* Bytes below a node; the order and the maxima hold. */
static uint64_t check_set(const tide__heap *h, uint32_t root, uint64_t *most, const tide__heap_block **last,
                          bool by_address) {
    *most = 0;
    if (root == TIDE__NO_BLOCK) return 0;
    const tide__heap_block *b = tide__heap_at(h, root);
    uint64_t left_most, right_most, bytes = check_set(h, b->left, &left_most, last, by_address);
    assert_true(b->free);
    if (*last && (by_address || (*last)->size == b->size)) assert_true((*last)->address < b->address);
    if (*last && !by_address) assert_true((*last)->size <= b->size);
    if (b->before != TIDE__NO_BLOCK) assert_false(tide__heap_at(h, b->before)->free);
    if (b->after != TIDE__NO_BLOCK) assert_false(tide__heap_at(h, b->after)->free);
    *last = b;
    bytes += b->size + check_set(h, b->right, &right_most, last, by_address);
    *most = b->size > left_most ? b->size : left_most;
    if (right_most > *most) *most = right_most;
    assert_int_equal(b->most, *most);
    return bytes;
}

/* What is held is what is live or in a set. */
static void check_books(const storm *s) {
    uint64_t bytes = 0, most;
    for (uint64_t i = 0; i < s->n_blocks; i++) bytes += s->sizes[i];
    for (int i = 0; i < TIDE__ONLINE_SETS; i++) {
        const tide__heap_block *last = NULL;
        bytes += check_set(&s->online.heap, s->online.sets[i].root, &most, &last, s->online.kind->by_address);
    }
    assert_int_equal(bytes, s->online.heap.held_bytes);
    assert_true(s->online.heap.held_bytes <= s->online.heap.peak_held_bytes);
}

static void run_storm(const tide__online_kind *kind, uint64_t seed, uint64_t limit) {
    storm s = {.seed = seed};
    tide__online_init(&s.online, kind, 256, limit);
    for (int i = 0; i < 6000; i++) {
        bool grow = s.n_blocks == 0 || (s.n_blocks < 400 && draw(&s, 100) < (i / 500 % 2 ? 35 : 65));
        if (grow)
            storm_take(&s);
        else
            storm_give(&s);
        if (i % 16 == 0) check_books(&s);
    }
    while (s.n_blocks) storm_give(&s);
    check_books(&s);
    range_set_free(&s.live);
    tide__online_deinit(&s.online);
}

static void test_storms(void **state) {
    for (int k = 0; k < TIDE__N_ONLINE; k++)
        for (uint64_t seed = 0; seed < 6; seed++)
            run_storm(tide__online_kinds[k], seed, seed % 2 ? (1 + seed) * 100 * MIB : 0);
}

static void test_sizes_near_the_limit(void **state) {
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 511, UINT64_C(1) << 63, INT64_MAX};
    for (int k = 0; k < TIDE__N_ONLINE; k++) {
        tide__online o;
        uint32_t block = 77;
        tide__online_init(&o, tide__online_kinds[k], 256, 0);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            assert_status(tide__online_malloc(&o, sizes[i], &block), TIDE_E_MEMORY);
            assert_int_equal(block, 77);
        }
        take(&o, UINT64_C(1) << 62);
        assert_status(tide__online_malloc(&o, UINT64_C(1) << 62, &block), TIDE_E_MEMORY);
        tide__online_deinit(&o);
    }
}

/* ---- streams ---- */

static void test_items_become_a_stream(void **state) {
    const tide__place_item items[] = {
        {.size = 100, .align = 1, .begin = 0, .end = 9},                        /* the whole step: once */
        {.size = 10, .align = 1, .begin = 0, .end = 2, .begin2 = 7, .end2 = 9}, /* carried over the border */
        {.size = 20, .align = 1, .begin = 2, .end = 5},                         /* after the free of the other */
        {.size = 30, .align = 1, .begin = 3, .end = 4, .begin2 = 6, .end2 = 8}, /* twice a step */
        {.size = 0, .align = 1, .begin = 0, .end = 9},
        {.size = 40, .align = 1, .begin = 5, .end = 5}};
    static const int expected[][2] = {{100, 0}, {10, 1}, {0, 1},  {20, 2}, {30, 3}, {0, 3}, {0, 2},  {30, 3}, {10, 1},
                                      {0, 3},   {0, 1},  {20, 2}, {30, 3}, {0, 3},  {0, 2}, {30, 3}, {10, 1}, {0, 3}};
    tide__requests r;
    assert_ok(tide__requests_of_items(items, sizeof items / sizeof *items, 2, &r));
    assert_int_equal(r.list.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < r.list.count; i++) {
        assert_int_equal(r.list.data[i].size, expected[i][0]);
        assert_int_equal(r.list.data[i].block, expected[i][1]);
    }
    tide__online_result result;
    assert_ok(tide__online_run(&tide__online_first_fit, &r, 1, 0, &result));
    assert_int_equal(result.peak_live_bytes, 150);
    assert_int_equal(result.peak_held_bytes, 150); /* each free leaves no hole, only a lower top */
    assert_int_equal(result.n_segments, 1);
    tide__requests_deinit(&r);
}

static void test_recordings_become_a_stream(void **state) {
    static const char text[] = "Malloc 0xa 1000 1\nMalloc 0xb 3000000 2\nFree 0xa 3\nMalloc 0xa 0 4\nFree 0xa 5\n";
    tide__import in = {.text = text, .size = sizeof text - 1, .name = "text"};
    tide__stream stream;
    tide__requests r;
    tide__online_result result;
    assert_ok(tide__import_stream(&in, &stream));
    assert_ok(tide__requests_of_stream(&stream, &r));
    assert_int_equal(r.list.count, 3);
    assert_ok(tide__online_run(&tide__online_caching, &r, 256, 0, &result));
    assert_int_equal(result.peak_live_bytes, 3001000);
    assert_int_equal(result.peak_held_bytes, 22 * MIB);
    assert_int_equal(result.n_segments, 2);
    assert_status(tide__online_run(&tide__online_caching, &r, 256, 21 * MIB, &result), TIDE_E_MEMORY);
    tide__requests_deinit(&r);
    tide__stream_deinit(&stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_fit_takes_the_lowest_hole),
        cmocka_unit_test(test_best_fit_takes_the_smallest_hole),
        cmocka_unit_test(test_fits_use_the_top_last_and_give_it_back),
        cmocka_unit_test(test_fits_join_neighbours),
        cmocka_unit_test(test_cnmem_grows_by_what_is_asked),
        cmocka_unit_test(test_cnmem_cuts_without_a_threshold),
        cmocka_unit_test(test_cnmem_joins_inside_an_allocation_only),
        cmocka_unit_test(test_caching_segments),
        cmocka_unit_test(test_caching_cuts_small_blocks_to_size),
        cmocka_unit_test(test_caching_cuts_large_blocks_if_more_than_a_mebibyte_is_left),
        cmocka_unit_test(test_caching_keeps_small_and_large_apart),
        cmocka_unit_test(test_caching_takes_the_best_and_joins),
        cmocka_unit_test(test_caching_releases_when_memory_is_short),
        cmocka_unit_test(test_storms),
        cmocka_unit_test(test_sizes_near_the_limit),
        cmocka_unit_test(test_items_become_a_stream),
        cmocka_unit_test(test_recordings_become_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
