/* The border between two steps: what transfers of one step that are still under way mean to the actions of the next.
 *
 *      step k      compute ─────────┤
 *                  disk out ────SAVE a ──SAVE b ──┐ x
 *      step k + 1                   ├─ LOAD b ◀───┘ waits for x, all else goes on
 *
 * The host issues a step when the one before it has computed everything, so only transfers reach across. */
#ifndef TIDE_PLAN_BORDER_H
#define TIDE_PLAN_BORDER_H

#include "plan/plan_data.h"

/* Action `to` waits for action `from` of the step before, which is of another queue. */
typedef struct tide__crossing {
    uint32_t from, to;
} tide__crossing;

typedef TIDE_VEC(tide__crossing) tide__crossings;

/* By `to`, then by `from`: with these waits, and without any other, two steps in a row are as good as with a barrier
 * between them. That is proved here: the plan of both steps goes through the verifier. A step may only begin when the last
 * but one is complete. TIDE_E_UNSUPPORTED: there is no such border, as of one-shot programs and of those with messages. */
tide_status tide__plan_cross(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                             const tide_budgets *budgets, tide__crossings *out);
/* That proof, of crossings in the same order: TIDE_OK, or what the verifier finds. */
tide_status tide__plan_check_crossings(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                       const tide_budgets *budgets, const tide__crossings *crossings);

#endif
