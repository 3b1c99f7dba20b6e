/* First fit and best fit: one range that grows at its top. The free bytes above the last block in use belong to the
 * top, not to the holes: a block goes there only if no hole is large enough. */
#include "pool/online/online.h"

static tide_status take(tide__online *online, uint64_t size, uint32_t *block) {
    tide__free_set *holes = &online->sets[0];
    uint32_t found = tide__heap_find(&online->heap, holes, size);
    if (found == TIDE__NO_BLOCK) {
        TIDE_TRY(tide__heap_extend(&online->heap, online->last, size, &found));
        online->last = found;
    } else {
        tide__heap_take(&online->heap, holes, found);
        TIDE_TRY(tide__online_trim(online, holes, found, size));
    }
    *block = found;
    return TIDE_OK;
}

static void give(tide__online *online, uint32_t block) {
    tide__heap *heap = &online->heap;
    block = tide__heap_give(heap, &online->sets[0], block);
    if (tide__heap_at(heap, block)->after != TIDE__NO_BLOCK) return;
    tide__heap_take(heap, &online->sets[0], block);
    online->last = tide__heap_at(heap, block)->before;
    tide__heap_shrink(heap, block);
}

const tide__online_kind tide__online_first_fit = {.name = "first-fit", .by_address = true, .take = take, .give = give};
const tide__online_kind tide__online_best_fit = {.name = "best-fit", .take = take, .give = give};
