/* What the walk of schedule.c reads and writes: the decisions, sorted by the slots in which they happen, the size that
 * each value has wherever it goes, and the plan as it grows. */
#ifndef TIDE_PLAN_SCHEDULER_H
#define TIDE_PLAN_SCHEDULER_H

#include "plan/schedule/schedule.h"

/* A swap or re-run, to be sorted by the slot in which it happens. */
typedef struct tide__slotted {
    uint64_t key;   /* slot << 32 | tie-break */
    uint32_t index; /* in the decisions */
} tide__slotted;

typedef struct tide__slot_list {
    tide__slotted *items;
    size_t count, at; /* at: cursor of the walk */
} tide__slot_list;

typedef struct tide__scheduler {
    const tide_program *program;
    const tide_machine *machine;
    const tide__decisions *decisions;
    tide_plan *plan;
    uint32_t n_ops, n_tensors;
    tide_id *current;            /* per tensor: its latest residency, TIDE_NONE if it has none */
    tide_id *first_copy;         /* per tensor: list of its copies, chained by next_copy */
    TIDE_VEC(tide_id) next_copy; /* per copy */
    bool *starts_in_arena;       /* per tensor */
    uint64_t *moved_bytes;       /* per tensor: its size, rounded to the blocks of the tiers it moves through */
    tide__slot_list saves, loads, reruns;
    size_t at_step; /* in decisions->sequence */
} tide__scheduler;

/* Of a zeroed scheduler with program, machine, decisions and plan: checks the decisions one by one and fills the rest.
 * deinit is for one whose init failed, too. */
tide_status tide__scheduler_init(tide__scheduler *s);
void tide__scheduler_deinit(tide__scheduler *s);

const char *tide__scheduler_name(const tide__scheduler *s, tide_id tensor); /* of a tensor */
/* Where an input comes from. */
tide_status tide__scheduler_client_tier(const tide__scheduler *s, tide_id tensor, uint32_t *tier);

#endif
