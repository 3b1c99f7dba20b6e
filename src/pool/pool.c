/* The allocator: each call as a list of steps, under the pool's lock. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/size.h"
#include "pool/pool_data.h"

#define MAX_ALIGNMENT (UINT64_C(1) << 21)

/* ---- options ---- */

void tide_pool_options_init(tide_pool_options *options) {
    *options = (tide_pool_options){.size = sizeof *options,
                                   .backing = tide_pool_host_backing(),
                                   .alignment = 256,
                                   .max_plans = 8,
                                   .max_period_events = 65536,
                                   .plan_seconds = 0.5};
}

static tide_status check_options(const tide_pool_options *o) {
    if (!o->backing.alloc || !o->backing.free)
        return tide__fail(TIDE_E_ARGUMENT, "pool options: the backing lacks a function");
    if (!tide__is_power_of_two(o->alignment) || o->alignment > MAX_ALIGNMENT)
        return tide__fail(TIDE_E_ARGUMENT, "pool options: the alignment is not a power of two up to 2 MiB");
    if (o->max_plans < 1 || o->max_plans > TIDE__MAX_PLANS)
        return tide__fail(TIDE_E_ARGUMENT, "pool options: max_plans is not 1 to %d", TIDE__MAX_PLANS);
    if (o->max_period_events < 16 || o->max_period_events > 1u << 22)
        return tide__fail(TIDE_E_ARGUMENT, "pool options: max_period_events is not 16 to 2^22");
    if (!(o->plan_seconds >= 0 && o->plan_seconds <= 1e6))
        return tide__fail(TIDE_E_ARGUMENT, "pool options: plan_seconds is not 0 to 10^6");
    return TIDE_OK;
}

static tide_status take_options(const tide_pool_options *given, tide_pool_options *out) {
    tide_pool_options_init(out);
    TIDE_TRY(tide__options_take("tide_pool_options", given, sizeof *out, out));
    return check_options(out);
}

/* ---- life ---- */

/* What the longest iteration, its repetition and a catch-up look back on. */
static uint64_t remembered_events(const tide_pool_options *o) {
    return 2 * (uint64_t)o->max_period_events + TIDE__CATCH_UP_EVENTS;
}

tide_status tide_pool_create(const tide_pool_options *options, tide_pool **out) {
    if (!out) return tide__fail(TIDE_E_ARGUMENT, "pool: no output");
    tide_pool_options taken;
    TIDE_TRY(take_options(options, &taken));
    tide_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return tide__fail_memory();
    pool->options = taken;
    pthread_mutex_init(&pool->lock, NULL);
    tide_status status;
    TIDE_TRY_GOTO(tide__blocks_init(&pool->blocks), fail);
    TIDE_TRY_GOTO(tide__history_init(&pool->history, remembered_events(&taken)), fail);
    TIDE_TRY_GOTO(tide__repeat_init(&pool->repeat, &pool->history, taken.max_period_events), fail);
    TIDE_TRY_GOTO(tide__spans_init(&pool->follower.overdue, TIDE__MAX_OVERDUE), fail);
    *out = pool;
    return TIDE_OK;
fail:
    tide_pool_destroy(pool);
    return status;
}

/* What the client forgot. */
static void free_blocks(tide_pool *pool) {
    for (size_t i = 0; pool->blocks.keys && i < (size_t)1 << pool->blocks.bits; i++) {
        const tide__pool_block *block = &pool->blocks.values[i];
        if (pool->blocks.keys[i] && block->region == TIDE__NO_REGION)
            tide__backing_free(pool, pool->blocks.keys[i], block->size_bytes);
    }
    for (int i = 0; i < TIDE__MAX_REGIONS; i++)
        if (pool->regions[i].base) tide__backing_free(pool, pool->regions[i].base, pool->regions[i].size_bytes);
}

