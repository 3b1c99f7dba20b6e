/* The live blocks of a pool by their addresses, except those that lie in the region in use (their plan knows them): a
 * hash table with open addressing. Entries move when one is removed. */
#ifndef TIDE_POOL_BLOCKS_H
#define TIDE_POOL_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tide__pool_block {
    uint64_t size_bytes;
    uint64_t event;  /* index of its Malloc in the history; of no meaning if not watched */
    uint32_t region; /* TIDE__NO_REGION: a block of the backing; else the former region it lies in */
    bool watched;
} tide__pool_block;
#define TIDE__NO_REGION UINT32_MAX

typedef struct tide__pool_blocks {
    void **keys;              /* NULL: an empty place */
    tide__pool_block *values; /* per place */
    size_t count;
    unsigned bits; /* 2^bits places, at least twice the blocks */
} tide__pool_blocks;

tide_status tide__blocks_init(tide__pool_blocks *blocks);
void tide__blocks_deinit(tide__pool_blocks *blocks);

/* Room for `extra` more, so that adding them cannot fail. */
tide_status tide__blocks_reserve(tide__pool_blocks *blocks, size_t extra);

static inline size_t tide__blocks_home(const tide__pool_blocks *blocks, const void *key) {
    return (size_t)((uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - blocks->bits));
}

/* The place of `key`, or the empty one where it would go. */
static inline size_t tide__blocks_place(const tide__pool_blocks *blocks, const void *key) {
    size_t mask = ((size_t)1 << blocks->bits) - 1, at = tide__blocks_home(blocks, key);
    while (blocks->keys[at] && blocks->keys[at] != key) at = (at + 1) & mask;
    return at;
}

/* After reserve. false if the address is live already; nothing is changed then. */
static inline bool tide__blocks_add(tide__pool_blocks *blocks, void *key, tide__pool_block block) {
    size_t at = tide__blocks_place(blocks, key);
    if (blocks->keys[at]) return false;
    blocks->keys[at] = key;
    blocks->values[at] = block;
    blocks->count++;
    return true;
}

/* Takes the block out; false if there is none at this address. */
bool tide__blocks_take(tide__pool_blocks *blocks, const void *key, tide__pool_block *out);

#endif
