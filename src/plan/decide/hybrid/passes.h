/* Passes: parts of the step run again after its end, for what is kept but does not fit until then.
 *
 * Gradients that are kept fill the arena while the last of them are made. Where they leave too little room, the first
 * ones are dropped, and made again after the last op by re-running all that leads to them: another pass, in which less
 * is left to make, and in which values are dropped and re-run in turn as in any step.
 *
 *     step     ██████████████████████ ─▶ keeps what came last     load ▲  what is kept
 *     pass 1   ████████████████ ─▶ keeps what came before that         │   of all passes so far
 *     pass 2   █████████ ─▶ keeps the rest
 *
 * The step and its passes are one longer program for the search, in which a value that a pass makes again is a tensor of
 * its own. In the plan they are re-runs in the slot after the last op, in the order of that program. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_PASSES_H
#define TIDE_PLAN_DECIDE_HYBRID_PASSES_H

#include "plan/decide/hybrid/sketch.h"

typedef struct tide__passes {
    const tide__model *step;
    tide__model *model; /* the step and its passes; NULL: passes are not needed, or do not help */
    tide_id *origin;    /* per op of it: that of the step */
} tide__passes;

/* Passes for a load of target_bytes, of which `spare_bytes` are left free beside what is kept and each op's operands. */
tide_status tide__passes_init(const tide__model *step, uint64_t target_bytes, uint64_t spare_bytes, tide__passes *p);
void tide__passes_deinit(tide__passes *p);

/* A sketch of the long program, without moves, as decisions on the step. */
tide_status tide__passes_decide(const tide__passes *p, const tide__sketch *s, tide__decisions *out);

#endif
