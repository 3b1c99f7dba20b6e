/* A trainer as data, for the files that work on it: train.c (steps, evaluation), learn.c and checkpoint.c. */
#ifndef TIDE_NN_TRAINER_H
#define TIDE_NN_TRAINER_H

#include "nn/loader.h"

struct tide_trainer {
    tide_trainer_options options;
    tide__network network;
    tide__loader loader;
    uint64_t step;  /* steps done */
    uint64_t seen;  /* samples given out */
    uint64_t batch; /* samples per step */
    float *losses;  /* of the micro-batches of the last step */
    bool spoiled;   /* a checkpoint was read half: neither its values nor those before it */
};

/* learn.c: from online to a plan, after the first step in mode AUTO. */
tide_status tide__trainer_settle(tide_trainer *t);

#endif
