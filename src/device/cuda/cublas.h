/* cuBLAS, loaded at run time: matrix products by its own kernels. Its workspace is part of the op's, of one fixed size, its
 * arithmetic is float32 throughout unless TF32 is asked for, and it may use no atomics: then, says NVIDIA, a GPU gives
 * the same bits every time. */
#ifndef TIDE_DEVICE_CUDA_CUBLAS_H
#define TIDE_DEVICE_CUDA_CUBLAS_H

#include <cublas_v2.h>

#include "device/gpu/kernel.h"

#define TIDE__BLAS_FUNCTIONS(X) \
    X(Create)                   \
    X(Destroy)                  \
    X(GetVersion)               \
    X(SetStream)                \
    X(SetWorkspace)             \
    X(SetAtomicsMode)           \
    X(GemmEx)

typedef struct tide__blas {
#define TIDE__BLAS_MEMBER(name) __typeof__(cublas##name) *name;
    TIDE__BLAS_FUNCTIONS(TIDE__BLAS_MEMBER)
#undef TIDE__BLAS_MEMBER
} tide__blas;

#define TIDE__BLAS_WORKSPACE_BYTES (UINT64_C(4) << 20) /* what NVIDIA advises */

/* TIDE_E_DEVICE where there is none. TIDE_CUBLAS_LIBRARY names another file. */
tide_status tide__blas_load(tide__blas *out);
/* For the current context. */
tide_status tide__blas_open(const tide__blas *blas, cublasHandle_t *out);

/* On the GPU: a, b, c, to which the shape's offsets are added, and the workspace. */
typedef struct tide__blas_places {
    float *a, *b, *c;
    void *workspace;
} tide__blas_places;

tide_status tide__blas_multiply(const tide__blas *blas, cublasHandle_t handle, cudaStream_t stream,
                                const tide__product_shape *p, bool tf32, const tide__blas_places *places);

#endif
