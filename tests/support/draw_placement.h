/* Small random placement problems, for comparing with brute force. Deterministic in the seed. */
#ifndef TIDE_TESTS_DRAW_PLACEMENT_H
#define TIDE_TESTS_DRAW_PLACEMENT_H

#include "plan/place/place.h"

enum { WITH_SECOND = 1, WITH_ALIGN = 2, WITH_FIXED = 4, ALL_FEATURES = 7 };

/* The load is the same at all times: where something ends, pieces of the same total size begin. Leaves no hole. */
void draw_few(uint64_t seed, size_t count, tide__place_item *items);

/* The same with second lifetimes, alignments and fixed offsets (a mask of WITH_) drawn over it. */
void draw_featured(uint64_t seed, int features, size_t n, tide__place_item *items);

#endif
