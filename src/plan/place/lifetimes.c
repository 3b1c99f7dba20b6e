/* The tree of lifetimes.h, in one array: node k has children 2k and 2k + 1, the root is 1. */
#include "plan/place/lifetimes.h"

#include <stdlib.h>

#define NONE UINT32_MAX

typedef struct leaf_key {
    uint32_t begin, item, which;
} leaf_key;

static int by_begin(const void *a, const void *b) {
    const leaf_key *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    return (x->which > y->which) - (x->which < y->which);
}

static leaf_key *collect_leaves(const tide__place_item *items, size_t n, uint32_t *count) {
    leaf_key *keys = malloc((2 * n + 1) * sizeof *keys);
    if (!keys) return NULL;
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        keys[k++] = (leaf_key){items[i].begin, i, 0};
        if (items[i].begin2 < items[i].end2) keys[k++] = (leaf_key){items[i].begin2, i, 1};
    }
    qsort(keys, k, sizeof *keys, by_begin);
    *count = k;
    return keys;
}

tide_status tide__place_lifetimes_init(tide__place_lifetimes *set, const tide__place_item *items, size_t n) {
    *set = (tide__place_lifetimes){.items = items, .base = 1};
    leaf_key *keys = collect_leaves(items, n, &set->n_leaves);
    if (!keys) return tide__fail_memory();
    while (set->base < set->n_leaves) set->base *= 2;
    set->begin = malloc((set->n_leaves + 1) * sizeof *set->begin);
    set->item = malloc((set->n_leaves + 1) * sizeof *set->item);
    set->leaf = malloc((2 * n + 1) * sizeof *set->leaf);
    set->latest = calloc(2 * (size_t)set->base, sizeof *set->latest);
    if (!set->begin || !set->item || !set->leaf || !set->latest) {
        free(keys);
        tide__place_lifetimes_deinit(set);
        return tide__fail_memory();
    }
    for (size_t i = 0; i < 2 * n; i++) set->leaf[i] = NONE;
    for (uint32_t k = 0; k < set->n_leaves; k++) {
        set->begin[k] = keys[k].begin;
        set->item[k] = keys[k].item;
        set->leaf[2 * keys[k].item + keys[k].which] = k;
    }
    free(keys);
    return TIDE_OK;
}

void tide__place_lifetimes_deinit(tide__place_lifetimes *set) {
    free(set->begin);
    free(set->item);
    free(set->leaf);
    free(set->latest);
    *set = (tide__place_lifetimes){0};
}

static void set_leaf(tide__place_lifetimes *set, uint32_t leaf, uint32_t end) {
    uint32_t node = set->base + leaf;
    set->latest[node] = end;
    for (node /= 2; node; node /= 2) {
        uint32_t left = set->latest[2 * node], right = set->latest[2 * node + 1];
        set->latest[node] = left > right ? left : right;
    }
}

void tide__place_lifetimes_add(tide__place_lifetimes *set, uint32_t item) {
    set_leaf(set, set->leaf[2 * (size_t)item], set->items[item].end);
    uint32_t second = set->leaf[2 * (size_t)item + 1];
    if (second != NONE) set_leaf(set, second, set->items[item].end2);
}

void tide__place_lifetimes_remove(tide__place_lifetimes *set, uint32_t item) {
    set_leaf(set, set->leaf[2 * (size_t)item], 0);
    uint32_t second = set->leaf[2 * (size_t)item + 1];
    if (second != NONE) set_leaf(set, second, 0);
}

/* Leaves [0, n) begin before `time`. */
static uint32_t leaves_before(const tide__place_lifetimes *set, uint32_t time) {
    uint32_t low = 0, high = set->n_leaves;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->begin[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Members of leaves [0, last) below `node` (which covers `width` leaves from `first`) that end after `begin`. */
static size_t collect(const tide__place_lifetimes *set, uint32_t node, uint32_t first, uint32_t width, uint32_t last,
                      uint32_t begin, uint32_t *out, size_t max) {
    if (!max || first >= last || set->latest[node] <= begin) return 0;
    if (width == 1) {
        *out = set->item[first];
        return 1;
    }
    uint32_t half = width / 2;
    size_t found = collect(set, 2 * node, first, half, last, begin, out, max);
    return found + collect(set, 2 * node + 1, first + half, half, last, begin, out + found, max - found);
}

static size_t collect_lifetime(const tide__place_lifetimes *set, uint32_t begin, uint32_t end, uint32_t *out,
                               size_t max) {
    return collect(set, 1, 0, set->base, leaves_before(set, end), begin, out, max);
}

size_t tide__place_lifetimes_conflicts(const tide__place_lifetimes *set, uint32_t item, uint32_t *out, size_t max) {
    const tide__place_item *it = &set->items[item];
    size_t found = collect_lifetime(set, it->begin, it->end, out, max);
    if (it->begin2 < it->end2) found += collect_lifetime(set, it->begin2, it->end2, out + found, max - found);
    return found;
}
