/* Tiers: where bytes go when they leave the device. A tier is one reserved region with a hard budget; a plan names
 * offsets in it (slots), so nothing is searched or allocated while a step runs.
 *
 * tide__tier_save and tide__tier_load have the shape of tide_io_fn with a tide__tier_slot as their context. Several
 * threads may use one tier at the same time, on slots that do not overlap. */
#ifndef TIDE_TIER_TIER_H
#define TIDE_TIER_TIER_H

#include <tidemark/machine.h>

#include "base/error.h"

typedef struct tide__tier tide__tier;

/* Reserves capacity_bytes at once, or fails and leaves nothing behind. kind: RAM or DISK. block_bytes (a power of
 * two): slots start at its multiples. path: the folder of a disk tier's file; NULL: $TMPDIR, else /tmp. */
tide_status tide__tier_create(tide_tier_kind kind, uint64_t capacity_bytes, uint32_t block_bytes, const char *path,
                              tide__tier **out);
void tide__tier_destroy(tide__tier *tier); /* NULL is fine */

typedef struct tide__tier_slot {
    tide__tier *tier;
    uint64_t offset; /* of the value's first byte; a multiple of block_bytes */
} tide__tier_slot;

/* Bytes [position, position + size_bytes) of the slot's value. Beyond the capacity: TIDE_E_TIER_FULL. */
tide_status tide__tier_save(void *slot, uint64_t position, void *data, uint64_t size_bytes);
tide_status tide__tier_load(void *slot, uint64_t position, void *data, uint64_t size_bytes);

typedef struct tide__tier_stats {
    uint64_t capacity_bytes;
    uint64_t saved_bytes, loaded_bytes; /* since creation */
    bool direct;                        /* disk: past the page cache (O_DIRECT) */
} tide__tier_stats;
tide__tier_stats tide__tier_get_stats(const tide__tier *tier);

#endif
