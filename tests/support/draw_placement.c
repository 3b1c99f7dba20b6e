/* See draw_placement.h. */
#include "support/draw_placement.h"

#include "base/rng.h"

static uint32_t draw(uint64_t seed, uint64_t index, uint32_t below) {
    return (uint32_t)(tide__random_u64(seed, 1, index) % below);
}

static tide__place_item item(uint64_t size, uint32_t begin, uint32_t end) {
    return (tide__place_item){.size = size, .align = 1, .fixed = TIDE__PLACE_FREE, .begin = begin, .end = end};
}

/* At each time, some of what is alive ends. Returns its bytes. */
static uint32_t end_some(uint64_t seed, uint64_t *at, uint32_t time, tide__place_item *items, size_t n) {
    uint32_t freed = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].end != UINT32_MAX || draw(seed, (*at)++, 2)) continue;
        items[i].end = time;
        freed += (uint32_t)items[i].size;
    }
    return freed;
}

void draw_few(uint64_t seed, size_t count, tide__place_item *items) {
    uint32_t freed = 3 + draw(seed, 0, 8);
    uint64_t at = 1;
    size_t n = 0;
    for (uint32_t time = 0; n < count; time++) {
        while (freed > 0 && n < count) {
            uint32_t size = n + 1 == count ? freed : 1 + draw(seed, at++, freed);
            items[n++] = item(size, time, UINT32_MAX);
            freed -= size;
        }
        if (n < count) freed = end_some(seed, &at, time + 1, items, n);
    }
    for (size_t i = 0; i < count; i++)
        if (items[i].end == UINT32_MAX) items[i].end = items[count - 1].begin + 1 + draw(seed, at++, 2);
}

/* Some items come again later, in the gaps of others. */
static void add_seconds(uint64_t seed, tide__place_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (draw(seed, 200 + i, 2)) continue;
        items[i].begin2 = items[i].end + 1 + draw(seed, 300 + i, 3);
        items[i].end2 = items[i].begin2 + 1 + draw(seed, 400 + i, 3);
    }
}

static bool meet(const tide__place_item *a, const tide__place_item *b) {
    return (a->begin < b->end && b->begin < a->end) || (a->begin < b->end2 && b->begin2 < a->end) ||
           (a->begin2 < b->end && b->begin < a->end2) || (a->begin2 < b->end2 && b->begin2 < a->end2);
}

/* At most two, which are never alive together with each other: fixed offsets must not overlap. */
static void fix_some(uint64_t seed, tide__place_item *items, size_t n) {
    size_t first = draw(seed, 500, (uint32_t)n), second = draw(seed, 501, (uint32_t)n);
    items[first].fixed = items[first].align * draw(seed, 502, 6);
    if (second != first && !meet(&items[first], &items[second]))
        items[second].fixed = items[second].align * draw(seed, 503, 6);
}

void draw_featured(uint64_t seed, int features, size_t n, tide__place_item *items) {
    draw_few(seed, n, items);
    if (features & WITH_SECOND) add_seconds(seed, items, n);
    for (size_t i = 0; i < n && features & WITH_ALIGN; i++) items[i].align = UINT64_C(1) << draw(seed, 600 + i, 3);
    if (features & WITH_FIXED) fix_some(seed, items, n);
}
