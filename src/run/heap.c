/* See heap.h. Free ranges of the arena and of the disk are found best fit; small blocks, of which some never leave, lie
 * together at the arena's end. Blocks that may leave stand in one list, least
 * recently used first; they leave one after the other until the stretch that is wanted is free.
 *
 * Invariant: a block is either in the arena (slot == NOWHERE) or not (offset == NOWHERE), then on disk unless it is borrowed;
 * it is in the list exactly if it is in the arena and not pinned. */
#include <tidemark/device.h>
#include <tidemark/heap.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/size.h"
#include "run/ranges.h"
#include "tier/tier.h"

#define NOWHERE UINT64_MAX
#define NO_BLOCK SIZE_MAX
#define ALIGN_BYTES UINT64_C(64)
#define SLOT_BYTES \
    UINT64_C(      \
        4096) /* on disk; smaller blocks lie at the arena's end, so that large ones mostly begin at such multiples, too */

typedef struct block {
    uint64_t size;  /* as taken from the arena; 0: not in use */
    uint64_t bytes; /* as they were asked for */
    uint64_t offset, slot;
    tide_id value; /* that lies elsewhere; TIDE_NONE: the block is the heap's own */
    uint32_t pins;
    size_t before, after; /* in the list; `after` also links those not in use */
} block;

struct tide_heap {
    tide_heap_options options;
    char *disk_path;
    pthread_mutex_t lock;
    tide_device *device;
    tide_arena *arena;
    char *bytes;
    tide__tier *tier; /* NULL until the first block leaves */
    tide__ranges free, slots;
    TIDE_VEC(block) blocks;
    size_t oldest, newest, unused;
    uint64_t used_bytes;
    tide_heap_stats stats;
};

void tide_heap_options_init(tide_heap_options *options) { *options = (tide_heap_options){.size = sizeof *options}; }

/* ---- creation ---- */

static tide_status prepare(tide_heap *heap) {
    const tide_heap_options *o = &heap->options;
    uint64_t bytes;
    if (!tide__align_up(o->arena_bytes, ALIGN_BYTES, &bytes))
        return tide__fail(TIDE_E_OVERFLOW, "a heap of %llu bytes", (unsigned long long)o->arena_bytes);
    if (o->disk_path && !(heap->disk_path = strdup(o->disk_path))) return tide__fail_memory();
    heap->options.disk_path = heap->disk_path;
    TIDE_TRY(tide_device_open("host", NULL, &heap->device));
    TIDE_TRY(tide_arena_create(heap->device, tide__max_u64(bytes, 1), &heap->arena));
    heap->bytes = tide_arena_host(heap->arena);
    TIDE_TRY(tide__ranges_init(&heap->slots, o->disk_bytes & ~(SLOT_BYTES - 1)));
    return tide__ranges_init(&heap->free, bytes);
}

tide_status tide_heap_create(const tide_heap_options *options, tide_heap **out) {
    tide_heap_options taken;
    tide_heap_options_init(&taken);
    TIDE_NEED(options, out);
    TIDE_TRY(tide__options_take("tide_heap_options", options, sizeof taken, &taken));
    tide_heap *heap = calloc(1, sizeof *heap);
    if (!heap) return tide__fail_memory();
    heap->options = taken;
    heap->oldest = heap->newest = heap->unused = NO_BLOCK;
    pthread_mutex_init(&heap->lock, NULL);
    tide_status status = prepare(heap);
    if (status == TIDE_OK)
        *out = heap;
    else
        tide_heap_destroy(heap);
    return status;
}

void tide_heap_destroy(tide_heap *heap) {
    if (!heap) return;
    tide__tier_destroy(heap->tier);
    tide_arena_destroy(heap->arena);
    tide_device_close(heap->device);
    tide__ranges_deinit(&heap->free);
    tide__ranges_deinit(&heap->slots);
    tide__vec_free(&heap->blocks);
    pthread_mutex_destroy(&heap->lock);
    free(heap->disk_path);
    free(heap);
}

/* ---- the list ---- */

static void append(tide_heap *heap, size_t i) {
    block *b = &heap->blocks.data[i];
    b->before = heap->newest;
    b->after = NO_BLOCK;
    *(heap->newest == NO_BLOCK ? &heap->oldest : &heap->blocks.data[heap->newest].after) = i;
    heap->newest = i;
}

static void take_out(tide_heap *heap, size_t i) {
    const block *b = &heap->blocks.data[i];
    *(b->before == NO_BLOCK ? &heap->oldest : &heap->blocks.data[b->before].after) = b->after;
    *(b->after == NO_BLOCK ? &heap->newest : &heap->blocks.data[b->after].before) = b->before;
}

/* ---- moving ---- */

static void tell(const tide_heap *heap, size_t i) {
    const block *b = &heap->blocks.data[i];
    if (!heap->options.moved) return;
    heap->options.moved(heap->options.moved_context, i, b->offset == NOWHERE ? NULL : heap->bytes + b->offset);
}

static uint64_t slot_bytes(const block *b) { return (b->size + SLOT_BYTES - 1) & ~(SLOT_BYTES - 1); }

