/* A layout becomes part of a plan: RELOCATE actions, and residencies that end with one and begin with another. */
#ifndef TIDE_PLAN_RELOCATE_WRITE_H
#define TIDE_PLAN_RELOCATE_WRITE_H

#include "plan/relocate/relocate_walk.h"

/* `plan` is a copy of `old`, whose blocks these are. It gets actions, intervals and offsets in the arena, but neither waits nor
 * slots in tiers. The layout's offsets are used up. */
tide_status tide__relocate_write(const tide__relocate_blocks *blocks, const tide__layout *layout, const tide_plan *old,
                                 tide_plan *plan);

#endif
