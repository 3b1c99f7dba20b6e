/* Chains: what it takes to bring a dropped value back by re-running ops, and what that does to the load. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_CHAIN_H
#define TIDE_PLAN_DECIDE_HYBRID_CHAIN_H

#include "base/arrays.h"
#include "plan/decide/hybrid/sketch.h"

/* A gap of a tensor: absent between events `from` and `to`, two consecutive uses of one stay. */
typedef struct tide__span {
    tide_id tensor;
    uint32_t from, to;
} tide__span;

/* An input of a re-run that is not there can be held longer, or be re-run in turn. */
typedef enum tide__hold {
    TIDE__HOLD_ALL,    /* hold it */
    TIDE__HOLD_LITTLE, /* hold it if that adds little above the target */
    TIDE__HOLD_FREE,   /* hold it if that adds nothing above the target */
    TIDE__N_HOLDS
} tide__hold;

typedef struct tide__held {
    tide_id tensor;
    uint32_t from, to; /* events, both included, in which it is there only for the chain */
} tide__held;

/* Room to work in; the last proposal is in `ops`. */
typedef struct tide__chain {
    TIDE_VEC(tide_id) ops; /* ascending, all in the slot of the gap's end */
    TIDE_VEC(tide__held) held;
    uint32_t slot;
    uint64_t cost_ns;
    double relief; /* drop of the sketch's excess; can be negative */
    /* scratch */
    uint32_t stamp;
    uint32_t *op_stamp;   /* per op: in the chain */
    uint32_t *need_stamp; /* per tensor: last_need is of this chain */
    tide_id *last_need;   /* per tensor: the last op of the chain that reads it */
    int64_t *change;      /* per event; zero between calls */
    size_t room;
    tide__arrays arrays; /* owns the arrays above */
} tide__chain;

tide_status tide__chain_init(const tide__model *m, tide__chain *c);
void tide__chain_deinit(tide__chain *c);

/* The chain that closes a gap; *possible is false where an input is lost for good. */
tide_status tide__chain_propose(const tide__sketch *s, tide__span gap, tide__hold hold, tide__chain *c, bool *possible);

/* What the latest proposal took, in events looked at. */
uint64_t tide__chain_work(const tide__chain *c, tide__span gap);

#endif
