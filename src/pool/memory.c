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

/* The plan's blocks go on as single ones. */
static void release_items(tide_pool *pool, tide__pool_plan *plan) {
    for (uint32_t i = 0; plan->n_live > 0; i++) {
        tide__pool_item *item = &plan->items[i];
        if (item->state == TIDE__ITEM_IDLE) continue;
        tide__pool_block block = {tide__item_bytes(plan, item), item->event, pool->region, true};
        tide__blocks_add(&pool->blocks, pool->regions[pool->region].base + item->offset, block);
        item->state = TIDE__ITEM_IDLE;
        plan->n_live--;
    }
}

/* The region goes out of use, with blocks in it. */
static tide_status retire_region(tide_pool *pool) {
    TIDE_TRY(tide__blocks_reserve(&pool->blocks, pool->regions[pool->region].n_live));
    for (uint32_t i = 0; i < pool->n_plans; i++) release_items(pool, pool->plans[i]);
    while (pool->dropped) {
        tide__pool_plan *plan = pool->dropped;
        pool->dropped = plan->next;
        release_items(pool, plan);
        tide__pool_plan_destroy(plan);
    }
    tide__spans_clear(&pool->follower.overdue);
    return TIDE_OK;
}

/* A place for a new region: that of the one in use if nothing lies in it. */
static bool find_slot(tide_pool *pool, uint32_t *out) {
    if (pool->regions[pool->region].n_live == 0) {
        region_free(pool, &pool->regions[pool->region]);
        *out = pool->region;
        return true;
    }
    for (uint32_t i = 0; i < TIDE__MAX_REGIONS; i++) {
        if (pool->regions[i].base) continue;
        *out = i;
        return true;
    }
    return false;
}

bool tide__region_fit(tide_pool *pool, uint64_t size_bytes) {
    uint32_t slot;
    void *base;
    if (pool->regions[pool->region].size_bytes >= size_bytes) return true;
    if (!find_slot(pool, &slot) || ask_backing(pool, size_bytes, &base) != TIDE_OK) return false;
    if (slot != pool->region && retire_region(pool) != TIDE_OK) {
        tide__backing_free(pool, base, size_bytes);
        return false;
    }
    pool->region = slot;
    pool->regions[slot] = (tide__region){.base = base, .size_bytes = size_bytes};
    return true;
}

void tide__region_leave(tide_pool *pool, uint32_t region) {
    if (--pool->regions[region].n_live == 0) region_free(pool, &pool->regions[region]);
}

/* ---- planned blocks ---- */

/* The stream is where it should be, but the plan does not serve it: not settled. */
static void count_conflict(tide_pool *pool) {
    pool->stats.n_conflicts++;
    if (pool->follower.clean > TIDE__GRAM_LENGTH) pool->follower.clean = TIDE__GRAM_LENGTH;
}

void *tide__region_serve(tide_pool *pool, uint32_t at) {
    const tide__follower *f = &pool->follower;
    tide__region *region = &pool->regions[pool->region];
    tide__pool_item *item = &f->plan->items[f->plan->item[at]];
    if (item->life == 0 || region->size_bytes < f->plan->height) return NULL;
    if (!tide__spans_empty(&f->overdue) && tide__spans_hit(&f->overdue, tide__item_span(f->plan, item))) {
        count_conflict(pool);
        return NULL;
    }
    item->state = TIDE__ITEM_LIVE;
    item->event = pool->history.count;
    f->plan->slots[item->slot].item = f->plan->item[at];
    f->plan->n_live++;
    region->n_live++;
    return region->base + item->offset;
}

/* The block that the plan expects to be freed next, if that is the one at `offset`. */
static tide__pool_item *expected_block(const tide_pool *pool, uint64_t offset) {
    const tide__pool_plan *plan = pool->follower.plan;
    uint32_t item = plan->ends[pool->follower.at];
    if (item == TIDE__NO_ITEM) return NULL;
    bool fits = plan->items[item].offset == offset && plan->items[item].state == TIDE__ITEM_LIVE;
    return fits ? &plan->items[item] : NULL;
}

static tide__pool_plan *find_block(const tide_pool *pool, uint64_t offset, tide__pool_item **item) {
    for (uint32_t i = 0; i < pool->n_plans; i++)
        if ((*item = tide__pool_plan_block_at(pool->plans[i], offset))) return pool->plans[i];
    for (tide__pool_plan *plan = pool->dropped; plan; plan = plan->next)
        if ((*item = tide__pool_plan_block_at(plan, offset))) return plan;
    return NULL;
}

/* A dropped plan goes with its last block. */
static void leave_plan(tide_pool *pool, tide__pool_plan *plan) {
    if (--plan->n_live > 0) return;
    for (tide__pool_plan **link = &pool->dropped; *link; link = &(*link)->next) {
        if (*link != plan) continue;
        *link = plan->next;
        tide__pool_plan_destroy(plan);
        return;
    }
}

bool tide__region_take(tide_pool *pool, const void *address, tide__pool_block *out) {
    tide__region *region = &pool->regions[pool->region];
    uint64_t offset = (uintptr_t)address - (uintptr_t)region->base;
    tide__pool_plan *plan = pool->follower.plan;
    tide__pool_item *item = expected_block(pool, offset);
    if (!item) plan = find_block(pool, offset, &item);
    if (!plan) return false;
    *out = (tide__pool_block){tide__item_bytes(plan, item), item->event, pool->region, true};
    tide__set_state(pool, plan, item, TIDE__ITEM_IDLE);
    region->n_live--;
    leave_plan(pool, plan);
    return true;
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
