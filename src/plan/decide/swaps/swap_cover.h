/* Covers: gaps that keep the load within a target when all of each is absence, for as few transfers as a greedy choice finds. What
 * compute waits for where nothing hides in time. */
#ifndef TIDE_PLAN_DECIDE_SWAP_COVER_H
#define TIDE_PLAN_DECIDE_SWAP_COVER_H

#include "plan/decide/swaps/swaps.h"

/* gaps: s->gaps.count entries; its first *n are the cover, beside what is forced. Where nothing helps, a slot stays above the
 * target. */
tide_status tide__swaps_cover(const tide__swaps *s, uint64_t target_bytes, uint32_t *gaps, size_t *n);

#endif
