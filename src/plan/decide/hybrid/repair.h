/* Repair: adds re-runs, the most relief per time first, until the load is within the target. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_REPAIR_H
#define TIDE_PLAN_DECIDE_HYBRID_REPAIR_H

#include "plan/decide/hybrid/chain.h"

typedef struct tide__candidate {
    double score; /* relief per ns, when last looked at */
    tide_id tensor;
    tide__hold hold;
    uint64_t to_key; /* of the event that ends the gap */
} tide__candidate;

typedef struct tide__repair {
    tide__sketch *sketch;
    tide__chain chain;
    TIDE_VEC(tide__candidate) heap; /* the largest score first */
    tide__keys added;               /* by the last call */
    TIDE_VEC(tide_id) changed;
    uint32_t *dropped, *needed; /* per tensor: the batch that drops it, or whose re-runs read it */
    uint32_t batch;
    uint64_t seed, draws;
    double noise;   /* scores, and costs when pruning, vary by up to this part */
    uint32_t mask;  /* of 1 << tide__hold: which ways to get inputs are tried */
    uint64_t work;  /* events looked at, in all calls: how time is counted */
    uint64_t limit; /* of work, at which repairing gives up and pruning ends */
} tide__repair;

tide_status tide__repair_init(tide__sketch *sketch, tide__repair *r);
void tide__repair_deinit(tide__repair *r);
/* Is the program so large that many re-runs are added between two builds? */
bool tide__repair_is_batched(const tide__repair *r);
/* Leaves the sketch built; it fits, or no candidate helps any more, or no work is left. */
tide_status tide__repair_run(tide__repair *r);
/* Removes re-runs, the costliest first, while it still fits. The sketch must fit; it is built then. */
tide_status tide__repair_prune(tide__repair *r, const tide__keys *candidates);

#endif
