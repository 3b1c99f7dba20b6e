/* The k-d tree of skytree.h, perfectly balanced in one array: every level halves its points, by begin and by end in
 * turn. */
#include "plan/place/skytree.h"

#include <stdlib.h>
#include <string.h>

#include "plan/place/radix.h"

/* ---- sizes ---- */

/* Sizes as 32 bits that keep their order, coarsely: the upper half of the double. */
static uint32_t code_of(uint64_t size) {
    double value = (double)size;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint32_t)(bits >> 32);
}

static uint32_t size_code(const tide__place_skytree *t, uint32_t item) {
    return t->items ? code_of(t->items[item].size) : 0;
}

/* ---- setup ---- */

typedef enum axis { BEGIN, END, SIZE } axis;

static axis after(const tide__place_skytree *t, axis a) {
    if (a == BEGIN) return END;
    return a == END && t->items ? SIZE : BEGIN;
}

/* Orders items[0 .. n) by one coordinate; ties by number. keys: 2n words of scratch. */
static void sort_by(const tide__place_skytree *t, uint32_t *items, size_t n, axis a, uint64_t *keys) {
    for (size_t k = 0; k < n; k++) {
        const tide__place_skypoint *p = &t->points[items[k]];
        uint32_t at = a == BEGIN ? p->begin : a == END ? p->end : size_code(t, items[k]);
        keys[k] = (uint64_t)at << 32 | items[k];
    }
    tide__place_radix_sort(keys, keys + n, n);
    for (size_t k = 0; k < n; k++) items[k] = (uint32_t)keys[k];
}

/* Leaves [first, first + width) get items[0 .. n): the left half is filled before the right one gets any. */
static void spread(tide__place_skytree *t, uint32_t *items, size_t n, uint32_t first, uint32_t width, axis a,
                   uint64_t *keys) {
    if (n == 0) return;
    if (width == 1) {
        t->item[first] = items[0];
        t->leaf[items[0]] = first;
        return;
    }
    size_t left = n - n / 2;
    if (n > 1) sort_by(t, items, n, a, keys);
    spread(t, items, left, first, width / 2, after(t, a), keys);
    spread(t, items + left, n - left, first + width / 2, width / 2, after(t, a), keys);
}

tide_status tide__place_skytree_init(tide__place_skytree *t, const tide__place_skypoint *points,
                                     const tide__place_item *sized, size_t n) {
    *t = (tide__place_skytree){.n = n, .points = points, .items = sized, .base = 1};
    while (t->base < n) t->base *= 2;
    t->nodes = malloc(2 * (size_t)t->base * sizeof *t->nodes);
    t->item = malloc((size_t)t->base * sizeof *t->item);
    t->leaf = malloc((n + 1) * sizeof *t->leaf);
    uint32_t *items = malloc((n + 1) * sizeof *items);
    uint64_t *keys = malloc((2 * n + 1) * sizeof *keys);
    tide_status status = TIDE_OK;
    if (!t->nodes || !t->item || !t->leaf || !items || !keys) status = tide__fail_memory();
    if (status == TIDE_OK) {
        for (uint32_t i = 0; i < n; i++) items[i] = i, t->aligned |= sized && sized[i].align > 1;
        memset(t->item, 0xff, (size_t)t->base * sizeof *t->item);
        spread(t, items, n, 0, t->base, BEGIN, keys);
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

/* ---- who is in ---- */

static const tide__place_skynode nothing = {UINT32_MAX, 0, UINT32_MAX, 0, UINT32_MAX, 0, TIDE__PLACE_RANK_NONE};

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void join_children(tide__place_skytree *t, uint32_t k) {
    const tide__place_skynode *a = &t->nodes[2 * k], *b = &t->nodes[2 * k + 1];
    t->nodes[k] = (tide__place_skynode){least(a->first_begin, b->first_begin), most(a->last_begin, b->last_begin),
                                        least(a->first_end, b->first_end),     most(a->last_end, b->last_end),
                                        least(a->least_size, b->least_size),   most(a->most_size, b->most_size),
                                        least(a->best_rank, b->best_rank)};
}

static tide__place_skynode leaf_of(const tide__place_skytree *t, uint32_t item, uint32_t rank) {
    const tide__place_skypoint *p = &t->points[item];
    uint32_t size = size_code(t, item);
    return (tide__place_skynode){p->begin, p->begin, p->end, p->end, size, size, rank};
}

void tide__place_skytree_fill(tide__place_skytree *t, const uint32_t *rank) {
    for (uint32_t k = 0; k < t->base; k++) {
        uint32_t item = t->item[k];
        bool is_in = item != TIDE__PLACE_RANK_NONE && rank[item] != TIDE__PLACE_RANK_NONE;
        t->nodes[t->base + k] = is_in ? leaf_of(t, item, rank[item]) : nothing;
    }
    for (uint32_t k = t->base - 1; k > 0; k--) join_children(t, k);
}

void tide__place_skytree_take(tide__place_skytree *t, uint32_t item) {
    uint32_t k = t->base + t->leaf[item];
    t->nodes[k] = nothing;
    for (k /= 2; k > 0; k /= 2) join_children(t, k);
}

/* ---- who is best ---- */

/* A query and the code of what is at most as large as its room. */
typedef struct asked {
    const tide__place_skyquery *query;
    uint32_t room;
} asked;

static bool has_room(const tide__place_skytree *t, uint32_t item, const tide__place_skyquery *q) {
    if (!t->items || q->ceiling == UINT64_MAX) return true;
    uint64_t align = t->items[item].align, at = (q->floor + align - 1) & ~(align - 1);
    return at + t->items[item].size <= q->ceiling;
}

/* Everything below the node has room, whatever its alignment. */
static bool all_have_room(const tide__place_skytree *t, const tide__place_skynode *node, const asked *a) {
    return a->query->ceiling == UINT64_MAX || (node->most_size < a->room && !t->aligned);
}

static bool may_hold(const tide__place_skynode *node, const asked *a, uint32_t best) {
    const tide__place_skyquery *q = a->query;
    return (node->best_rank < best) & (node->last_begin >= q->begin) & (node->first_end <= q->end) &
           (node->least_size <= a->room);
}

/* A node that may hold one. */
static uint32_t best_below(const tide__place_skytree *t, uint32_t k, const asked *a, uint32_t best) {
    const tide__place_skynode *node = &t->nodes[k];
    const tide__place_skyquery *q = a->query;
    if (k >= t->base) return has_room(t, t->item[k - t->base], q) ? node->best_rank : best;
    if (node->first_begin >= q->begin && node->last_end <= q->end && all_have_room(t, node, a)) return node->best_rank;
    uint32_t near = 2 * k, far = 2 * k + 1;
    if (t->nodes[far].best_rank < t->nodes[near].best_rank) near = far, far = 2 * k;
    if (may_hold(&t->nodes[near], a, best)) best = best_below(t, near, a, best);
    if (may_hold(&t->nodes[far], a, best)) best = best_below(t, far, a, best);
    return best;
}

uint32_t tide__place_skytree_best(const tide__place_skytree *t, const tide__place_skyquery *query, uint32_t best) {
    asked a = {query, t->items && query->ceiling < UINT64_MAX ? code_of(query->ceiling - query->floor) : UINT32_MAX};
    return t->n > 0 && may_hold(&t->nodes[1], &a, best) ? best_below(t, 1, &a, best) : best;
}
