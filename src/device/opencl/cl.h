/* OpenCL as this device uses it: types from the headers, functions from a table that load.c fills at run time. So the
 * library starts where there is no OpenCL, and says so only to those who ask for it. */
#ifndef TIDE_DEVICE_OPENCL_CL_H
#define TIDE_DEVICE_OPENCL_CL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdbool.h>

#include "base/error.h"

#define TIDE__CL_FUNCTIONS(X)    \
    X(GetPlatformIDs)            \
    X(GetPlatformInfo)           \
    X(GetDeviceIDs)              \
    X(GetDeviceInfo)             \
    X(CreateContext)             \
    X(ReleaseContext)            \
    X(CreateCommandQueue)        \
    X(ReleaseCommandQueue)       \
    X(CreateBuffer)              \
    X(CreateSubBuffer)           \
    X(ReleaseMemObject)          \
    X(CreateProgramWithSource)   \
    X(CreateProgramWithBinary)   \
    X(BuildProgram)              \
    X(GetProgramInfo)            \
    X(GetProgramBuildInfo)       \
    X(ReleaseProgram)            \
    X(CreateKernel)              \
    X(SetKernelArg)              \
    X(ReleaseKernel)             \
    X(EnqueueNDRangeKernel)      \
    X(EnqueueReadBuffer)         \
    X(EnqueueWriteBuffer)        \
    X(EnqueueCopyBuffer)         \
    X(EnqueueMapBuffer)          \
    X(EnqueueUnmapMemObject)     \
    X(EnqueueMarkerWithWaitList) \
    X(WaitForEvents)             \
    X(SetEventCallback)          \
    X(GetEventInfo)              \
    X(ReleaseEvent)              \
    X(Flush)                     \
    X(Finish)

typedef struct tide__cl {
#define TIDE__CL_MEMBER(name) __typeof__(cl##name) *name;
    TIDE__CL_FUNCTIONS(TIDE__CL_MEMBER)
#undef TIDE__CL_MEMBER
} tide__cl;

/* TIDE_E_DEVICE where there is no libOpenCL, or one that lacks a function. */
tide_status tide__cl_load(tide__cl *out);

/* "CL_OUT_OF_RESOURCES" */
const char *tide__cl_error_name(cl_int error);
/* Passes an OpenCL failure on: "cannot create a queue: CL_OUT_OF_HOST_MEMORY". */
tide_status tide__cl_check(cl_int error, const char *doing);

#endif
