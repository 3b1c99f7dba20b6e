/* Orders in which heuristics take the items: by a key, larger first. */
#ifndef TIDE_PLAN_PLACE_RANKS_H
#define TIDE_PLAN_PLACE_RANKS_H

#include "plan/place/problem.h"

typedef enum tide__rank_key {
    TIDE__RANK_WIDTH, /* length of the lifetime, then size */
    TIDE__RANK_AREA,  /* size x lifetime */
    TIDE__RANK_SIZE,  /* size, then lifetime */
    TIDE__RANK_START, /* earliest begin, then size */
    TIDE__RANK_KEYS
} tide__rank_key;

/* rank[i] of item i: 0 goes first. Ties by the item's number, so that it is a permutation. */
tide_status tide__rank_by(const tide__place_problem *p, tide__rank_key key, uint32_t *rank);
const char *tide__rank_name(tide__rank_key key); /* "skyline by width", ... */

#endif