static tide_status open_tier(tide_heap *heap) {
    const tide__tier_options options = {.kind = TIDE_TIER_DISK,
                                        .capacity_bytes = heap->options.disk_bytes & ~(SLOT_BYTES - 1),
                                        .block_bytes = (uint32_t)SLOT_BYTES,
                                        .path = heap->disk_path};
    return heap->tier ? TIDE_OK : tide__tier_open(&options, &heap->tier);
}

static tide_status save(tide_heap *heap, const block *b, uint64_t *out) {
    uint64_t slot;
    if (!tide__ranges_take(&heap->slots, slot_bytes(b), &slot))
        return tide__fail(TIDE_E_TIER_FULL, "a block of %llu bytes has no room in the %llu bytes of disk",
                          (unsigned long long)b->size, (unsigned long long)heap->options.disk_bytes);
    tide_status status = open_tier(heap);
    tide__tier_slot at = {.tier = heap->tier, .offset = slot};
    if (status == TIDE_OK) status = tide__tier_save(&at, 0, heap->bytes + b->offset, b->size);
    if (status != TIDE_OK) {
        (void)tide__ranges_give(&heap->slots, slot, slot_bytes(b));
        return status;
    }
    heap->stats.saved_bytes += b->size;
    *out = slot;
    return TIDE_OK;
}

/* The oldest block goes to disk, or is dropped if it is borrowed. */
static tide_status evict(tide_heap *heap) {
    size_t i = heap->oldest;
    if (i == NO_BLOCK) return tide__fail(TIDE_E_FIT, "no block may leave the heap");
    block *b = &heap->blocks.data[i];
    uint64_t slot = NOWHERE;
    if (b->value == TIDE_NONE) TIDE_TRY(save(heap, b, &slot));
    tide_status status = tide__ranges_give(&heap->free, b->offset, b->size);
    if (status != TIDE_OK) {
        if (slot != NOWHERE) (void)tide__ranges_give(&heap->slots, slot, slot_bytes(b));
        return status;
    }
    take_out(heap, i);
    heap->used_bytes -= b->bytes;
    b->offset = NOWHERE;
    b->slot = slot;
    tell(heap, i);
    return TIDE_OK;
}

/* The arena is whole units, of the last of which the budget may have a part only. */
static bool take(tide_heap *heap, uint64_t size, uint64_t bytes, uint64_t *offset) {
    if (bytes > heap->options.arena_bytes - heap->used_bytes) return false;
    return (size < SLOT_BYTES ? tide__ranges_take_high : tide__ranges_take)(&heap->free, size, offset);
}

static tide_status make_room(tide_heap *heap, uint64_t size, uint64_t bytes, uint64_t *offset) {
    while (!take(heap, size, bytes, offset)) {
        tide_status status = evict(heap);
        if (status == TIDE_E_FIT)
            return tide__fail(TIDE_E_FIT,
                              "a block of %llu bytes has no room in a heap of %llu, %llu of which are in use",
                              (unsigned long long)bytes, (unsigned long long)heap->options.arena_bytes,
                              (unsigned long long)heap->used_bytes);
        TIDE_TRY(status);
    }
    heap->used_bytes += bytes;
    heap->stats.peak_bytes = tide__max_u64(heap->stats.peak_bytes, heap->used_bytes);
    return TIDE_OK;
}

static tide_status load(tide_heap *heap, const block *b, void *data) {
    const tide_heap_options *o = &heap->options;
    if (b->value != TIDE_NONE) return o->read(o->read_context, b->value, 0, data, b->bytes);
    tide__tier_slot at = {.tier = heap->tier, .offset = b->slot};
    TIDE_TRY(tide__tier_load(&at, 0, data, b->size));
    return tide__ranges_give(&heap->slots, b->slot, slot_bytes(b));
}

static tide_status fetch(tide_heap *heap, size_t i) {
    block *b = &heap->blocks.data[i];
    uint64_t offset;
    TIDE_TRY(make_room(heap, b->size, b->bytes, &offset));
    tide_status status = load(heap, b, heap->bytes + offset);
    if (status != TIDE_OK) {
        heap->used_bytes -= b->bytes;
        (void)tide__ranges_give(&heap->free, offset, b->size);
        return status;
    }
    heap->stats.loaded_bytes += b->size;
    b->offset = offset;
    b->slot = NOWHERE;
    tell(heap, i);
    return TIDE_OK;
}

/* ---- blocks ---- */

static tide_status new_block(tide_heap *heap, size_t *out) {
    if (heap->unused == NO_BLOCK) {
        TIDE_TRY(tide__vec_push(&heap->blocks, (block){.after = NO_BLOCK}));
        heap->unused = heap->blocks.count - 1;
    }
    *out = heap->unused;
    return TIDE_OK;
}

static tide_status size_block(uint64_t size_bytes, uint64_t *out) {
    if (tide__align_up(tide__max_u64(size_bytes, 1), ALIGN_BYTES, out)) return TIDE_OK;
    return tide__fail(TIDE_E_OVERFLOW, "a block of %llu bytes", (unsigned long long)size_bytes);
}

