/* How the stand-ins for cuBLAS and cuDNN compute: on a stream of the driver that TIDE_CUDA_LIBRARY names, in its order, on
 * copies of the operands in pinned memory. So bounds, races and streams are checked by the stand-in for the driver. The
 * workspace is filled with rubbish first: what lies in it is lost. */
#ifndef TIDE_TESTS_CUDA_ON_STREAM_H
#define TIDE_TESTS_CUDA_ON_STREAM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

enum { WORK_OPERANDS = 3 };

typedef struct work work;
struct work {
    work *next;
    CUdeviceptr at[WORK_OPERANDS];
    size_t bytes[WORK_OPERANDS];
    float *host[WORK_OPERANDS]; /* filled in */
    int written;                /* which of them is copied back */
    void (*compute)(work *w);
    /* Of the library: */
    int whole[24];
    float real[2];
    bool coarse;
    unsigned noise;
};

/* False: the driver refused. The work is freed by work_free_all(). */
bool work_enqueue(work **list, const work *w, CUstream stream, CUdeviceptr workspace, size_t workspace_bytes);
void work_free_all(work **list);

/* sums.c: products of matrices for cuBLAS, convolutions for cuDNN. */
void work_multiply(work *w);
void work_convolve(work *w);

#endif
