/* What the pool holds: single blocks, and the regions. One region is in use; one that a larger region replaced while
 * blocks lay in it is kept until the last of them is freed. */
#include "pool/pool_data.h"

static void count_held(tide_pool *pool, uint64_t size_bytes) {
    tide_pool_stats *s = &pool->stats;
    s->held_bytes += size_bytes;
    if (s->held_bytes > s->peak_held_bytes) s->peak_held_bytes = s->held_bytes;
}

static tide_status ask_backing(tide_pool *pool, uint64_t size_bytes, void **out) {
    const tide_pool_backing *b = &pool->options.backing;
    void *block = NULL;
    if (size_bytes > TIDE__MAX_HELD_BYTES - pool->stats.held_bytes)
        return tide__fail(TIDE_E_MEMORY, "a pool holds at most 2^62 bytes");
    TIDE_TRY(b->alloc(b->context, size_bytes, pool->options.alignment, &block));
    if (!block) return tide__fail(TIDE_E_DEVICE, "the pool's backing handed out NULL");
    count_held(pool, size_bytes);
    *out = block;
    return TIDE_OK;
}

void tide__backing_free(tide_pool *pool, void *block, uint64_t size_bytes) {
    pool->options.backing.free(pool->options.backing.context, block, size_bytes);
    pool->stats.held_bytes -= size_bytes;
}

/* ---- regions ---- */

static void region_free(tide_pool *pool, tide__region *region) {
    if (region->base) tide__backing_free(pool, region->base, region->size_bytes);
    *region = (tide__region){0};
}

static void forget_items(tide_pool *pool) {
    tide__spans_clear(&pool->follower.overdue);
    for (uint32_t p = 0; p < pool->n_plans; p++)
        for (uint32_t i = 0; i < pool->plans[p]->n_items; i++) pool->plans[p]->items[i].state = TIDE__ITEM_IDLE;
}

/* An empty slot for a region: the one in use if nothing lies in it. */
static bool find_slot(tide_pool *pool, uint16_t *out) {
    if (pool->regions[pool->region].n_live == 0) {
        region_free(pool, &pool->regions[pool->region]);
        *out = pool->region;
        return true;
    }
    for (uint16_t i = 0; i < TIDE__MAX_REGIONS; i++) {
        if (pool->regions[i].base) continue;
        *out = i;
        return true;
    }
    return false;
}

void tide__region_fit(tide_pool *pool, uint64_t size_bytes) {
    uint16_t slot;
    void *base;
    if (pool->regions[pool->region].size_bytes >= size_bytes || !find_slot(pool, &slot)) return;
    if (ask_backing(pool, size_bytes, &base) != TIDE_OK) return;
    if (slot != pool->region) forget_items(pool);
    pool->region = slot;
    pool->regions[slot] = (tide__region){.base = base, .size_bytes = size_bytes};
}

void *tide__region_serve(tide_pool *pool, uint32_t at, tide__pool_block *block) {
    tide__pool_plan *plan = pool->follower.plan;
    tide__region *region = &pool->regions[pool->region];
    tide__pool_item *item = &plan->items[plan->item[at]];
    if (item->life == 0 || region->size_bytes < plan->height) return NULL;
    if (!tide__spans_empty(&pool->follower.overdue) &&
        tide__spans_hit(&pool->follower.overdue, (tide__span){item->offset, item->offset + item->size_bytes})) {
        pool->stats.n_conflicts++;
        pool->follower.clean = 0;
        return NULL;
    }
    item->state = TIDE__ITEM_LIVE;
    plan->n_live++;
    region->n_live++;
    block->plan = plan;
    block->item = plan->item[at];
    block->region = pool->region;
    return region->base + item->offset;
}

void tide__region_release(tide_pool *pool, const tide__pool_block *block) {
    tide__pool_plan *plan = block->plan;
    tide__pool_item *item = &plan->items[block->item];
    tide__region *region = &pool->regions[block->region];
    region->n_live--;
    if (block->region != pool->region) {
        if (region->n_live == 0) region_free(pool, region);
    } else {
        if (item->state != TIDE__ITEM_LIVE)
            tide__spans_remove(&pool->follower.overdue, (tide__span){item->offset, item->offset + item->size_bytes},
                               item->state == TIDE__ITEM_OVERDUE);
        item->state = TIDE__ITEM_IDLE;
    }
    if (--plan->n_live == 0 && plan->dropped) tide__pool_plan_destroy(plan);
}

/* ---- single blocks ---- */

/* A region that nothing lies in is given back before a block is refused; it returns with the plan's next iteration. */
tide_status tide__backing_alloc(tide_pool *pool, uint64_t size_bytes, void **out) {
    tide__region *region = &pool->regions[pool->region];
    tide_status status = ask_backing(pool, size_bytes, out);
    if (status == TIDE_OK || region->n_live > 0 || !region->base) return status;
    region_free(pool, region);
    return ask_backing(pool, size_bytes, out);
}
