/* What our own kernels do beside a library's convolution. */
#ifndef TIDE_DEVICE_GPU_CONV_H
#define TIDE_DEVICE_GPU_CONV_H

#include "device/gpu/kernel.h"

/* After the product of a forward convolution that has a bias; nothing for others. */
tide_status tide__gpu_conv_add_bias(tide__gpu_kernel *k, const tide_op_desc *d);
/* The bias' gradient, where the op has one to compute; nothing for others. */
tide_status tide__gpu_conv_bias_gradient(tide__gpu_kernel *k, const tide_op_desc *d);

#endif
