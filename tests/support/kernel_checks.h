/* What is asked of every kernel: the reference's values, the same bits again, elsewhere, in place and on any threads
 * (where own loops promise it), gradients that are finite differences. */
#ifndef TIDE_TESTS_KERNEL_CHECKS_H
#define TIDE_TESTS_KERNEL_CHECKS_H

#include "support/kernel_rig.h"

typedef struct rig_pair {
    kernel_rig one, two;
} rig_pair;

typedef void (*visit_fn)(const tide_op_desc *d, void *context);
typedef void (*visit_all_fn)(visit_fn visit, void *context); /* shows every descriptor of a test to `visit` */

/* Every descriptor against one of the checks below, on one device; and on the CPU with one thread and with two. */
void check_all_on(const rig_config *config, visit_all_fn visit_all, visit_fn check);
void check_all_threads(visit_all_fn visit_all);

tide_kernel_info info_of(kernel_rig *rig, const tide_op_desc *d);
/* No kernel comes of this descriptor. */
void refuse(kernel_rig *rig, tide_op_desc d, tide_status expected);

/* `context` is a kernel_rig. */
void check_reference(const tide_op_desc *d, void *context);
void check_repeat(const tide_op_desc *d, void *context);   /* again, and elsewhere in the arena */
void check_in_place(const tide_op_desc *d, void *context); /* nothing for ops without such a pair */
/* `context` is a rig_pair. Own loops: the number of threads changes nothing. */
void check_threads(const tide_op_desc *d, void *context);

/* bf16 on the CPU: what the kernel of float32 makes of the same numbers, rounded; again, elsewhere and in place the same bits.
 * Nothing for ops that bf16 does not change, and for REORDER, whose operands are those of others. */
float nearest_bf16(float x); /* rounded as bf16 is */
void check_all_bf16(const rig_config *config, visit_all_fn visit_all);

/* One backward op against differences of its forward op: d(sum of weight * write)/d(read), where `weight` is the
 * incoming gradient. Positions count in the forward op (read, write) and in the backward op (dy, result). */
typedef struct gradient_case {
    tide_op_kind forward, backward;
    uint32_t read, write;
    int dy; /* -1: the loss itself, weight 1 */
    uint32_t result;
    int shared[5][2]; /* reads of backward that are operands of forward: {backward, forward}; -1 ends */
    uint32_t zeroed;  /* a read of backward that is another gradient: zero here; 0: none */
} gradient_case;
void check_gradient(kernel_rig *rig, const gradient_case *g, const tide_op_desc *forward_desc,
                    const tide_op_desc *backward_desc);

#endif
