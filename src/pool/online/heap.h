/* What the online allocators are built from: segments of a virtual address range, cut into blocks that know their
 * neighbours, and ordered sets of the free ones. Offsets only; there is no memory behind them.
 *
 *      segment   ┌───────┬────┬──────────────┬───┐          blocks never reach over the end of a segment, and two
 *                │ used  │free│     used     │fr.│          neighbours of one set are never both free
 *                └───────┴────┴──────────────┴───┘
 *
 * A free set is a treap whose nodes are the blocks themselves, so only a new block can fail. Blocks are numbers; a
 * number is used again after its block is gone. */
#ifndef TIDE_POOL_ONLINE_HEAP_H
#define TIDE_POOL_ONLINE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

#define TIDE__NO_BLOCK UINT32_MAX

typedef struct tide__heap_block {
    uint64_t address, size;
    uint32_t before, after; /* neighbours in the segment, or TIDE__NO_BLOCK */
    uint32_t left, right;   /* while free: in its set. While not in use at all: left is the next such number */
    uint64_t priority;      /* of the treap: a parent's is larger */
    uint64_t most;          /* while free: the largest size in its subtree */
    bool free;
} tide__heap_block;

/* A set of free blocks; its order decides which of those that are large enough is taken. */
typedef struct tide__free_set {
    uint32_t root;
    bool by_address; /* else by size, then address */
} tide__free_set;

typedef struct tide__heap {
    TIDE_VEC(tide__heap_block) blocks;
    uint32_t unused;                  /* first of the numbers to use again */
    uint64_t next_address;            /* above all segments */
    uint64_t held_bytes, limit_bytes; /* of all segments; limit 0: none */
    uint64_t peak_held_bytes;
    uint64_t n_segments; /* ever made */
    uint64_t n_drawn;    /* priorities so far */
} tide__heap;

void tide__heap_init(tide__heap *heap, uint64_t limit_bytes);
void tide__heap_deinit(tide__heap *heap);

static inline tide__heap_block *tide__heap_at(const tide__heap *heap, uint32_t block) {
    return &heap->blocks.data[block];
}

/* ---- segments ---- */

/* A new segment as one block in use. TIDE_E_MEMORY beyond the limit, or beyond 2^63 addresses. */
tide_status tide__heap_segment(tide__heap *heap, uint64_t size, uint32_t *block);
/* The last segment grows by a block in use after `last`, its last block; TIDE__NO_BLOCK: it is a new one. */
tide_status tide__heap_extend(tide__heap *heap, uint32_t last, uint64_t size, uint32_t *block);
/* A block at the end of the last segment goes, and the segment ends before it. */
void tide__heap_shrink(tide__heap *heap, uint32_t block);
/* A block that is a whole segment goes. Its addresses are not used again. */
void tide__heap_release(tide__heap *heap, uint32_t block);

/* ---- blocks ---- */

/* Keeps the first `size` bytes, 0 < size < the block's; the rest becomes a block of its own, in use. */
tide_status tide__heap_split(tide__heap *heap, uint32_t block, uint64_t size, uint32_t *rest);
/* Puts a block in use into the set, joined with neighbours that are free (they must be in this set). The number of
 * what came out. */
uint32_t tide__heap_give(tide__heap *heap, tide__free_set *set, uint32_t block);
/* Takes a block out of its set. */
void tide__heap_take(tide__heap *heap, tide__free_set *set, uint32_t block);
/* The first block of at least `size` bytes in the set's order; TIDE__NO_BLOCK if there is none. */
uint32_t tide__heap_find(const tide__heap *heap, const tide__free_set *set, uint64_t size);

#endif
