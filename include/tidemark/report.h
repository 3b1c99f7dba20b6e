/* Reports: what a plan does to memory, to look at, and the records of runs that reports can be made of.
 *
 *   program + machine + plan (+ times of a run) ──▶ tide_report ──▶ a page, a terminal, files for other viewers
 *
 * A report only derives: what each residency is to people (its fate), which absences the plan decided on and what they
 * cost. The plan must be valid, and so must those of all ranks of a record: verify plans from files first. */
#ifndef TIDEMARK_REPORT_H
#define TIDEMARK_REPORT_H

#include <tidemark/ops.h>
#include <tidemark/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- records of runs (docs/formats.md) ---- */

/* Everything a report needs, in one file that needs no other. */
typedef struct tide_record tide_record;

/* Whether the first line of a text says that it is a record. */
TIDE_API bool tide_record_is(const void *text, size_t size);
TIDE_API tide_status tide_record_read_memory(const void *text, size_t size, const char *name_in_errors,
                                             tide_record **out);
TIDE_API void tide_record_destroy(tide_record *record); /* NULL is fine */
/* What it holds, until tide_record_destroy. */
TIDE_API const tide_machine *tide_record_machine(const tide_record *record);
TIDE_API const tide_program *tide_record_program(const tide_record *record);
TIDE_API const tide_plan *tide_record_plan(const tide_record *record); /* as it was read: verify it */
TIDE_API uint64_t tide_record_budget_bytes(const tide_record *record); /* of the arena; UINT64_MAX: none */

/* Of several ranks, each with a machine, a program, a plan and times of its own, as they were read: verify these plans, too. The record
 * itself is that of rank 0. NULL: there is no such rank. */
TIDE_API uint32_t tide_record_rank_count(const tide_record *record); /* at least 1 */
TIDE_API const tide_record *tide_record_of_rank(const tide_record *record, uint32_t rank);

/* What is written; everything is borrowed. */
typedef struct tide_record_parts {
    size_t size; /* sizeof(tide_record_parts) */
    const tide_machine *machine;
    const tide_program *program;
    const tide_plan *plan;
    const tide_timeline *timeline; /* measured: see tide_run_step_traced */
    const tide_shape *shapes;      /* per tensor, n = 0: not known */
    uint64_t budget_bytes;         /* of the arena; UINT64_MAX: none */
} tide_record_parts;
/* All but the last part, so that plan and program need not outlive their trainer. free() *text. */
TIDE_API tide_status tide_record_begin(const tide_record_parts *parts, char **text, size_t *size);
/* The whole file: what begin gave, and what `tidemark train --json` prints, as text. */
TIDE_API tide_status tide_record_write(const char *begun, size_t begun_size, const char *measured, size_t measured_size,
                                       const char *path);
/* The same of several ranks, from rank 0 on, in one file. */
typedef struct tide_record_rank {
    const char *begun; /* by tide_record_begin, on that rank */
    size_t begun_size;
    const char *host;  /* at most 63 bytes */
    uint64_t begin_ns; /* of its step, by a clock of all: the earliest is at 0; at most 2^62 */
} tide_record_rank;
TIDE_API tide_status tide_record_write_ranks(const tide_record_rank *ranks, uint32_t n_ranks, const char *measured,
                                             size_t measured_size, const char *path);

/* ---- the model ---- */

/* X(enumerator, name, text for people). What a residency is part of. One that leaves and comes back counts as leaving;
 * else how it came decides. */
#define TIDE_FATE_TABLE(X)                                                 \
    X(TIDE_FATE_KEEP, "stays", "stays from its first use to its last")     \
    X(TIDE_FATE_SWAP_OUT, "swapped out", "moves to a tier and comes back") \
    X(TIDE_FATE_SWAP_IN, "swapped in", "came back from a tier")            \
    X(TIDE_FATE_DROP, "dropped", "is dropped and computed again later")    \
    X(TIDE_FATE_RECOMPUTE, "computed again", "was computed again")         \
    X(TIDE_FATE_INPUT, "input", "comes from the client")                   \
    X(TIDE_FATE_WORKSPACE, "workspace", "scratch of one op, gone when the op is done")
typedef enum tide_fate {
#define TIDE_ENUM_MEMBER(e, name, text) e,
    TIDE_FATE_TABLE(TIDE_ENUM_MEMBER)
#undef TIDE_ENUM_MEMBER
} tide_fate;

/* A residency as it is drawn. Where a write takes over the bytes of a read, the read ends as that op starts. */
typedef struct tide_stay {
    uint32_t begin, end;     /* issue order, half-open */
    uint32_t until;          /* the access that completes last; TIDE_NONE: it stays to the end, or nobody touches it */
    uint64_t from_ns, to_ns; /* predicted */
    tide_fate fate;
} tide_stay;

