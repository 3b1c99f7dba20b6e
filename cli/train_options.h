/* The command line of tidemark train: its options, which of them go together, and which trainings they ask for. */
#ifndef TIDE_CLI_TRAIN_OPTIONS_H
#define TIDE_CLI_TRAIN_OPTIONS_H

#include "train_data.h"
#include "train_output.h"
#include "train_save.h"
#include "train_schedule.h"
#include "train_vary.h"
#include "weights.h"

enum { MAX_RUNS = 8 };

typedef struct train_options {
    const char *spec; /* of the model */
    model_args model;
    data_args data;
    schedule_args schedule;
    vary_args vary;
    const char *machine, *device, *mode, *policy, *compare, *decisions, *disk_path, *resume, *effort, *order, *record,
        *plan_cache, *on_nan, *log, *save_weights, *bits, *shard, *launcher;
    weights_args weights;
    save_args save;
    budget_args budgets;
    size_arg total; /* of the process; stands for the arena until that is known */
    size_arg lent;  /* --peer-budget */
    uint32_t steps, epochs, threads, supervise, restarts, lenders;
    tide_shard least_shard, most_shard; /* what `shard` allows */
    bool verify_bits, bits_any, json, quiet, no_disk_checksums, no_disk_packing;
} train_options;

/* What runs, in order: --compare's list; else --policy, after an unconstrained reference when bits are verified: liveness,
 * or none for liveness itself. */
typedef struct run_list {
    char policy[MAX_RUNS][POLICY_BYTES];
    int n;
} run_list;

/* False: there is nothing to do but to end with *exit_code. */
bool read_train_options(int argc, char **argv, train_options *out, int *exit_code);
/* What can be said before anything is opened. */
tide_status list_runs(const train_options *o, run_list *list);
tide_status check_train_options(train_options *o, const run_list *list);

bool is_mode(const train_options *o, const char *mode); /* --mode */

#endif
