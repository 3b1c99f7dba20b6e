/* The part of CUDA's driver API that the stand-in knows: types, numbers and functions as NVIDIA documents them.
 *
 * With the toolkit's cuda.h (STANDIN_HAS_CUDA_H) its types are used, the list of functions below is declared once more
 * and so compared by the compiler, and numbers.c compares the numbers. Without it the same lists make the types here. */
#ifndef TIDE_TESTS_CUDA_DRIVER_H
#define TIDE_TESTS_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#define STANDIN_ERRORS(X)                             \
    X(CUDA_SUCCESS, 0)                                \
    X(CUDA_ERROR_INVALID_VALUE, 1)                    \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                    \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                  \
    X(CUDA_ERROR_NO_DEVICE, 100)                      \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                 \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                  \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)              \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)              \
    X(CUDA_ERROR_INVALID_PTX, 218)                    \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)        \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                 \
    X(CUDA_ERROR_NOT_FOUND, 500)                      \
    X(CUDA_ERROR_NOT_READY, 600)                      \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)        \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                 \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)           \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)     \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)             \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                  \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                  \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                  \
    X(CUDA_ERROR_UNKNOWN, 999)

/* What the device says of itself; see device.c for those that depend on the environment. */
#define STANDIN_ATTRIBUTES(X)                                               \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1, 1024)                   \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2, 1024)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3, 1024)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4, 64)                           \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5, 2147483647)                    \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6, 65535)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7, 65535)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8, 49152)            \
    X(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 9, 65536)                  \
    X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10, 32)                                \
    X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12, 65536)               \
    X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13, 1000000)                          \
    X(CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 15, 1)                               \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16, 2)                      \
    X(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 17, 0)                       \
    X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18, 0)                                \
    X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19, 1)                       \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20, 0)                              \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31, 1)                        \
    X(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32, 0)                               \
    X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33, 1)                                \
    X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34, 0)                             \
    X(CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 35, 0)                                \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36, 1000000)                   \
    X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37, 128)                 \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38, 1048576)                       \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39, 1024)         \
    X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40, 2)                        \
    X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41, 1)                        \
    X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50, 0)                             \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75, 12)                 \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76, 0)                  \
    X(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 78, 1)               \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81, 102400) \
    X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82, 65536)      \
    X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83, 0)                            \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91, 1)   \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97, 101376)    \
    X(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99, 1)                   \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106, 16)

#define STANDIN_CONSTANTS(X)                                 \
    X(CU_STREAM_DEFAULT, 0)                                  \
    X(CU_STREAM_NON_BLOCKING, 1)                             \
    X(CU_EVENT_DEFAULT, 0)                                   \
    X(CU_EVENT_BLOCKING_SYNC, 1)                             \
    X(CU_EVENT_DISABLE_TIMING, 2)                            \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)            \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                \
    X(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                 \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                 \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                         \
    X(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                      \
    X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                   \
    X(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, 7)                    \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)    \
    X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9) \
    X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                        \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)               \
    X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)

#ifdef STANDIN_HAS_CUDA_H
#include <cuda.h>
#else
#define CUDAAPI
#define STANDIN_NUMBER(name, value) name = value,
#define STANDIN_NUMBER_OF(name, value, answer) name = value,
typedef enum cudaError_enum { STANDIN_ERRORS(STANDIN_NUMBER) } CUresult;
typedef enum CUdevice_attribute_enum { STANDIN_ATTRIBUTES(STANDIN_NUMBER_OF) } CUdevice_attribute;
enum { STANDIN_CONSTANTS(STANDIN_NUMBER) };
#undef STANDIN_NUMBER
#undef STANDIN_NUMBER_OF
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;
typedef uint64_t cuuint64_t;
typedef unsigned CUjit_option, CUlibraryOption, CUfunction_attribute, CUdriverProcAddressQueryResult;
typedef void(CUDAAPI *CUhostFn)(void *userData);
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_LAUNCH_PARAM_END ((void *)0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)0x02)
#define CU_MEMHOSTALLOC_PORTABLE 0x01
#define CU_MEMHOSTALLOC_DEVICEMAP 0x02
#define CU_MEMHOSTALLOC_WRITECOMBINED 0x04
#endif