void tide_pool_destroy(tide_pool *pool) {
    if (!pool) return;
    free_blocks(pool);
    for (uint32_t i = 0; i < pool->n_plans; i++) tide__pool_plan_destroy(pool->plans[i]);
    for (tide__pool_plan *plan = pool->dropped, *next; plan; plan = next) {
        next = plan->next;
        tide__pool_plan_destroy(plan);
    }
    tide__blocks_deinit(&pool->blocks);
    tide__history_deinit(&pool->history);
    tide__repeat_deinit(&pool->repeat);
    tide__spans_deinit(&pool->follower.overdue);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* ---- malloc ---- */

static void count_malloc(tide_pool *pool, uint64_t size_bytes) {
    tide_pool_stats *s = &pool->stats;
    s->n_mallocs++;
    s->live_bytes += size_bytes;
    if (s->live_bytes > s->peak_live_bytes) s->peak_live_bytes = s->live_bytes;
}

static tide_status malloc_single(tide_pool *pool, uint64_t size_bytes, bool watched, void **out) {
    tide__pool_block block = {size_bytes, pool->history.count, TIDE__NO_REGION, watched};
    void *address;
    TIDE_TRY(tide__blocks_reserve(&pool->blocks, 1));
    TIDE_TRY(tide__backing_alloc(pool, size_bytes, &address));
    if (!tide__blocks_add(&pool->blocks, address, block)) {
        pool->stats.held_bytes -= size_bytes; /* to give it back would free the block that is there */
        return tide__fail(TIDE_E_DEVICE, "the pool's backing handed out an address that is in use");
    }
    *out = address;
    return TIDE_OK;
}

static void watch_malloc(tide_pool *pool, tide__symbol symbol, bool planned) {
    pool->stats.n_watched++;
    pool->stats.n_planned += planned;
    tide__history_push(&pool->history, (tide__pool_event){.symbol = symbol, .planned = planned});
    tide__learn(pool);
}

static tide_status malloc_locked(tide_pool *pool, uint64_t size_bytes, void **out) {
    bool watched = size_bytes >= pool->options.min_block_bytes;
    tide__symbol symbol = tide__malloc_symbol(size_bytes);
    uint32_t at = watched ? tide__follow(pool, symbol) : TIDE__NO_ITEM;
    void *planned = at != TIDE__NO_ITEM ? tide__region_serve(pool, at) : NULL;
    if (planned)
        *out = planned;
    else
        TIDE_TRY(malloc_single(pool, size_bytes, watched, out));
    count_malloc(pool, size_bytes);
    if (watched) watch_malloc(pool, symbol, planned != NULL);
    return TIDE_OK;
}

tide_status tide_pool_malloc(tide_pool *pool, uint64_t size_bytes, void **out) {
    TIDE_NEED(pool, out);
    if (!pool || !out) return tide__fail(TIDE_E_ARGUMENT, "pool: malloc without a pool or an output");
    if (size_bytes > TIDE__MAX_BLOCK_BYTES)
        return tide__fail(TIDE_E_MEMORY, "pool: a block of %llu bytes is more than 2^60",
                          (unsigned long long)size_bytes);
    if (size_bytes == 0) {
        *out = NULL;
        return TIDE_OK;
    }
    pthread_mutex_lock(&pool->lock);
    tide_status status = malloc_locked(pool, size_bytes, out);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* ---- free ---- */

static void watch_free(tide_pool *pool, const tide__pool_block *block) {
    uint64_t distance = pool->history.count - block->event;
    tide__symbol symbol = tide__free_symbol(block->size_bytes);
    tide__follow(pool, symbol);
    tide__history_push(
        &pool->history,
        (tide__pool_event){.symbol = symbol, .distance = distance < UINT32_MAX ? (uint32_t)distance : UINT32_MAX});
    tide__learn(pool);
}

static bool take_single(tide_pool *pool, void *address, tide__pool_block *out) {
    if (!tide__blocks_take(&pool->blocks, address, out)) return false;
    if (out->region == TIDE__NO_REGION)
        tide__backing_free(pool, address, out->size_bytes);
    else
        tide__region_leave(pool, out->region);
    return true;
}

static tide_status free_locked(tide_pool *pool, void *address) {
    tide__pool_block block;
    bool found = tide__region_holds(pool, address) ? tide__region_take(pool, address, &block)
                                                   : take_single(pool, address, &block);
    if (!found) return tide__fail(TIDE_E_ARGUMENT, "pool: free of %p, which is not a live block of this pool", address);
    pool->stats.n_frees++;
    pool->stats.live_bytes -= block.size_bytes;
    if (block.watched) watch_free(pool, &block);
    return TIDE_OK;
}

tide_status tide_pool_free(tide_pool *pool, void *block) {
    TIDE_NEED(pool);
    if (!pool) return tide__fail(TIDE_E_ARGUMENT, "pool: free without a pool");
    if (!block) return TIDE_OK;
    pthread_mutex_lock(&pool->lock);
    tide_status status = free_locked(pool, block);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* ---- figures ---- */

void tide_pool_get_stats(tide_pool *pool, tide_pool_stats *out) {
    if (!pool || !out) return;
    pthread_mutex_lock(&pool->lock);
    const tide__pool_plan *plan = pool->follower.plan;
    *out = pool->stats;
    out->n_fallbacks = out->n_watched - out->n_planned;
    out->region_bytes = pool->regions[pool->region].size_bytes;
    out->n_plans = pool->n_plans;
    if (plan) {
        out->period_events = plan->period;
        out->plan_bytes = plan->height;
        out->plan_load_bytes = plan->lower_bound;
        out->plan_algorithm = plan->algorithm;
    }
    pthread_mutex_unlock(&pool->lock);
}

void tide_pool_reset_peaks(tide_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stats.peak_live_bytes = pool->stats.live_bytes;
    pool->stats.peak_held_bytes = pool->stats.held_bytes;
    pthread_mutex_unlock(&pool->lock);
}