typedef enum tide_choice_kind { TIDE_CHOICE_INPUT, TIDE_CHOICE_SWAP, TIDE_CHOICE_RECOMPUTE } tide_choice_kind;

/* One absence of a tensor from the arena: between two residencies, before the first one or after the last one. */
typedef struct tide_choice {
    tide_choice_kind kind;
    tide_id tensor;
    tide_id before, after;       /* residencies; TIDE_NONE: it starts, or ends, in the tier */
    uint32_t tier;               /* TIDE_NONE: recomputed */
    uint32_t out, in;            /* SAVE; LOAD or re-RUN; TIDE_NONE: there is none */
    uint64_t from_ns, to_ns;     /* when it is away */
    uint64_t cost_ns;            /* busy time of the transfers, or of the re-run */
    uint64_t wait_ns;            /* how long compute stood still for them */
    uint32_t last_run, next_run; /* the RUNs around it that use the value; TIDE_NONE: there is none */
    bool at_peak;                /* away when the op at the peak of policy liveness runs */
} tide_choice;

typedef struct tide_report tide_report;

typedef struct tide_report_options {
    size_t size;                    /* sizeof(tide_report_options) */
    const tide_shape *shapes;       /* per tensor, n = 0: not known; NULL: those of the record, or none */
    uint64_t budget_bytes;          /* of the arena; UINT64_MAX: none */
    uint64_t whole_bytes, whole_ns; /* of the unconstrained plan; 0: not known */
    const tide_record *record; /* of a run of this plan: its times and figures stand beside the predicted; NULL: none */
} tide_report_options;
TIDE_API void tide_report_options_init(tide_report_options *options);
/* Simulates and derives. Program, machine, plan, shapes and record are borrowed until tide_report_destroy. */
TIDE_API tide_status tide_report_create(const tide_program *program, const tide_machine *machine, const tide_plan *plan,
                                        const tide_report_options *options, tide_report **out);
TIDE_API void tide_report_destroy(tide_report *report); /* NULL is fine */
/* Shows as well what `tidemark train --json`, or `tidemark compare --json`, wrote to this file. */
TIDE_API tide_status tide_report_add_measured(tide_report *report, const char *path);
TIDE_API tide_status tide_report_add_compared(tide_report *report, const char *path);

/* What there is to see, until tide_report_destroy. */
TIDE_API const tide_stay *tide_report_stays(const tide_report *report);                /* per residency of the plan */
TIDE_API const tide_choice *tide_report_choices(const tide_report *report, size_t *n); /* by tensor, then time */
TIDE_API const tide_timeline *tide_report_timeline(const tide_report *report);         /* predicted */
TIDE_API const tide_liveness *tide_report_liveness(const tide_report *report);
/* The first action of an op; TIDE_NONE if it never runs. */
TIDE_API uint32_t tide_report_first_run(const tide_report *report, tide_id op);
/* Where the load in issue order is highest; TIDE_NONE without actions. */
TIDE_API uint32_t tide_report_peak_action(const tide_report *report);
/* The name of a residency's tensor, or that of the op whose workspace it is; never NULL. And its class; workspaces are
 * TIDE_CLASS_WORKSPACE. */
TIDE_API const char *tide_report_stay_name(const tide_report *report, tide_id residency);
TIDE_API tide_class tide_report_stay_class(const tide_report *report, tide_id residency);

/* ---- the writers: one file each, complete or not at all ("-" is stdout) ---- */
TIDE_API tide_status tide_report_write_html(const tide_report *report, const char *path);
/* For ui.perfetto.dev and pytorch.org/memory_viz, which have one set of times: the measured ones, where there are any. */
TIDE_API tide_status tide_report_write_perfetto(const tide_report *report, const char *path);
TIDE_API tide_status tide_report_write_memory_viz(const tide_report *report, const char *path);

typedef struct tide_report_terminal {
    size_t size;            /* sizeof(tide_report_terminal) */
    uint32_t columns, rows; /* of the map; the caller asks its terminal */
    bool colour;
} tide_report_terminal;
TIDE_API tide_status tide_report_write_terminal(const tide_report *report, const tide_report_terminal *terminal,
                                                const char *path);

/* ---- logs of trainings: the losses of one run or of several over the steps, in one picture ---- */
enum { TIDE_MAX_LOGS = 8 };
/* Whether the first line of the file says that it is a log in JSON Lines; false if it cannot be read. */
TIDE_API bool tide_log_is(const char *path);
/* A page that needs no other file. At most TIDE_MAX_LOGS. */
TIDE_API tide_status tide_log_report(const char *const *paths, uint32_t n, const char *output);

#ifdef __cplusplus
}
#endif
#endif
