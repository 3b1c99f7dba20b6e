/* The metadata of a checkpoint: what the training was, how far it is, and how its learning rate goes on. */
#ifndef TIDE_NN_CHECKPOINT_KEYS_H
#define TIDE_NN_CHECKPOINT_KEYS_H

#include "nn/safetensors.h"
#include "nn/trainer.h"

/* From this version on arrays are called, shaped and turned as PyTorch has them, and optimizer state has a prefix. */
enum { TIDE__CHECKPOINT_PUBLISHED = 4 };

/* tide__metadata_fn */
void tide__checkpoint_write_keys(FILE *stream, const tide_trainer *t);
/* TIDE_E_FORMAT if anything that decides the bits from here on is another, but for the learning rate. */
tide_status tide__checkpoint_check_keys(const tide_trainer *t, const tide__safetensors *s);
/* It is a checkpoint of a version before TIDE__CHECKPOINT_PUBLISHED. */
bool tide__checkpoint_is_before(const tide__safetensors *s);

/* Where it stands. */
typedef struct tide__checkpoint_state {
    uint64_t version, step, seen;
    float learning_rate;
    tide_schedule schedule;
} tide__checkpoint_state;
tide_status tide__checkpoint_read_keys(const tide__safetensors *s, tide__checkpoint_state *out);

#endif
