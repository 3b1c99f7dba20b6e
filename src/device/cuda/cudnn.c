/* See cudnn.h. A convolution is a graph of one operation: three tensors, a description, the operation; heuristics list
 * engines for the graph, and an engine becomes a plan that can run. All of these are descriptors with attributes. */
#include "device/cuda/cudnn.h"

#include <stdlib.h>
#include <string.h>

#include "device/cuda/find_library.h"

#define OLDEST 90800 /* the first that answers for GPUs that are not there, and that later ones are compatible with */
enum { MAX_CONFIGS = 128 };

/* What an engine's notes say, as bits. */
enum {
    COARSE = 1 << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1 << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
             1 << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
    NEVER = 1 << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
};

typedef cudnnBackendDescriptor_t descriptor;

static const tide__symbol symbols[] = {
#define SYMBOL(name) {"cudnn" #name, offsetof(tide__dnn, name)},
    TIDE__DNN_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

tide_status tide__dnn_load(tide__dnn *out) {
    tide__dnn dnn = {0};
    TIDE_TRY(tide__cuda_library_load("libcudnn.so", CUDNN_MAJOR, "TIDE_CUDNN_LIBRARY", symbols,
                                     sizeof symbols / sizeof *symbols, &dnn));
    const size_t version = dnn.GetVersion();
    if (version < OLDEST)
        return tide__fail(TIDE_E_DEVICE, "cuDNN %zu.%zu is too old: 9.8 is needed", version / 10000,
                          version / 100 % 100);
    *out = dnn;
    return TIDE_OK;
}

static tide_status check(cudnnStatus_t status, const char *doing) {
    if (status == CUDNN_STATUS_SUCCESS) return TIDE_OK;
    return tide__fail(TIDE_E_DEVICE, "cuDNN cannot %s: status %d", doing, (int)status);
}

/* ---- descriptors ---- */

static tide_status make(tide__dnn_conv *c, cudnnBackendDescriptorType_t type, descriptor *out) {
    descriptor made = NULL;
    TIDE_TRY(check(c->dnn->BackendCreateDescriptor(type, &made), "make a descriptor"));
    tide_status status = tide__vec_push(&c->made, made);
    if (status != TIDE_OK) {
        c->dnn->BackendDestroyDescriptor(made);
        return status;
    }
    *out = made;
    return TIDE_OK;
}

static tide_status set(const tide__dnn_conv *c, descriptor d, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t n, const void *values) {
    return check(c->dnn->BackendSetAttribute(d, name, type, n, values), "describe a convolution");
}

static tide_status set_part(const tide__dnn_conv *c, descriptor d, cudnnBackendAttributeName_t name, descriptor part) {
    return set(c, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

static tide_status set_numbers(const tide__dnn_conv *c, descriptor d, cudnnBackendAttributeName_t name, int64_t n,
                               const int64_t *values) {
    return set(c, d, name, CUDNN_TYPE_INT64, n, values);
}

static tide_status finish(const tide__dnn_conv *c, descriptor d) {
    return check(c->dnn->BackendFinalize(d), "complete a descriptor");
}

/* ---- GPUs ---- */

tide_status tide__dnn_describe(const tide__dnn *dnn, const char *json, tide__dnn_gpu *out) {
    descriptor d = NULL;
    TIDE_TRY(check(dnn->BackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d), "describe a GPU"));
    cudnnStatus_t status = dnn->BackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                                    (int64_t)strlen(json) + 1, json);
    if (status == CUDNN_STATUS_SUCCESS) status = dnn->BackendFinalize(d);
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn->BackendDestroyDescriptor(d);
        return check(status, "describe a GPU");
    }
    *out = (tide__dnn_gpu){.dnn = dnn, .properties = d};
    return TIDE_OK;
}

void tide__dnn_forget(tide__dnn_gpu *gpu) {
    if (gpu->properties) gpu->dnn->BackendDestroyDescriptor(gpu->properties);
    *gpu = (tide__dnn_gpu){0};
}

/* ---- the graph ---- */

/* Wide image, weights, small image: which is which to the operation, and its other attributes. */
typedef struct operation {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t tensor[3], convolution, alpha, beta;
} operation;

