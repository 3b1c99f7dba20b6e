/* Generators beside the descent: each proposes what descents do not come by. hybrid.c says which run, and in what order. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_WAYS_H
#define TIDE_PLAN_DECIDE_HYBRID_WAYS_H

#include "plan/decide/hybrid/generation.h"

/* Nothing moves and nothing is run again: workspaces alone, in the arena of liveness and in larger ones. */
tide_status tide__ways_keep(tide__generation *g);

/* What the papers' policies decide, at the tenths of the whole and at the proved floor, from floor_bytes up and below ceiling_bytes,
 * for which what is known is slow: those that move, re-run or do both, as the generation does. quick: only those that decide quickly. */
tide_status tide__ways_papers(tide__generation *g, uint64_t floor_bytes, uint64_t ceiling_bytes, bool quick);

/* Shuttles (shuttle.h) in steps from the proved floor up, those from floor_bytes up and below ceiling_bytes, as long as they are
 * faster than what is known there, or the only ones. */
tide_status tide__ways_shuttle(tide__generation *g, uint64_t floor_bytes, uint64_t ceiling_bytes);

/* Below the smallest that is known, by re-runs alone: several passes (passes.h). work: of one search. */
tide_status tide__ways_pass(tide__generation *g, uint64_t work);

#endif
