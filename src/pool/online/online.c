/* See online.h: the table, and what the kinds have in common. */
#include "pool/online/online.h"

#include "base/size.h"

const tide__online_kind *const tide__online_kinds[TIDE__N_ONLINE] = {&tide__online_first_fit, &tide__online_best_fit,
                                                                     &tide__online_cnmem, &tide__online_caching};

void tide__online_init(tide__online *online, const tide__online_kind *kind, uint64_t alignment, uint64_t limit_bytes) {
    *online =
        (tide__online){.kind = kind, .rounding = kind->rounding ? kind->rounding : alignment, .last = TIDE__NO_BLOCK};
    tide__heap_init(&online->heap, limit_bytes);
    for (int i = 0; i < TIDE__ONLINE_SETS; i++)
        online->sets[i] = (tide__free_set){.root = TIDE__NO_BLOCK, .by_address = kind->by_address};
}

void tide__online_deinit(tide__online *online) { tide__heap_deinit(&online->heap); }

tide_status tide__online_malloc(tide__online *online, uint64_t size, uint32_t *block) {
    uint64_t rounded;
    if (!tide__align_up(size, online->rounding, &rounded))
        return tide__fail(TIDE_E_MEMORY, "a block of %llu bytes", (unsigned long long)size);
    return online->kind->take(online, rounded, block);
}

void tide__online_free(tide__online *online, uint32_t block) { online->kind->give(online, block); }

tide_status tide__online_trim(tide__online *online, tide__free_set *set, uint32_t block, uint64_t size) {
    uint32_t rest;
    if (tide__heap_at(&online->heap, block)->size == size) return TIDE_OK;
    tide_status status = tide__heap_split(&online->heap, block, size, &rest);
    tide__heap_give(&online->heap, set, status == TIDE_OK ? rest : block);
    return status;
}
