/* cuBLAS and cuDNN as variants: other ways to the result of a fully connected layer's op or a convolution, of other
 * workspace, speed and bits. Ops have their own kernels first of all; a way of a library is added where the GPU's
 * self-test has shown that the libraries give the same bits every time and nearly ours (`tide_device_trust`), or where the
 * caller asks for all of them, as the self-test does.
 *
 * Each op's variants are timed when the op is first used on a GPU. Times stay on disk, and with them the choice of the
 * default: the fastest way in float32 that needs little workspace. Whoever measures first decides for all, so that bits
 * do not depend on the day. Where it cannot be kept, the own kernel stays the default. TF32 is never the default:
 * plans take it with `--bits any` only. */
#ifndef TIDE_DEVICE_CUDA_LIBRARIES_H
#define TIDE_DEVICE_CUDA_LIBRARIES_H

#include "device/cuda/cuda.h"
#include "device/gpu/kernel.h"

/* Loads what is wanted and there, with the context current; without any nothing is a failure. */
tide_status tide__cuda_libraries_open(tide__cuda *cuda, tide_libraries wanted);
void tide__cuda_libraries_close(tide__cuda *cuda);

/* Slots of the vtable and the backend. */
tide_status tide__cuda_libraries_trust(tide_device *device);
tide_status tide__cuda_add_ways(tide__gpu_kernel *k, const tide_op_desc *d);
void tide__cuda_forget_ways(tide__gpu_kernel *k);
tide_status tide__cuda_run_way(tide__host_queue *queue, const tide__command *command, const tide__gpu_product *product);

/* trial.c: times of the kernel's variants, from disk or measured now, and the default that follows. `key`: of the op on
 * this GPU with these libraries. */
void tide__cuda_try_ways(tide__gpu_kernel *k, uint64_t key);

#endif
