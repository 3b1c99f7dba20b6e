/* --total-budget: the memory of the whole process, of which the arena gets what the rest leaves. */
#ifndef TIDE_CLI_TRAIN_TOTAL_H
#define TIDE_CLI_TRAIN_TOTAL_H

#include "cli.h"

/* options->plan.arena_budget, from the total and what the process has beside the arena: data and stacks as they are now, with device,
 * model and data open; stacks of threads to come; batches; pictures that `decoders` threads have in hand; RAM tiers; room to plan
 * and for kernels, by the number of ops. */
tide_status share_total(uint64_t total_bytes, tide_trainer_options *options, uint64_t batch, uint32_t decoders);

#endif
