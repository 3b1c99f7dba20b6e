/* Stacking: items by begin, each on top of the highest item it is alive with (fixed ones included). O(n log n) for
 * any problem, however many conflicts: the placement that always exists. */
#ifndef TIDE_PLAN_PLACE_STACK_H
#define TIDE_PLAN_PLACE_STACK_H

#include "plan/place/problem.h"

tide_status tide__place_stack(const tide__place_problem *p, uint64_t *offsets);

#endif
