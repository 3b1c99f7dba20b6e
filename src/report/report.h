/* A report as data, for the writers: one file per format. Writers compute no figures of their own, so all formats tell the
 * same story.
 *
 * Invariant: stays[i] belongs to residency i of the plan, acts[i] to action i, slots[i] to copy i. The plan was proved
 * by the verifier before; nothing here checks it again. */
#ifndef TIDE_REPORT_REPORT_H
#define TIDE_REPORT_REPORT_H

#include <stdio.h>

#include <tidemark/report.h>

#include "base/vec.h"
#include "report/extra.h"

/* An action: how long its queue stood still before it, and for whom. */
typedef struct tide__act {
    uint64_t wait_ns;
    uint32_t cause; /* the awaited action that completed last; TIDE_NONE if wait_ns is 0 */
    bool rerun;
} tide__act;

/* A copy in a tier. */
typedef struct tide__report_slot {
    uint64_t from_ns, to_ns;
} tide__report_slot;

/* One of several ranks, as its last step ran. */
typedef struct tide__report_rank {
    const char *host;
    uint64_t begin_ns; /* of its step, since the earliest began */
    tide_report *ran;  /* of rank 0 it is that of the report */
} tide__report_rank;

/* An action of one of several ranks, on the clock of all. */
typedef struct tide__rank_act {
    uint32_t rank, queue, kind, phase; /* kind: as in the page's columns; messages are SAVE and LOAD */
    uint64_t start_ns, time_ns, wait_ns;
    uint32_t cause; /* the row of the action that it waited for; TIDE_NONE: none */
    uint32_t peer;  /* of a message; TIDE_NONE: it is none */
    const char *name;
} tide__rank_act;

struct tide_report {
    const tide_program *program; /* borrowed, like machine, plan and shapes */
    const tide_machine *machine;
    const tide_plan *plan;
    const tide_shape *shapes;       /* per tensor, n = 0: not known; NULL: none is known */
    uint64_t budget_bytes;          /* of the arena; UINT64_MAX: none */
    uint64_t whole_bytes, whole_ns; /* of the unconstrained plan; 0: not known */
    tide_timeline *timeline;
    tide_liveness *liveness;
    tide_stay *stays;
    tide__act *acts;
    tide__report_slot *slots;
    TIDE_VEC(tide_choice) choices; /* by tensor, then time */
    uint32_t *first_run;           /* per op: its first action; TIDE_NONE if it never runs */
    uint32_t peak_action;          /* where the load in issue order is highest; TIDE_NONE without actions */
    uint64_t peak_ns;              /* where the predicted load is highest */
    tide_report *ran;              /* the same plan with the times of a run; NULL: none is known */
    tide__measured measured;       /* empty unless a file was added, like compared */
    tide__compared compared;
    TIDE_VEC(tide__report_rank) ranks;  /* empty: there is one, or none was measured */
    TIDE_VEC(tide__rank_act) rank_acts; /* rank by rank, in issue order */
    const tide_record *record;          /* borrowed; NULL: none */
};

/* What was measured: the file that was added counts before the record. Empty: nothing is known. */
const tide__measured *tide__report_measured(const tide_report *r);

/* ranks.c: all ranks of a record on one clock, and whom their compute waited for. */
tide_status tide__report_find_ranks(tide_report *r);
tide_status tide__report_write_ranks(const tide_report *r, FILE *f); /* a member of the page's meta block */
/* model.c: the plan of a record with the times that were measured. */
tide_status tide__report_ran(const tide_record *record, tide_report **out);

/* "compute", "ram out", "client in": in `text`, cut if need be. */
void tide__report_queue_name(const tide_report *r, uint32_t queue, char *text, size_t size);

#endif
