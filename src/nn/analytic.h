/* Operand sizes and convolution variants without a device: plain float32 shapes and a documented model of
 * workspaces (docs/costs.md). It answers in the form a device answers in, so that the rest of `nn` need not know. */
#ifndef TIDE_NN_ANALYTIC_H
#define TIDE_NN_ANALYTIC_H

#include <tidemark/device.h>

#include "nn/cost.h"

#define TIDE__MAX_VARIANTS 4

/* Of operands of 2 bytes per element; those of 4 have layout 0. */
#define TIDE__LAYOUT_HALF 2

/* Bytes of every operand, one variant without workspace. `half`: activations and their gradients have 2 bytes per element, but
 * tokens and the probabilities of a loss; parameters and sums per channel or row stay float32. */
tide_status tide__analytic_operands(const tide_op_desc *desc, bool half, tide_kernel_info *info);

/* Adds the variants of a convolution; work[0] is given, the work of the others is filled in. `half`: a product that reads a
 * weight makes a copy of 2 bytes per element in its workspace first. */
void tide__analytic_variants(const tide_op_desc *desc, bool half, tide_kernel_info *info,
                             tide__work work[TIDE__MAX_VARIANTS]);

#endif
