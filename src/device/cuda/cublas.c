/* See cublas.h. */
#include "device/cuda/cublas.h"

#include <stddef.h>

#include "device/cuda/find_library.h"

/* The header turns some names into those of their newest version: cublasCreate is cublasCreate_v2. */
#define TEXT(name) #name
#define NAME(name) TEXT(name)

static const tide__symbol symbols[] = {
#define SYMBOL(name) {NAME(cublas##name), offsetof(tide__blas, name)},
    TIDE__BLAS_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static tide_status check(cublasStatus_t status, const char *doing) {
    if (status == CUBLAS_STATUS_SUCCESS) return TIDE_OK;
    return tide__fail(status == CUBLAS_STATUS_ALLOC_FAILED ? TIDE_E_MEMORY : TIDE_E_DEVICE,
                      "cuBLAS cannot %s: status %d", doing, (int)status);
}

tide_status tide__blas_load(tide__blas *out) {
    return tide__cuda_library_load("libcublas.so", CUBLAS_VER_MAJOR, "TIDE_CUBLAS_LIBRARY", symbols,
                                   sizeof symbols / sizeof *symbols, out);
}

tide_status tide__blas_open(const tide__blas *blas, cublasHandle_t *out) {
    cublasHandle_t handle = NULL;
    TIDE_TRY(check(blas->Create(&handle), "begin"));
    tide_status status = check(blas->SetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED), "go without atomics");
    if (status == TIDE_OK)
        *out = handle;
    else
        blas->Destroy(handle);
    return status;
}

static cublasOperation_t order_of(const tide__product_matrix *m) { return m->transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

/* cuBLAS stores by columns: what is C = A B to us is C' = B' A' to it, and the primes are for free. */
tide_status tide__blas_multiply(const tide__blas *blas, cublasHandle_t handle, cudaStream_t stream,
                                const tide__product_shape *p, bool tf32, const tide__blas_places *places) {
    TIDE_TRY(check(blas->SetStream(handle, stream), "take a stream"));
    /* After the stream, which sets it back to one of cuBLAS' own. */
    TIDE_TRY(check(blas->SetWorkspace(handle, places->workspace, TIDE__BLAS_WORKSPACE_BYTES), "take a workspace"));
    return check(blas->GemmEx(handle, order_of(&p->b), order_of(&p->a), (int)p->n, (int)p->m, (int)p->depth, &p->alpha,
                              places->b + p->b.offset, CUDA_R_32F, (int)p->b.row, places->a + p->a.offset, CUDA_R_32F,
                              (int)p->a.row, &p->beta, places->c + p->c.offset, CUDA_R_32F, (int)p->c.row,
                              tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_GEMM_DEFAULT),
                 "multiply");
}