/* Names and parameters. */
#define STANDIN_FUNCTIONS(X)                                                                                       \
    X(cuInit, (unsigned flags))                                                                                    \
    X(cuDriverGetVersion, (int *version))                                                                          \
    X(cuGetErrorName, (CUresult error, const char **text))                                                         \
    X(cuGetErrorString, (CUresult error, const char **text))                                                       \
    X(cuGetProcAddress_v2,                                                                                         \
      (const char *symbol, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status))     \
    X(cuDeviceGetCount, (int *count))                                                                              \
    X(cuDeviceGet, (CUdevice * out, int ordinal))                                                                  \
    X(cuDeviceGetName, (char *name, int length, CUdevice device))                                                  \
    X(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device))                                                        \
    X(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device))                           \
    X(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                                      \
    X(cuDeviceGetPCIBusId, (char *text, int length, CUdevice device))                                              \
    X(cuDevicePrimaryCtxRetain, (CUcontext * out, CUdevice device))                                                \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                             \
    X(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags))                                            \
    X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active))                                 \
    X(cuDevicePrimaryCtxReset_v2, (CUdevice device))                                                               \
    X(cuCtxSetCurrent, (CUcontext context))                                                                        \
    X(cuCtxGetCurrent, (CUcontext * out))                                                                          \
    X(cuCtxPushCurrent_v2, (CUcontext context))                                                                    \
    X(cuCtxPopCurrent_v2, (CUcontext * out))                                                                       \
    X(cuCtxGetDevice, (CUdevice * out))                                                                            \
    X(cuCtxSynchronize, (void))                                                                                    \
    X(cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                                    \
    X(cuModuleLoadData, (CUmodule * out, const void *image))                                                       \
    X(cuModuleLoadDataEx,                                                                                          \
      (CUmodule * out, const void *image, unsigned n_options, CUjit_option *options, void **values))               \
    X(cuModuleUnload, (CUmodule module))                                                                           \
    X(cuModuleGetFunction, (CUfunction * out, CUmodule module, const char *name))                                  \
    X(cuModuleGetGlobal_v2, (CUdeviceptr * out, size_t * bytes, CUmodule module, const char *name))                \
    X(cuLibraryLoadData,                                                                                           \
      (CUlibrary * out, const void *image, CUjit_option *options, void **values, unsigned n_options,               \
       CUlibraryOption *library_options, void **library_values, unsigned n_library_options))                       \
    X(cuLibraryUnload, (CUlibrary library))                                                                        \
    X(cuLibraryGetKernel, (CUkernel * out, CUlibrary library, const char *name))                                   \
    X(cuKernelGetFunction, (CUfunction * out, CUkernel kernel))                                                    \
    X(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function))                       \
    X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))                        \
    X(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t * offset, size_t * size))                     \
    X(cuLaunchKernel,                                                                                              \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra))                 \
    X(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data))                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, CUfunction function, int lanes, size_t shared))   \
    X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))                                                \
    X(cuMemAlloc_v2, (CUdeviceptr * out, size_t bytes))                                                            \
    X(cuMemFree_v2, (CUdeviceptr at))                                                                              \
    X(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t * bytes, CUdeviceptr at))                               \
    X(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags))                                                  \
    X(cuMemAllocHost_v2, (void **out, size_t bytes))                                                               \
    X(cuMemFreeHost, (void *at))                                                                                   \
    X(cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags))                                              \
    X(cuMemHostUnregister, (void *at))                                                                             \
    X(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void *at, unsigned flags))                                 \
    X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                                           \
    X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                                                 \
    X(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes))                                           \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                     \
    X(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                           \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                     \
    X(cuMemsetD8_v2, (CUdeviceptr at, unsigned char value, size_t n))                                              \
    X(cuMemsetD32_v2, (CUdeviceptr at, unsigned value, size_t n))                                                  \
    X(cuMemsetD8Async, (CUdeviceptr at, unsigned char value, size_t n, CUstream stream))                           \
    X(cuMemsetD32Async, (CUdeviceptr at, unsigned value, size_t n, CUstream stream))                               \
    X(cuStreamCreate, (CUstream * out, unsigned flags))                                                            \
    X(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority))                                  \
    X(cuStreamDestroy_v2, (CUstream stream))                                                                       \
    X(cuStreamQuery, (CUstream stream))                                                                            \
    X(cuStreamSynchronize, (CUstream stream))                                                                      \
    X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                                         \
    X(cuEventCreate, (CUevent * out, unsigned flags))                                                              \
    X(cuEventRecord, (CUevent event, CUstream stream))                                                             \
    X(cuEventQuery, (CUevent event))                                                                               \
    X(cuEventSynchronize, (CUevent event))                                                                         \
    X(cuEventElapsedTime_v2, (float *milliseconds, CUevent begin, CUevent end))                                    \
    X(cuEventDestroy_v2, (CUevent event))

#endif
