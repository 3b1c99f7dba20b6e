/* Operand sizes and convolution variants without a device: plain float32 shapes and a documented model of
 * workspaces (docs/costs.md). It answers in the form a device answers in, so that the rest of `nn` need not know. */
#ifndef TIDE_NN_ANALYTIC_H
#define TIDE_NN_ANALYTIC_H

#include <tidemark/device.h>

#include "nn/cost.h"

#define TIDE__MAX_VARIANTS 4

/* Bytes of every operand, layout 0 everywhere; one variant without workspace. */
tide_status tide__analytic_operands(const tide_op_desc *desc, tide_kernel_info *info);

/* Adds the variants of a convolution; work[0] is given, the work of the others is filled in. */
void tide__analytic_variants(const tide_op_desc *desc, tide_kernel_info *info, tide__work work[TIDE__MAX_VARIANTS]);

#endif
