/* Networks that change from step to step, as data: for dynamic.c, which plays them, and for trainers of such networks. */
#ifndef TIDE_NN_DYNAMIC_H
#define TIDE_NN_DYNAMIC_H

#include "base/vec.h"
#include "nn/network.h"

/* What the closure of an op needs; it lives as long as the model is prepared. */
typedef struct tide__played_op {
    tide_kernel *kernel;
    uint64_t counter;
} tide__played_op;

/* A model that is prepared. */
typedef struct tide__played {
    const tide_model *model;
    bool inference, pinned; /* pinned: it stays prepared */
    tide__network network;  /* its step and kernels; its values are the session's */
    tide__played_op *ops;
    tide_id *ids;      /* per tensor: its id in the session, in the step at hand */
    tide_id *last;     /* per tensor: the last op that uses it */
    tide_id *state;    /* per state: its id in the session */
    tide_id *becomes;  /* per tensor: the state that it is at the end; TIDE_NONE: none */
    tide_id *operands; /* in the session, of the op at hand */
    void *input;
    uint64_t last_use; /* of the clock */
} tide__played;

/* Its place in the list is its id in the session. */
typedef struct tide__parameter {
    char *name;
    uint64_t size_bytes, layout;
    bool written; /* it has its first value */
} tide__parameter;

struct tide_dynamic {
    tide_dynamic_options options;
    tide_session *session;
    TIDE_VEC(tide__played *) models; /* those that are prepared */
    uint64_t clock;                  /* models looked for so far */
    TIDE_VEC(tide__parameter) parameters;
    uint64_t n_steps;
};

/* Prepared, as long as fewer than 64 others come up. Parameters that are new get their first value. */
tide_status tide__dynamic_find(tide_dynamic *d, const tide_model *model, bool inference, tide__played **out);
/* One step of it. Its network's values can be read afterwards, until the next one. */
tide_status tide__dynamic_play(tide_dynamic *d, tide__played *p, const float *plain, const int32_t *labels,
                               const tide_step_args *args, tide_step_report *report);

#endif
