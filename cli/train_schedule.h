/* The learning rate from the command line. */
#ifndef TIDE_CLI_TRAIN_SCHEDULE_H
#define TIDE_CLI_TRAIN_SCHEDULE_H

#include "cli.h"

typedef struct schedule_args {
    double rate, factor; /* below 0: not given */
    const char *curve;   /* NULL: constant */
    uint64_t warmup;     /* UINT64_MAX: not given */
    uint32_t every;
} schedule_args;

/* Nothing given. */
#define NO_SCHEDULE ((schedule_args){.rate = -1, .factor = -1, .warmup = UINT64_MAX})

/* The rows of schedule_args for a command's table. */
#define SCHEDULE_OPTIONS(s)                                                                                          \
    {"--learning-rate", ARG_NUMBER, &(s).rate, "X", "[the recipe's, by batch, or the checkpoint's]"},                \
        {"--schedule", ARG_TEXT, &(s).curve, "NAME",                                                                 \
         "constant, step, cosine or linear (to 0 at the last step): the rate over the steps [constant, or the "      \
         "checkpoint's]"},                                                                                           \
        {"--warmup", ARG_U64, &(s).warmup, "N", "first raise the rate over N steps [the recipe's]"},                 \
        {"--decay-every", ARG_COUNT, &(s).every, "N", "with --schedule step: the rate falls after every N steps"}, { \
        "--decay-factor", ARG_NUMBER, &(s).factor, "X", "and to this share of itself [0.1]"                          \
    }

bool schedule_given(const schedule_args *args); /* any of it */
/* batch: samples per step. With another optimizer than the recipe's, a rate that suits most networks. */
float rate_of(const schedule_args *args, const tide_training_recipe *recipe, tide_optimizer optimizer, uint64_t batch);
/* What can be said before anything is opened. */
tide_status check_schedule_args(const schedule_args *args);
/* steps: of the whole training. */
void fill_schedule(const schedule_args *args, const tide_training_recipe *recipe, uint64_t steps, tide_schedule *out);

#endif
