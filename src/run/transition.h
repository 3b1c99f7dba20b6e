/* A transition: between two steps every value goes from where it is to where the next plan starts with it, inside the
 * budgets: through free room of the arena and the tiers, and nowhere else. */
#ifndef TIDE_RUN_TRANSITION_H
#define TIDE_RUN_TRANSITION_H

#include "run/run_data.h"

/* A stretch of the arena (space 0) or of tier `space - 1`. */
typedef struct tide__site {
    uint32_t space;
    uint64_t offset;
} tide__site;

/* One value on its way. Values with the same site in both stay. */
typedef struct tide__haul {
    tide_id tensor;
    uint64_t size_bytes;
    tide__site from; /* where it is, also after a failure */
    tide__site to;
} tide__haul;

/* The sites of all `from`, and those of all `to`, do not overlap each other. room_bytes[space]: what there is of it.
 * TIDE_E_FIT: values stand in each other's way and there is no room to put one aside. All queues are idle, before and
 * after. */
tide_status tide__transition(tide_run *run, const uint64_t *room_bytes, tide__haul *hauls, size_t n);

/* The same bytes at a second site, which nothing else needs. */
tide_status tide__transition_copy(tide_run *run, tide__site from, tide__site to, uint64_t size_bytes);

#endif
