/* A caching allocator like PyTorch's for CUDA devices, with its default settings.
 *
 *      rounded size        served from    a new segment has
 *      up to 1 MiB         small blocks   2 MiB
 *      below 10 MiB        large blocks   20 MiB
 *      10 MiB and more     large blocks   the size in steps of 2 MiB
 *
 * Sizes are in steps of 512 bytes. The smallest cached block that is large enough is taken, the lowest of equals. It
 * is cut if 512 bytes or more are left (small blocks), or more than 1 MiB (large ones). Free neighbours are joined.
 * Segments stay, unless the device has no more memory: then those that are free as a whole go, and it tries again. */
#include "base/size.h"
#include "pool/online/online.h"

#define MIB (UINT64_C(1) << 20)

enum { SMALL, LARGE };
#define STEP 512
static const uint64_t most_small = MIB, small_segment = 2 * MIB;
static const uint64_t least_own = 10 * MIB, large_segment = 20 * MIB, own_step = 2 * MIB;

/* A block in use is small if its size is: small ones are cut to size, and large ones are never cut below. */
static tide__free_set *set_of(tide__online *online, uint64_t size) {
    return &online->sets[size <= most_small ? SMALL : LARGE];
}

/* ---- segments ---- */

/* The segments that are free as a whole. */
static void release_cached(tide__online *online) {
    tide__heap *heap = &online->heap;
    for (uint32_t i = 0; i < heap->blocks.count; i++) {
        const tide__heap_block *b = tide__heap_at(heap, i);
        if (!b->free || b->before != TIDE__NO_BLOCK || b->after != TIDE__NO_BLOCK) continue;
        tide__heap_take(heap, &online->sets[b->size == small_segment ? SMALL : LARGE], i);
        tide__heap_release(heap, i);
    }
}

static tide_status new_segment(tide__online *online, uint64_t size, uint32_t *block) {
    uint64_t bytes = size <= most_small ? small_segment : large_segment;
    if (size >= least_own && !tide__align_up(size, own_step, &bytes)) bytes = UINT64_MAX;
    if (tide__heap_segment(&online->heap, bytes, block) == TIDE_OK) return TIDE_OK;
    release_cached(online);
    return tide__heap_segment(&online->heap, bytes, block);
}

/* ---- malloc and free ---- */

static bool is_worth_cutting(uint64_t size, uint64_t rest) {
    return size <= most_small ? rest >= STEP : rest > most_small;
}

static tide_status take(tide__online *online, uint64_t size, uint32_t *block) {
    tide__heap *heap = &online->heap;
    tide__free_set *set = set_of(online, size);
    uint32_t found = tide__heap_find(heap, set, size);
    if (found != TIDE__NO_BLOCK)
        tide__heap_take(heap, set, found);
    else
        TIDE_TRY(new_segment(online, size, &found));
    if (is_worth_cutting(size, tide__heap_at(heap, found)->size - size))
        TIDE_TRY(tide__online_trim(online, set, found, size));
    *block = found;
    return TIDE_OK;
}

static void give(tide__online *online, uint32_t block) {
    tide__heap_give(&online->heap, set_of(online, tide__heap_at(&online->heap, block)->size), block);
}

const tide__online_kind tide__online_caching = {.name = "caching", .rounding = STEP, .take = take, .give = give};
