/* Random clients: iterations of any shape, in any order, with mallocs added and left out, frees late or never, memory
 * that runs out. After every iteration the pool's own books are checked, item by item. */
#include "support/test.h"

#include "pool/pool_data.h"
#include "support/pool_client.h"

/* ---- the books ---- */

static void check_plan(const tide_pool *pool, const tide__pool_plan *plan, uint64_t *n_live, uint64_t *n_overdue) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_items; i++) {
        const tide__pool_item *item = &plan->items[i];
        if (item->state == TIDE__ITEM_IDLE) continue;
        n++;
        assert_true(item->life > 0);
        assert_int_equal(plan->slots[item->slot].item, i);
        assert_int_equal(plan->slots[item->slot].offset, item->offset);
        assert_true(tide__item_span(plan, item).end <= pool->regions[pool->region].size_bytes);
        if (item->state != TIDE__ITEM_LIVE) {
            ++*n_overdue;
            assert_true(tide__spans_hit(&pool->follower.overdue, tide__item_span(plan, item)));
            continue;
        }
        assert_ptr_equal(plan, pool->follower.plan);
        assert_true(tide__item_is_expected(plan, item, pool->follower.at));
    }
    assert_int_equal(n, plan->n_live);
    *n_live += n;
}

static void check_books(const tide_pool *pool) {
    uint64_t n_live = 0, n_overdue = 0, held = 0;
    for (uint32_t i = 0; i < pool->n_plans; i++) check_plan(pool, pool->plans[i], &n_live, &n_overdue);
    for (const tide__pool_plan *plan = pool->dropped; plan; plan = plan->next) {
        assert_true(plan->n_live > 0);
        check_plan(pool, plan, &n_live, &n_overdue);
    }
    assert_int_equal(n_live, pool->regions[pool->region].n_live);
    assert_int_equal(n_overdue, pool->follower.overdue.count + pool->follower.overdue.unlisted);
    for (int i = 0; i < TIDE__MAX_REGIONS; i++) held += pool->regions[i].size_bytes;
    for (size_t i = 0; i < (size_t)1 << pool->blocks.bits; i++)
        if (pool->blocks.keys[i] && pool->blocks.values[i].region == TIDE__NO_REGION)
            held += pool->blocks.values[i].size_bytes;
    assert_int_equal(held, pool->stats.held_bytes);
}

/* ---- random scripts ---- */

/* A nest of loops over few sizes: mallocs into random slots, each freed later, some only an iteration later. */
static void script_random(script *s, actor *a) {
    uint32_t n_slots = 1 + (uint32_t)actor_draw(a, 30), blocks = 1 + (uint32_t)actor_draw(a, 8);
    s->n = 0;
    s->n_slots = n_slots;
    while (blocks-- > 0) {
        size_t begin = s->n, length = 1 + actor_draw(a, 20), times = 1 + actor_draw(a, 4);
        for (size_t i = 0; i < length * times; i++) {
            if (i >= length) {
                s->steps[s->n] = s->steps[begin + i % length];
                s->n++;
                continue;
            }
            uint64_t size = actor_draw(a, 2) ? 100 * (1 + actor_draw(a, 9)) : 65536 + 512 * actor_draw(a, 99);
            s->steps[s->n++] = (step){.slot = (uint32_t)actor_draw(a, n_slots),
                                      .size_bytes = actor_draw(a, 2) ? size : 0,
                                      .keep = actor_draw(a, 5) == 0};
        }
    }
    for (uint32_t slot = 0; slot < n_slots; slot++) /* what a queue holds more than this is freed here */
        for (uint32_t keep = actor_draw(a, 6) == 0, i = 0; i < MAX_QUEUE; i++)
            s->steps[s->n++] = (step){.slot = slot, .keep = keep};
}

static void run_life(uint64_t seed, uint64_t *n_planned, uint64_t *n_plans) {
    fake_memory memory;
    tide_pool_options o;
    tide_pool *pool;
    client c;
    actor *a = malloc(sizeof *a);
    script *scripts = malloc(3 * sizeof *scripts);
    tide_pool_stats stats;
    assert_true(a && scripts);
    tide_pool_options_init(&o);
    o.backing = fake_memory_backing(&memory);
    o.plan_seconds = 0;
    o.max_plans = 1 + seed % 4;
    o.max_period_events = seed % 7 == 0 ? 64 : 4096;
    o.alignment = UINT64_C(1) << seed % 10;
    assert_ok(tide_pool_create(&o, &pool));
    client_init(&c, pool, o.alignment);
    actor_init(a, &c, seed);
    for (int i = 0; i < 3; i++) script_random(&scripts[i], a);
    if (seed % 2) scripts[2] = scripts[1]; /* the same events, other blocks freed */
    for (size_t i = 0; i < scripts[2].n; i++) scripts[2].steps[i].newest = actor_draw(a, 4) == 0;
    uint64_t which = 0;
    for (int i = 0; i < 60; i++) {
        if (actor_draw(a, 12) == 0) which = actor_draw(a, 3);
        memory.limit_bytes = actor_draw(a, 40) == 0 ? memory.held_bytes + actor_draw(a, 500000) : 0;
        uint32_t noise = actor_draw(a, 5) == 0;
        actor_run(a, &scripts[which], noise * (uint32_t)actor_draw(a, 4), noise * (uint32_t)actor_draw(a, 4));
        check_books(pool);
    }
    memory.limit_bytes = 0;
    actor_finish(a);
    check_books(pool);
    tide_pool_get_stats(pool, &stats);
    *n_planned += stats.n_planned;
    *n_plans += stats.n_plans_made;
    assert_int_equal(stats.live_bytes, 0);
    tide_pool_destroy(pool);
    assert_int_equal(c.n_errors, 0);
    assert_int_equal(memory.n_errors, 0);
    assert_int_equal(memory.held_bytes, 0);
    client_deinit(&c);
    fake_memory_free(&memory);
    free(scripts);
    free(a);
}

static void books_are_right_whatever_happens(void **state) {
    (void)state;
    uint64_t n_planned = 0, n_plans = 0;
    for (uint64_t seed = 0; seed < rounds(300); seed++) run_life(seed, &n_planned, &n_plans);
    assert_true(n_planned > rounds(100000)); /* the lives are not all noise */
    assert_true(n_plans > rounds(300));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(books_are_right_whatever_happens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
