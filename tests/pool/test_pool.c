/* The pool as a client sees it: it learns an iteration, serves it, survives what does not fit, and never hands out bytes
 * that are in use. */
#include "support/test.h"

#include "support/pool_client.h"

typedef struct fixture {
    fake_memory memory;
    tide_pool *pool;
    client client;
    actor actor;
    tide_pool_stats before; /* as of the last call of planned_share */
} fixture;

static void set_up(fixture *f, uint32_t max_plans, uint64_t min_block_bytes) {
    tide_pool_options o;
    tide_pool_options_init(&o);
    o.backing = fake_memory_backing(&f->memory);
    o.plan_seconds = 0;
    o.max_plans = max_plans;
    o.min_block_bytes = min_block_bytes;
    assert_ok(tide_pool_create(&o, &f->pool));
    client_init(&f->client, f->pool, o.alignment);
    actor_init(&f->actor, &f->client, 7);
    f->before = (tide_pool_stats){0};
}

static void tear_down(fixture *f) {
    tide_pool_stats s;
    actor_finish(&f->actor);
    tide_pool_get_stats(f->pool, &s);
    assert_int_equal(s.live_bytes, 0);
    assert_int_equal(s.n_mallocs, s.n_frees);
    assert_int_equal(s.held_bytes, s.region_bytes);
    tide_pool_destroy(f->pool);
    assert_int_equal(f->actor.n_failures, 0);
    assert_int_equal(f->client.n_errors, 0);
    assert_int_equal(f->memory.n_errors, 0);
    assert_int_equal(f->memory.held_bytes, 0);
    assert_int_equal(f->memory.live.count, 0);
    client_deinit(&f->client);
    fake_memory_free(&f->memory);
}

/* Share of the mallocs since the last call that a plan answered. */
static double planned_share(fixture *f) {
    tide_pool_stats s, *b = &f->before;
    tide_pool_get_stats(f->pool, &s);
    uint64_t watched = s.n_watched - b->n_watched, planned = s.n_planned - b->n_planned;
    *b = s;
    return watched ? (double)planned / (double)watched : 1;
}

static double run(fixture *f, const script *s, int iterations) {
    for (int i = 0; i < iterations; i++) actor_run(&f->actor, s, 0, 0);
    return planned_share(f);
}

static void serves_from_the_fifth_iteration(void **state) {
    (void)state;
    fixture f;
    script s;
    tide_pool_stats stats;
    for (uint32_t layers = 2; layers <= 60; layers += layers < 10 ? 1 : 10) {
        set_up(&f, 8, 0);
        script_training(&s, layers, 8);
        run(&f, &s, 4);
        assert_true(run(&f, &s, 16) >= 0.999);
        tide_pool_get_stats(f.pool, &stats);
        assert_int_equal(stats.n_deviations, 0);
        assert_int_equal(stats.period_events, s.n - 1); /* one Free finds nothing to free */
        assert_true((double)stats.plan_bytes <= (double)stats.plan_load_bytes * 1.5);
        tear_down(&f);
    }
}

/* Momentum lives more than one iteration: two copies of the plan take turns. */
static void addresses_repeat(void **state) {
    (void)state;
    fixture f;
    script s;
    void *first[MAX_SLOTS] = {0};
    set_up(&f, 8, 0);
    script_training(&s, 12, 4);
    run(&f, &s, 6);
    for (int i = 0; i < 5; i += 2) {
        run(&f, &s, 2);
        for (uint32_t slot = 0; slot < s.n_slots; slot++) {
            if (!f.actor.queued[slot]) continue;
            if (i > 0) assert_ptr_equal(f.actor.queue[slot][0], first[slot]);
            first[slot] = f.actor.queue[slot][0];
        }
    }
    tear_down(&f);
}

static void is_back_within_one_iteration(void **state) {
    (void)state;
    fixture f;
    script s;
    double least = 1, sum = 0;
    set_up(&f, 8, 0);
    script_training(&s, 30, 8);
    run(&f, &s, 6);
    for (uint32_t i = 0; i < 60; i++) {
        actor_run(&f.actor, &s, 1 + i % 2, i % 3);
        sum += planned_share(&f);
        sum += run(&f, &s, 1); /* the rest of it: momentum that was left out is not there to be freed */
        double share = run(&f, &s, 1);
        sum += share;
        if (share < least) least = share;
    }
    assert_true(least == 1);
    assert_true(sum / 180 >= 0.98);
    tear_down(&f);
}

static void remembers_training_and_evaluation(void **state) {
    (void)state;
    fixture f;
    script training, evaluation, last;
    tide_pool_stats stats;
    set_up(&f, 8, 0);
    script_training(&training, 20, 8);
    script_training(&last, 20, 3);
    script_evaluation(&evaluation, 20, 8);
    for (int epoch = 0; epoch < 6; epoch++) {
        run(&f, &training, epoch == 0 ? 5 : 1); /* learn it, or find the way back to it */
        assert_true(run(&f, &training, 20) == 1);
        run(&f, &last, 1);
        run(&f, &evaluation, epoch == 0 ? 4 : 1);
        assert_true(run(&f, &evaluation, 10) == 1);
    }
    tide_pool_get_stats(f.pool, &stats);
    assert_true(stats.n_plans_made <= 4);
    assert_int_equal(stats.n_plans_dropped, 0);
    tear_down(&f);
}

