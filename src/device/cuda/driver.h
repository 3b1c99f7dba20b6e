/* CUDA as this device uses it: types from the toolkit's header, functions of the driver from a table that driver.c fills
 * at run time. So the library starts where there is no NVIDIA driver, and nothing is linked with one. */
#ifndef TIDE_DEVICE_CUDA_DRIVER_H
#define TIDE_DEVICE_CUDA_DRIVER_H

#include <cuda.h>
#include <string.h>

#include "base/error.h"

#define TIDE__CU_FUNCTIONS(X)  \
    X(Init)                    \
    X(DeviceGetCount)          \
    X(DeviceGet)               \
    X(DeviceGetName)           \
    X(DeviceGetUuid)           \
    X(DeviceGetAttribute)      \
    X(DevicePrimaryCtxRetain)  \
    X(DevicePrimaryCtxRelease) \
    X(CtxPushCurrent)          \
    X(CtxPopCurrent)           \
    X(CtxSetCurrent)           \
    X(ModuleLoadData)          \
    X(ModuleUnload)            \
    X(ModuleGetFunction)       \
    X(LaunchKernel)            \
    X(MemGetInfo)              \
    X(MemAlloc)                \
    X(MemFree)                 \
    X(MemHostAlloc)            \
    X(MemFreeHost)             \
    X(MemcpyHtoDAsync)         \
    X(MemcpyDtoHAsync)         \
    X(MemcpyDtoDAsync)         \
    X(MemsetD8Async)           \
    X(StreamCreate)            \
    X(StreamDestroy)           \
    X(StreamSynchronize)       \
    X(StreamWaitEvent)         \
    X(EventCreate)             \
    X(EventDestroy)            \
    X(EventRecord)             \
    X(EventQuery)              \
    X(EventSynchronize)        \
    X(EventElapsedTime)        \
    X(GetErrorName)

typedef struct tide__cu {
#define TIDE__CU_MEMBER(name) __typeof__(cu##name) *name;
    TIDE__CU_FUNCTIONS(TIDE__CU_MEMBER)
#undef TIDE__CU_MEMBER
    int version; /* of CUDA that the driver is for: 13020 is 13.2 */
} tide__cu;

/* TIDE_E_DEVICE, in one line, where there is no driver, or one older than the toolkit that made the kernels.
 * TIDE_CUDA_LIBRARY names another library than libcuda.so.1. */
tide_status tide__cu_load(tide__cu *out);

/* Passes a failure of the driver on: "CUDA cannot create a stream: CUDA_ERROR_LAUNCH_FAILED (719)". */
tide_status tide__cu_check(const tide__cu *cu, CUresult result, const char *doing);
/* "CUDA_ERROR_LAUNCH_FAILED" */
const char *tide__cu_error_name(const tide__cu *cu, CUresult result);

/* Libraries of CUDA take addresses on the GPU as pointers. */
static inline void *tide__cu_pointer(CUdeviceptr at) {
    void *pointer;
    memcpy(&pointer, &at, sizeof pointer);
    return pointer;
}

#endif
