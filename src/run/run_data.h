/* A run as data: what tide_run_create prepares once, so that a step only reads it. */
#ifndef TIDE_RUN_RUN_DATA_H
#define TIDE_RUN_RUN_DATA_H

#include <tidemark/run.h>

#include "tier/tier.h"

/* One SAVE or LOAD: what its io function is called with. */
typedef struct tide__move {
    tide__tier_slot slot; /* slot.tier is NULL for the client tier */
    tide_run *run;
    tide_id tensor;
    uint64_t size_bytes; /* of the tensor; what lies beyond, up to the copy's size, is padding */
} tide__move;

/* Per tensor: where the start or the end map has it; TIDE_NONE: not there. */
typedef struct tide__spot {
    tide_id residency, copy;
} tide__spot;

struct tide_run {
    tide_run_options options; /* borrowed: device, program, machine, plan */
    uint32_t n_actions, n_queues;
    tide_arena *arena;
    tide_queue *queue[1 + TIDE_MACHINE_MAX_CHANNELS];
    tide__tier *tier[TIDE_MACHINE_MAX_TIERS]; /* NULL where the plan uses none */
    tide_event **done;                        /* per action: NULL if nobody waits for it */
    tide_event *begin, *end, *drained[1 + TIDE_MACHINE_MAX_CHANNELS];
    tide__move *moves;                  /* per action; unused for RUNs */
    uint64_t *offsets;                  /* the arena offsets of all uses, action by action */
    size_t *first_offset;               /* per action */
    bool *rerun;                        /* per action */
    tide__spot *starts, *ends;          /* per tensor */
    bool *carried;                      /* per tensor: the next step starts with it */
    uint64_t saved_bytes, loaded_bytes; /* per step, known beforehand */
    uint32_t n_reruns;
    bool stepped;  /* at least one step is complete: the end map holds */
    bool poisoned; /* a step failed on the way */
};

/* Enqueues every action of one step, in issue order. */
tide_status tide__run_issue(tide_run *run, const tide_step_args *args);

#endif