static void forgets_the_plan_that_was_not_used(void **state) {
    (void)state;
    fixture f;
    script s;
    tide_pool_stats stats;
    set_up(&f, 2, 0);
    for (uint32_t model = 0; model < 6; model++) {
        script_training(&s, 10 + model, 8 + model);
        run(&f, &s, 5);
        assert_true(run(&f, &s, 5) >= 0.99);
        tide_pool_get_stats(f.pool, &stats);
        assert_true(stats.n_plans <= 2);
    }
    assert_true(stats.n_plans_dropped >= 4);
    tear_down(&f);
}

/* A client that keeps one block of each iteration for good. */
static void plans_around_a_leak(void **state) {
    (void)state;
    fixture f;
    script s;
    void *kept[40];
    set_up(&f, 8, 0);
    script_training(&s, 12, 8);
    for (int i = 0; i < 40; i++) {
        actor_run(&f.actor, &s, 0, 0);
        assert_ok(client_malloc(&f.client, 1000, &kept[i]));
        if (i == 9) planned_share(&f);
    }
    assert_true(planned_share(&f) >= 0.95);
    for (int i = 0; i < 40; i++) assert_ok(client_free(&f.client, kept[i]));
    tear_down(&f);
}

/* Blocks that start to live longer: the plan's bytes are in use, the backing helps out, then a new plan is made. */
static void adapts_to_longer_lives(void **state) {
    (void)state;
    fixture f;
    script s;
    tide_pool_stats stats;
    set_up(&f, 8, 0);
    script_training(&s, 12, 8);
    run(&f, &s, 10);
    for (size_t i = 0; i < s.n; i++) /* a layer's workspace goes only after the next layer's was taken */
        if (s.steps[i].slot == 0 && s.steps[i].size_bytes == 0) s.steps[i].keep = 1;
    run(&f, &s, 10);
    assert_true(run(&f, &s, 10) >= 0.99);
    tide_pool_get_stats(f.pool, &stats);
    assert_true(stats.n_plans_made >= 2);
    tear_down(&f);
}

/* The events look the same, but it is another block that is freed. */
static void frees_in_another_order(void **state) {
    (void)state;
    fixture f;
    script s;
    tide_pool_stats stats;
    set_up(&f, 8, 0);
    s = (script){.n_slots = 9};
    for (uint32_t slot = 1; slot < 9; slot++) s.steps[s.n++] = (step){.slot = slot, .size_bytes = 5000 * slot};
    for (int i = 0; i < 6; i++) s.steps[s.n++] = (step){.slot = 0, .size_bytes = 70000};
    for (int i = 0; i < 6; i++) {
        s.steps[s.n++] = (step){.slot = 0};
        s.steps[s.n++] = (step){.slot = 7, .size_bytes = 70000}; /* into the place that has just become free */
    }
    for (int i = 0; i < 7; i++) s.steps[s.n++] = (step){.slot = 7};
    for (uint32_t slot = 1; slot < 9; slot++) s.steps[s.n++] = (step){.slot = slot};
    for (int round = 0; round < 6; round++) {
        run(&f, &s, 15);
        assert_true(run(&f, &s, 5) >= 0.99);
        for (size_t i = 0; i < s.n; i++) s.steps[i].newest = s.steps[i].slot == 0 && round % 2 == 0;
    }
    tide_pool_get_stats(f.pool, &stats);
    assert_true(stats.n_plans_made >= 2);
    tear_down(&f);
}

static void leaves_small_blocks_alone(void **state) {
    (void)state;
    fixture f;
    script s;
    void *small;
    set_up(&f, 8, 4096);
    script_training(&s, 12, 8);
    for (int i = 0; i < 20; i++) {
        actor_run(&f.actor, &s, 0, 0);
        for (uint64_t k = actor_draw(&f.actor, 20); k-- > 0;) {
            assert_ok(client_malloc(&f.client, 1 + actor_draw(&f.actor, 4095), &small));
            assert_ok(client_free(&f.client, small));
        }
        if (i == 5) planned_share(&f);
    }
    assert_true(planned_share(&f) == 1);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_from_the_fifth_iteration),
        cmocka_unit_test(addresses_repeat),
        cmocka_unit_test(is_back_within_one_iteration),
        cmocka_unit_test(remembers_training_and_evaluation),
        cmocka_unit_test(forgets_the_plan_that_was_not_used),
        cmocka_unit_test(plans_around_a_leak),
        cmocka_unit_test(adapts_to_longer_lives),
        cmocka_unit_test(frees_in_another_order),
        cmocka_unit_test(leaves_small_blocks_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
