/* What a lower bound on the step time looks at: at each op the bytes that must be there, and the absences that could make
 * room beside them. See bound.h for why each is counted so. */
#ifndef TIDE_PLAN_DECIDE_BOUND_GAPS_H
#define TIDE_PLAN_DECIDE_BOUND_GAPS_H

#include "plan/decide/decide.h"

/* A value that is not needed by the ops [from, to), and for what is carried to the next step by the ops [0, head) either.
 * If it is absent at any of [from, to), either its producer runs again or it is moved; at any of [0, head) it is moved. */
typedef struct tide__absence {
    uint32_t from, to, head;
    uint64_t size_bytes;
    double run_ns;  /* its share of a re-run of its producer; HUGE_VAL: it cannot be re-run */
    bool moves;     /* it can be moved */
    bool loads;     /* a move includes a LOAD; else the value may end the step in the tier */
    uint32_t saver; /* moves of the same saver share one SAVE at least; TIDE_NONE: the tier may have it without */
} tide__absence;

typedef struct tide__absences {
    uint32_t n_ops;
    uint64_t *load_bytes;        /* per op: operands and everything that an absence could remove; no workspace */
    TIDE_VEC(tide__absence) all; /* by saver; those without at the end */
} tide__absences;

tide_status tide__absences_find(const tide__policy_input *in, tide__absences *out);
void tide__absences_free(tide__absences *a);

#endif
