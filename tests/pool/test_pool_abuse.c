/* Clients and backings that do what they should not: every mistake that can be seen gets a status, none corrupts. */
#include <math.h>

#include "support/test.h"

#include "support/pool_client.h"

static tide_pool *make(fake_memory *memory) {
    tide_pool_options o;
    tide_pool *pool;
    tide_pool_options_init(&o);
    o.backing = fake_memory_backing(memory);
    o.plan_seconds = 0;
    assert_ok(tide_pool_create(&o, &pool));
    return pool;
}

static void end(tide_pool *pool, fake_memory *memory) {
    tide_pool_destroy(pool);
    assert_int_equal(memory->n_errors, 0);
    assert_int_equal(memory->held_bytes, 0);
    fake_memory_free(memory);
}

static void refuses_wrong_frees(void **state) {
    (void)state;
    fake_memory memory;
    tide_pool *pool = make(&memory);
    void *a, *b;
    int elsewhere;
    assert_ok(tide_pool_malloc(pool, 1000, &a));
    assert_ok(tide_pool_malloc(pool, 1000, &b));
    assert_status(tide_pool_free(pool, &elsewhere), TIDE_E_ARGUMENT);
    assert_error_has("not a live block");
    assert_status(tide_pool_free(pool, (char *)a + 256), TIDE_E_ARGUMENT);
    assert_ok(tide_pool_free(pool, a));
    assert_status(tide_pool_free(pool, a), TIDE_E_ARGUMENT);
    assert_ok(tide_pool_free(pool, NULL));
    assert_ok(tide_pool_free(pool, b));
    assert_status(tide_pool_free(NULL, b), TIDE_E_ARGUMENT);
    end(pool, &memory);
}

static void refuses_wrong_sizes(void **state) {
    (void)state;
    fake_memory memory;
    tide_pool *pool = make(&memory);
    void *a = &memory, *blocks[8];
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 2, (UINT64_C(1) << 60) + 1};
    for (size_t i = 0; i < 3; i++) assert_status(tide_pool_malloc(pool, huge[i], &a), TIDE_E_MEMORY);
    assert_ptr_equal(a, &memory);
    assert_ok(tide_pool_malloc(pool, 0, &a));
    assert_null(a);
    assert_status(tide_pool_malloc(pool, 1, NULL), TIDE_E_ARGUMENT);
    assert_status(tide_pool_malloc(NULL, 1, &a), TIDE_E_ARGUMENT);
    for (int i = 0; i < 4; i++) assert_ok(tide_pool_malloc(pool, UINT64_C(1) << 60, &blocks[i]));
    assert_status(tide_pool_malloc(pool, 1, &a), TIDE_E_MEMORY); /* 2^62 bytes live */
    for (int i = 0; i < 4; i++) assert_ok(tide_pool_free(pool, blocks[i]));
    end(pool, &memory);
}

/* Iterations whose loads come close to 2^62: nothing overflows while learning, planning and serving. */
static void plans_enormous_blocks(void **state) {
    (void)state;
    fake_memory memory;
    tide_pool *pool = make(&memory);
    client c;
    void *blocks[8];
    tide_pool_stats stats;
    client_init(&c, pool, 256);
    for (int i = 0; i < 40; i++) {
        for (uint64_t k = 0; k < 8; k++) assert_ok(client_malloc(&c, (UINT64_C(1) << 57) + k, &blocks[k]));
        for (int k = 0; k < 8; k++) assert_ok(client_free(&c, blocks[k]));
    }
    tide_pool_get_stats(pool, &stats);
    assert_int_equal(stats.n_plans_made, 1);
    assert_true(stats.n_planned >= 100);
    assert_int_equal(c.n_errors, 0);
    client_deinit(&c);
    end(pool, &memory);
}

