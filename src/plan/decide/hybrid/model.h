/* The program as flat arrays: what a search that looks at every op thousands of times a second reads.
 *
 * Sizes are as the arena counts them, rounded up to the machine's alignment. */
#ifndef TIDE_PLAN_DECIDE_HYBRID_MODEL_H
#define TIDE_PLAN_DECIDE_HYBRID_MODEL_H

#include "base/arrays.h"
#include "plan/decide/decide.h"

typedef struct tide__pair {
    tide_id read, write; /* tensors: the write takes over the bytes of the read where that dies */
} tide__pair;

typedef struct tide__model {
    uint32_t n_ops, n_tensors;
    /* Per op. The lists of op o are items [at[o], at[o + 1]) of their arrays. */
    uint32_t *read_at, *write_at, *pair_at;
    tide_id *reads, *writes;
    tide__pair *pairs;
    uint32_t *variant;                   /* with the smallest workspace, unless others are wanted */
    uint64_t *cost_ns, *workspace_bytes; /* of that variant */
    bool *rerunnable;                    /* and destroys none of its reads */
    /* Per tensor. Ops that read tensor t: uses[use_at[t] .. use_at[t + 1]), ascending. */
    uint32_t *use_at;
    tide_id *uses;
    uint64_t *size;
    tide_id *producer;  /* TIDE_NONE: not written in this step */
    tide_id *destroyer; /* the op that overwrites it in place (`must`); TIDE_NONE */
    bool *present, *client, *keep;
    tide__arrays arrays; /* owns the arrays above */
} tide__model;

/* Arrays, all zero, for its n_ops and n_tensors and for lists of these lengths in all; destroy it also on failure. Uses are
 * listed when all else is there. */
tide_status tide__model_allocate(tide__model *m, size_t reads, size_t writes, size_t pairs);
void tide__model_list_uses(tide__model *m);
tide_status tide__model_create(const tide__policy_input *in, tide__model **out);
/* Each op's fastest variant with a workspace of up to `room_bytes` that fits the target beside its operands; 0: the smallest.
 * Whether that is another one for any op. */
bool tide__model_want(const tide__policy_input *in, uint64_t room_bytes, tide__model *m);
void tide__model_destroy(tide__model *m); /* NULL is fine */

#endif
