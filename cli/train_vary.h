/* Networks that change from step to step, from the command line: stochastic depth and sequences of several lengths. */
#ifndef TIDE_CLI_TRAIN_VARY_H
#define TIDE_CLI_TRAIN_VARY_H

#include "cli.h"

typedef struct vary_args {
    double drop_path;    /* below 0: not given */
    uint32_t min_length; /* 0: not given */
} vary_args;

/* Nothing given. */
#define NO_VARIATION ((vary_args){.drop_path = -1})

/* The rows of vary_args for a command's table. */
#define VARY_OPTIONS(v)                                                                                          \
    {"--drop-path", ARG_NUMBER, &(v).drop_path, "P",                                                             \
     "ResNets: leave out blocks at random, the last with probability P, those before with less [off]"},          \
    {                                                                                                            \
        "--min-length", ARG_COUNT, &(v).min_length, "N",                                                         \
            "language models: samples of N tokens up to the context, another length at every step [the context]" \
    }

/* The parts of a model that steps draw from; several may be one model. */
typedef struct model_parts {
    tide_model **models; /* each once */
    const tide_model **parts;
    uint32_t n_models, n_parts; /* 0: the network does not change */
} model_parts;

bool varies(const vary_args *args);
tide_status check_vary_args(const vary_args *args);
/* `whole` is the model of spec and args. On failure, too, for free_parts. */
tide_status make_parts(const vary_args *a, const char *spec, const model_args *args, const tide_model *whole,
                       uint64_t seed, model_parts *out);
void free_parts(model_parts *parts);

#endif
