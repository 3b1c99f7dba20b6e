/* Products of small and strided matrices, row-major (onednn.c). oneDNN's sgemm: in a parallel loop it stays on its thread,
 * outside it uses all of them. */
#ifndef TIDE_DEVICE_CPU_GEMM_H
#define TIDE_DEVICE_CPU_GEMM_H

#include "device/cpu/kernel.h"

typedef struct tide__matrix {
    const float *data;
    int64_t stride; /* floats from row to row, as stored */
    bool transposed;
} tide__matrix;

/* c (m x n, rows `stride` apart) = factor * a (m x k) * b (k x n) + keep * c. With keep 0 the old c is not read. */
tide_status tide__gemm(int64_t m, int64_t n, int64_t k, float factor, tide__matrix a, tide__matrix b, float keep,
                       float *c, int64_t stride);

#endif
