/* From a repetition to a plan (repeat.h finds it, iteration.h reads it, plan.h places it), and which plans to keep. */
#include "base/clock.h"
#include "pool/pool_data.h"

enum {
    DOUBTFUL_RUNS = 2, /* periods that must have repeated where a plan fits more or less: once is a deviation's echo */
    TOLERANT_RUNS = 4, /* periods that must have repeated before blocks without a Free are put up with */
};

/* How much of the last `period` events plans answered: the smaller of the shares by number and by bytes. */
static double planned_share(const tide__history *history, uint64_t period) {
    double n = 0, bytes = 0, n_planned = 0, planned_bytes = 0;
    for (uint64_t i = history->count - period; i < history->count; i++) {
        const tide__pool_event *event = tide__history_at(history, i);
        if (tide__symbol_is_free(event->symbol)) continue;
        n++;
        bytes += (double)tide__symbol_bytes(event->symbol);
        if (!event->planned) continue;
        n_planned++;
        planned_bytes += (double)tide__symbol_bytes(event->symbol);
    }
    if (n == 0) return 0;
    return n_planned / n < planned_bytes / bytes ? n_planned / n : planned_bytes / bytes;
}

static tide__pool_plan *find_plan(const tide_pool *pool, const tide__iteration *iteration) {
    for (uint32_t i = 0; i < pool->n_plans; i++)
        if (tide__pool_plan_is_of(pool->plans[i], iteration)) return pool->plans[i];
    return NULL;
}

/* ---- remembering ---- */

/* Destroys it, now or with its last block. */
static void drop_plan(tide_pool *pool, tide__pool_plan *plan) {
    for (uint32_t i = 0; i < pool->n_plans; i++)
        if (pool->plans[i] == plan) pool->plans[i] = pool->plans[--pool->n_plans];
    pool->stats.n_plans_dropped++;
    if (plan->n_live == 0) {
        tide__pool_plan_destroy(plan);
        return;
    }
    plan->next = pool->dropped;
    pool->dropped = plan;
}

static void drop_oldest(tide_pool *pool) {
    tide__pool_plan *oldest = NULL;
    for (uint32_t i = 0; i < pool->n_plans; i++) {
        tide__pool_plan *plan = pool->plans[i];
        if (plan != pool->follower.plan && (!oldest || plan->last_used < oldest->last_used)) oldest = plan;
    }
    if (oldest) drop_plan(pool, oldest);
}

/* Takes `plan` in and follows it; `old` is the plan that it replaces, or NULL. */
static void adopt(tide_pool *pool, tide__pool_plan *plan, tide__pool_plan *old, uint32_t next) {
    plan->made_at = pool->history.count;
    tide__follow_plan(pool, plan, next);
    if (old) {
        plan->n_versions = old->n_versions + 1;
        drop_plan(pool, old);
    } else if (pool->n_plans == pool->options.max_plans) {
        drop_oldest(pool);
    }
    pool->plans[pool->n_plans++] = plan;
    if (pool->stats.n_plans_made++ == 0) pool->stats.first_plan_event = pool->history.count;
    pool->follower.off = 0;
    pool->follower.clean = 0;
    if (next % plan->period == 0) pool->follower.starved = !tide__region_fit(pool, plan->height);
}

/* ---- judging ---- */

/* A plan whose blocks keep living longer than it expects is made anew, less and less often. */
static bool is_due_again(const tide_pool *pool, const tide__pool_plan *plan, const tide__iteration *iteration) {
    uint32_t doublings = plan->n_versions < 16 ? plan->n_versions : 16;
    return !plan->lean && pool->history.count - plan->made_at >= (uint64_t)plan->period << doublings &&
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

/* At the border there was no memory for the region: the blocks that outlive the iteration are now in the backing and in
 * the plan, too. Without them it may fit, and the backing goes on holding them one by one. */
static void slim(tide_pool *pool) {
    tide__pool_plan *old = pool->follower.plan, *plan;
    pool->follower.starved = false;
    if (old->lean) return;
    uint64_t start = tide__now_ns();
    tide_status status = tide__pool_plan_create_lean(old, pool->options.alignment, pool->options.plan_seconds, &plan);
    pool->stats.plan_ns += tide__now_ns() - start;
    if (status == TIDE_OK) adopt(pool, plan, old, pool->follower.at % old->period);
}

/* The last `run` events equal those a period earlier. One event too few in an iteration makes such a run, too: the
 * iteration without it, once before and once after,
 *
 *      A B C D E   A B C D E   A B D E   A B C D E         period 4:  D E A B  D E A B
 *
 * so where a plan already serves the most part more is asked for, and where it serves nearly all, nothing is done. */
static void judge(tide_pool *pool, uint64_t period, uint64_t run) {
    tide__iteration iteration;
    bool steady;
    double share = planned_share(&pool->history, period);
    if (share >= 0.98 || (share >= 0.5 && run < DOUBTFUL_RUNS * period)) return;
    if (tide__iteration_read(&pool->history, (uint32_t)period, run < TOLERANT_RUNS * period, &iteration, &steady) !=
        TIDE_OK)
        return;
    if (steady) (void)plan_iteration(pool, &iteration);
    tide__iteration_deinit(&iteration);
}

/* The stream leaves its plan, with this event. Only the latest part of what it did before can matter. */
static void resume(tide_pool *pool) {
    uint64_t kept = TIDE__CATCH_UP_EVENTS, count = pool->history.count;
    if (pool->follower.plan->period > kept) kept = pool->follower.plan->period;
    tide__repeat_resume(&pool->repeat, count > kept ? count - kept : 0, count - 1);
}

void tide__learn(tide_pool *pool) {
    tide__repeat *repeat = &pool->repeat;
    bool due = false;
    if (pool->follower.starved) slim(pool);
    if (tide__is_settled(pool)) return;
    if (repeat->fed + 1 < pool->history.count) resume(pool);
    while (repeat->fed < pool->history.count) due = tide__repeat_feed(repeat, &pool->history) || due;
    if (due && repeat->period && repeat->run >= repeat->period) judge(pool, repeat->period, repeat->run);
}
