/* Copies inside the arena as launches. */
#ifndef TIDE_DEVICE_GPU_COPY_H
#define TIDE_DEVICE_GPU_COPY_H

#include "device/gpu/kernel.h"

/* Where blocks lie: the first one at float `first` of the operand, the others `stride` floats apart. */
typedef struct tide__blocks_of {
    uint32_t operand;
    int64_t first, stride;
} tide__blocks_of;

/* `blocks` blocks of n floats each. */
tide_status tide__gpu_copy(tide__gpu_kernel *k, tide__blocks_of from, tide__blocks_of to, int64_t n, int64_t blocks);

#endif
