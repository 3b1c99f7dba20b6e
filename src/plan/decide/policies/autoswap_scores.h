/* AutoSwap's priority scores of gaps (Zhang et al. 2019), with its formulas as meant. */
#ifndef TIDE_PLAN_DECIDE_AUTOSWAP_SCORES_H
#define TIDE_PLAN_DECIDE_AUTOSWAP_SCORES_H

#include "plan/decide/swaps/swaps.h"

typedef enum tide__swap_score {
    TIDE__SWAP_DOA,   /* duration of absence: time between the uses less both transfers */
    TIDE__SWAP_AOA,   /* area of absence: the duration times the bytes; a negative one divided by them */
    TIDE__SWAP_WDOA,  /* the load integrated over the absence */
    TIDE__SWAP_SWDOA, /* the same, on what the load is when the better ones have gone (submodular, greedy) */
    TIDE__SWAP_N_SCORES
} tide__swap_score;

/* scores: one per gap. The clock is s->slot_ns. n log n. */
tide_status tide__swap_scores(const tide__swaps *s, tide__swap_score kind, double *scores);

#endif
