/* Sorting 64-bit keys in linear time: keys carry an index in their low bits, so the order is total and the same on
 * every machine. */
#ifndef TIDE_PLAN_PLACE_RADIX_H
#define TIDE_PLAN_PLACE_RADIX_H

#include <stddef.h>
#include <stdint.h>

/* Ascending; `scratch` has room for n keys. */
void tide__place_radix_sort(uint64_t *keys, uint64_t *scratch, size_t n);

#endif
