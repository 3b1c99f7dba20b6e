/* Who occupies which bytes: disjoint spans of an address space, each with an owner. Assigning a span cuts away what
 * it covers of older ones and reports their owners. Amortised O(log n): each cut removes a span or trims one end. */
#ifndef TIDE_PLAN_SPAN_MAP_H
#define TIDE_PLAN_SPAN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tide__span_map tide__span_map;
typedef void (*tide__span_fn)(void *context, uint32_t owner);

tide_status tide__span_map_create(tide__span_map **out);
void tide__span_map_destroy(tide__span_map *map);
/* [lo, hi) goes to `owner`; calls `evicted` (may be NULL) for the owner of every span it overlaps. */
tide_status tide__span_map_assign(tide__span_map *map, uint64_t lo, uint64_t hi, uint32_t owner, tide__span_fn evicted,
                                  void *context);

#endif
