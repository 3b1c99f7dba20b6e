/* Every op kind of ops.h in plain scalar code: doubles, row-major (N, C, H, W), no padding, no cleverness. What device
 * kernels are compared with, and what finite differences are taken of. Labels, indices and masks are doubles too. */
#ifndef TIDE_TESTS_REF_OPS_H
#define TIDE_TESTS_REF_OPS_H

#include <tidemark/device.h>

#define REF_MAX_OPERANDS 16

/* How many reads and writes an op has, and the elements of each (reads first, then writes). */
typedef struct ref_spec {
    uint32_t n_reads, n_writes;
    uint64_t elements[REF_MAX_OPERANDS];
} ref_spec;

ref_spec ref_spec_of(const tide_op_desc *d);
/* operand: reads first, then writes; writes are filled. */
void ref_run(const tide_op_desc *d, const tide_step_args *args, double *const *operand);

#endif
