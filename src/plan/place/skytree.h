/* A k-d tree over lifetimes as points (begin, end) and, where asked for, sizes: finds the best-ranked item that lies within
 * [begin, end) of a segment and below its ceiling, and takes items out. The points are fixed, the ranks are new for each run.
 *
 *    end ▲      ·    ·        asked: all points right of `begin` and below `end`, a corner of the plane; boxes that
 *        │  ·  ┌────────────  lie inside it answer with the best rank they hold, boxes outside are skipped, and
 *     end├─ ─ ─┤  ·  ·        only those across its edges are opened
 *        │     │·   ·
 *        └─────┴──────────▶ begin
 */
#ifndef TIDE_PLAN_PLACE_SKYTREE_H
#define TIDE_PLAN_PLACE_SKYTREE_H

#include <stddef.h>
#include <stdint.h>

#include "plan/place/place.h"

#define TIDE__PLACE_RANK_NONE UINT32_MAX

typedef struct tide__place_skypoint {
    uint32_t begin, end;
} tide__place_skypoint;

/* Of the items below that are still in the tree. */
typedef struct tide__place_skynode {
    uint32_t first_begin, last_begin, first_end, last_end; /* the box around their points */
    uint32_t least_size, most_size;                        /* as codes: see skytree.c */
    uint32_t best_rank;
} tide__place_skynode;

typedef struct tide__place_skytree {
    size_t n;
    const tide__place_skypoint *points;
    const tide__place_item *items; /* NULL: points without sizes, which fit everywhere */
    bool aligned;
    uint32_t base;              /* a power of two >= n; leaf k is nodes[base + k] */
    tide__place_skynode *nodes; /* node k has children 2k and 2k + 1; the root is 1 */
    uint32_t *item;             /* per leaf */
    uint32_t *leaf;             /* per item */
} tide__place_skytree;

/* What is asked for: begins at `begin` or later, ends by `end`, and has room on `floor` below `ceiling`. */
typedef struct tide__place_skyquery {
    uint32_t begin, end;
    uint64_t floor, ceiling; /* ceiling UINT64_MAX: none */
} tide__place_skyquery;

/* The points, and the items where there are sizes, must outlive the tree. Nothing is in before it is filled. */
tide_status tide__place_skytree_init(tide__place_skytree *tree, const tide__place_skypoint *points,
                                     const tide__place_item *items, size_t n);
void tide__place_skytree_deinit(tide__place_skytree *tree);
/* rank per item; those of TIDE__PLACE_RANK_NONE are not in. */
void tide__place_skytree_fill(tide__place_skytree *tree, const uint32_t *rank);
void tide__place_skytree_take(tide__place_skytree *tree, uint32_t item);
/* The best rank of an item that the query takes, if better than `best`; else `best`. */
uint32_t tide__place_skytree_best(const tide__place_skytree *tree, const tide__place_skyquery *query, uint32_t best);

#endif
