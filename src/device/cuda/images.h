/* The kernels as nvcc made them (cmake/cuda.cmake), part of the library by cmake/embed.cmake: images of each family, which
 * are tried in their order: with TIDE_CUDA_CUBINS a fat binary; PTX. */
#ifndef TIDE_DEVICE_CUDA_IMAGES_H
#define TIDE_DEVICE_CUDA_IMAGES_H

#include <stddef.h>

typedef struct tide__cuda_image {
    const char *name;           /* "gemm.ptx" */
    const unsigned char *bytes; /* with a zero behind them */
    size_t size;
} tide__cuda_image;

extern const tide__cuda_image tide__cuda_images[]; /* ends with a name of NULL */

#endif