static const operation forward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                  {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
static const operation data = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                               {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
static const operation weights = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                  {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

static const operation *operation_of(tide_op_kind kind) {
    switch (kind) {
    case TIDE_OP_CONV_FWD: return &forward;
    case TIDE_OP_CONV_BWD_DATA: return &data;
    case TIDE_OP_CONV_BWD_WEIGHTS: return &weights;
    default: return NULL;
    }
}

/* Ids of tensors in a variant pack. */
static const int64_t ids[3] = {1, 2, 3};

static tide_status make_tensor(tide__dnn_conv *c, int64_t id, const int64_t dims[4], descriptor *out) {
    const int64_t strides[4] = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}, align = 16;
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    TIDE_TRY(make(c, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out));
    TIDE_TRY(set(c, *out, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_TENSOR_DIMENSIONS, 4, dims));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_TENSOR_STRIDES, 4, strides));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &id));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &align));
    return finish(c, *out);
}

static tide_status make_convolution(tide__dnn_conv *c, const tide_op_desc *d, descriptor *out) {
    const int64_t n = 2, pads[2] = {d->pad_h, d->pad_w}, strides[2] = {d->stride, d->stride}, dilations[2] = {1, 1};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    TIDE_TRY(make(c, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, out));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, &n));
    TIDE_TRY(set(c, *out, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
    TIDE_TRY(set(c, *out, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 2, pads));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 2, pads));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_CONVOLUTION_DILATIONS, 2, dilations));
    TIDE_TRY(set_numbers(c, *out, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2, strides));
    return finish(c, *out);
}

static tide_status make_operation(tide__dnn_conv *c, const tide_op_desc *d, descriptor *out) {
    const operation *o = operation_of(d->kind);
    const int64_t dims[3][4] = {
        {d->x.n, d->x.c, d->x.h, d->x.w}, {d->y.c, d->x.c, d->kernel_h, d->kernel_w}, {d->y.n, d->y.c, d->y.h, d->y.w}};
    const float alpha = 1, beta = 0;
    descriptor convolution, tensor;
    if (!o) return tide__fail(TIDE_E_UNSUPPORTED, "cuDNN is asked for convolutions only");
    TIDE_TRY(make_convolution(c, d, &convolution));
    TIDE_TRY(make(c, o->type, out));
    for (int i = 0; i < 3; i++) {
        TIDE_TRY(make_tensor(c, ids[i], dims[i], &tensor));
        TIDE_TRY(set_part(c, *out, o->tensor[i], tensor));
    }
    TIDE_TRY(set_part(c, *out, o->convolution, convolution));
    TIDE_TRY(set(c, *out, o->alpha, CUDNN_TYPE_FLOAT, 1, &alpha));
    TIDE_TRY(set(c, *out, o->beta, CUDNN_TYPE_FLOAT, 1, &beta));
    return finish(c, *out);
}

static tide_status make_graph(tide__dnn_conv *c, const tide__dnn_gpu *gpu, const tide_op_desc *d, descriptor *out) {
    descriptor only;
    TIDE_TRY(make_operation(c, d, &only));
    TIDE_TRY(make(c, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, out));
    TIDE_TRY(set_part(c, *out, CUDNN_ATTR_OPERATIONGRAPH_OPS, only));
    if (gpu->handle) TIDE_TRY(set(c, *out, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &gpu->handle));
    return finish(c, *out);
}

/* ---- engines ---- */

typedef struct config {
    descriptor self;
    int notes;
    uint64_t workspace_bytes;
} config;

typedef struct config_list {
    config data[MAX_CONFIGS];
    int count;
} config_list;

/* False: cuDNN does not say it, so the engine is not for us. */
static bool read_config(tide__dnn_conv *c, descriptor self, config *out) {
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0, bytes = 0;
    descriptor engine;
    if (make(c, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != TIDE_OK) return false;
    const tide__dnn *dnn = c->dnn;
    if (dnn->BackendGetAttribute(self, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) ||
        dnn->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes))
        return false;
    *out = (config){.self = self};
    for (int64_t i = 0; i < n && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) out->notes |= 1 << notes[i];
    if (dnn->BackendGetAttribute(self, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes) ||
        bytes < 0)
        return false;
    out->workspace_bytes = (uint64_t)bytes;
    return !(out->notes & NEVER);
}

