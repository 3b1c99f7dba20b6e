/* A session: steps whose ops are submitted one by one, for clients that do not know a step before they run it
 * (stochastic depth, sequences of any length, frameworks that execute eagerly).
 *
 *      tide_session_state ...                                 what lives from step to step: weights, optimizer state
 *      tide_session_begin
 *          tide_session_input ...                             what this step gets from the client
 *          tide_session_tensor, tide_session_op, _release ... what it computes
 *          tide_session_carry ...                             which values are the new states
 *      tide_session_end
 *      tide_session_read                                      states, and kept values of the last step
 *
 * All bytes lie in one arena and in the tiers, within the budgets. What is in the way leaves, and comes back or is
 * computed again when it is wanted: the closure of an op may be called more than once. The results are those of an arena
 * without limits, bit for bit.
 *
 * The first steps run online: an op is carried out when it comes, and what leaves is decided at the moment when memory is
 * short. Meanwhile the step and its costs are recorded. A step that comes up again is planned, and followed from then on
 * as long as the calls are the same; where they differ, the step goes on online.
 *
 * An op is checked when it is submitted and issued with the next call that needs it, so that releases that follow it are
 * known; its closure, and what the closure needs, live until the step ends. A failure in mid-step poisons the session
 * (TIDE_E_POISONED from then on), except TIDE_E_ARGUMENT, which changes nothing. One thread at a time uses a session. */
#ifndef TIDEMARK_SESSION_H
#define TIDEMARK_SESSION_H

#include <tidemark/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_session tide_session;

/* The strings are borrowed until tide_session_destroy. */
typedef struct tide_session_options {
    size_t size;                 /* sizeof(tide_session_options) */
    tide_device *device;         /* borrowed */
    const tide_machine *machine; /* tiers and channels; copied, with offsets and sizes in blocks that suit all tiers */
    /* The arena's must be given: what steps will need is not known. A disk tier without one has four times the arena, a
     * RAM tier without one is not used. */
    tide_budgets budgets;
    const char *online; /* the policy that decides as it goes: "delta" (also for NULL), "cache" or "dtr" */
    /* The policy that plans steps which repeat, "hybrid" for NULL, "": none, all steps are online; and its effort. */
    const char *policy;
    tide_effort effort;
    const char *plan_folder; /* where plans are kept for the next session; NULL: nowhere */
    const char *disk_path;   /* folder of the spill file; NULL: the system's temporary folder */
    bool disk_checksums;     /* see tide_run_options [true] */
    bool journal;            /* likewise: steps that are online from begin to end are verified afterwards */
    bool disk_packing;       /* see tide_run_options [true] */
} tide_session_options;
TIDE_API void tide_session_options_init(tide_session_options *options);
TIDE_API tide_status tide_session_create(const tide_session_options *options, tide_session **out);
TIDE_API void tide_session_destroy(tide_session *session); /* NULL is fine; also in mid-step */

/* ---- between steps ---- */

/* A value that lives from step to step; `start` and `keep` of the tensor do not matter. Its bytes are undefined until
 * they are written. Kept values of the last step can no longer be read. *out is its id in every step. */
TIDE_API tide_status tide_session_state(tide_session *session, const tide_tensor *tensor, tide_id *out);
TIDE_API tide_status tide_session_write(tide_session *session, tide_id state, const void *data, uint64_t size_bytes);
TIDE_API tide_status tide_session_write_part(tide_session *session, tide_id state, uint64_t position_bytes,
                                             const void *data, uint64_t size_bytes);
/* A state, or a kept value of the step that ended last. */
TIDE_API tide_status tide_session_read(tide_session *session, tide_id tensor, void *data, uint64_t size_bytes);
TIDE_API tide_status tide_session_read_part(tide_session *session, tide_id tensor, uint64_t position_bytes, void *data,
                                            uint64_t size_bytes);

/* From now on the arena has this many bytes. Plans for the old one are forgotten, and so are kept values of the last step;
 * states wait in the tiers while the one arena is given up for the other. TIDE_E_FIT or TIDE_E_TIER_FULL: there is no room for
 * them there, and all is as it was. TIDE_E_MEMORY: the device has no such arena; the session goes on with another one of
 * the old size, or is poisoned if that cannot be had any more either. */
TIDE_API tide_status tide_session_set_budget(tide_session *session, uint64_t arena_bytes);

/* ---- a step ---- */

/* Nothing may have failed before. The args reach the closures. */
TIDE_API tide_status tide_session_begin(tide_session *session, const tide_step_args *args);
/* A tensor whose value is `data` (tensor->size_bytes of it), read when it is wanted, perhaps twice, until the step ends.
 * Before the first op. */
TIDE_API tide_status tide_session_input(tide_session *session, const tide_tensor *tensor, const void *data,
                                        tide_id *out);
/* A tensor that an op of this step will write. keep: it can be read when the step has ended. Ids hold for this step. */
TIDE_API tide_status tide_session_tensor(tide_session *session, const tide_tensor *tensor, tide_id *out);
/* The next op. No variants means one without a workspace whose cost is not known. */
TIDE_API tide_status tide_session_op(tide_session *session, const tide_op *op, tide_op_fn fn, void *context);
/* No later op reads this value, which is neither kept nor carried. Optional, but what is not released stays in reach until the step
 * ends. What an op overwrites (a `must` pair) is released with it. */
TIDE_API tide_status tide_session_release(tide_session *session, tide_id tensor);
/* `from`, a value of this step, is the state `to` from the next step on. The old value of that state is released, unless
 * it is carried, too, and was so before. A state without a carry stays as it is. */
TIDE_API tide_status tide_session_carry(tide_session *session, tide_id from, tide_id to);
/* Waits until everything is complete; report may be NULL. */
TIDE_API tide_status tide_session_end(tide_session *session, tide_step_report *report);

/* What became of the steps so far. */
typedef struct tide_session_stats {
    uint64_t n_steps;      /* complete */
    uint64_t n_planned;    /* of these, from a plan to the end */
    uint64_t n_deviations; /* steps that left their plan half-way */
    uint64_t n_replans;    /* plans given up because the measured times were far from the predicted ones */
    uint64_t n_plans;      /* in memory now */
} tide_session_stats;
TIDE_API tide_session_stats tide_session_get_stats(const tide_session *session);

#ifdef __cplusplus
}
#endif
#endif
