/* The one evaluation: decisions become a plan that is scheduled, placed, synced and simulated, all but its proof and the peak
 * of its prediction. Nothing
 * else says whether decisions fit and how fast they are. */
#ifndef TIDE_PLAN_EVALUATE_H
#define TIDE_PLAN_EVALUATE_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

/* What placement is asked for. */
typedef struct tide__evaluate_options {
    uint64_t
        capacity_bytes; /* of the arena; 0: the load, or as near to it as the work gets; UINT64_MAX: as small as can be */
    uint64_t place_work; /* what getting within it is worth (place_plan.h), in units of about a microsecond */
    uint64_t worth_ns;   /* that work is taken only where the step may be faster than this */
    bool relocates;      /* where it is missed, values may be copied inside the arena */
    bool fills;          /* runs take faster variants as far as their workspaces go into what is left of it */
    /* A plan that takes at least so long is wanted in an arena of fewer bytes than this only. NULL: in any. */
    uint64_t (*wanted_below)(const void *self, uint64_t step_ns);
    const void *self;
} tide__evaluate_options;

/* A plan for the input's program, machine and tier budgets, in an arena of the capacity if it can be, in a larger one if not.
 * Where nobody wants it, the rest is not found out: its arena is what is known by then, its load at least, and its step never ends
 * (UINT64_MAX).
 * Decisions that cannot be carried out are TIDE_E_ARGUMENT, or TIDE_E_UNSUPPORTED where a carried value and its successor would
 * need one place at the same time. */
tide_status tide__evaluate(const tide__policy_input *in, const tide__decisions *decisions,
                           const tide__evaluate_options *options, tide_plan **out);
/* The same for whoever knows where things lie: the offsets of all n residencies, in the order in which the schedule makes
 * them. */
tide_status tide__evaluate_at(const tide__policy_input *in, const tide__decisions *decisions, const uint64_t *offsets,
                              size_t n, tide_plan **out);

/* An empty plan for the input's program and machine. */
tide_status tide__evaluate_begin(const tide__policy_input *in, tide_plan **out);

/* Schedule only. loads[k], n_ops + 1 entries: the most bytes in the arena while something of slot k runs; slot
 * n_ops holds what comes after the last op. */
tide_status tide__evaluate_loads(const tide__policy_input *in, const tide__decisions *decisions, uint64_t *loads);

#endif
