/* A stand-in for cuDNN's graph API: the few functions that the CUDA device calls, from NVIDIA's documentation. A descriptor
 * is a list of attributes; it takes them until it is finalised and answers from then on, and its parts must be finalised
 * before it. TIDE_STANDIN_UNSTEADY=1 lets no engine give the same bits twice. Engines: one whose bits change from call to call comes first, one on tensor cores second, then two in
 * float32, of some workspace and of none. Who takes the first is found out by its results. */
#include <cudnn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "on_stream.h"

#define EXPORT __attribute__((visibility("default")))

enum { MAX_ATTRIBUTES = 12, UNSTEADY = 0, TENSOR_CORES, FLOAT32, PLAIN, N_ENGINES };
static const int64_t workspaces[N_ENGINES] = {0, 65536, 1000, 0};

typedef struct attribute {
    cudnnBackendAttributeName_t name;
    int64_t n;
    void *values;
} attribute;

typedef struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool finished;
    attribute list[MAX_ATTRIBUTES];
    int count;
    int engine; /* of an engine or a configuration */
    struct descriptor *graph;
} descriptor;

struct cudnnContext {
    cudaStream_t stream;
    work *works;
    unsigned calls;
};

/* ---- handles ---- */

EXPORT size_t cudnnGetVersion(void) { return CUDNN_VERSION; }

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR;
}

EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    work_free_all(&handle->works);
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
    descriptor *d = calloc(1, sizeof *d);
    if (!d) return CUDNN_STATUS_INTERNAL_ERROR;
    d->type = type;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t self) {
    descriptor *d = self;
    for (int i = 0; i < d->count; i++) free(d->list[i].values);
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE: return 4;
    default: return 8;
    }
}

static const attribute *find(const descriptor *d, cudnnBackendAttributeName_t name) {
    for (int i = 0; i < d->count; i++)
        if (d->list[i].name == name) return &d->list[i];
    return NULL;
}

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t self, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t n, const void *values) {
    descriptor *d = self;
    if (d->finished || !values || n < 1 || d->count == MAX_ATTRIBUTES || find(d, name)) return CUDNN_STATUS_BAD_PARAM;
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < n; i++)
        if (!(*((descriptor *const *)values + i))->finished) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    attribute a = {name, n, malloc((size_t)n * size_of(type))};
    if (!a.values) return CUDNN_STATUS_INTERNAL_ERROR;
    memcpy(a.values, values, (size_t)n * size_of(type));
    d->list[d->count++] = a;
    return CUDNN_STATUS_SUCCESS;
}

static descriptor *part(const descriptor *d, cudnnBackendAttributeName_t name) {
    const attribute *a = find(d, name);
    return a ? *(descriptor **)a->values : NULL;
}

static const int64_t *numbers(const descriptor *d, cudnnBackendAttributeName_t name) { return find(d, name)->values; }

/* Attributes that must be there, 0 after the last. */
static const int *needed(cudnnBackendDescriptorType_t type) {
    static const int tensor[] = {CUDNN_ATTR_TENSOR_DATA_TYPE,      CUDNN_ATTR_TENSOR_DIMENSIONS,
                                 CUDNN_ATTR_TENSOR_STRIDES,        CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                 CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0};
    static const int convolution[] = {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,   CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                                      CUDNN_ATTR_CONVOLUTION_CONV_MODE,      CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
                                      CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,  CUDNN_ATTR_CONVOLUTION_DILATIONS,
                                      CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 0};
    static const int graph[] = {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 0};
    static const int heuristics[] = {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_MODE, 0};
    static const int plan[] = {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 0};
    static const int pack[] = {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                               CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0};
    static const int none[] = {0};
    switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: return tensor;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: return convolution;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return graph;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: return heuristics;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return plan;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: return pack;
    default: return none;
    }
}

EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t self) {
    descriptor *d = self;
    for (const int *name = needed(d->type); *name; name++)
        if (!find(d, (cudnnBackendAttributeName_t)*name)) return CUDNN_STATUS_BAD_PARAM;
    if (d->finished) return CUDNN_STATUS_BAD_PARAM;
    d->finished = true;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- engines ---- */

static cudnnStatus_t list_engines(const descriptor *d, int64_t n, int64_t *count, void *out) {
    const bool fallback =
        *(const cudnnBackendHeurMode_t *)find(d, CUDNN_ATTR_ENGINEHEUR_MODE)->values == CUDNN_HEUR_MODE_FALLBACK;
    const int first = fallback ? PLAIN : UNSTEADY, all = fallback ? 1 : PLAIN;
    if (n == 0) {
        *count = all;
        return CUDNN_STATUS_SUCCESS;
    }
    for (int i = 0; i < n && i < all; i++) {
        descriptor *config = *((descriptor *const *)out + i);
        config->engine = first + i;
        config->graph = part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        config->finished = true;
    }
    *count = n < all ? n : all;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t list_notes(const descriptor *d, int64_t *count, cudnnBackendNumericalNote_t *out) {
    *count = d->engine == UNSTEADY || d->engine == TENSOR_CORES;
    if (d->engine == UNSTEADY) out[0] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    if (d->engine == TENSOR_CORES) out[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t self, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t n, int64_t *count,
                                              void *values) {
    const descriptor *d = self;
    if (!d->finished) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    switch ((int)name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: return list_engines(d, n, count, values);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: return list_notes(d, count, values);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        (*(descriptor **)values)->engine = d->engine;
        (*(descriptor **)values)->finished = true;
        break;
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE: *(int64_t *)values = workspaces[d->engine]; break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)values = workspaces[part(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine];
        break;
    default: return CUDNN_STATUS_NOT_SUPPORTED;
    }
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- running ---- */

typedef struct kind {
    cudnnBackendDescriptorType_t type;
    int tensor[3], convolution, written;
} kind;

static const kind kinds[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     2},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     0},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     1},
};

static const kind *kind_of(const descriptor *operation) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == operation->type) return &kinds[i];
    return NULL;
}

static work work_of(const descriptor *operation, const kind *k, const descriptor *pack) {
    const descriptor *tensors[3];
    work w = {.written = k->written, .compute = work_convolve};
    for (int i = 0; i < 3; i++) {
        tensors[i] = part(operation, (cudnnBackendAttributeName_t)k->tensor[i]);
        const int64_t *dims = numbers(tensors[i], CUDNN_ATTR_TENSOR_DIMENSIONS);
        const int64_t id = *numbers(tensors[i], CUDNN_ATTR_TENSOR_UNIQUE_ID);
        w.bytes[i] = sizeof(float) * (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
        for (int j = 0; j < 3; j++)
            if (numbers(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)[j] == id)
                w.at[i] = ((const CUdeviceptr *)find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->values)[j];
    }
    const descriptor *conv = part(operation, (cudnnBackendAttributeName_t)k->convolution);
    const int64_t *x = numbers(tensors[0], CUDNN_ATTR_TENSOR_DIMENSIONS);
    const int64_t *filter = numbers(tensors[1], CUDNN_ATTR_TENSOR_DIMENSIONS);
    const int64_t *y = numbers(tensors[2], CUDNN_ATTR_TENSOR_DIMENSIONS);
    const int64_t *pads = numbers(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    const int64_t all[] = {x[0],      x[1],      x[2], x[3], filter[0],
                           filter[2], filter[3], y[2], y[3], *numbers(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                           pads[0],   pads[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) w.whole[i] = (int)all[i];
    return w;
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack) {
    const descriptor *config = part(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const descriptor *operation = part(config->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const kind *k = kind_of(operation);
    if (!k || !((descriptor *)pack)->finished) return CUDNN_STATUS_BAD_PARAM;
    const CUdeviceptr workspace = *(const CUdeviceptr *)find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->values;
    work w = work_of(operation, k, pack);
    w.coarse = config->engine == TENSOR_CORES;
    w.noise = config->engine == UNSTEADY || getenv("TIDE_STANDIN_UNSTEADY") ? ++handle->calls : 0;
    for (int i = 0; i < 3; i++)
        if (w.at[i] == 0 || w.at[i] % 16) return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    if (workspaces[config->engine] && !workspace) return CUDNN_STATUS_BAD_PARAM;
    return work_enqueue(&handle->works, &w, handle->stream, workspace, (size_t)workspaces[config->engine])
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_EXECUTION_FAILED;
}
