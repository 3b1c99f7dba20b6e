/* See gemm.h. */
#include "device/cpu/gemm.h"

tide_status tide__gemm(int64_t m, int64_t n, int64_t k, float factor, tide__matrix a, tide__matrix b, float keep,
                       float *c, int64_t stride) {
    return tide__dnnl(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, factor, a.data, a.stride,
                                 b.data, b.stride, keep, c, stride),
                      "multiply matrices");
}
