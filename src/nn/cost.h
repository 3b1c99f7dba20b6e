/* How much work an op is: flops and bytes, and the roofline that turns them into nanoseconds. The figures per op
 * kind stand in docs/costs.md; keep the two in step. */
#ifndef TIDE_NN_COST_H
#define TIDE_NN_COST_H

#include <tidemark/machine.h>
#include <tidemark/ops.h>

/* Work of one variant of an op. */
typedef struct tide__work {
    uint64_t flops, bytes;
    double speed; /* of the matrix units, relative to the machine's matrix_efficiency; 1 for the default variant */
    bool half;    /* its products are of bf16 or f16 */
} tide__work;

/* Multiply-add = 2 flops. TIDE_E_OVERFLOW if they do not fit 64 bits. */
tide_status tide__op_flops(const tide_op_desc *desc, uint64_t *out);

/* launch + max(flops time, bytes time), rounded to the nearest ns; 0 without a machine. */
tide_status tide__op_cost_ns(const tide_machine *machine, tide_op_kind kind, tide__work work, uint64_t *out);

#endif
