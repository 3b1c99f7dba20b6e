/* A stand-in for cuBLAS: the few functions that the CUDA device calls, from NVIDIA's documentation. A workspace holds until
 * the stream is set, products without one are refused (cuBLAS would take memory outside the arena), leading dimensions
 * are checked. */
#include <cublas_v2.h>
#include <stdlib.h>

#include "on_stream.h"

#define EXPORT __attribute__((visibility("default")))

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    size_t workspace_bytes;
    cublasAtomicsMode_t atomics;
    work *works;
};

EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    work_free_all(&handle->works);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    handle->workspace = NULL;
    handle->workspace_bytes = 0;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
    if ((size_t)workspace % 256) return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
    handle->atomics = mode;
    return CUBLAS_STATUS_SUCCESS;
}

static size_t span(int rows, int columns, int lead) { return sizeof(float) * (size_t)(lead * (columns - 1) + rows); }

/* NOLINTNEXTLINE(readability-function-size): the parameters are cuBLAS' */
EXPORT cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t a_order, cublasOperation_t b_order, int m, int n,
                                   int k, const void *alpha, const void *a, cudaDataType a_type, int a_lead,
                                   const void *b, cudaDataType b_type, int b_lead, const void *beta, void *c,
                                   cudaDataType c_type, int c_lead, cublasComputeType_t type, cublasGemmAlgo_t algo) {
    const int a_rows = a_order == CUBLAS_OP_N ? m : k, b_rows = b_order == CUBLAS_OP_N ? k : n;
    if (a_type != CUDA_R_32F || b_type != CUDA_R_32F || c_type != CUDA_R_32F || a_lead < a_rows || b_lead < b_rows ||
        c_lead < m || m < 0 || n < 0 || k < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!h->workspace || h->atomics != CUBLAS_ATOMICS_NOT_ALLOWED) return CUBLAS_STATUS_NOT_SUPPORTED;
    const work w = {
        .at = {(CUdeviceptr)a, (CUdeviceptr)b, (CUdeviceptr)c},
        .bytes = {span(a_rows, a_rows == m && a_order == CUBLAS_OP_N ? k : m, a_lead),
                  span(b_rows, b_order == CUBLAS_OP_N ? n : k, b_lead), span(m, n, c_lead)},
        .written = 2,
        .compute = work_multiply,
        .whole = {m, n, k, a_order == CUBLAS_OP_N ? 1 : a_lead, a_order == CUBLAS_OP_N ? a_lead : 1,
                  b_order == CUBLAS_OP_N ? 1 : b_lead, b_order == CUBLAS_OP_N ? b_lead : 1, c_lead},
        .real = {*(const float *)alpha, *(const float *)beta},
        .coarse = type == CUBLAS_COMPUTE_32F_FAST_TF32,
    };
    return work_enqueue(&h->works, &w, h->stream, (CUdeviceptr)h->workspace, h->workspace_bytes)
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
