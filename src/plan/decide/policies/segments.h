/* Segments (SuperNeurons): runs of cheap forward ops behind a checkpoint, and the re-runs that bring their results back.
 *
 *     conv ──▶ relu ──▶ lrn ──▶ pool ──▶ conv          checkpoints: conv, conv
 *              └─── one segment ────┘                  the results of relu, lrn, pool may be dropped in forward
 *
 * The paper goes by the kind of layer: data, conv, fc, fork, join, concat and softmax are checkpoints, the others are
 * cheap. A program has no kinds, so they are inferred; docs/policies/superneurons.md says how. */
#ifndef TIDE_PLAN_DECIDE_SEGMENTS_H
#define TIDE_PLAN_DECIDE_SEGMENTS_H

#include "base/arrays.h"
#include "plan/decide/decide.h"

typedef struct tide__segment {
    tide_id head;                   /* its first op; the others follow by `next` */
    uint32_t n_needed;              /* members up to the last one whose results backward reads; >= 1 */
    uint32_t first_need, last_need; /* the ops after forward that read them, first and last */
    bool memory_centric;            /* else speed-centric */
} tide__segment;

typedef struct tide__segments {
    TIDE_VEC(tide__segment) list;
    uint32_t *of;       /* per op: its segment; TIDE_NONE for checkpoints and what backward does not need */
    uint32_t *position; /* per op in a segment: 0 for the head, and so on */
    tide_id *next;      /* per op: the member after it, TIDE_NONE for the last */
    /* per tensor: so small beside its op's largest result (the statistics of a normalisation) that it is always kept */
    bool *side;
    tide__arrays arrays; /* owns the arrays above */
} tide__segments;

/* side[tensor], as in the segments, of every tensor that an op writes; the others are left alone. */
void tide__find_side_results(const tide_program *p, bool *side);

tide_status tide__segments_create(const tide_program *p, tide__segments *out);
void tide__segments_free(tide__segments *s);

/* Appends the re-runs, each segment in its own mode, ascending by slot and op.
 *
 * Speed-centric: at the first need all members up to the last needed one, once; results stay until their last use.
 * Memory-centric: at every op that reads a result which is not there, from the checkpoint up to that result; only what
 * that op reads stays. */
tide_status tide__segments_rerun(const tide_program *p, const tide__segments *s, tide__decisions *out);

#endif
