/* See blocks.h. Linear probing; a removal moves later entries of the same run back, so no place is ever "deleted". */
#include "pool/blocks.h"

#include <stdlib.h>

enum { FIRST_BITS = 8 };

static tide_status allocate(tide__pool_blocks *blocks, unsigned bits) {
    size_t places = (size_t)1 << bits;
    *blocks = (tide__pool_blocks){
        .keys = calloc(places, sizeof *blocks->keys), .values = malloc(places * sizeof *blocks->values), .bits = bits};
    if (blocks->keys && blocks->values) return TIDE_OK;
    tide__blocks_deinit(blocks);
    return tide__fail_memory();
}

tide_status tide__blocks_init(tide__pool_blocks *blocks) { return allocate(blocks, FIRST_BITS); }

void tide__blocks_deinit(tide__pool_blocks *blocks) {
    free(blocks->keys);
    free(blocks->values);
    *blocks = (tide__pool_blocks){0};
}

tide_status tide__blocks_reserve(tide__pool_blocks *blocks, size_t extra) {
    size_t places = (size_t)1 << blocks->bits;
    unsigned bits = blocks->bits;
    while (blocks->count + extra > ((size_t)1 << bits) / 2) bits++;
    if (bits == blocks->bits) return TIDE_OK;
    tide__pool_blocks larger;
    TIDE_TRY(allocate(&larger, bits));
    for (size_t i = 0; i < places; i++)
        if (blocks->keys[i]) tide__blocks_add(&larger, blocks->keys[i], blocks->values[i]);
    tide__blocks_deinit(blocks);
    *blocks = larger;
    return TIDE_OK;
}

static void close_gap(tide__pool_blocks *blocks, size_t gap) {
    size_t mask = ((size_t)1 << blocks->bits) - 1;
    for (size_t i = (gap + 1) & mask; blocks->keys[i]; i = (i + 1) & mask) {
        size_t home = tide__blocks_home(blocks, blocks->keys[i]);
        if (((i - home) & mask) < ((i - gap) & mask)) continue; /* its home lies behind the gap: it may not pass it */
        blocks->keys[gap] = blocks->keys[i];
        blocks->values[gap] = blocks->values[i];
        gap = i;
    }
    blocks->keys[gap] = NULL;
}

bool tide__blocks_take(tide__pool_blocks *blocks, const void *key, tide__pool_block *out) {
    size_t at = tide__blocks_place(blocks, key);
    if (!blocks->keys[at]) return false;
    *out = blocks->values[at];
    blocks->count--;
    close_gap(blocks, at);
    return true;
}
