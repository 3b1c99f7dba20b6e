/* Inside a pool, and the calls between its files:
 *
 *      pool.c      malloc and free as lists of calls; the lock
 *      follow.c    where in which plan the stream is, and which planned bytes may be handed out
 *      learn.c     from a repetition to a plan, and which plans to remember
 *      memory.c    the backing: single blocks, and the region that plans use
 *
 * The invariant that makes the pool safe. Every block that lies in the region in use is either LIVE, which means that it
 * belongs to the plan being followed and that this plan expects it to be live now, or it is listed in `overdue`. Since
 * a plan's blocks that are expected together are disjoint (checked when it was made), the next planned block can only
 * meet overdue ones; on the plan there are none, and nothing needs to be searched. */
#ifndef TIDE_POOL_POOL_DATA_H
#define TIDE_POOL_POOL_DATA_H

#include <pthread.h>

#include <tidemark/pool.h>

#include "pool/blocks.h"
#include "pool/plan.h"
#include "pool/repeat.h"
#include "pool/spans.h"

enum { TIDE__MAX_PLANS = 64, TIDE__MAX_REGIONS = 16, TIDE__MAX_OVERDUE = 4096 };

/* So that sums of bytes never overflow. */
#define TIDE__MAX_HELD_BYTES (UINT64_C(1) << 62)

/* The events looked at again when a stream that followed its plan leaves it, or a period if that is more. */
enum { TIDE__CATCH_UP_EVENTS = 4096 };

typedef struct tide__region {
    char *base;          /* NULL: not allocated. Opaque: only offsets are added to it */
    uint64_t size_bytes; /* 0: not allocated */
    uint64_t n_live;     /* blocks in it */
} tide__region;

typedef struct tide__follower {
    tide__pool_plan *plan; /* NULL until there is one */
    uint32_t at;           /* the event that should come next */
    uint32_t border;       /* the end of this iteration: a multiple of the period */
    uint64_t clean;        /* events since the last that did not fit */
    uint64_t left_at;      /* the first event that did not fit, of those since the last 8 that did */
    uint64_t jumped_at;    /* event of the last long jump */
    uint64_t off;          /* events in a row, up to the last, that did not fit */
    bool starved;          /* there was no memory for the plan's region */
    tide__spans overdue;   /* offsets in the region in use */
} tide__follower;

struct tide_pool {
    pthread_mutex_t lock;
    tide_pool_options options;
    tide__pool_blocks blocks;
    tide__history history;
    tide__repeat repeat;
    tide__follower follower;
    tide__pool_plan *plans[TIDE__MAX_PLANS];
    uint32_t n_plans;
    tide__pool_plan *dropped; /* no longer followed; a list of those with blocks in the region in use */
    tide__region regions[TIDE__MAX_REGIONS];
    uint32_t region; /* the one in use; the others only wait for their last block's free */
    tide_pool_stats stats;
};

/* ---- follow.c ---- */

/* Takes the next event. Its place in the plan being followed, or TIDE__NO_ITEM if it has none. */
uint32_t tide__follow(tide_pool *pool, tide__symbol symbol);
/* Starts following `plan`, which expects event `at` next. */
void tide__follow_plan(tide_pool *pool, tide__pool_plan *plan, uint32_t at);
static inline tide__pool_span tide__item_span(const tide__pool_plan *plan, const tide__pool_item *item) {
    return (tide__pool_span){item->offset, item->offset + tide__item_bytes(plan, item)};
}
/* Changes the state and keeps the list of overdue blocks right; OVERDUE becomes UNLISTED if the list is full. */
static inline void tide__set_state(tide_pool *pool, const tide__pool_plan *plan, tide__pool_item *item,
                                   tide__item_state state) {
    tide__spans *overdue = &pool->follower.overdue;
    if (item->state >= TIDE__ITEM_OVERDUE)
        tide__spans_remove(overdue, tide__item_span(plan, item), item->state == TIDE__ITEM_OVERDUE);
    if (state == TIDE__ITEM_OVERDUE && !tide__spans_add(overdue, tide__item_span(plan, item)))
        state = TIDE__ITEM_UNLISTED;
    item->state = state & 3;
}

/* The stream has been on its plan for at least one iteration: nothing to learn. */
static inline bool tide__is_settled(const tide_pool *pool) {
    return pool->follower.plan && pool->follower.clean >= pool->follower.plan->period;
}

/* ---- learn.c ---- */

/* After each event. Failures (out of memory, mostly) leave the pool without a new plan, nothing else. */
void tide__learn(tide_pool *pool);

/* ---- memory.c ---- */

tide_status tide__backing_alloc(tide_pool *pool, uint64_t size_bytes, void **out);
void tide__backing_free(tide_pool *pool, void *block, uint64_t size_bytes);
/* At the border of an iteration: makes the region large enough for the plan; false if the memory is not to be had. */
bool tide__region_fit(tide_pool *pool, uint64_t size_bytes);
/* A block has left a region that is no longer in use. */
void tide__region_leave(tide_pool *pool, uint32_t region);
/* The bytes of the item of event `at` of the plan being followed; NULL if they cannot be handed out now. */
void *tide__region_serve(tide_pool *pool, uint32_t at);
/* Is the address in the region in use? */
static inline bool tide__region_holds(const tide_pool *pool, const void *address) {
    const tide__region *region = &pool->regions[pool->region];
    return (uintptr_t)address - (uintptr_t)region->base < region->size_bytes;
}
/* Takes the block at this address of the region in use back; false if there is none. */
bool tide__region_take(tide_pool *pool, const void *address, tide__pool_block *out);

#endif
