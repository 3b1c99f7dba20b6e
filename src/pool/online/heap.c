/* See heap.h: segments and blocks. The free sets are in free_set.c. */
#include "pool/online/heap.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/size.h"
#include "pool/online/free_set.h"

#define FIRST_ADDRESS (UINT64_C(1) << 21) /* never 0, and a multiple of every rounding */

void tide__heap_init(tide__heap *heap, uint64_t limit_bytes) {
    *heap = (tide__heap){.unused = TIDE__NO_BLOCK, .next_address = FIRST_ADDRESS, .limit_bytes = limit_bytes};
}

void tide__heap_deinit(tide__heap *heap) { tide__vec_free(&heap->blocks); }

/* ---- numbers ---- */

static tide_status new_block(tide__heap *heap, uint64_t address, uint64_t size, uint32_t *out) {
    uint32_t block = heap->unused;
    if (block != TIDE__NO_BLOCK) {
        heap->unused = tide__heap_at(heap, block)->left;
    } else {
        if (heap->blocks.count >= TIDE__NO_BLOCK) return tide__fail(TIDE_E_MEMORY, "too many blocks at once");
        block = (uint32_t)heap->blocks.count;
        TIDE_TRY(tide__vec_push(&heap->blocks, (tide__heap_block){0}));
    }
    *tide__heap_at(heap, block) = (tide__heap_block){.address = address,
                                                     .size = size,
                                                     .before = TIDE__NO_BLOCK,
                                                     .after = TIDE__NO_BLOCK,
                                                     .left = TIDE__NO_BLOCK,
                                                     .right = TIDE__NO_BLOCK,
                                                     .priority = tide__random_u64(0, 0, heap->n_drawn++)};
    *out = block;
    return TIDE_OK;
}

static void drop_block(tide__heap *heap, uint32_t block) {
    tide__heap_at(heap, block)->left = heap->unused;
    tide__heap_at(heap, block)->free = false;
    heap->unused = block;
}

/* ---- segments ---- */

static tide_status check_room(const tide__heap *heap, uint64_t size) {
    uint64_t end, held;
    if (!tide__add(heap->next_address, size, &end) || end > INT64_MAX)
        return tide__fail(TIDE_E_MEMORY, "the blocks need more than 2^63 addresses");
    held = heap->held_bytes + size; /* at most next_address */
    if (heap->limit_bytes && held > heap->limit_bytes)
        return tide__fail(TIDE_E_MEMORY, "%llu bytes more are beyond the limit of %llu", (unsigned long long)size,
                          (unsigned long long)heap->limit_bytes);
    return TIDE_OK;
}

tide_status tide__heap_extend(tide__heap *heap, uint32_t last, uint64_t size, uint32_t *block) {
    TIDE_TRY(check_room(heap, size));
    TIDE_TRY(new_block(heap, heap->next_address, size, block));
    heap->next_address += size;
    heap->held_bytes += size;
    heap->peak_held_bytes = tide__max_u64(heap->peak_held_bytes, heap->held_bytes);
    heap->n_segments += last == TIDE__NO_BLOCK;
    if (last == TIDE__NO_BLOCK) return TIDE_OK;
    tide__heap_at(heap, *block)->before = last;
    tide__heap_at(heap, last)->after = *block;
    return TIDE_OK;
}

tide_status tide__heap_segment(tide__heap *heap, uint64_t size, uint32_t *block) {
    return tide__heap_extend(heap, TIDE__NO_BLOCK, size, block);
}

void tide__heap_release(tide__heap *heap, uint32_t block) {
    heap->held_bytes -= tide__heap_at(heap, block)->size;
    drop_block(heap, block);
}

void tide__heap_shrink(tide__heap *heap, uint32_t block) {
    const tide__heap_block *b = tide__heap_at(heap, block);
    if (b->before != TIDE__NO_BLOCK) tide__heap_at(heap, b->before)->after = TIDE__NO_BLOCK;
    heap->next_address = b->address;
    tide__heap_release(heap, block);
}

/* ---- blocks ---- */

tide_status tide__heap_split(tide__heap *heap, uint32_t block, uint64_t size, uint32_t *rest) {
    tide__heap_block whole = *tide__heap_at(heap, block);
    TIDE_TRY(new_block(heap, whole.address + size, whole.size - size, rest));
    tide__heap_block *low = tide__heap_at(heap, block), *high = tide__heap_at(heap, *rest);
    low->size = size;
    low->after = *rest;
    high->before = block;
    high->after = whole.after;
    if (whole.after != TIDE__NO_BLOCK) tide__heap_at(heap, whole.after)->before = *rest;
    return TIDE_OK;
}

/* `block` takes over the bytes of its neighbour above. */
static void join(tide__heap *heap, uint32_t block) {
    tide__heap_block *low = tide__heap_at(heap, block);
    uint32_t gone = low->after;
    const tide__heap_block *high = tide__heap_at(heap, gone);
    low->size += high->size;
    low->after = high->after;
    if (low->after != TIDE__NO_BLOCK) tide__heap_at(heap, low->after)->before = block;
    drop_block(heap, gone);
}

static bool is_free(const tide__heap *heap, uint32_t block) {
    return block != TIDE__NO_BLOCK && tide__heap_at(heap, block)->free;
}

uint32_t tide__heap_give(tide__heap *heap, tide__free_set *set, uint32_t block) {
    uint32_t before = tide__heap_at(heap, block)->before, after = tide__heap_at(heap, block)->after;
    if (is_free(heap, after)) {
        tide__heap_take(heap, set, after);
        join(heap, block);
    }
    if (is_free(heap, before)) {
        tide__heap_take(heap, set, before);
        join(heap, before);
        block = before;
    }
    tide__heap_at(heap, block)->free = true;
    tide__free_set_add(heap, set, block);
    return block;
}

void tide__heap_take(tide__heap *heap, tide__free_set *set, uint32_t block) {
    tide__free_set_remove(heap, set, block);
    tide__heap_at(heap, block)->free = false;
}

uint32_t tide__heap_find(const tide__heap *heap, const tide__free_set *set, uint64_t size) {
    return tide__free_set_find(heap, set, size);
}
