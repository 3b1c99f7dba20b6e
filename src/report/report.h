/* The report: one model of what a plan does to memory, and one writer per format.
 *
 *   program + machine + plan + timeline + liveness ──▶ tide__report ──▶ html, terminal, perfetto, memory-viz
 *
 * The model only derives: what each residency is to people (its fate), which absences the plan decided on and what they
 * cost, who waited for whom. Writers compute no figures of their own, so all formats tell the same story.
 *
 * Invariant: stays[i] belongs to residency i of the plan, acts[i] to action i, slots[i] to copy i. The plan was proved
 * by the verifier before; nothing here checks it again. */
#ifndef TIDE_REPORT_REPORT_H
#define TIDE_REPORT_REPORT_H

#include <tidemark/ops.h>
#include <tidemark/plan.h>

#include "base/vec.h"
#include "report/extra.h"

/* X(enumerator, name, text for people). What a residency is part of. One that leaves and comes back counts as leaving;
 * else how it came decides. */
#define TIDE__FATE_TABLE(X)                                                 \
    X(TIDE__FATE_KEEP, "stays", "stays from its first use to its last")     \
    X(TIDE__FATE_SWAP_OUT, "swapped out", "moves to a tier and comes back") \
    X(TIDE__FATE_SWAP_IN, "swapped in", "came back from a tier")            \
    X(TIDE__FATE_DROP, "dropped", "is dropped and computed again later")    \
    X(TIDE__FATE_RECOMPUTE, "computed again", "was computed again")         \
    X(TIDE__FATE_INPUT, "input", "comes from the client")                   \
    X(TIDE__FATE_WORKSPACE, "workspace", "scratch of one op, gone when the op is done")
typedef enum tide__fate {
#define TIDE__FATE_MEMBER(e, name, text) e,
    TIDE__FATE_TABLE(TIDE__FATE_MEMBER)
#undef TIDE__FATE_MEMBER
        TIDE__N_FATES
} tide__fate;

/* A residency as it is drawn. Where a write takes over the bytes of a read, the read ends as that op starts. */
typedef struct tide__stay {
    uint32_t begin, end;     /* issue order, half-open */
    uint32_t until;          /* the access that completes last; TIDE_NONE: it stays to the end, or nobody touches it */
    uint64_t from_ns, to_ns; /* predicted */
    tide__fate fate;
} tide__stay;

/* An action: how long its queue stood still before it, and for whom. */
typedef struct tide__act {
    uint64_t wait_ns;
    uint32_t cause; /* the awaited action that completed last; TIDE_NONE if wait_ns is 0 */
    bool rerun;
} tide__act;

/* A copy in a tier. */
typedef struct tide__slot {
    uint64_t from_ns, to_ns;
} tide__slot;

typedef enum tide__decision_kind {
    TIDE__DECIDED_INPUT,
    TIDE__DECIDED_SWAP,
    TIDE__DECIDED_RECOMPUTE
} tide__decision_kind;

/* One absence of a tensor from the arena: between two residencies, before the first one or after the last one. */
typedef struct tide__choice {
    tide__decision_kind kind;
    tide_id tensor;
    tide_id before, after;       /* residencies; TIDE_NONE: it starts, or ends, in the tier */
    uint32_t tier;               /* TIDE_NONE: recomputed */
    uint32_t out, in;            /* SAVE; LOAD or re-RUN; TIDE_NONE: there is none */
    uint64_t from_ns, to_ns;     /* when it is away */
    uint64_t cost_ns;            /* busy time of the transfers, or of the re-run */
    uint64_t wait_ns;            /* how long compute stood still for them */
    uint32_t last_run, next_run; /* the RUNs around it that use the value; TIDE_NONE: there is none */
    bool at_peak;                /* away when the op at the peak of policy liveness runs */
} tide__choice;

typedef struct tide__report {
    const tide_program *program; /* borrowed, like machine, plan and shapes */
    const tide_machine *machine;
    const tide_plan *plan;
    const tide_shape *shapes;       /* per tensor, n = 0: not known; NULL: none is known */
    uint64_t budget_bytes;          /* of the arena; UINT64_MAX: none */
    uint64_t whole_bytes, whole_ns; /* of the unconstrained plan; 0: not known */
    tide_timeline *timeline;
    tide_liveness *liveness;
    tide__stay *stays;
    tide__act *acts;
    tide__slot *slots;
    TIDE_VEC(tide__choice) choices; /* by tensor, then time */
    uint32_t *first_run;            /* per op: its first action; TIDE_NONE if it never runs */
    uint32_t peak_action;           /* where the load in issue order is highest; TIDE_NONE without actions */
    uint64_t peak_ns;               /* where the predicted load is highest */
    struct tide__report *ran;       /* the same plan with the times of a run; NULL: none is known */
    tide__measured measured;        /* empty unless the caller has read one; freed with the report, like compared */
    tide__compared compared;
} tide__report;

typedef struct tide__report_options {
    const tide_shape *shapes; /* may be NULL */
    uint64_t budget_bytes;
    uint64_t whole_bytes, whole_ns;
    const uint64_t *start_ns, *end_ns; /* per action, measured; NULL: not known */
} tide__report_options;

/* Simulates and derives; with measured times also what they make of the plan. On failure *out is empty. */
tide_status tide__report_init(const tide_program *program, const tide_machine *machine, const tide_plan *plan,
                              const tide__report_options *options, tide__report *out);
void tide__report_deinit(tide__report *r);

/* "compute", "ram out", "client in": in `text`, cut if need be. */
void tide__report_queue_name(const tide__report *r, uint32_t queue, char *text, size_t size);
/* The name of a residency's tensor, or that of the op whose workspace it is; never NULL. */
const char *tide__report_stay_name(const tide__report *r, tide_id residency);
/* Its class; workspaces are TIDE_CLASS_WORKSPACE. */
tide_class tide__report_stay_class(const tide__report *r, tide_id residency);
const char *tide__class_name(tide_class cls);
const char *tide__phase_name(tide_phase phase);

/* ---- the writers: one file each, complete or not at all ("-" is stdout) ---- */
tide_status tide__report_write_html(const tide__report *r, const char *path);
tide_status tide__report_write_perfetto(const tide__report *r, const char *path);
tide_status tide__report_write_memory_viz(const tide__report *r, const char *path);

typedef struct tide__terminal {
    uint32_t columns, rows; /* of the map; the caller asks its terminal */
    bool colour;
} tide__terminal;
tide_status tide__report_write_terminal(const tide__report *r, const tide__terminal *terminal, const char *path);

#endif
