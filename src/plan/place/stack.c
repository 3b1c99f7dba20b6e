/* Stacking (stack.h): a tree over the slots that knows the highest end in a range; an item raises its range. */
#include "plan/place/stack.h"

#include <stdlib.h>

#include "base/size.h"

typedef struct heights {
    uint32_t base;
    uint64_t *raise; /* per node: all slots below are at least this high */
    uint64_t *top;   /* per node: the highest slot below */
} heights;

static void raise_range(heights *h, uint32_t node, uint32_t first, uint32_t width, uint32_t begin, uint32_t end,
                        uint64_t to) {
    if (end <= first || first + width <= begin) return;
    h->top[node] = tide__max_u64(h->top[node], to);
    if (begin <= first && first + width <= end) {
        h->raise[node] = tide__max_u64(h->raise[node], to);
        return;
    }
    raise_range(h, 2 * node, first, width / 2, begin, end, to);
    raise_range(h, 2 * node + 1, first + width / 2, width / 2, begin, end, to);
}

static uint64_t highest(const heights *h, uint32_t node, uint32_t first, uint32_t width, uint32_t begin, uint32_t end) {
    if (end <= first || first + width <= begin) return 0;
    if (begin <= first && first + width <= end) return h->top[node];
    uint64_t left = highest(h, 2 * node, first, width / 2, begin, end);
    uint64_t right = highest(h, 2 * node + 1, first + width / 2, width / 2, begin, end);
    return tide__max_u64(h->raise[node], tide__max_u64(left, right));
}

static void raise_item(heights *h, const tide__place_item *it, uint64_t to) {
    raise_range(h, 1, 0, h->base, it->begin, it->end, to);
    if (it->begin2 < it->end2) raise_range(h, 1, 0, h->base, it->begin2, it->end2, to);
}

static tide_status stack_item(heights *h, const tide__place_item *it, uint64_t *offset) {
    uint64_t floor = highest(h, 1, 0, h->base, it->begin, it->end), end;
    if (it->begin2 < it->end2) floor = tide__max_u64(floor, highest(h, 1, 0, h->base, it->begin2, it->end2));
    if (!tide__align_up(floor, it->align, offset) || !tide__add(*offset, it->size, &end) || end == UINT64_MAX)
        return tide__fail(TIDE_E_OVERFLOW, "the items do not fit below 2^64");
    raise_item(h, it, end);
    return TIDE_OK;
}

static tide_status stack_all(const tide__place_problem *p, heights *h, const uint32_t *order, uint64_t *offsets) {
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].fixed == TIDE__PLACE_FREE) continue;
        offsets[i] = p->items[i].fixed;
        raise_item(h, &p->items[i], offsets[i] + p->items[i].size);
    }
    for (size_t k = 0; k < p->n; k++)
        if (p->items[order[k]].fixed == TIDE__PLACE_FREE)
            TIDE_TRY(stack_item(h, &p->items[order[k]], &offsets[order[k]]));
    return TIDE_OK;
}

/* Counting sort; slots are fewer than items. */
static void order_by_begin(const tide__place_problem *p, uint32_t *count, uint32_t *order) {
    for (size_t i = 0; i < p->n; i++) count[p->items[i].begin + 1]++;
    for (size_t t = 0; t < p->n_times; t++) count[t + 1] += count[t];
    for (uint32_t i = 0; i < p->n; i++) order[count[p->items[i].begin]++] = i;
}

tide_status tide__place_stack(const tide__place_problem *p, uint64_t *offsets) {
    heights h = {.base = 1};
    while (h.base < p->n_times) h.base *= 2;
    h.raise = calloc(4 * (size_t)h.base, sizeof *h.raise);
    uint32_t *order = calloc(p->n + p->n_times + 2, sizeof *order);
    tide_status status = TIDE_OK;
    if (!h.raise || !order) status = tide__fail_memory();
    if (status == TIDE_OK) {
        h.top = h.raise + 2 * (size_t)h.base;
        order_by_begin(p, order + p->n, order);
        status = stack_all(p, &h, order, offsets);
    }
    free(h.raise);
    free(order);
    return status;
}
