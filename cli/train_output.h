/* What trainings left behind, compared and shown. */
#ifndef TIDE_CLI_TRAIN_OUTPUT_H
#define TIDE_CLI_TRAIN_OUTPUT_H

#include "cli.h"

enum { POLICY_BYTES = 32 };

/* What one of several ranks took; messages are per step. */
typedef struct rank_use {
    char host[TIDE_NET_HOST];
    uint64_t arena_bytes, tier_bytes, step_ns, sent_bytes;
    uint64_t messages_ns; /* from posting to completion, so waits for other ranks are in it */
} rank_use;

typedef struct outcome {
    char policy[POLICY_BYTES];
    uint64_t arena_bytes, tier_bytes; /* tier_bytes: of all of them */
    uint64_t tiers[TIDE_MACHINE_MAX_TIERS];
    const tide_machine *machine;
    uint64_t first_step; /* steps that a checkpoint brought along */
    uint64_t step_ns;    /* median */
    uint64_t saved_bytes, loaded_bytes, relocated_bytes;
    uint64_t disk_written_bytes, disk_read_bytes; /* of saved and loaded bytes, what disks moved */
    uint32_t n_reruns;
    float *losses;               /* per step of this training */
    uint64_t hash;               /* of weights and states after the last step */
    tide_evaluation test;        /* at the end */
    bool bits_any;               /* other roundings were accepted */
    bool same_bits;              /* as the first: every loss and the hash */
    struct train_record *record; /* NULL: this run is not recorded */
    bool unrecorded;             /* though it should have been */
    tide_status judged;          /* TIDE_OK: `test` is there */
    char why_not_judged[256];
    tide_shard shard;
    rank_use *ranks; /* NULL: there is one */
    uint32_t n_ranks;
    uint64_t n_steps;                 /* done here */
    uint64_t sent_bytes, messages_ns; /* as in rank_use, of this rank */
} outcome;

/* Fills same_bits; true if all are the same. */
bool compare_bits(outcome *runs, int n, uint64_t steps);
void print_runs(const outcome *runs, int n, uint64_t steps);
void print_runs_json(FILE *stream, const char *model, const outcome *runs, int n, uint64_t steps);

#endif
