/* The placement problem in its working form: what all algorithms of this folder read.
 *
 * Checked and compressed from the caller's items: without bytes or without a lifetime an item is left out; times are
 * renumbered 0 .. n_times so that something begins or ends at each; sizes and offsets are counted in `unit` bytes.
 * The unit is the largest for which placing on its multiples loses nothing: the gcd of all sizes (rounded up to the
 * smallest alignment) and fixed offsets, or its power-of-two part where an alignment does not divide it.
 *
 * Invariants: size >= 1; begin < end; begin2 == end2 == 0 or end < begin2 < end2; align is a power of two (1 if the
 * unit implies it); fixed offsets do not overlap and are aligned. Unless `huge`, any sum of sizes and alignments over
 * distinct items stays below 2^62, so algorithms need no overflow checks. */
#ifndef TIDE_PLAN_PLACE_PROBLEM_H
#define TIDE_PLAN_PLACE_PROBLEM_H

#include "plan/place/place.h"

typedef struct tide__place_problem {
    size_t n;
    tide__place_item *items; /* sizes, alignments and fixed offsets in units, times compressed */
    uint32_t *origin;        /* item i is the caller's item origin[i] */
    uint64_t *lengths;       /* of the lifetimes as the caller gave them, in total: a key for orders */
    uint32_t n_times;        /* slots between consecutive times: [0, n_times) */
    uint64_t unit;           /* bytes */
    uint64_t lower_bound;    /* units: the maximum load, or a proved bound above it */
    bool aligned;            /* some align > 1 is left */
    bool cyclic;             /* some item has two lifetimes */
    bool fixed;              /* some item has a fixed offset */
    bool huge;               /* sums may overflow: checked algorithms only */
    uint64_t lower_bound_bytes;
    uint64_t idle_height_bytes; /* the highest end of the items that were left out */
} tide__place_problem;

#define TIDE__PLACE_NO_SLOT UINT32_MAX

/* for (t = it->begin; t != TIDE__PLACE_NO_SLOT; t = tide__place_next_slot(it, t)): all slots in which the item is alive. */
static inline uint32_t tide__place_next_slot(const tide__place_item *it, uint32_t t) {
    t++;
    if (t < it->end || (it->begin2 < t && t < it->end2)) return t;
    return t == it->end && it->begin2 < it->end2 ? it->begin2 : TIDE__PLACE_NO_SLOT;
}

/* TIDE_E_ARGUMENT for a malformed item or overlapping fixed offsets; TIDE_E_OVERFLOW if even the load overflows. */
tide_status tide__place_problem_init(tide__place_problem *p, const tide__place_item *items, size_t n);
void tide__place_problem_deinit(tide__place_problem *p);

/* Some items of a problem that is not huge, with times compressed anew and the whole's units (unit is 1). origin[k] is
 * the whole's item, members[k]. */
tide_status tide__place_problem_subset(tide__place_problem *p, const tide__place_problem *whole,
                                       const uint32_t *members, size_t n);

/* Max over items of offset + size, in units. */
uint64_t tide__place_height(const tide__place_problem *p, const uint64_t *offsets);

#endif
