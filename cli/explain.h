/* What `tidemark explain` tells: why the peak is where it is, and what became of each gap of a value. */
#ifndef TIDE_CLI_EXPLAIN_H
#define TIDE_CLI_EXPLAIN_H

#include "cli.h"
#include "report/report.h"

/* One gap between two uses of a value, as the plan treats it. Times in ns. */
typedef struct gap_story {
    tide_gap gap;
    uint64_t idle_ns;     /* from the end of the one use to the start of the other, as predicted */
    uint64_t transfer_ns; /* out and in again, alone on the channels; UINT64_MAX: no tier to go to */
    uint64_t rerun_ns;    /* of the ops that are run again for it, else of its own op alone; UINT64_MAX: impossible */
    uint32_t n_reruns;    /* ops that are run again for it; 0: it is not run again */
    uint64_t wait_ns;     /* how long compute waits for what was decided */
    bool at_peak;         /* policy liveness has its peak inside the gap */
    tide__fate fate;      /* TIDE__FATE_KEEP, _SWAP_OUT or _DROP */
    uint32_t tier;        /* of a swap */
} gap_story;

typedef struct story_list {
    gap_story *items;
    size_t n;
} story_list;

/* Every gap of the program (of at least one op), by tensor, then time. budgets: those of the plan. free() the items. */
tide_status tell_gaps(const tide__report *r, const tide_budgets *budgets, story_list *out);
/* "transfers hide behind 31 ms of other work": one clause. In a static buffer, good for one printf. */
const char *show_reason(const gap_story *g);
const char *show_decision(const tide__report *r, const gap_story *g);

void print_peak(const tide__report *r, uint32_t top);
void peak_json(json_out *j, const tide__report *r, uint32_t top);
/* The gaps that matter most: those over the peak, by bytes. */
void print_gaps(const tide__report *r, const story_list *gaps, uint32_t top);
void gaps_json(json_out *j, const tide__report *r, const story_list *gaps, tide_id tensor);
void print_tensor(const tide__report *r, const story_list *gaps, tide_id tensor);
void tensor_json(json_out *j, const tide__report *r, const story_list *gaps, tide_id tensor);

#endif
