/* The k-d tree of skytree.h, perfectly balanced in one array: every level halves its points, by begin and by end in
 * turn. */
#include "plan/place/skytree.h"

#include <stdlib.h>
#include <string.h>

#include "plan/place/radix.h"

/* Orders items[0 .. n) by one coordinate; ties by number. keys: 2n words of scratch. */
static void sort_by(const tide__place_skypoint *points, uint32_t *items, size_t n, int by_end, uint64_t *keys) {
    for (size_t k = 0; k < n; k++) {
        const tide__place_skypoint *p = &points[items[k]];
        keys[k] = (uint64_t)(by_end ? p->end : p->begin) << 32 | items[k];
    }
    tide__place_radix_sort(keys, keys + n, n);
    for (size_t k = 0; k < n; k++) items[k] = (uint32_t)keys[k];
}

/* Leaves [first, first + width) get items[0 .. n): the left half is filled before the right one gets any. */
static void spread(tide__place_skytree *t, const tide__place_skypoint *points, uint32_t *items, size_t n,
                   uint32_t first, uint32_t width, int by_end, uint64_t *keys) {
    if (n == 0) return;
    if (width == 1) {
        t->item[first] = items[0];
        t->leaf[items[0]] = first;
        return;
    }
    size_t left = n - n / 2;
    if (n > 1) sort_by(points, items, n, by_end, keys);
    spread(t, points, items, left, first, width / 2, !by_end, keys);
    spread(t, points, items + left, n - left, first + width / 2, width / 2, !by_end, keys);
}

static tide__place_skynode join(const tide__place_skynode *a, const tide__place_skynode *b) {
    return (tide__place_skynode){a->first_begin < b->first_begin ? a->first_begin : b->first_begin,
                                 a->last_begin > b->last_begin ? a->last_begin : b->last_begin,
                                 a->first_end < b->first_end ? a->first_end : b->first_end,
                                 a->last_end > b->last_end ? a->last_end : b->last_end, TIDE__PLACE_RANK_NONE};
}

static void fill_boxes(tide__place_skytree *t, const tide__place_skypoint *points) {
    for (uint32_t k = 0; k < t->base; k++) {
        tide__place_skynode *node = &t->nodes[t->base + k];
        *node = (tide__place_skynode){UINT32_MAX, 0, UINT32_MAX, 0, TIDE__PLACE_RANK_NONE};
        if (t->item[k] == TIDE__PLACE_RANK_NONE) continue;
        const tide__place_skypoint *p = &points[t->item[k]];
        *node = (tide__place_skynode){p->begin, p->begin, p->end, p->end, TIDE__PLACE_RANK_NONE};
    }
    for (uint32_t k = t->base - 1; k > 0; k--) t->nodes[k] = join(&t->nodes[2 * k], &t->nodes[2 * k + 1]);
}

tide_status tide__place_skytree_init(tide__place_skytree *t, const tide__place_skypoint *points, size_t n) {
    *t = (tide__place_skytree){.n = n, .base = 1};
    while (t->base < n) t->base *= 2;
    t->nodes = malloc(2 * (size_t)t->base * sizeof *t->nodes);
    t->item = malloc((size_t)t->base * sizeof *t->item);
    t->leaf = malloc((n + 1) * sizeof *t->leaf);
    uint32_t *items = malloc((n + 1) * sizeof *items);
    uint64_t *keys = malloc((2 * n + 1) * sizeof *keys);
    tide_status status = TIDE_OK;
    if (!t->nodes || !t->item || !t->leaf || !items || !keys) status = tide__fail_memory();
    if (status == TIDE_OK) {
        for (uint32_t i = 0; i < n; i++) items[i] = i;
        memset(t->item, 0xff, (size_t)t->base * sizeof *t->item);
        spread(t, points, items, n, 0, t->base, 0, keys);
        fill_boxes(t, points);
    }
    free(items);
    free(keys);
    if (status != TIDE_OK) tide__place_skytree_deinit(t);
    return status;
}

void tide__place_skytree_deinit(tide__place_skytree *t) {
    free(t->nodes);
    free(t->item);
    free(t->leaf);
    *t = (tide__place_skytree){0};
}

static uint32_t better(uint32_t a, uint32_t b) { return a < b ? a : b; }

void tide__place_skytree_fill(tide__place_skytree *t, const uint32_t *rank) {
    for (uint32_t k = 0; k < t->base; k++)
        t->nodes[t->base + k].best_rank =
            t->item[k] == TIDE__PLACE_RANK_NONE ? TIDE__PLACE_RANK_NONE : rank[t->item[k]];
    for (uint32_t k = t->base - 1; k > 0; k--)
        t->nodes[k].best_rank = better(t->nodes[2 * k].best_rank, t->nodes[2 * k + 1].best_rank);
}

/* Stops where the item was not the best of its node. */
void tide__place_skytree_take(tide__place_skytree *t, uint32_t item) {
    uint32_t k = t->base + t->leaf[item], rank = t->nodes[k].best_rank;
    t->nodes[k].best_rank = TIDE__PLACE_RANK_NONE;
    for (k /= 2; k > 0 && t->nodes[k].best_rank == rank; k /= 2)
        t->nodes[k].best_rank = better(t->nodes[2 * k].best_rank, t->nodes[2 * k + 1].best_rank);
}

static uint32_t best_below(const tide__place_skytree *t, uint32_t k, uint32_t begin, uint32_t end, uint32_t best) {
    const tide__place_skynode *node = &t->nodes[k];
    if (node->best_rank >= best || node->last_begin < begin || node->first_end > end) return best;
    if (node->first_begin >= begin && node->last_end <= end) return node->best_rank;
    uint32_t near = 2 * k, far = 2 * k + 1;
    if (t->nodes[far].best_rank < t->nodes[near].best_rank) near = far, far = 2 * k;
    best = best_below(t, near, begin, end, best);
    return best_below(t, far, begin, end, best);
}

uint32_t tide__place_skytree_best(const tide__place_skytree *t, uint32_t begin, uint32_t end, uint32_t best) {
    return t->n ? best_below(t, 1, begin, end, best) : best;
}
