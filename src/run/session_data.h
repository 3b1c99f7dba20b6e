/* A session as data, for session.c (life, states, begin and end) and session_step.c (what a step is made of). */
#ifndef TIDE_RUN_SESSION_DATA_H
#define TIDE_RUN_SESSION_DATA_H

#include <tidemark/session.h>

#include "program/build.h"
#include "run/online.h"

typedef struct tide__session_input {
    tide_id tensor;
    const char *data; /* the client's */
} tide__session_input;

typedef struct tide__session_call {
    tide_op_fn fn;
    void *context;
} tide__session_call;

/* Where it is in its course. */
typedef enum tide__session_phase {
    TIDE__READY, /* the program has the states and nothing else */
    TIDE__STEPPING,
    TIDE__ENDED /* the program is that of the last step, whose end map holds */
} tide__session_phase;

struct tide_session {
    tide_session_options options;
    tide_machine machine;
    tide_run *run;                 /* arena, queues, tiers; its program is the one below */
    tide_program_builder *builder; /* READY, STEPPING: owns the program at hand */
    tide_program *program;         /* ENDED: that of the last step */
    TIDE_VEC(tide_tensor) states;  /* their names are in `names` */
    tide__store names;
    tide__session_phase phase;
    tide_step_args args;
    TIDE_VEC(tide__session_input) inputs; /* by tensor, ascending */
    TIDE_VEC(tide__session_call) calls;   /* per op */
    TIDE_VEC(bool) released;              /* per tensor */
    TIDE_VEC(tide_id) dead;               /* released since the pending op was submitted */
    tide_id pending;                      /* submitted, not yet issued; TIDE_NONE: none */
};

/* The closures and the input function of its run. */
tide_status tide__session_call_op(void *session, const tide_call *call);
tide_status tide__session_give_input(void *session, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes);

/* Issues the pending op. */
tide_status tide__session_flush(tide_session *session);
/* A step ends here, half-way: waits for what is under way and poisons the session. Returns the status. */
tide_status tide__session_fail(tide_session *session, tide_status status);

#endif
