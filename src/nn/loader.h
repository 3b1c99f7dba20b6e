/* The next batch, loaded while the step runs: a copy queue of the device fills one batch while the step reads another.
 *
 * Invariant: what a step sees does not depend on whether its batch was loaded ahead. A load ahead that fails is tried
 * again when its batch is needed, and only then is a failure. */
#ifndef TIDE_NN_LOADER_H
#define TIDE_NN_LOADER_H

#include "nn/network.h"

/* Which samples are next, in a shuffled order that depends on the seed and the epoch. */
typedef struct tide__cursor {
    uint64_t seed, n_samples; /* of an epoch */
    uint64_t seen;            /* samples before this batch */
} tide__cursor;

/* tide__order_fn; its context is a cursor. */
uint64_t tide__cursor_order(const void *cursor, uint64_t i, uint64_t *draw);

typedef struct tide__loader {
    tide__network *network;
    const tide_data *data;
    tide_device *device;
    tide_queue *queue;   /* NULL: nothing is loaded ahead */
    tide__batch spare;   /* being filled, or filled */
    tide__cursor cursor; /* of the spare batch */
    bool ahead;          /* the spare batch is being filled, or filled */
} tide__loader;

/* Without a queue or memory for a second batch it works, but loads nothing ahead. */
void tide__loader_open(tide__loader *loader, tide__network *network, const tide_data *data, tide_device *device);
void tide__loader_close(tide__loader *loader);
/* The network's batch becomes the one at the cursor. */
tide_status tide__loader_take(tide__loader *loader, const tide__cursor *cursor);
/* Begins to load the batch at the cursor. */
void tide__loader_begin(tide__loader *loader, const tide__cursor *cursor);
/* Nothing of the network is in use by the loader any more, until tide__loader_begin. */
void tide__loader_rest(tide__loader *loader);

#endif
