/* Ordered fit: items one by one, each into a hole between the already placed items it is alive with, else on top.
 * Handles every feature of a problem with checked arithmetic. O(n log n + conflicts · log) time. */
#ifndef TIDE_PLAN_PLACE_FIT_H
#define TIDE_PLAN_PLACE_FIT_H

#include "plan/place/problem.h"

typedef enum tide__place_fit_rule { TIDE__PLACE_FIT_FIRST, TIDE__PLACE_FIT_BEST } tide__place_fit_rule;

/* order: the item numbers 0 .. n-1, permuted; items with a fixed offset are placed before all others in any case.
 * `most_conflicts`: gives up with TIDE_E_UNSUPPORTED once that many conflicts were looked at in total; 0: never.
 * TIDE_E_OVERFLOW if an item does not fit below 2^64. */
tide_status tide__place_fit(const tide__place_problem *p, const uint32_t *order, tide__place_fit_rule rule,
                            uint64_t most_conflicts, uint64_t *offsets);

/* size descending, ties: earlier begin, then lower number. */
tide_status tide__place_order_by_size(const tide__place_problem *p, uint32_t *order);

#endif
