/* cuDNN's convolutions, by its graph API, loaded at run time. An *engine* is one way to compute a convolution; cuDNN says
 * which there are for a GPU, fastest first by its own estimate, with the bytes of workspace each needs and notes about
 * its numbers. It says so for GPUs that are not there, too, if their properties are described; only running an engine
 * needs one. Tensors are plain NCHW float32, as all of this device.
 *
 * Engines whose bits may differ from run to run are never taken: an op that runs again under a budget must give the
 * value it gave before. */
#ifndef TIDE_DEVICE_CUDA_CUDNN_H
#define TIDE_DEVICE_CUDA_CUDNN_H

#include <cudnn.h>

#include <tidemark/ops.h>

#include "base/error.h"
#include "base/vec.h"

#define TIDE__DNN_FUNCTIONS(X)  \
    X(GetVersion)               \
    X(Create)                   \
    X(Destroy)                  \
    X(SetStream)                \
    X(BackendCreateDescriptor)  \
    X(BackendDestroyDescriptor) \
    X(BackendSetAttribute)      \
    X(BackendGetAttribute)      \
    X(BackendFinalize)          \
    X(BackendExecute)

typedef struct tide__dnn {
#define TIDE__DNN_MEMBER(name) __typeof__(cudnn##name) *name;
    TIDE__DNN_FUNCTIONS(TIDE__DNN_MEMBER)
#undef TIDE__DNN_MEMBER
} tide__dnn;

/* TIDE_E_DEVICE where there is none, or one too old. TIDE_CUDNN_LIBRARY names another file. */
tide_status tide__dnn_load(tide__dnn *out);

/* The GPU that engines are for: one of the two is set. */
typedef struct tide__dnn_gpu {
    const tide__dnn *dnn;
    cudnnHandle_t handle;                /* of the current context, made by the caller */
    cudnnBackendDescriptor_t properties; /* of a GPU that is not there */
} tide__dnn_gpu;

/* json: as cuDNN itself writes the properties of a GPU. */
tide_status tide__dnn_describe(const tide__dnn *dnn, const char *json, tide__dnn_gpu *out);
void tide__dnn_forget(tide__dnn_gpu *gpu);

typedef enum tide__dnn_way {
    TIDE__DNN_LEAN,   /* float32, the smallest workspace */
    TIDE__DNN_FINE,   /* float32, the fastest by cuDNN's estimate */
    TIDE__DNN_COARSE, /* on tensor cores, which round what they multiply (TF32); the fastest of them */
    TIDE__DNN_WAYS
} tide__dnn_way;

typedef struct tide__dnn_engine {
    cudnnBackendDescriptor_t plan; /* NULL: there is no such engine */
    uint64_t workspace_bytes;
} tide__dnn_engine;

typedef struct tide__dnn_conv {
    const tide__dnn *dnn;
    tide__dnn_engine engine[TIDE__DNN_WAYS];
    TIDE_VEC(cudnnBackendDescriptor_t) made;
} tide__dnn_conv;

/* d: a convolution, not a transposed one; its bias is not cuDNN's. To be closed after success only. */
tide_status tide__dnn_conv_open(const tide__dnn_gpu *gpu, const tide_op_desc *d, tide__dnn_conv *out);
void tide__dnn_conv_close(tide__dnn_conv *conv);

/* Addresses on the GPU: the wide image, the weights, the small image, and the workspace. */
tide_status tide__dnn_conv_run(const tide__dnn_conv *conv, tide__dnn_way way, cudnnHandle_t handle,
                               void *const tensors[3], void *workspace);

#endif
