/* The files of src/device/gpu/kernels/, made part of the library by cmake/embed.cmake when it is built. */
#ifndef TIDE_DEVICE_OPENCL_SOURCES_H
#define TIDE_DEVICE_OPENCL_SOURCES_H

#include <stddef.h>

typedef struct tide__cl_source {
    const char *name; /* "gemm.gpu" */
    const unsigned char *bytes;
    size_t size;
} tide__cl_source;

extern const tide__cl_source tide__cl_sources[]; /* ends with a name of NULL */

#endif
