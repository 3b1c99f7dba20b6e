/* From a repetition to a plan (repeat.h finds it, iteration.h reads it, plan.h places it), and which plans to keep. */
#include "base/clock.h"
#include "pool/pool_data.h"

enum { TOLERANT_RUNS = 4 }; /* periods that must have repeated before blocks without a Free are put up with */

/* Did plans answer nearly all of the last `period` events? Then a plan for them has nothing to add. */
static bool is_planned(const tide__history *history, uint64_t period) {
    uint64_t n = 0, kib = 0, n_planned = 0, planned_kib = 0;
    for (uint64_t i = history->count - period; i < history->count; i++) {
        const tide__pool_event *event = tide__history_at(history, i);
        if (tide__symbol_is_free(event->symbol)) continue;
        uint64_t event_kib = tide__symbol_bytes(event->symbol) / 1024 + 1;
        n++;
        kib += event_kib;
        if (!event->planned) continue;
        n_planned++;
        planned_kib += event_kib;
    }
    return n - n_planned <= n / 50 && kib - planned_kib <= kib / 50;
}

static tide__pool_plan *find_plan(const tide_pool *pool, const tide__iteration *iteration) {
    for (uint32_t i = 0; i < pool->n_plans; i++)
        if (tide__pool_plan_is_of(pool->plans[i], iteration)) return pool->plans[i];
    return NULL;
}

/* ---- remembering ---- */

void tide__drop_plan(tide_pool *pool, tide__pool_plan *plan) {
    for (uint32_t i = 0; i < pool->n_plans; i++)
        if (pool->plans[i] == plan) pool->plans[i] = pool->plans[--pool->n_plans];
    plan->dropped = true;
    pool->stats.n_plans_dropped++;
    if (plan->n_live == 0) tide__pool_plan_destroy(plan);
}

static void drop_oldest(tide_pool *pool) {
    tide__pool_plan *oldest = NULL;
    for (uint32_t i = 0; i < pool->n_plans; i++) {
        tide__pool_plan *plan = pool->plans[i];
        if (plan != pool->follower.plan && (!oldest || plan->last_used < oldest->last_used)) oldest = plan;
    }
    if (oldest) tide__drop_plan(pool, oldest);
}

/* Takes `plan` in and follows it; `old` is the plan that it replaces, or NULL. */
static void adopt(tide_pool *pool, tide__pool_plan *plan, tide__pool_plan *old, uint32_t next) {
    plan->made_at = pool->history.count;
    tide__follow_plan(pool, plan, next);
    if (old) {
        plan->n_versions = old->n_versions + 1;
        tide__drop_plan(pool, old);
    } else if (pool->n_plans == pool->options.max_plans) {
        drop_oldest(pool);
    }
    pool->plans[pool->n_plans++] = plan;
    if (pool->stats.n_plans_made++ == 0) pool->stats.first_plan_event = pool->history.count;
    pool->follower.off = false;
    pool->follower.clean = 0;
    if (next == 0) tide__region_fit(pool, plan->height);
}

/* ---- judging ---- */

/* A plan whose blocks keep living longer than it expects is made anew, less and less often. */
static bool is_due_again(const tide_pool *pool, const tide__pool_plan *plan, const tide__iteration *iteration) {
    uint32_t doublings = plan->n_versions < 16 ? plan->n_versions : 16;
    return pool->history.count - plan->made_at >= (uint64_t)plan->period << doublings &&
           tide__pool_plan_is_outlived(plan, iteration);
}

static tide_status plan_iteration(tide_pool *pool, const tide__iteration *iteration) {
    tide__pool_plan *old = find_plan(pool, iteration), *plan;
    if (old && !is_due_again(pool, old, iteration)) {
        if (pool->follower.plan != old || pool->follower.off) tide__follow_plan(pool, old, iteration->next);
        return TIDE_OK;
    }
    uint64_t start = tide__now_ns();
    tide_status status =
        tide__pool_plan_create(iteration, old, pool->options.alignment, pool->options.plan_seconds, &plan);
    pool->stats.plan_ns += tide__now_ns() - start;
    if (status == TIDE_OK) adopt(pool, plan, old, iteration->next);
    return status;
}

/* The last `run` events equal those a period earlier. */
static void judge(tide_pool *pool, uint64_t period, uint64_t run) {
    tide__iteration iteration;
    bool steady;
    if (is_planned(&pool->history, period)) return;
    if (tide__iteration_read(&pool->history, (uint32_t)period, run < TOLERANT_RUNS * period, &iteration, &steady) !=
        TIDE_OK)
        return;
    if (steady) (void)plan_iteration(pool, &iteration);
    tide__iteration_deinit(&iteration);
}

/* A stream that leaves its plan after a long time: only its latest part can matter. */
static void skip_settled(tide_pool *pool) {
    uint64_t kept = TIDE__CATCH_UP_EVENTS, count = pool->history.count;
    if (pool->follower.plan && pool->follower.plan->period > kept) kept = pool->follower.plan->period;
    if (count > kept) tide__repeat_skip_to(&pool->repeat, count - kept);
}

void tide__learn(tide_pool *pool) {
    tide__repeat *repeat = &pool->repeat;
    bool due = false;
    if (tide__is_settled(pool)) return;
    skip_settled(pool);
    while (repeat->fed < pool->history.count) due = tide__repeat_feed(repeat, &pool->history) || due;
    if (due && repeat->period && repeat->run >= repeat->period) judge(pool, repeat->period, repeat->run);
}
