/* Workspaces in holes: once values have their places, each run takes the fastest variant whose workspace goes into bytes that are
 * free while it runs. A workspace lives for one action only, so nothing that is placed later can be in its way, and values never
 * make room for it. */
#ifndef TIDE_PLAN_PLACE_WORKSPACES_H
#define TIDE_PLAN_PLACE_WORKSPACES_H

#include "plan/plan_data.h"

/* plan: scheduled and placed, without waits. No workspace ends above `capacity_bytes`; arena_bytes grows up to that. Variants of
 * other bits than the default one's are taken only where the plan allows them. */
tide_status tide__place_workspaces(const tide_program *program, const tide_machine *machine, uint64_t capacity_bytes,
                                   tide_plan *plan);

/* What the runs of a scheduled plan take at least: each by the fastest variant for which the values leave room. An estimate: values
 * that share their bytes count twice. */
tide_status tide__place_least_runs(const tide_program *program, uint64_t capacity_bytes, const tide_plan *plan,
                                   uint64_t *least_ns);

#endif
