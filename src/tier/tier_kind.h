/* What a kind of tier implements; tier.c has checked the range and the budget before it calls. */
#ifndef TIDE_TIER_KIND_H
#define TIDE_TIER_KIND_H

#include <stdatomic.h>

#include "tier/tier.h"

typedef struct tide__tier_vtable {
    tide_status (*save)(tide__tier *tier, uint64_t offset, const char *data, uint64_t size_bytes);
    tide_status (*load)(tide__tier *tier, uint64_t offset, char *data, uint64_t size_bytes);
    /* Larger, or smaller but not empty, with what it holds as far as that has room; as before on failure. Nothing else
     * happens to the tier meanwhile. */
    tide_status (*resize)(tide__tier *tier, uint64_t capacity_bytes);
    void (*destroy)(tide__tier *tier);
} tide__tier_vtable;

/* First member of every kind's own struct. */
struct tide__tier {
    const tide__tier_vtable *v;
    uint64_t capacity_bytes;
    uint32_t block_bytes;
    bool direct;
    const char *engine; /* disk: what moves the bytes; NULL elsewhere */
    _Atomic uint64_t saved_bytes, loaded_bytes;
    _Atomic uint64_t written_bytes, read_bytes, staging_bytes; /* disk */
};

/* All leave capacity, block and counters to tier.c. */
tide_status tide__tier_ram_create(uint64_t capacity_bytes, tide__tier **out);
tide_status tide__tier_disk_create(const tide__tier_options *options, tide__tier **out);
tide_status tide__tier_peer_create(const tide_loan *loan, uint64_t capacity_bytes, tide__tier **out);

/* Of a RAM tier: where it has its bytes, until it is resized. */
char *tide__tier_ram_bytes(tide__tier *tier);

#endif
