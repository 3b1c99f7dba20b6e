/* Values that only one of a trainer's ranks has, between steps: all ranks call these in the same order. */
#ifndef TIDE_NN_OWNERS_H
#define TIDE_NN_OWNERS_H

#include "nn/states.h"
#include "nn/trainer.h"

/* tide__network_hash_state, whoever has the state. */
tide_status tide__owner_hashes_state(tide_trainer *t, uint32_t state, uint64_t *hash);
/* tide__network_read_state at rank 0, whoever has the state. Other ranks send what they own; `take` is not called there. */
tide_status tide__owner_reads_state(tide_trainer *t, uint32_t state, tide__piece_fn take, void *context);
/* A file is written by rank 0, which names it; the others have something to send only where states have owners. */
tide_status tide__owner_check_path(const tide_trainer *t, const char *path);

#endif
