/* A trainer as data, for the files that work on it: train.c (steps), evaluate.c, learn.c and checkpoint.c. */
#ifndef TIDE_NN_TRAINER_H
#define TIDE_NN_TRAINER_H

#include "nn/loader.h"
#include "run/drift.h"

/* From measured costs to a better plan; see learn.c. */
typedef struct tide__learning {
    uint64_t *costs; /* per op; NULL: nothing is measured yet */
    bool warm;       /* a step is done: pages have been touched */
    bool measured;   /* the plan is made, or about to be, from measured costs */
    bool due;        /* there are costs to plan from, before the next step */
    tide__run_drift drift;
} tide__learning;

struct tide_trainer {
    tide_trainer_options options;
    tide__network network;
    tide__loader loader;
    tide__learning learning;
    struct tide__parts *parts; /* of a network that changes; NULL: it does not */
    uint64_t step;             /* steps done */
    uint64_t seen;             /* samples given out */
    uint64_t batch;            /* samples per step */
    float loss_sum;            /* of the last step, over its micro-batches */
    float update_scale;        /* of the last step; NaN: its update was skipped */
    uint64_t skipped;          /* steps without an update */
    uint32_t skipped_in_a_row;
    bool spoiled; /* a checkpoint was read half: neither its values nor those before it */
};

/* To train or to test with: are its samples as the model takes them? */
tide_status tide__check_data(const tide_model *model, const tide_data *data);

/* learn.c */
void tide__learning_open(tide_trainer *t);
void tide__learning_close(tide_trainer *t);
/* Before a step: follows a plan from the last measured costs, if there are new ones. */
tide_status tide__learning_settle(tide_trainer *t);
/* The next step is to be timed, action by action. */
bool tide__learning_wants_times(const tide_trainer *t);
/* After a step; timeline: NULL if it was not timed. */
tide_status tide__learning_note(tide_trainer *t, const tide_timeline *timeline, const tide_step_report *report);

#endif