static void refuses_wrong_options(void **state) {
    (void)state;
    tide_pool_options good, o;
    tide_pool *pool = NULL;
    tide_pool_options_init(&good);
#define REFUSED(field, value)                                    \
    o = good;                                                    \
    o.field = (value);                                           \
    assert_status(tide_pool_create(&o, &pool), TIDE_E_ARGUMENT); \
    assert_null(pool)
    REFUSED(size, 0);
    REFUSED(size, sizeof o + 8);
    REFUSED(backing.alloc, NULL);
    REFUSED(backing.free, NULL);
    REFUSED(alignment, 0);
    REFUSED(alignment, 384);
    REFUSED(alignment, 1u << 22);
    REFUSED(max_plans, 0);
    REFUSED(max_plans, 65);
    REFUSED(max_period_events, 15);
    REFUSED(max_period_events, (1u << 22) + 1);
    REFUSED(plan_seconds, -1);
    REFUSED(plan_seconds, (double)NAN);
#undef REFUSED
    assert_status(tide_pool_create(&good, NULL), TIDE_E_ARGUMENT);
    o = good;
    o.size = offsetof(tide_pool_options, plan_seconds); /* an older client */
    assert_ok(tide_pool_create(&o, &pool));
    tide_pool_destroy(pool);
    assert_ok(tide_pool_create(NULL, &pool));
    tide_pool_destroy(pool);
    tide_pool_destroy(NULL);
}

/* Blocks that are still live when the pool goes. */
static void destroys_with_live_blocks(void **state) {
    (void)state;
    script s;
    for (int iterations = 1; iterations < 9; iterations++) {
        fake_memory memory;
        tide_pool *pool = make(&memory);
        client c;
        actor a;
        client_init(&c, pool, 256);
        actor_init(&a, &c, 1);
        for (int i = 0; i < iterations; i++) {
            script_training(&s, i < 5 ? 9 : 8, 4);
            actor_run(&a, &s, 1, 0);
        }
        assert_true(c.live.count > 0);
        client_deinit(&c);
        end(pool, &memory);
    }
}

static void survives_a_full_backing(void **state) {
    (void)state;
    fake_memory memory;
    tide_pool *pool = make(&memory);
    client c;
    actor a;
    script training, evaluation;
    tide_pool_stats stats;
    client_init(&c, pool, 256);
    actor_init(&a, &c, 1);
    script_training(&training, 15, 8);
    script_evaluation(&evaluation, 15, 60);
    for (int i = 0; i < 8; i++) actor_run(&a, &training, 0, 0);
    tide_pool_get_stats(pool, &stats);
    assert_true(stats.region_bytes > 0);
    memory.limit_bytes = stats.held_bytes + 1000; /* not enough for the evaluation, unless the region is given back */
    for (int i = 0; i < 3; i++) actor_run(&a, &evaluation, 0, 0);
    assert_true(a.n_failures > 0);
    memory.limit_bytes = 0;
    a.n_failures = 0;
    for (int i = 0; i < 5; i++) actor_run(&a, &training, 0, 0);
    assert_int_equal(a.n_failures, 0);
    actor_finish(&a);
    assert_int_equal(c.n_errors, 0);
    client_deinit(&c);
    end(pool, &memory);
}

/* Momentum is in the backing when the region is asked for, and would be in the region once more. */
static void plans_leaner_when_memory_is_short(void **state) {
    (void)state;
    fake_memory memory;
    tide_pool *pool = make(&memory);
    client c;
    actor a;
    script s;
    tide_pool_stats before, after;
    client_init(&c, pool, 256);
    actor_init(&a, &c, 1);
    script_training(&s, 15, 2);
    actor_run(&a, &s, 0, 0);
    actor_run(&a, &s, 0, 0);
    tide_pool_get_stats(pool, &before);
    memory.limit_bytes = before.peak_live_bytes * 21 / 20;
    for (int i = 0; i < 5; i++) actor_run(&a, &s, 0, 0);
    tide_pool_get_stats(pool, &before);
    for (int i = 0; i < 10; i++) actor_run(&a, &s, 0, 0);
    tide_pool_get_stats(pool, &after);
    assert_int_equal(a.n_failures, 0);
    assert_int_equal(after.n_plans, 1);
    assert_int_equal(after.n_watched - before.n_watched - (after.n_planned - before.n_planned), 10 * 15); /* momenta */
    actor_finish(&a);
    assert_int_equal(c.n_errors, 0);
    client_deinit(&c);
    end(pool, &memory);
}

