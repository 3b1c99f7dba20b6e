/* Eight threads on one pool: one trains, the others allocate what they like, small and large, for ever shorter and
 * longer. Every block is checked against all live ones. test_pool_storm.c runs it for seconds, test_pool_storm_full.c
 * for 10^7 operations. */
#ifndef TIDE_TESTS_POOL_STORM_H
#define TIDE_TESTS_POOL_STORM_H

#include <stdatomic.h>

#include "support/test.h"

#include "support/pool_client.h"

enum { STORM_THREADS = 8, STORM_HELD = 64, STORM_MIN_BLOCK = 4096, STORM_LEAST_ITERATIONS = 120 };

typedef struct storm {
    client *client;
    uint64_t n_operations; /* in all */
    atomic_uint_fast64_t done;
    atomic_bool trained; /* the training thread, which decides how long the storm lasts, has finished */
    bool quiet;          /* the other threads allocate only small blocks, so that training stays on its plan */
} storm;

typedef struct storm_thread {
    storm *storm;
    actor actor;
    pthread_t thread;
} storm_thread;

/* Iterations of two models in turn, with deviations now and then. */
static void *storm_train(void *argument) {
    storm_thread *t = argument;
    script *models = malloc(2 * sizeof *models);
    script_training(&models[0], 12, 8);
    script_training(&models[1], 7, 3);
    for (uint64_t i = 0; i < STORM_LEAST_ITERATIONS || atomic_load(&t->storm->done) < t->storm->n_operations; i++) {
        const script *s = &models[i / 12 % 2];
        actor_run(&t->actor, s, i % 7 == 3, i % 5 == 2);
        atomic_fetch_add(&t->storm->done, s->n);
    }
    actor_finish(&t->actor);
    atomic_store(&t->storm->trained, true);
    free(models);
    return NULL;
}

static uint64_t storm_size(storm_thread *t) {
    if (t->storm->quiet || actor_draw(&t->actor, 4) > 0) return 1 + actor_draw(&t->actor, STORM_MIN_BLOCK - 1);
    return STORM_MIN_BLOCK * (1 + actor_draw(&t->actor, 9));
}

static void *storm_any(void *argument) {
    storm_thread *t = argument;
    void *held[STORM_HELD] = {0};
    while (!atomic_load(&t->storm->trained)) {
        atomic_fetch_add(&t->storm->done, 100);
        for (int i = 0; i < 100; i++) {
            void **place = &held[actor_draw(&t->actor, STORM_HELD)];
            if (*place)
                t->actor.n_failures += client_free(t->storm->client, *place) != TIDE_OK, *place = NULL;
            else
                t->actor.n_failures += client_malloc(t->storm->client, storm_size(t), place) != TIDE_OK;
        }
    }
    for (int i = 0; i < STORM_HELD; i++)
        if (held[i]) t->actor.n_failures += client_free(t->storm->client, held[i]) != TIDE_OK;
    return NULL;
}

static void storm_run(uint64_t n_operations, bool quiet, double *planned_share) {
    fake_memory memory;
    tide_pool_options o;
    tide_pool_stats stats;
    client c;
    storm s = {.client = &c, .n_operations = n_operations, .quiet = quiet};
    storm_thread *threads = calloc(STORM_THREADS, sizeof *threads);
    tide_pool_options_init(&o);
    o.backing = fake_memory_backing(&memory);
    o.min_block_bytes = STORM_MIN_BLOCK;
    o.plan_seconds = 0;
    tide_pool *pool;
    assert_non_null(threads);
    assert_ok(tide_pool_create(&o, &pool));
    client_init(&c, pool, o.alignment);
    for (int i = 0; i < STORM_THREADS; i++) {
        threads[i].storm = &s;
        actor_init(&threads[i].actor, &c, (uint64_t)i);
        assert_int_equal(pthread_create(&threads[i].thread, NULL, i ? storm_any : storm_train, &threads[i]), 0);
    }
    uint64_t n_failures = 0;
    for (int i = 0; i < STORM_THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        n_failures += threads[i].actor.n_failures;
    }
    tide_pool_get_stats(pool, &stats);
    tide_pool_destroy(pool);
    *planned_share = (double)stats.n_planned / (double)stats.n_watched;
    assert_int_equal(n_failures, 0);
    assert_int_equal(c.n_errors, 0);
    assert_int_equal(c.live.count, 0);
    assert_int_equal(stats.live_bytes, 0);
    assert_int_equal(memory.n_errors, 0);
    assert_int_equal(memory.held_bytes, 0);
    client_deinit(&c);
    fake_memory_free(&memory);
    free(threads);
}

static uint64_t storm_operations; /* in each of the two storms; set by storm_main */

static void storm_trains_beside_small_blocks(void **state) {
    (void)state;
    double share;
    storm_run(storm_operations, true, &share);
    assert_true(share > 0.7);
}

static void storm_survives_anything(void **state) {
    (void)state;
    double share;
    storm_run(storm_operations, false, &share);
}

static int storm_main(uint64_t n_operations) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storm_trains_beside_small_blocks),
        cmocka_unit_test(storm_survives_anything),
    };
    storm_operations = n_operations;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
