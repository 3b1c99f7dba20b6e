/* The least height of a few items by trying everything: shares no code with src/plan/place. */
#ifndef TIDE_TESTS_BRUTE_PLACEMENT_H
#define TIDE_TESTS_BRUTE_PLACEMENT_H

#include "plan/place/place.h"

enum { MOST_BRUTE_ITEMS = 9 };

/* Second lifetimes, alignments and fixed offsets included; n <= MOST_BRUTE_ITEMS, sizes far below 2^64. */
uint64_t least_height(const tide__place_item *items, size_t n);

#endif
