/* CLBlast, a library of matrix products for OpenCL, as an alternative to gpu/kernels/gemm.gpu where it is faster on a device
 * (products.c decides that). It is loaded at run time and may be missing; its functions are declared here, so that the
 * library builds without its headers.
 *
 * CLBlast gets its temporary memory from the workspace of the op, so that nothing lies outside the arena. */
#ifndef TIDE_DEVICE_OPENCL_CLBLAST_H
#define TIDE_DEVICE_OPENCL_CLBLAST_H

#include "device/gpu/kernel.h"
#include "device/opencl/cl.h"

/* CLBlastSGemmTempBufferSize, CLBlastSgemmWithTempBuffer: enums are ints, a status of 0 is success. */
typedef int tide__clblast_size_fn(int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k,
                                  size_t a_offset, size_t a_ld, size_t b_offset, size_t b_ld, size_t c_offset,
                                  size_t c_ld, cl_command_queue *queue, size_t *size);
typedef int tide__clblast_sgemm_fn(int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k,
                                   float alpha, cl_mem a, size_t a_offset, size_t a_ld, cl_mem b, size_t b_offset,
                                   size_t b_ld, float beta, cl_mem c, size_t c_offset, size_t c_ld,
                                   cl_command_queue *queue, cl_event *event, cl_mem temporary);

typedef struct tide__clblast {
    bool is_here;
    tide__clblast_size_fn *size;
    tide__clblast_sgemm_fn *sgemm;
    int (*clear_cache)(void);
} tide__clblast;

/* False where there is none. */
bool tide__clblast_load(tide__clblast *out);
/* What a product on this queue's device needs beside its matrices, wherever these begin. */
tide_status tide__clblast_temporary(const tide__clblast *blast, cl_command_queue queue, const tide__product_shape *p,
                                    uint64_t *bytes);
/* Enqueues the product. buffers: of a, b, c and the temporary memory, NULL if it needs none. */
tide_status tide__clblast_multiply(const tide__clblast *blast, cl_command_queue queue, const tide__product_shape *p,
                                   const cl_mem buffers[4]);

#endif
