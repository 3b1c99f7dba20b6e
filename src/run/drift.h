/* How a plan's prediction holds. */
#ifndef TIDE_RUN_DRIFT_H
#define TIDE_RUN_DRIFT_H

#include <tidemark/plan.h>

/* All zeros at first. */
typedef struct tide__run_drift {
    uint32_t n_misses; /* steps in a row that took over 1.5 times as long as predicted, or less than 2/3 */
    uint32_t n_replans;
} tide__run_drift;
/* After a step that followed the plan. True after four misses: measure the costs and plan anew; but three times at most,
 * because predictions that never come true are no reason to plan for ever. */
bool tide__run_drift_note(tide__run_drift *drift, const tide_plan *plan, uint64_t step_ns);

#endif
