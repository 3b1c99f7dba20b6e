/* Free ranges of a region of bytes: best fit, neighbours merge. For the arena and the tiers of an online run, where
 * no plan has found offsets beforehand. Sizes are multiples of the region's block, so offsets are, too. */
#ifndef TIDE_RUN_RANGES_H
#define TIDE_RUN_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

typedef struct tide__range {
    uint64_t offset, size;
} tide__range;

typedef struct tide__ranges {
    TIDE_VEC(tide__range) free; /* ascending, none touches the next */
    uint64_t free_bytes;
} tide__ranges;

/* Everything free. Also starts over. */
tide_status tide__ranges_init(tide__ranges *r, uint64_t size_bytes);
/* Everything free but these, which may overlap; sorts them. */
tide_status tide__ranges_init_except(tide__ranges *r, uint64_t size_bytes, tide__range *taken, size_t n);
void tide__ranges_deinit(tide__ranges *r);
/* False: no range is large enough. Nothing of size 0 takes any room. */
bool tide__ranges_take(tide__ranges *r, uint64_t size_bytes, uint64_t *offset);
/* The highest bytes that are free in one piece, for what is small and may stay. */
bool tide__ranges_take_high(tide__ranges *r, uint64_t size_bytes, uint64_t *offset);
tide_status tide__ranges_give(tide__ranges *r, uint64_t offset, uint64_t size_bytes);

#endif
