/* Tiers: where bytes go when they leave the device. A tier is one reserved region with a hard budget; a plan names
 * offsets in it (slots), so nothing is searched or allocated while a step runs.
 *
 * tide__tier_save and tide__tier_load have the shape of tide_io_fn with a tide__tier_slot as their context. Several
 * threads may use one tier at the same time, on slots that do not overlap. */
#ifndef TIDE_TIER_TIER_H
#define TIDE_TIER_TIER_H

#include <tidemark/machine.h>
#include <tidemark/net.h>

#include "base/error.h"

typedef struct tide__tier tide__tier;

typedef struct tide__tier_options {
    tide_tier_kind kind; /* RAM, DISK or LENT */
    uint64_t capacity_bytes;
    uint32_t block_bytes; /* a power of two: slots start at its multiples */
    const char *path;     /* disk: the folder of the file; NULL: $TMPDIR, else /tmp */
    bool checksums;       /* disk: what is read must be what was written, at about 0.2 s of a core per GB and 0.1 % of
                             the capacity in RAM */
    bool packs; /* disk: zeros are left out where that pays (zeros.h), if slots are whole disk blocks; takes 0.05 %
                             of the capacity in RAM and, once something is packed, 1.2 MiB a direction */
    const tide_loan *loan;                          /* lent: whose memory it is */
    const struct tide__disk_engine *const *engines; /* disk: what to try, NULL after the last; NULL: the system's */
} tide__tier_options;

/* Reserves capacity_bytes at once, or fails and leaves nothing behind. */
tide_status tide__tier_open(const tide__tier_options *options, tide__tier **out);
tide_status tide__tier_create(tide_tier_kind kind, uint64_t capacity_bytes, uint32_t block_bytes, const char *path,
                              tide__tier **out); /* the same with no further options */
void tide__tier_destroy(tide__tier *tier);       /* NULL is fine */
/* While nothing moves: from now on it has this many bytes, or more if it had more. What it holds stays; on failure all is
 * as before. */
tide_status tide__tier_grow(tide__tier *tier, uint64_t capacity_bytes);
/* The same for fewer bytes, at least one: what lies beyond is given back. It keeps its size if the system refuses. */
void tide__tier_shrink(tide__tier *tier, uint64_t capacity_bytes);

typedef struct tide__tier_slot {
    tide__tier *tier;
    uint64_t offset; /* of the value's first byte; a multiple of block_bytes */
} tide__tier_slot;

/* Bytes [position, position + size_bytes) of the slot's value. Beyond the capacity: TIDE_E_TIER_FULL. */
tide_status tide__tier_save(void *slot, uint64_t position, void *data, uint64_t size_bytes);
tide_status tide__tier_load(void *slot, uint64_t position, void *data, uint64_t size_bytes);

typedef struct tide__tier_stats {
    uint64_t capacity_bytes;
    uint64_t saved_bytes, loaded_bytes; /* since creation, of values */
    uint64_t written_bytes, read_bytes; /* disk: what moved for them; 0 elsewhere */
    uint64_t staging_bytes;             /* disk: memory that packing took */
    bool direct;                        /* disk: past the page cache (O_DIRECT) */
    const char *engine;                 /* disk: "io_uring" or "threads"; NULL elsewhere */
} tide__tier_stats;
tide__tier_stats tide__tier_get_stats(const tide__tier *tier);

#endif
