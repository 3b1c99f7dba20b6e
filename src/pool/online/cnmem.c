/* A pool like CnMem, Nvidia's memory manager, as frameworks used it (one stream, no initial size): sizes in steps of
 * 512 bytes; the smallest free block that is large enough, the lowest of equals, however much larger it is, cut to
 * size; a device allocation of just the size if there is none. Neighbours are joined inside one device allocation
 * only. Nothing is given back to the device. */
#include "pool/online/online.h"

#define GRANULARITY 512

static tide_status take(tide__online *online, uint64_t size, uint32_t *block) {
    tide__free_set *set = &online->sets[0];
    uint32_t found = tide__heap_find(&online->heap, set, size);
    if (found == TIDE__NO_BLOCK) return tide__heap_segment(&online->heap, size, block);
    tide__heap_take(&online->heap, set, found);
    TIDE_TRY(tide__online_trim(online, set, found, size));
    *block = found;
    return TIDE_OK;
}

static void give(tide__online *online, uint32_t block) { tide__heap_give(&online->heap, &online->sets[0], block); }

const tide__online_kind tide__online_cnmem = {.name = "cnmem", .rounding = GRANULARITY, .take = take, .give = give};
