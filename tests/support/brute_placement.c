/* See brute_placement.h. */
#include "support/brute_placement.h"

typedef struct brute {
    const tide__place_item *items;
    size_t n;
    uint64_t offsets[MOST_BRUTE_ITEMS], best;
} brute;

static bool meet(uint32_t begin, uint32_t end, uint32_t other_begin, uint32_t other_end) {
    return begin < other_end && other_begin < end && begin < end && other_begin < other_end;
}

static bool alive_together(const tide__place_item *x, const tide__place_item *y) {
    return meet(x->begin, x->end, y->begin, y->end) || meet(x->begin, x->end, y->begin2, y->end2) ||
           meet(x->begin2, x->end2, y->begin, y->end) || meet(x->begin2, x->end2, y->begin2, y->end2);
}

static bool overlaps(const brute *b, size_t i, uint64_t at, size_t k) {
    const tide__place_item *x = &b->items[i], *y = &b->items[k];
    return alive_together(x, y) && at < b->offsets[k] + y->size && b->offsets[k] < at + x->size;
}

/* The lowest offset that is free, next to what is placed. */
static uint64_t lowest(const brute *b, uint32_t placed, size_t i) {
    uint64_t at = 0;
    for (size_t k = 0; k < b->n; k++) {
        if (!(placed >> k & 1) || !overlaps(b, i, at, k)) continue;
        at = b->offsets[k] + b->items[k].size;
        while (at % b->items[i].align) at++;
        k = SIZE_MAX; /* from the start again */
    }
    return at;
}

/* Every placement in which nothing can move to a lower place comes from placing at the lowest free offset in some
 * order, with what is fixed there from the start. */
static void try_orders(brute *b, uint32_t placed, uint64_t height) {
    if (height >= b->best) return;
    if (placed == (UINT32_C(1) << b->n) - 1) b->best = height;
    for (size_t i = 0; i < b->n; i++) {
        if (placed >> i & 1) continue;
        b->offsets[i] = lowest(b, placed, i);
        uint64_t top = b->offsets[i] + b->items[i].size;
        try_orders(b, placed | UINT32_C(1) << i, top > height ? top : height);
    }
}

uint64_t least_height(const tide__place_item *items, size_t n) {
    brute b = {.items = items, .n = n, .best = UINT64_MAX};
    uint32_t placed = 0;
    uint64_t height = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].fixed == TIDE__PLACE_FREE) continue;
        b.offsets[i] = items[i].fixed;
        placed |= UINT32_C(1) << i;
        if (b.offsets[i] + items[i].size > height) height = b.offsets[i] + items[i].size;
    }
    try_orders(&b, placed, height);
    return b.best;
}
