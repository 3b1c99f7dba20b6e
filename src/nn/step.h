/* Steps with their kernels: those that a step was sized with are those that it runs with, so each is made once. */
#ifndef TIDE_NN_STEP_H
#define TIDE_NN_STEP_H

#include <tidemark/nn.h>

/* tide_step_create for a step that is to run: options->device is borrowed until tide_step_destroy. */
tide_status tide__step_create_runnable(const tide_model *model, const tide_step_options *options, tide_step **out);
/* Micro-batches of all ranks together. */
uint32_t tide__step_micros(const tide_step_options *options);
/* What one rank of several computes. */
typedef struct tide__share {
    uint32_t rank, n_ranks;
    uint32_t first, count; /* micro-batches */
} tide__share;
tide__share tide__step_share(const tide_step_options *options);
/* Of a runnable step; equal ops share one; NULL for messages. */
tide_kernel *tide__step_kernel(const tide_step *step, tide_id op);

#endif
