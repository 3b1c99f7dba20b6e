/* An independent checker of placements: shares no code with src/plan/place, and is written to be obviously right
 * rather than fast (a sweep over times with an address-sorted list of what is alive). */
#ifndef TIDE_TESTS_CHECK_PLACEMENT_H
#define TIDE_TESTS_CHECK_PLACEMENT_H

#include "plan/place/place.h"

/* NULL if the placement is right, else a text (static buffer) that says what is wrong: overlap, alignment, fixed
 * offset, overflow, the offset of an item without bytes, or a height that is not the real one. */
const char *check_placement(const tide__place_item *items, size_t n, const uint64_t *offsets, uint64_t height);

/* check_placement, and the result's claims: lower_bound <= height, at least the load at every time. Fails the running
 * cmocka test. */
void assert_placement(const tide__place_item *items, size_t n, const uint64_t *offsets,
                      const tide__place_result *result);

#endif