static void use_block(tide_heap *heap, size_t i, block with) {
    heap->unused = heap->blocks.data[i].after;
    heap->blocks.data[i] = with;
}

static tide_status allocate(tide_heap *heap, uint64_t size_bytes, uint64_t *id, void **address) {
    uint64_t size, offset;
    size_t i;
    TIDE_TRY(size_block(size_bytes, &size));
    TIDE_TRY(new_block(heap, &i));
    TIDE_TRY(make_room(heap, size, size_bytes, &offset));
    use_block(
        heap, i,
        (block){.size = size, .bytes = size_bytes, .offset = offset, .slot = NOWHERE, .value = TIDE_NONE, .pins = 1});
    *id = i;
    *address = heap->bytes + offset;
    return TIDE_OK;
}

tide_status tide_heap_allocate(tide_heap *heap, uint64_t size_bytes, uint64_t *id, void **address) {
    TIDE_NEED(heap, id, address);
    pthread_mutex_lock(&heap->lock);
    tide_status status = allocate(heap, size_bytes, id, address);
    pthread_mutex_unlock(&heap->lock);
    return status;
}

static tide_status borrow(tide_heap *heap, tide_id value, uint64_t size_bytes, uint64_t *id) {
    uint64_t size;
    size_t i;
    if (!heap->options.read || value == TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "the heap cannot read value %u", value);
    TIDE_TRY(size_block(size_bytes, &size));
    TIDE_TRY(new_block(heap, &i));
    use_block(heap, i, (block){.size = size, .bytes = size_bytes, .offset = NOWHERE, .slot = NOWHERE, .value = value});
    *id = i;
    return TIDE_OK;
}

tide_status tide_heap_borrow(tide_heap *heap, tide_id value, uint64_t size_bytes, uint64_t *id) {
    TIDE_NEED(heap, id);
    pthread_mutex_lock(&heap->lock);
    tide_status status = borrow(heap, value, size_bytes, id);
    pthread_mutex_unlock(&heap->lock);
    return status;
}

static bool is_block(const tide_heap *heap, uint64_t id) {
    return id < heap->blocks.count && heap->blocks.data[id].size > 0;
}

static tide_status pin(tide_heap *heap, uint64_t id, void **address) {
    if (!is_block(heap, id)) return tide__fail(TIDE_E_ARGUMENT, "the heap has no block %llu", (unsigned long long)id);
    block *b = &heap->blocks.data[id];
    if (b->offset == NOWHERE)
        TIDE_TRY(fetch(heap, id));
    else if (b->pins == 0)
        take_out(heap, id);
    b->pins++;
    *address = heap->bytes + b->offset;
    return TIDE_OK;
}

tide_status tide_heap_pin(tide_heap *heap, uint64_t id, void **address) {
    TIDE_NEED(heap, address);
    pthread_mutex_lock(&heap->lock);
    tide_status status = pin(heap, id, address);
    pthread_mutex_unlock(&heap->lock);
    return status;
}

void tide_heap_unpin(tide_heap *heap, uint64_t id) {
    pthread_mutex_lock(&heap->lock);
    if (is_block(heap, id) && heap->blocks.data[id].pins > 0 && --heap->blocks.data[id].pins == 0) append(heap, id);
    pthread_mutex_unlock(&heap->lock);
}

tide_status tide_heap_rest(tide_heap *heap) {
    TIDE_NEED(heap);
    pthread_mutex_lock(&heap->lock);
    tide_status status = TIDE_OK;
    while (status == TIDE_OK && heap->oldest != NO_BLOCK) status = evict(heap);
    if (status == TIDE_E_TIER_FULL) status = TIDE_OK;
    for (size_t i = 0; i < heap->free.free.count; i++)
        tide_arena_discard(heap->arena, heap->free.free.data[i].offset, heap->free.free.data[i].size);
    pthread_mutex_unlock(&heap->lock);
    return status;
}

/* Giving back a range may need memory for the list of ranges; a stretch that is lost so is lost to the heap only. */
static void release(tide_heap *heap, size_t i) {
    block *b = &heap->blocks.data[i];
    if (b->slot != NOWHERE) {
        (void)tide__ranges_give(&heap->slots, b->slot, slot_bytes(b));
    } else if (b->offset != NOWHERE) {
        if (b->pins == 0) take_out(heap, i);
        heap->used_bytes -= b->bytes;
        (void)tide__ranges_give(&heap->free, b->offset, b->size);
    }
    *b = (block){.after = heap->unused};
    heap->unused = i;
}

void tide_heap_release(tide_heap *heap, uint64_t id) {
    pthread_mutex_lock(&heap->lock);
    if (is_block(heap, id)) release(heap, id);
    pthread_mutex_unlock(&heap->lock);
}

tide_heap_stats tide_heap_get_stats(tide_heap *heap) {
    pthread_mutex_lock(&heap->lock);
    tide_heap_stats stats = heap->stats;
    pthread_mutex_unlock(&heap->lock);
    return stats;
}
