/* The probabilities of an inference step, some rows at a time. A row is one sample's, or one token's. */
#ifndef TIDE_NN_PROBABILITIES_H
#define TIDE_NN_PROBABILITIES_H

#include "nn/network.h"

typedef struct tide__probabilities {
    tide__network *network;
    tide_id op;               /* that writes them */
    uint64_t classes, pixels; /* of a row; classes lie `pixels` apart */
    uint64_t rows, most;      /* of all; at a time */
    uint64_t unit;            /* every so many rows one begins where the device can read from */
    uint64_t row_bytes;       /* as stored */
    void *stored;
    float *plain;
} tide__probabilities;

/* Of a network on this device. */
tide_status tide__probabilities_open(tide__network *network, const tide_device *device, tide__probabilities *out);
void tide__probabilities_close(tide__probabilities *p); /* also one whose opening failed */
/* After a step: *rows are those from `first` on, row-major, until the next call; *n: how many. */
tide_status tide__probabilities_read(const tide__probabilities *p, uint64_t first, const float **rows, uint64_t *n);

#endif
