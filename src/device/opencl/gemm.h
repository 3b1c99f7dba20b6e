/* Matrix products as launches: how a product is cut into blocks, and the fully general one. */
#ifndef TIDE_DEVICE_OPENCL_GEMM_H
#define TIDE_DEVICE_OPENCL_GEMM_H

#include "device/opencl/kernel.h"

/* A block is mc x nc, its depth taken kc at a time (kernels/tile.gpu). */
typedef struct tide__gemm_blocks {
    int64_t mc, nc, kc;
    size_t rows, columns;               /* blocks of the whole product */
    uint64_t a_bytes, b_bytes, c_bytes; /* of local memory */
} tide__gemm_blocks;

/* For `times` products of m x n at once. */
tide__gemm_blocks tide__cut_blocks(const tide__opencl *opencl, int64_t m, int64_t n, int64_t times);

/* The flags of kernels/gemm.gpu. */
enum {
    TIDE__GEMM_BIAS = 1,
    TIDE__GEMM_ADD_TO = 2,
    TIDE__GEMM_LOWER_C = 4,
    TIDE__GEMM_LOWER_A = 8,
    TIDE__GEMM_UPPER_A = 16,
    TIDE__GEMM_ROW_BIAS = 32,
};

/* An operand as a matrix: strides in floats, from `first` floats on; samples and heads of a batch are apart by these. */
typedef struct tide__gemm_matrix {
    uint32_t operand;
    int64_t row, column, first, sample, head;
} tide__gemm_matrix;

typedef struct tide__gemm {
    int64_t m, n, depth;
    tide__gemm_matrix a, b, c; /* c.column is taken for 1 */
    float alpha;
    int flags;
    uint32_t bias;          /* operand, with TIDE__GEMM_BIAS or _ROW_BIAS */
    int64_t samples, heads; /* 0 counts as 1 */
} tide__gemm;

tide_status tide__cl_gemm(tide__opencl_kernel *k, const tide__gemm *g);
/* The sums of the columns of operand `from`, (rows, columns). */
tide_status tide__cl_sum_rows(tide__opencl_kernel *k, uint32_t from, uint32_t to, int64_t rows, int64_t columns);

/* ---- who computes a product (products.c) ---- */

tide_status tide__products_open(tide__opencl *opencl); /* reads TIDE_OPENCL_PRODUCTS */
void tide__products_close(tide__opencl *opencl);
/* The first product of a class that nothing is known about is measured both ways. */
bool tide__product_is_clblast(tide__opencl *opencl, const tide__gemm *g);
/* Appends the product as CLBlast's. */
tide_status tide__product_add(tide__opencl_kernel *k, const tide__gemm *g);
/* Where the temporary memory of products begins in the workspace of a variant. */
uint64_t tide__product_place(const tide__opencl_kernel *k, uint32_t variant);
/* On a queue's thread. */
tide_status tide__product_run(const tide__opencl_queue *queue, const tide__opencl_kernel *k,
                              const tide__command *command, const tide__cl_product *product);

#endif
