/* Matrix products as launches: how a product is cut into blocks, and the fully general one. */
#ifndef TIDE_DEVICE_GPU_GEMM_H
#define TIDE_DEVICE_GPU_GEMM_H

#include "device/gpu/kernel.h"

/* A block is mc x nc, its depth taken kc at a time (kernels/tile.gpu). */
typedef struct tide__gemm_blocks {
    int64_t mc, nc, kc;
    size_t rows, columns;               /* blocks of the whole product */
    uint64_t a_bytes, b_bytes, c_bytes; /* of local memory */
} tide__gemm_blocks;

/* For `times` products of m x n at once. */
tide__gemm_blocks tide__cut_blocks(const tide__gpu *gpu, int64_t m, int64_t n, int64_t times);
/* A panel less in each block of rows, where there is more than one. */
bool tide__shrink_blocks(const tide__gpu *gpu, int64_t m, int64_t n, tide__gemm_blocks *b);

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

struct tide__gemm {
    int64_t m, n, depth;
    tide__gemm_matrix a, b, c; /* c.column is taken for 1 */
    float alpha;
    int flags;
    uint32_t bias;          /* operand, with TIDE__GEMM_BIAS or _ROW_BIAS */
    int64_t samples, heads; /* 0 counts as 1 */
};

tide_status tide__gpu_gemm(tide__gpu_kernel *k, const tide__gemm *g);
/* The sums of the columns of operand `from`, (rows, columns). */
tide_status tide__gpu_sum_rows(tide__gpu_kernel *k, uint32_t from, uint32_t to, int64_t rows, int64_t columns);

/* ---- for libraries of products ---- */

/* A single product of whole matrices, which is what libraries take; false: it is none. */
bool tide__gemm_is_whole(const tide__gemm *g, tide__product_shape *out);
/* Its bias, where it has one, before such a product is added to it. */
tide_status tide__gpu_spread_bias(tide__gpu_kernel *k, const tide__gemm *g);
/* The product of a fully connected layer's op, and what follows it. */
tide__gemm tide__fc_product(const tide_op_desc *d);
tide_status tide__fc_bias_gradient(tide__gpu_kernel *k, const tide_op_desc *d);

/* Whether a library of products computes it: then bits may be other ones. */
bool tide__gpu_product_is_foreign(const tide__gpu_kernel *k, const tide__gemm *g);

#endif
