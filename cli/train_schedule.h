/* The learning rate from the command line. */
#ifndef TIDE_CLI_TRAIN_SCHEDULE_H
#define TIDE_CLI_TRAIN_SCHEDULE_H

#include "cli.h"

typedef struct schedule_args {
    double rate, factor; /* below 0: not given */
    const char *curve;   /* NULL: constant */
    uint32_t warmup, every;
} schedule_args;

/* Nothing given. */
#define NO_SCHEDULE ((schedule_args){.rate = -1, .factor = -1})

/* The rows of schedule_args for a command's table. */
#define SCHEDULE_OPTIONS(s)                                                                                          \
    {"--learning-rate", ARG_NUMBER, &(s).rate, "X", "[0.05, or the checkpoint's]"},                                  \
        {"--schedule", ARG_TEXT, &(s).curve, "NAME",                                                                 \
         "constant, step, cosine or linear (to 0 at the last step): the rate over the steps [constant, or the "      \
         "checkpoint's]"},                                                                                           \
        {"--warmup", ARG_COUNT, &(s).warmup, "N", "first raise the rate over N steps"},                              \
        {"--decay-every", ARG_COUNT, &(s).every, "N", "with --schedule step: the rate falls after every N steps"}, { \
        "--decay-factor", ARG_NUMBER, &(s).factor, "X", "and to this share of itself [0.1]"                          \
    }

bool schedule_given(const schedule_args *args); /* any of it */
float rate_of(const schedule_args *args);
/* What can be said before anything is opened. */
tide_status check_schedule_args(const schedule_args *args);
/* steps: of the whole training. */
void fill_schedule(const schedule_args *args, uint64_t steps, tide_schedule *out);

#endif
