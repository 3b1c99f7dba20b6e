/* The gaps of a program, as swaps.h describes them. */
#ifndef TIDE_PLAN_DECIDE_SWAP_GAPS_H
#define TIDE_PLAN_DECIDE_SWAP_GAPS_H

#include "plan/decide/swaps/swaps.h"

/* Appends every gap of at least min_bytes to s->gaps, and the forced ones of any size: as much of each as the re-runs leave. */
tide_status tide__swap_gaps_find(tide__swaps *s, const tide__decisions *beside);

/* Gives a gap a tier: what its transfers take there. */
tide_status tide__swap_gap_to_tier(const tide_machine *machine, uint32_t tier, tide__swap_gap *gap);

#endif
