/* Who owns which bytes of one space (the arena, or a tier): a partition of [0, 2^64) into pieces, each with an owner.
 *
 * All boundaries are known before the walk begins, so they are sorted once and a piece is just a mark on the
 * boundary where it starts:
 *
 *   points   0      64     128    192    256              owner of [64, 192): 7, of [192, ...): nobody
 *   marks    x      x      .      x      .
 *   owner    none   7             none
 *
 * The marks are a tree of 64-bit words (a set bit says: something is set below), so the neighbour of a mark is found
 * in O(log64 n) steps whatever the order of the calls: there is no balance that hostile input could upset. Taking a
 * stretch adds at most two marks and removes those inside, which makes a whole walk O(n log n). */
#ifndef TIDE_PLAN_VERIFY_RANGES_H
#define TIDE_PLAN_VERIFY_RANGES_H

#include <stdint.h>

#include "base/vec.h"

#define TIDE__RANGES_LEVELS 6 /* 64^6 points are more than fit in memory */

typedef struct tide__verify_ranges {
    TIDE_VEC(uint64_t) points;            /* sorted and unique after seal() */
    uint32_t *owner;                      /* per point; means something where the point is marked */
    uint64_t *marks[TIDE__RANGES_LEVELS]; /* level 0: one bit per point */
} tide__verify_ranges;

/* Before: every boundary that take() will ever see. After: one piece that nobody owns. */
tide_status tide__ranges_add_point(tide__verify_ranges *r, uint64_t point);
tide_status tide__ranges_seal(tide__verify_ranges *r);
void tide__ranges_free(tide__verify_ranges *r);

/* Cuts the piece around `point` in two; gives the position of the piece that starts there. */
size_t tide__ranges_cut(tide__verify_ranges *r, uint64_t point);
/* The position of the next piece; points.count after the last. */
size_t tide__ranges_next(const tide__verify_ranges *r, size_t position);
/* Makes the pieces from `begin` up to (not including) `end`, both from cut(), one piece with this owner. */
void tide__ranges_join(tide__verify_ranges *r, size_t begin, size_t end, uint32_t owner);

#endif
