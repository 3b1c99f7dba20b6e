/* A comparison: one row per policy and budget, and how it is shown. */
#ifndef TIDE_CLI_COMPARE_H
#define TIDE_CLI_COMPARE_H

#include "cli.h"

typedef struct compare_row {
    const char *policy, *budget; /* as they were asked for; "min": the smallest that works */
    uint64_t budget_bytes;
    bool fits;
    bool tier_full;      /* which is why it does not */
    tide_fit_report fit; /* else why; needed_bytes 0: not known */
    uint64_t arena_bytes;
    tide_prediction prediction;
    uint64_t planning_ns; /* processor time, the same for all rows of a policy */
} compare_row;

typedef struct comparison {
    const tide_program *program;
    const tide_machine *machine;
    unconstrained whole;
    compare_row *rows; /* by policy, then by budget */
    size_t n_rows;
} comparison;

void print_comparison(const comparison *c);
void print_comparison_json(const comparison *c);
/* Arena against step time, one line per policy. */
tide_status write_frontier_svg(const comparison *c, const char *path);

#endif
