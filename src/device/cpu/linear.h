/* What convolutions and fully connected layers have in common: the operands of their three kinds and how oneDNN's
 * arguments bind to them. Each declares the operands and attaches the primitive of `pd` (still the caller's). */
#ifndef TIDE_DEVICE_CPU_LINEAR_H
#define TIDE_DEVICE_CPU_LINEAR_H

#include "device/cpu/prim.h"

/* The operands of a convolution alone, with weights in this layout: for own code. */
tide_status tide__linear_declare(tide__cpu_kernel *k, tide__md weights);

/* Weights are stored as the primitive wants them. */
tide_status tide__linear_forward(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd);
tide_status tide__linear_backward_data(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd);
/* stored: the layout of dw. */
tide_status tide__linear_backward_weights(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd, tide__md stored);

/* Another primitive for a convolution whose operands are declared. */
tide_status tide__linear_alternative(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd);

/* ---- convolutions (conv.c) ---- */

/* The best way for a convolution of this kind; weights as it likes them. */
tide_status tide__conv_choose(tide__cpu_kernel *k, const tide_op_desc *d, tide_op_kind kind,
                              dnnl_primitive_desc_t *out);
/* The best way to the gradient of weights that are stored as kind `owner` likes them. */
tide_status tide__conv_choose_weights(tide__cpu_kernel *k, const tide_op_desc *d, tide_op_kind owner, tide__md *stored,
                                      dnnl_primitive_desc_t *out);

#endif
