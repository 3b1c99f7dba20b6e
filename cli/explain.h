/* What `tidemark explain` tells: why the peak is where it is, and what became of each gap of a value. */
#ifndef TIDE_CLI_EXPLAIN_H
#define TIDE_CLI_EXPLAIN_H

#include <tidemark/report.h>

#include "cli.h"

/* A plan and its report, as all parts of this command read them. */
typedef struct explained {
    const tide_program *program;
    const tide_machine *machine;
    const tide_plan *plan;
    const tide_report *report;
    const tide_timeline *timeline;
    const tide_liveness *liveness;
    const tide_stay *stays; /* per residency */
    const tide_choice *choices;
    size_t n_choices;
    uint32_t peak_action;
} explained;

/* One gap between two uses of a value, as the plan treats it. Times in ns. */
typedef struct gap_story {
    tide_gap gap;
    uint64_t idle_ns;     /* from the end of the one use to the start of the other, as predicted */
    uint64_t transfer_ns; /* out and in again, alone on the channels; UINT64_MAX: no tier to go to */
    uint64_t rerun_ns;    /* of the ops that are run again for it, else of its own op alone; UINT64_MAX: impossible */
    uint32_t n_reruns;    /* ops that are run again for it; 0: it is not run again */
    uint64_t wait_ns;     /* how long compute waits for what was decided */
    bool at_peak;         /* policy liveness has its peak inside the gap */
    tide_fate fate;       /* TIDE_FATE_KEEP, _SWAP_OUT or _DROP */
    uint32_t tier;        /* of a swap */
} gap_story;

typedef struct story_list {
    gap_story *items;
    size_t n;
} story_list;

/* Every gap of the program (of at least one op), by tensor, then time. budgets: those of the plan. free() the items. */
tide_status tell_gaps(const explained *r, const tide_budgets *budgets, story_list *out);
/* "transfers hide behind 31 ms of other work": one clause. In a static buffer, good for one printf. */
const char *show_reason(const gap_story *g);
const char *show_decision(const explained *r, const gap_story *g);

void print_peak(const explained *r, uint32_t top);
void peak_json(json_out *j, const explained *r, uint32_t top);
/* The gaps that matter most: those over the peak, by bytes. */
void print_gaps(const explained *r, const story_list *gaps, uint32_t top);
void gaps_json(json_out *j, const explained *r, const story_list *gaps, tide_id tensor);
void print_tensor(const explained *r, const story_list *gaps, tide_id tensor);
void tensor_json(json_out *j, const explained *r, const story_list *gaps, tide_id tensor);

#endif
