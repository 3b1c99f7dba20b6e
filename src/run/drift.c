/* See drift.h. */
#include "run/drift.h"

bool tide__run_drift_note(tide__run_drift *drift, const tide_plan *plan, uint64_t step_ns) {
    enum { PATIENCE = 4, MAX_REPLANS = 3 };
    uint64_t planned = tide_plan_prediction(plan)->step_ns;
    bool is_far = step_ns > planned + planned / 2 || planned > step_ns + step_ns / 2;
    drift->n_misses = is_far ? drift->n_misses + 1 : 0;
    if (drift->n_misses < PATIENCE || drift->n_replans >= MAX_REPLANS) return false;
    drift->n_misses = 0;
    drift->n_replans++;
    return true;
}
