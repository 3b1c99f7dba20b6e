/* Steps that a session has seen, and their plans: in memory, and in a folder if one is given.
 *
 * A plan belongs to a step (by signature, then tensor by tensor and op by op), a machine and budgets; the last two are
 * those of the session. Files are hostile: a plan that was read is verified like any other. Memory is bounded: the step
 * that has not come up for the longest time goes first. */
#ifndef TIDE_RUN_PLAN_CACHE_H
#define TIDE_RUN_PLAN_CACHE_H

#include <tidemark/run.h>

#include "base/vec.h"
#include "run/drift.h"

typedef struct tide__cached {
    tide_program *program;     /* with measured costs; owned, like the plan */
    tide_plan *plan;           /* NULL: none as yet */
    uint64_t plan_number;      /* no two plans have the same */
    tide_id *last_op;          /* per tensor: the last that reads or writes it; TIDE_NONE: none */
    uint32_t n_inputs;         /* CLIENT tensors */
    uint32_t n_seen;           /* steps of this kind */
    tide__run_drift drift;     /* of its plan's prediction */
    bool hopeless;             /* no plan fits, or none can be reached */
    uint64_t last_use;         /* of the cache's clock */
    struct tide__cached *next; /* the step that came after it the last time; NULL: not known */
} tide__cached;

typedef struct tide__plan_cache {
    TIDE_VEC(tide__cached *) entries;
    uint64_t clock;
    const tide_machine *machine;
    tide_plan_options options; /* policy "": no plans */
    const char *folder;        /* NULL: memory only */
} tide__plan_cache;

void tide__plan_cache_deinit(tide__plan_cache *cache);

/* The step happened: its entry is found or made, and is the newest. Takes over the program, which may be destroyed for the
 * same one that the entry has; on failure, too. */
tide_status tide__plan_cache_note(tide__plan_cache *cache, tide_program *program, tide__cached **out);
void tide__plan_cache_touch(tide__plan_cache *cache, tide__cached *entry);
/* A plan for it, if there can be one: from the folder, or made now if the step came up twice. Fails only for want of
 * memory. */
tide_status tide__plan_cache_plan(tide__plan_cache *cache, tide__cached *entry);
void tide__plan_cache_forget_plan(tide__cached *entry);
void tide__plan_cache_forget_plans(tide__plan_cache *cache); /* the budgets are others now */

/* Per tensor: the last op that reads or writes it; TIDE_NONE: none. For free(). */
tide_status tide__find_last_ops(const tide_program *program, tide_id **out);
bool tide__same_tensor(const tide_tensor *a, const tide_tensor *b); /* keep does not matter */
bool tide__same_op(const tide_op *a, const tide_op *b);

#endif
