/* Efforts: how much the generators look for, from the size of a program. Work is counted, so that the same plan comes out on every
 * machine; evaluations take about as long for all sizes. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_EFFORT_H
#define TIDE_PLAN_DECIDE_HYBRID_EFFORT_H

#include "plan/decide/hybrid/descent.h"

/* Rungs are far apart: some ways are left out. */
bool tide__effort_is_coarse(const tide__generation *g, tide_effort effort);
tide__descent_options tide__effort_descent(const tide__generation *g, tide_effort effort, double stretch);
/* How many edits polishing may try, over all budgets. */
uint64_t tide__effort_edits(const tide__generation *g, tide_effort effort);

#endif
