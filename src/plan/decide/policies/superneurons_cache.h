/* The tensor cache of SuperNeurons, as a planner sees it: an LRU list over tensors in the arena; nothing moves until
 * the arena is short; what an op uses is locked. Known in advance: who uses what when.
 *
 *   slot     3       4       5       6   ...   17      18
 *   x     last use   .     short!    .         .      use       at 5 the least recently used leaves, SAVE before 5;
 *                          ◀── away ──▶ LOAD at the previous use of something that was away, or as soon as it fits */
#ifndef TIDE_PLAN_DECIDE_SUPERNEURONS_CACHE_H
#define TIDE_PLAN_DECIDE_SUPERNEURONS_CACHE_H

#include "plan/decide/decide.h"

/* loads[k] minus all that could be away in slot k: values that rest between a use in forward and one after it. */
tide_status tide__superneurons_subtract(const tide__policy_input *in, const tide__decisions *d, uint64_t *loads);

/* Appends the swaps that keep the loads within in->target_bytes, as far as swaps can; loads become what they are then.
 * eager: everything that rests from forward to backward leaves at once, short of memory or not. */
tide_status tide__superneurons_decide(const tide__policy_input *in, bool eager, uint64_t *loads, tide__decisions *d);

#endif
