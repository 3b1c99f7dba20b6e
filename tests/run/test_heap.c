/* The heap whose blocks may wait on disk: random use against plain buffers, and the ends of both budgets. */
#include "support/test.h"

#include <tidemark/heap.h>

#include "support/random_program.h"

enum { ARENA_BYTES = 256 << 10, DISK_BYTES = 4 << 20, MAX_BLOCKS = 48 };

typedef struct watched {
    uint64_t block, size;
    unsigned char *plain; /* what the block must hold; NULL: no block */
    void *address;        /* as `moved` told */
} watched;

typedef struct rig {
    tide_heap *heap;
    watched blocks[MAX_BLOCKS];
    uint32_t n_moves;
} rig;

static void note_move(void *context, uint64_t block, void *address) {
    rig *r = context;
    r->n_moves++;
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (r->blocks[i].plain && r->blocks[i].block == block) r->blocks[i].address = address;
}

static void open_rig(rig *r, uint64_t arena_bytes, uint64_t disk_bytes) {
    tide_heap_options o;
    *r = (rig){0};
    tide_heap_options_init(&o);
    o.arena_bytes = arena_bytes;
    o.disk_bytes = disk_bytes;
    o.moved = note_move;
    o.moved_context = r;
    assert_ok(tide_heap_create(&o, &r->heap));
}

static void add(rig *r, watched *w, uint64_t *seed) {
    *w = (watched){.size = 1 + random_below(seed, 30000)};
    assert_ok(tide_heap_allocate(r->heap, w->size, &w->block, &w->address));
    w->plain = malloc(w->size);
    for (uint64_t k = 0; k < w->size; k++) w->plain[k] = (unsigned char)random_below(seed, 256);
    memcpy(w->address, w->plain, w->size);
    tide_heap_unpin(r->heap, w->block);
}

static void drop(rig *r, watched *w) {
    tide_heap_release(r->heap, w->block);
    free(w->plain);
    *w = (watched){0};
}

static void look(rig *r, watched *w) {
    void *address;
    assert_ok(tide_heap_pin(r->heap, w->block, &address));
    assert_ptr_equal(address, w->address);
    assert_memory_equal(address, w->plain, w->size);
    tide_heap_unpin(r->heap, w->block);
}

static void test_random_use(void **state) {
    (void)state;
    rig r;
    uint64_t seed = 5;
    open_rig(&r, ARENA_BYTES, DISK_BYTES);
    for (uint32_t i = 0; i < rounds(4000); i++) {
        watched *w = &r.blocks[random_below(&seed, MAX_BLOCKS)];
        if (!w->plain)
            add(&r, w, &seed);
        else if (random_below(&seed, 3) == 0)
            drop(&r, w);
        else
            look(&r, w);
    }
    assert_true(r.n_moves > 100);
    tide_heap_stats stats = tide_heap_get_stats(r.heap);
    assert_true(stats.peak_bytes <= ARENA_BYTES && stats.saved_bytes >= stats.loaded_bytes);
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (r.blocks[i].plain) drop(&r, &r.blocks[i]);
    uint64_t block;
    void *address;
    assert_ok(tide_heap_allocate(r.heap, ARENA_BYTES, &block, &address)); /* all of it has come together again */
    tide_heap_destroy(r.heap);
}

/* What is small and stays does not stand in the way of what is large. */
static void test_small_blocks_lie_together(void **state) {
    (void)state;
    rig r;
    uint64_t large, small;
    void *address;
    open_rig(&r, 4 * 4096, 0);
    for (int i = 0; i < 8; i++) {
        assert_ok(tide_heap_allocate(r.heap, 4096 + (uint64_t)i * 512, &large, &address));
        assert_ok(tide_heap_allocate(r.heap, 64, &small, &address));
        tide_heap_release(r.heap, large);
    }
    assert_ok(tide_heap_allocate(r.heap, 3 * 4096, &large, &address));
    tide_heap_destroy(r.heap);
}

