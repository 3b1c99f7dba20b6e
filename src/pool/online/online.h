/* Online allocators, to compare with: each sees one malloc or free at a time and knows nothing of what comes. Written
 * anew from what is known of their rules, over addresses without memory; what counts is how much they hold.
 *
 *      first-fit   one growing range; the lowest hole that is large enough
 *      best-fit    one growing range; the smallest hole that is large enough
 *      cnmem       Nvidia's pool: the smallest free block; if there is none, a device allocation of just that size
 *      caching     PyTorch's allocator: small and large blocks apart, in segments of 2 MiB, 20 MiB or more
 *
 * A new one is a file and a line in tide__online_kinds. */
#ifndef TIDE_POOL_ONLINE_ONLINE_H
#define TIDE_POOL_ONLINE_ONLINE_H

#include "pool/online/heap.h"

enum { TIDE__ONLINE_SETS = 2 };

typedef struct tide__online tide__online;

/* The rules of one allocator. */
typedef struct tide__online_kind {
    const char *name;
    uint64_t rounding; /* sizes are rounded up to a multiple of it; 0: to the alignment that was asked for */
    bool by_address;   /* the order of its free sets (heap.h) */
    /* size > 0, already rounded; a block in use of at least that size. */
    tide_status (*take)(tide__online *online, uint64_t size, uint32_t *block);
    void (*give)(tide__online *online, uint32_t block);
} tide__online_kind;

extern const tide__online_kind tide__online_first_fit, tide__online_best_fit, tide__online_cnmem, tide__online_caching;

enum { TIDE__N_ONLINE = 4 };
extern const tide__online_kind *const tide__online_kinds[TIDE__N_ONLINE];

struct tide__online {
    const tide__online_kind *kind;
    uint64_t rounding;
    tide__heap heap;
    tide__free_set sets[TIDE__ONLINE_SETS];
    uint32_t last; /* fits: the topmost block; TIDE__NO_BLOCK: none */
};

/* alignment: a power of two. limit_bytes: what the device has; 0: no limit. Cannot fail; deinit frees. */
void tide__online_init(tide__online *online, const tide__online_kind *kind, uint64_t alignment, uint64_t limit_bytes);
void tide__online_deinit(tide__online *online);

/* size > 0. TIDE_E_MEMORY beyond the limit or 2^63 addresses; nothing has changed then. */
tide_status tide__online_malloc(tide__online *online, uint64_t size, uint32_t *block);
/* `block` is from malloc and not freed yet. */
void tide__online_free(tide__online *online, uint32_t block);

/* ---- for the kinds ---- */

/* Cuts a block in use down to `size`; the rest goes to the set. */
tide_status tide__online_trim(tide__online *online, tide__free_set *set, uint32_t block, uint64_t size);

#endif