/* No cross-iteration blocks: between iterations nothing lies in the region, and it makes room for what is needed. */
static void gives_the_idle_region_back(void **state) {
    (void)state;
    fake_memory memory;
    tide_pool *pool = make(&memory);
    void *blocks[40], *large;
    tide_pool_stats stats;
    for (int i = 0; i < 10; i++) {
        for (uint64_t k = 0; k < 40; k++) assert_ok(tide_pool_malloc(pool, 10000 + k, &blocks[k]));
        for (int k = 0; k < 40; k++) assert_ok(tide_pool_free(pool, blocks[k]));
    }
    tide_pool_get_stats(pool, &stats);
    assert_true(stats.region_bytes >= 400000);
    memory.limit_bytes = 500000;
    assert_ok(tide_pool_malloc(pool, 450000, &large));
    tide_pool_get_stats(pool, &stats);
    assert_int_equal(stats.region_bytes, 0);
    assert_status(tide_pool_malloc(pool, 450000, &blocks[0]), TIDE_E_FIT);
    assert_ok(tide_pool_free(pool, large));
    for (int i = 0; i < 3; i++) {
        for (uint64_t k = 0; k < 40; k++) assert_ok(tide_pool_malloc(pool, 10000 + k, &blocks[k]));
        for (int k = 0; k < 40; k++) assert_ok(tide_pool_free(pool, blocks[k]));
    }
    tide_pool_get_stats(pool, &stats);
    assert_true(stats.region_bytes >= 400000);
    end(pool, &memory);
}

static void notices_a_backing_that_repeats_itself(void **state) {
    (void)state;
    fake_memory memory;
    tide_pool *pool = make(&memory);
    void *a, *b = NULL;
    assert_ok(tide_pool_malloc(pool, 1000, &a));
    memory.hand_out = a;
    assert_status(tide_pool_malloc(pool, 2000, &b), TIDE_E_DEVICE);
    assert_null(b);
    assert_ok(tide_pool_free(pool, a));
    end(pool, &memory);
}

/* Real memory: the host's blocks can be written, and are aligned. */
static void host_blocks_are_memory(void **state) {
    (void)state;
    static const uint64_t alignments[] = {1, 256, 4096, 65536, 2 << 20};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        tide_pool_options o;
        tide_pool *pool;
        void *blocks[50];
        tide_pool_options_init(&o);
        o.alignment = alignments[i];
        assert_ok(tide_pool_create(&o, &pool));
        for (int round = 0; round < 8; round++) {
            for (uint64_t k = 0; k < 50; k++) {
                uint64_t size = 1 + k * 700;
                assert_ok(tide_pool_malloc(pool, size, &blocks[k]));
                assert_int_equal((uintptr_t)blocks[k] % o.alignment, 0);
                memset(blocks[k], (int)k, size);
            }
            for (uint64_t k = 0; k < 50; k++) {
                const unsigned char *bytes = blocks[k];
                for (uint64_t at = 0; at < 1 + k * 700; at++) assert_int_equal(bytes[at], k);
                assert_ok(tide_pool_free(pool, blocks[k]));
            }
        }
        assert_status(tide_pool_malloc(pool, UINT64_C(1) << 60, &blocks[0]), TIDE_E_MEMORY);
        tide_pool_destroy(pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_wrong_frees),
        cmocka_unit_test(refuses_wrong_sizes),
        cmocka_unit_test(plans_enormous_blocks),
        cmocka_unit_test(refuses_wrong_options),
        cmocka_unit_test(destroys_with_live_blocks),
        cmocka_unit_test(survives_a_full_backing),
        cmocka_unit_test(plans_leaner_when_memory_is_short),
        cmocka_unit_test(gives_the_idle_region_back),
        cmocka_unit_test(notices_a_backing_that_repeats_itself),
        cmocka_unit_test(host_blocks_are_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
