/* A run as data: what tide_run_create prepares once, so that a step only reads it. */
#ifndef TIDE_RUN_RUN_DATA_H
#define TIDE_RUN_RUN_DATA_H

#include <tidemark/run.h>

#include "base/vec.h"
#include "plan/border.h"
#include "program/store.h"
#include "tier/tier.h"

/* One SAVE, LOAD or message: what its io function is called with. */
typedef struct tide__move {
    tide__tier_slot slot; /* slot.tier is NULL for the client tier */
    tide_run *run;
    tide_id tensor;
    uint64_t size_bytes; /* of the tensor; what lies beyond, up to the copy's size, is padding */
    const tide_message *message;
} tide__move;

/* One place that the start or the end map gives a tensor: a residency or a copy, the other one is TIDE_NONE. */
typedef struct tide__spot {
    tide_id residency, copy;
    uint32_t next; /* another place of the tensor in the same map; TIDE_NONE: none */
} tide__spot;

/* A value of a resting run that waits on disk while a guest has its bytes. */
typedef struct tide__parked {
    tide_id residency;
    uint64_t offset_bytes; /* in run->park */
} tide__parked;

/* What every step reads at its end. */
typedef struct tide__watch {
    tide_id tensor;
    char *data; /* the client's */
    uint64_t size_bytes;
    bool enqueued; /* its bytes come with the step; else they are read afterwards */
} tide__watch;

struct tide_run {
    tide_run_options options; /* borrowed: device, program, machine, plan */
    uint32_t n_actions, n_queues;
    tide_arena *arena;          /* the host's, if there is one */
    uint64_t arena_bytes, base; /* of the plan; where its offset 0 is in the arena */
    tide_queue *queue[1 + TIDE_MACHINE_MAX_CHANNELS];
    tide__tier *tier[TIDE_MACHINE_MAX_TIERS]; /* NULL where the plan uses none */
    tide_event **done;                        /* per action: NULL if nobody waits for it */
    tide_event *begin, *end, *drained[1 + TIDE_MACHINE_MAX_CHANNELS];
    tide__move *moves;    /* per action; unused but for SAVEs, LOADs and messages */
    uint64_t *offsets;    /* the arena offsets of all uses, action by action */
    size_t *first_offset; /* per action */
    bool *rerun;          /* per action */
    TIDE_VEC(tide__spot) spots;
    uint32_t *starts, *ends; /* per tensor: its first spot in the start and in the end map, or TIDE_NONE */
    tide_id *carried_from;   /* per tensor: what it is at the end of the step before; TIDE_NONE: nothing */
    uint64_t saved_bytes, loaded_bytes, relocated_bytes; /* per step, known beforehand */
    uint32_t n_reruns;
    tide__tier_stats traffic;                  /* of disk tiers, when the step began */
    tide__tier_stats late;                     /* what moved after the report of its step, for the next one */
    tide__crossings crossings;                 /* what the next step waits for of this one */
    bool flows[1 + TIDE_MACHINE_MAX_CHANNELS]; /* per queue: a step may end before it does; none: with a barrier */
    bool unsettled;                            /* the last step has ended so, and nobody has waited since */
    tide__store calls;                         /* of tide_call_launch in this step */
    TIDE_VEC(tide__watch) watches;
    uint64_t staging_bytes; /* of the device */
    uint64_t hauled_bytes;  /* by transitions, all together */
    bool stepped;           /* at least one step is complete: the end map holds */
    bool poisoned;          /* a step failed on the way, or what was parked did not come back */
    tide_status lost;       /* then: why what was parked did not come back; TIDE_OK: it is something else */
    char lost_text[256];
    tide_run *host, *guest; /* whose arena this is; who else is in it now */
    tide__tier *park;       /* NULL: nothing is parked */
    TIDE_VEC(tide__parked) parked;
    struct tide__run_online *online; /* NULL: it follows a plan */
    struct tide__trace *trace;       /* of the step at hand; NULL: nobody asked for it */
    bool pulling;                    /* a step is under way that the client computes */
    bool stopped;                    /* the client gave such a step up */
    uint32_t n_pulled;               /* actions of it so far, with the op that the client has at hand */
    bool growing;                    /* of a session: the program comes op by op */
};

/* tide_run_create; growing: for a session, the program may be unfinished and grow. */
tide_status tide__run_create(const tide_run_options *options, bool growing, tide_run **out);
/* run->carried_from, of the program as it is now. */
tide_status tide__run_read_carries(tide_run *run);

/* tide_io_fn of a client tensor; its context is a tide__move. */
tide_status tide__run_load_input(void *context, uint64_t position, void *data, uint64_t size_bytes);

/* follow.c: the tables for options.plan; all queues and the tiers it uses are open. Half-made ones are for
 * tide__run_forget_plan, which is fine with none. */
tide_status tide__run_prepare_plan(tide_run *run);
void tide__run_forget_plan(tide_run *run);

/* The parts of a planned step. Actions are enqueued in issue order, those in [from, to). */
tide_status tide__run_begin_step(tide_run *run);
tide_status tide__run_issue(tide_run *run, const tide_step_args *args, uint32_t from, uint32_t to);
tide_status tide__run_end_step(tide_run *run, tide_status status); /* waits, also after a failure */
tide_status tide__run_report_step(tide_run *run, tide_step_report *report);

/* Of disk tiers: a step begins; and what it moved. */
void tide__run_mark_traffic(tide_run *run);
void tide__run_report_traffic(tide_run *run, tide_step_report *report);

/* access.c: behind all that the step enqueued, what it is to read of the arena; and, after it, the rest. */
tide_status tide__run_enqueue_watches(tide_run *run);
tide_status tide__run_finish_watches(tide_run *run);

/* What is reserved of the tier that the machine lists as the t-th. */
uint64_t tide__run_tier_bytes(const tide_run *run, uint32_t t);

/* Can there be another step? */
tide_status tide__run_check_steps(const tide_run *run);

/* Is it between two steps, and not poisoned? What still goes on of the last one is waited for. */
tide_status tide__run_check_rests(tide_run *run);

/* A failure that says why the run is poisoned. */
tide_status tide__run_fail_poisoned(const tide_run *run);

/* Waits for every queue, also when one failed; the first failure counts. */
tide_status tide__run_sync(tide_run *run, tide_status status);

/* trace.c: before and after an action is enqueued. */
tide_status tide__trace_begin(struct tide__trace *trace, uint32_t action, tide_queue *queue);
tide_status tide__trace_end(struct tide__trace *trace, uint32_t action, tide_queue *queue);

/* Reserves the tier that the machine lists as the t-th. */
tide_status tide__run_open_tier(tide_run *run, uint32_t t, uint64_t size_bytes);
/* Of opening a tier, or of making it larger: the system has no such bytes, on disk or in memory. */
static inline bool tide__run_tier_is_refused(tide_status status) {
    return status == TIDE_E_IO || status == TIDE_E_MEMORY;
}

/* guest.c: the guest's plan is known, its arena_bytes too. On failure the host is as before. */
tide_status tide__run_enter(tide_run *guest, tide_run *host);
void tide__run_leave(tide_run *guest); /* the guest's queues are idle or gone */
const tide__parked *tide__run_find_parked(const tide_run *run, tide_id residency);

#endif