/* Blocks may fill a budget to its last byte, whatever their sizes are. */
static void test_no_room_is_lost(void **state) {
    (void)state;
    rig r;
    uint64_t a, b, c;
    void *address;
    open_rig(&r, 10048 + 5056 + 40, 1 << 20);
    for (int i = 0; i < 3; i++) {
        assert_ok(tide_heap_allocate(r.heap, 10040, &a, &address));
        assert_ok(tide_heap_allocate(r.heap, 5000, &b, &address));
        assert_ok(tide_heap_allocate(r.heap, 40, &c, &address));
        assert_status(tide_heap_allocate(r.heap, 40, &c, &address), TIDE_E_FIT);
        tide_heap_release(r.heap, c);
        tide_heap_release(r.heap, a);
        tide_heap_unpin(r.heap, b);
        assert_ok(tide_heap_allocate(r.heap, 10048 + 5056 + 40, &a, &address));
        tide_heap_release(r.heap, a);
        assert_ok(tide_heap_pin(r.heap, b, &address));
        tide_heap_release(r.heap, b);
    }
    assert_true(tide_heap_get_stats(r.heap).peak_bytes == 10048 + 5056 + 40);
    tide_heap_destroy(r.heap);
}

static void test_budgets(void **state) {
    (void)state;
    rig r;
    uint64_t first, second, third;
    void *address;
    open_rig(&r, 3 * 4096, 4096);
    assert_ok(tide_heap_allocate(r.heap, 8192, &first, &address));
    assert_status(tide_heap_allocate(r.heap, 8192, &second, &address), TIDE_E_FIT);
    tide_heap_unpin(r.heap, first);
    assert_status(tide_heap_allocate(r.heap, 8192, &second, &address), TIDE_E_TIER_FULL);
    tide_heap_release(r.heap, first);
    assert_ok(tide_heap_allocate(r.heap, 4096, &second, &address));
    tide_heap_unpin(r.heap, second);
    assert_ok(tide_heap_allocate(r.heap, 3 * 4096, &third, &address));
    assert_status(tide_heap_pin(r.heap, second, &address), TIDE_E_FIT);
    tide_heap_release(r.heap, third);
    assert_ok(tide_heap_pin(r.heap, second, &address));
    assert_status(tide_heap_pin(r.heap, 99, &address), TIDE_E_ARGUMENT);
    tide_heap_destroy(r.heap);
}

/* Value v is all v. */
static tide_status read_value(void *context, tide_id value, uint64_t position, void *data, uint64_t size_bytes) {
    (void)position;
    ++*(uint32_t *)context;
    memset(data, (int)value, size_bytes);
    return TIDE_OK;
}

static void test_borrowed_blocks(void **state) {
    (void)state;
    enum { N = 5, BYTES = 5000 };
    uint32_t n_reads = 0;
    uint64_t blocks[N], own;
    unsigned char *address;
    tide_heap_options o;
    tide_heap *heap;
    tide_heap_options_init(&o);
    o.arena_bytes = 4 * 8192; /* three of them at a time, beside a block of its own; none has a place on disk */
    o.read = read_value;
    o.read_context = &n_reads;
    assert_ok(tide_heap_create(&o, &heap));
    assert_ok(tide_heap_allocate(heap, 8192, &own, (void **)&address));
    for (uint32_t i = 0; i < N; i++) assert_ok(tide_heap_borrow(heap, i, BYTES, &blocks[i]));
    assert_status(tide_heap_borrow(heap, TIDE_NONE, BYTES, &own), TIDE_E_ARGUMENT);
    assert_int_equal(n_reads, 0);
    for (uint32_t k = 0; k < 3 * N; k++) {
        assert_ok(tide_heap_pin(heap, blocks[k % N], (void **)&address));
        for (uint32_t b = 0; b < BYTES; b++) assert_int_equal(address[b], k % N);
        tide_heap_unpin(heap, blocks[k % N]);
    }
    assert_int_equal(n_reads, 3 * N); /* the one that is needed next has just left, always */
    assert_int_equal(tide_heap_get_stats(heap).saved_bytes, 0);
    assert_ok(tide_heap_rest(heap));
    assert_ok(tide_heap_pin(heap, blocks[N - 1], (void **)&address));
    assert_true(address[0] == N - 1 && n_reads == 3 * N + 1); /* it had left with the others */
    for (uint32_t i = 0; i < N; i++) tide_heap_release(heap, blocks[i]);
    assert_ok(tide_heap_allocate(heap, 3 * 8192, &blocks[0], (void **)&address));
    tide_heap_destroy(heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_use),      cmocka_unit_test(test_small_blocks_lie_together),
        cmocka_unit_test(test_no_room_is_lost), cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_borrowed_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