static tide_status list_mode(tide__dnn_conv *c, const tide__dnn_gpu *gpu, descriptor graph, cudnnBackendHeurMode_t mode,
                             config_list *out) {
    descriptor heuristics, found[MAX_CONFIGS];
    int64_t n = 0;
    TIDE_TRY(make(c, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics));
    TIDE_TRY(set_part(c, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
    TIDE_TRY(set(c, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
    if (gpu->properties) TIDE_TRY(set_part(c, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, gpu->properties));
    TIDE_TRY(finish(c, heuristics));
    TIDE_TRY(check(c->dnn->BackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                               0, &n, NULL),
                   "count engines"));
    if (n > MAX_CONFIGS) n = MAX_CONFIGS;
    for (int64_t i = 0; i < n; i++) TIDE_TRY(make(c, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[i]));
    TIDE_TRY(check(c->dnn->BackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                               n, &n, found),
                   "list engines"));
    for (int64_t i = 0; i < n && out->count < MAX_CONFIGS; i++)
        if (read_config(c, found[i], &out->data[out->count])) out->count++;
    return TIDE_OK;
}

static bool is_of(const config *f, tide__dnn_way way) { return !(f->notes & COARSE) == (way != TIDE__DNN_COARSE); }

/* The next to try: the first in the list, or the one of the smallest workspace; -1: none is left. */
static int next_of(const config_list *list, tide__dnn_way way, const bool *tried) {
    int best = -1;
    for (int i = 0; i < list->count; i++) {
        if (tried[i] || !is_of(&list->data[i], way)) continue;
        if (best < 0) best = i;
        if (way == TIDE__DNN_LEAN && list->data[i].workspace_bytes < list->data[best].workspace_bytes) best = i;
    }
    return best;
}

/* False: this engine cannot do it after all. */
static bool make_plan(tide__dnn_conv *c, const tide__dnn_gpu *gpu, const config *f, tide__dnn_engine *out) {
    descriptor plan;
    int64_t n = 0, bytes = 0;
    if (make(c, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) != TIDE_OK ||
        set_part(c, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, f->self) != TIDE_OK)
        return false;
    tide_status status = gpu->handle
                             ? set(c, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &gpu->handle)
                             : set_part(c, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, gpu->properties);
    if (status != TIDE_OK || finish(c, plan) != TIDE_OK) return false;
    if (c->dnn->BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes) ||
        bytes < 0)
        return false;
    *out = (tide__dnn_engine){plan, (uint64_t)bytes};
    return true;
}

static void choose(tide__dnn_conv *c, const tide__dnn_gpu *gpu, const config_list *list, tide__dnn_way way) {
    bool tried[MAX_CONFIGS] = {false};
    for (int i; (i = next_of(list, way, tried)) >= 0; tried[i] = true)
        if (make_plan(c, gpu, &list->data[i], &c->engine[way])) return;
}

static tide_status fill(tide__dnn_conv *c, const tide__dnn_gpu *gpu, const tide_op_desc *d) {
    config_list list = {.count = 0};
    descriptor graph;
    TIDE_TRY(make_graph(c, gpu, d, &graph));
    TIDE_TRY(list_mode(c, gpu, graph, CUDNN_HEUR_MODE_A, &list));
    TIDE_TRY(list_mode(c, gpu, graph, CUDNN_HEUR_MODE_FALLBACK, &list));
    for (tide__dnn_way way = 0; way < TIDE__DNN_WAYS; way++) choose(c, gpu, &list, way);
    return TIDE_OK;
}

tide_status tide__dnn_conv_open(const tide__dnn_gpu *gpu, const tide_op_desc *d, tide__dnn_conv *out) {
    tide__dnn_conv c = {.dnn = gpu->dnn};
    tide_status status = fill(&c, gpu, d);
    if (status == TIDE_OK)
        *out = c;
    else
        tide__dnn_conv_close(&c);
    return status;
}

void tide__dnn_conv_close(tide__dnn_conv *c) {
    for (size_t i = c->made.count; i-- > 0;) c->dnn->BackendDestroyDescriptor(c->made.data[i]);
    tide__vec_free(&c->made);
    *c = (tide__dnn_conv){0};
}

/* ---- running ---- */

static cudnnStatus_t execute(const tide__dnn *dnn, cudnnHandle_t handle, descriptor plan, descriptor pack,
                             void *const tensors[3], void *workspace) {
    cudnnStatus_t status = dnn->BackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
    if (!status)
        status = dnn->BackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, tensors);
    if (!status)
        status = dnn->BackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (!status) status = dnn->BackendFinalize(pack);
    return status ? status : dnn->BackendExecute(handle, plan, pack);
}

tide_status tide__dnn_conv_run(const tide__dnn_conv *conv, tide__dnn_way way, cudnnHandle_t handle,
                               void *const tensors[3], void *workspace) {
    const tide__dnn *dnn = conv->dnn;
    descriptor pack = NULL;
    TIDE_TRY(check(dnn->BackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack), "make a descriptor"));
    const cudnnStatus_t status = execute(dnn, handle, conv->engine[way].plan, pack, tensors, workspace);
    dnn->BackendDestroyDescriptor(pack);
    return check(status, "compute a convolution");
}
