/* A session as data, for session.c (life, states, begin and end) and session_step.c (what a step is made of). */
#ifndef TIDE_RUN_SESSION_DATA_H
#define TIDE_RUN_SESSION_DATA_H

#include <tidemark/session.h>

#include "program/build.h"
#include "run/online.h"
#include "run/plan_cache.h"

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
    TIDE_VEC(tide_tensor) states;  /* their names are in `names` */
    tide__store names;
    tide__session_phase phase;
    tide_step_args args;
    TIDE_VEC(tide__session_input) inputs; /* by tensor, ascending */
    TIDE_VEC(tide__session_call) calls;   /* per op */
    TIDE_VEC(tide_id) released;           /* per tensor: the op with which it was released; TIDE_NONE: it is not */
    TIDE_VEC(bool) kept;                  /* per tensor: it can be read afterwards */
    TIDE_VEC(bool) carried;               /* per state: a value is carried to it */
    TIDE_VEC(tide_id) dead;               /* released since the pending op was submitted */
    tide_id pending;                      /* submitted, not yet issued; TIDE_NONE: none */
    bool decided;                         /* of the step at hand: planned or online */
    tide__cached *entry;                  /* the step that this one follows so far; NULL: none, it is online */
    uint32_t cursor;                      /* the next action of its plan */
    uint32_t n_carries;                   /* that were as in that step */
    tide__plan_cache cache;
    tide__cached *last; /* the step before this one; NULL: none, or forgotten */
    uint64_t prepared;  /* the number of the plan that the run's tables are for; 0: none */
    tide_session_stats stats;
};

/* The closures and the input function of its run. */
tide_status tide__session_call_op(void *session, const tide_call *call);
tide_status tide__session_give_input(void *session, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes);

/* Issues the pending op. */
tide_status tide__session_flush(tide_session *session);
tide_status tide__session_issue_online(tide_session *session);
tide_status tide__session_check_kept(const tide_session *session); /* all have a value */
tide_status tide__session_add_carry(tide_session *session, tide_carry carry);

/* session_plan.c. Deciding comes with the first op, or with the end of a step that has none (NULL). */
tide_status tide__session_decide(tide_session *session, const tide_op *op);
/* While it follows a plan: is this call the one of the recorded step? */
bool tide__session_expects_tensor(const tide_session *session, const tide_tensor *tensor);
bool tide__session_expects_op(const tide_session *session, const tide_op *op);
bool tide__session_expects_carry(const tide_session *session, tide_carry carry);
bool tide__session_is_complete(const tide_session *session);
tide_status tide__session_issue_planned(tide_session *session);
tide_status tide__session_end_planned(tide_session *session, tide_step_report *report);
/* From here on it is online. */
tide_status tide__session_deviate(tide_session *session);
/* Before the recorded program is finished: what was not released with its last use could still have been asked for, so
 * a plan has to keep it within reach. */
tide_status tide__session_keep_unreleased(tide_session *session);
/* A step ends here, half-way: waits for what is under way and poisons the session. Returns the status. */
tide_status tide__session_fail(tide_session *session, tide_status status);

#endif
