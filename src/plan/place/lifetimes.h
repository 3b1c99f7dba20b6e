/* A dynamic set of items that answers "who is alive with this one?": a balanced tree over all lifetimes sorted by
 * begin, with the latest end of the members below each node. An item with two lifetimes has two leaves.
 *
 * O(log n) to add or remove, O(log n) per conflict found. Whole-tree storage is 2 leaves per item, no allocation
 * after init. */
#ifndef TIDE_PLAN_PLACE_LIFETIMES_H
#define TIDE_PLAN_PLACE_LIFETIMES_H

#include "plan/place/problem.h"

typedef struct tide__place_lifetimes {
    const tide__place_item *items;
    uint32_t n_leaves, base; /* base: a power of two >= n_leaves; leaf k is node base + k */
    uint32_t *begin;         /* per leaf, ascending */
    uint32_t *item;          /* per leaf */
    uint32_t *leaf;          /* per item: 2 leaves, UINT32_MAX for none */
    uint32_t *latest;        /* per node: the latest end of the members below, 0 for none */
} tide__place_lifetimes;

tide_status tide__place_lifetimes_init(tide__place_lifetimes *set, const tide__place_item *items, size_t n);
void tide__place_lifetimes_deinit(tide__place_lifetimes *set);
void tide__place_lifetimes_add(tide__place_lifetimes *set, uint32_t item);
void tide__place_lifetimes_remove(tide__place_lifetimes *set, uint32_t item);

/* Members that are alive together with `item`, up to `max` of them; a member whose two lifetimes both conflict may
 * come twice. Returns how many were written. */
size_t tide__place_lifetimes_conflicts(const tide__place_lifetimes *set, uint32_t item, uint32_t *out, size_t max);

#endif
