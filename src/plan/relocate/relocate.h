/* Relocate: copies inside the arena, where residencies do not fit side by side although their bytes would.
 *
 *   offset ▲  before                     with one copy
 *          │ ┌───────────┐ ┌ ─ ─ ┐      ┌─────┐
 *     C ───│ │     b     │   new        │  b  ├──┐─────┐
 *          │ └───────────┘ └ ─ ─ ┘      └─────┤b'│     │
 *          │     ┌────────────────┐     ┌─────┴──┤ new │
 *          │     │       a        │     │    a   └──┐──┘
 *          └─────────────────────────▶ issue order
 *
 * The plan is walked in issue order with the arena as an allocator has it (relocate_walk.h). Where no hole is large enough, the
 * cheapest blocks make way, each by a RELOCATE just before the action that needs the room. Bytes alone decide whether that
 * works: a value may move over bytes of its own, so holes can always be joined. Carried values come home at the end. */
#ifndef TIDE_PLAN_RELOCATE_H
#define TIDE_PLAN_RELOCATE_H

#include "plan/plan_data.h"

/* plan: scheduled and placed (not with keep_everything), with an arena above budgets->arena_bytes; its offsets are a guide.
 * *fits: it now has relocations, of limit_ns together at most, and is placed within the budgets, without waits. Else the plan is
 * as before. `work` counts looks at blocks, which take a nanosecond or two each: no more than so many. */
tide_status tide__relocate_fit(const tide_program *program, const tide_machine *machine, const tide_budgets *budgets,
                               uint64_t limit_ns, uint64_t work, tide_plan *plan, bool *fits);

#endif
