/* See libraries.h. */
#include "device/cuda/libraries.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/cuda/cublas.h"
#include "device/cuda/cudnn.h"
#include "device/cuda/images.h"
#include "device/gpu/cache.h"
#include "device/gpu/conv.h"
#include "device/gpu/gemm.h"

/* Ways of products; convolutions have those of tide__dnn_way. */
enum { PRODUCT_FINE = TIDE__DNN_FINE, PRODUCT_COARSE = TIDE__DNN_COARSE };

struct tide__cuda_libraries {
    pthread_mutex_t lock; /* handles are for one thread at a time */
    tide__blas blas;
    cublasHandle_t blas_handle; /* NULL: no cuBLAS */
    tide__dnn dnn;
    cudnnHandle_t dnn_handle; /* NULL: no cuDNN */
    uint64_t key;             /* of the GPU, its driver, these libraries and our kernels */
};

/* ---- trust ---- */

/* Of the GPU, its driver and our kernels: known before any library is loaded. */
static uint64_t gpu_key(const tide__cuda *cuda) {
    uint64_t key = tide__hash_bytes(0, cuda->model, strlen(cuda->model));
    key = tide__hash_word(key, (uint64_t)cuda->cu.version);
    for (const tide__cuda_image *i = tide__cuda_images; i->name; i++) key = tide__hash_bytes(key, i->bytes, i->size);
    return key;
}

/* And of the libraries. */
static uint64_t key_of(const tide__cuda *cuda, const tide__cuda_libraries *l) {
    int blas_version = 0;
    if (l->blas_handle) l->blas.GetVersion(l->blas_handle, &blas_version);
    const uint64_t key = tide__hash_word(gpu_key(cuda), (uint64_t)blas_version);
    return tide__hash_word(key, l->dnn_handle ? l->dnn.GetVersion() : 0);
}

static uint64_t trust_key(uint64_t key) { return tide__hash_word(key, 1); }

static bool is_trusted(uint64_t key) {
    size_t size = 0;
    unsigned char *record = tide__gpu_cache_read("cuda", trust_key(key), &size);
    free(record);
    return record != NULL;
}

/* Twice: of these libraries, and of the GPU, so that one nobody has tested need not load them to find out. */
tide_status tide__cuda_libraries_trust(tide_device *device) {
    const tide__cuda *cuda = (const tide__cuda *)device;
    char record[] = "trusted";
    if (!cuda->libraries) return tide__fail(TIDE_E_UNSUPPORTED, "there is no library of products here");
    if (tide__gpu_cache_keep("cuda", trust_key(cuda->libraries->key), record, sizeof record) &&
        tide__gpu_cache_keep("cuda", trust_key(gpu_key(cuda)), record, sizeof record))
        return TIDE_OK;
    return tide__fail(TIDE_E_IO, "cannot keep what was found out about libraries: no folder for it");
}

/* ---- opening ---- */

static void close_libraries(tide__cuda_libraries *l, bool is_gone) {
    if (l->blas_handle && !is_gone) l->blas.Destroy(l->blas_handle);
    if (l->dnn_handle && !is_gone) l->dnn.Destroy(l->dnn_handle);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

tide_status tide__cuda_libraries_open(tide__cuda *cuda, tide_libraries wanted) {
    if (wanted == TIDE_LIBRARIES_NONE || (wanted == TIDE_LIBRARIES_TRUSTED && !is_trusted(gpu_key(cuda))))
        return TIDE_OK;
    tide__cuda_libraries *l = calloc(1, sizeof *l);
    if (!l) return tide__fail_memory();
    pthread_mutex_init(&l->lock, NULL);
    if (tide__blas_load(&l->blas) == TIDE_OK) (void)tide__blas_open(&l->blas, &l->blas_handle);
    if (tide__dnn_load(&l->dnn) == TIDE_OK && l->dnn.Create(&l->dnn_handle) != CUDNN_STATUS_SUCCESS)
        l->dnn_handle = NULL;
    l->key = key_of(cuda, l);
    if ((l->blas_handle || l->dnn_handle) && (wanted == TIDE_LIBRARIES_ALL || is_trusted(l->key)))
        cuda->libraries = l;
    else
        close_libraries(l, false);
    return TIDE_OK;
}

/* With the context current. */
void tide__cuda_libraries_close(tide__cuda *cuda) {
    if (cuda->libraries) close_libraries(cuda->libraries, cuda->is_gone);
    cuda->libraries = NULL;
}

/* ---- fully connected layers ---- */

static tide_status add_product(tide__gpu_kernel *k, const tide_op_desc *d, uint32_t way, const char *title) {
    const tide__gemm g = tide__fc_product(d);
    tide__gpu_product product = {.a = g.a.operand,
                                 .b = g.b.operand,
                                 .c = g.c.operand,
                                 .temporary_bytes = TIDE__BLAS_WORKSPACE_BYTES,
                                 .way = way};
    if (!tide__gemm_is_whole(&g, &product.shape) || g.m > INT32_MAX || g.n > INT32_MAX || g.depth > INT32_MAX)
        return TIDE_OK;
    tide__gpu_variant(k, false);
    k->libraries[k->n_variants - 1] = title;
    TIDE_TRY(tide__gpu_spread_bias(k, &g));
    TIDE_TRY(tide__gpu_product_add(k, &product));
    return tide__fc_bias_gradient(k, d);
}

static tide_status add_products(const tide__cuda *cuda, tide__gpu_kernel *k, const tide_op_desc *d) {
    if (!cuda->libraries->blas_handle) return TIDE_OK;
    TIDE_TRY(add_product(k, d, PRODUCT_FINE, "cuBLAS"));
    return cuda->major >= 8 ? add_product(k, d, PRODUCT_COARSE, "cuBLAS, TF32") : TIDE_OK;
}

/* ---- convolutions ---- */

void tide__cuda_forget_ways(tide__gpu_kernel *k) {
    if (!k->ways) return;
    tide__dnn_conv_close(k->ways);
    free(k->ways);
}

/* cuDNN orders tensors as wide image, weights, small image; ops have their own order. */
static tide__gpu_product operands_of(const tide_op_desc *d) {
    switch (d->kind) {
    case TIDE_OP_CONV_FWD: return (tide__gpu_product){.a = 0, .b = 1, .c = d->bias ? 3 : 2};
    case TIDE_OP_CONV_BWD_DATA: return (tide__gpu_product){.a = 2, .b = 0, .c = 1};
    default: return (tide__gpu_product){.a = 0, .b = 2, .c = 1};
    }
}

static tide_status add_conv(tide__gpu_kernel *k, const tide_op_desc *d, const tide__dnn_engine *engine,
                            tide__dnn_way way, const char *title) {
    tide__gpu_product product = operands_of(d);
    if (!engine->plan) return TIDE_OK;
    product.temporary_bytes = engine->workspace_bytes;
    product.way = way;
    product.is_conv = true;
    tide__gpu_variant(k, false);
    k->libraries[k->n_variants - 1] = title;
    TIDE_TRY(tide__gpu_product_add(k, &product));
    TIDE_TRY(tide__gpu_conv_add_bias(k, d));
    return tide__gpu_conv_bias_gradient(k, d);
}

/* An op that cuDNN has no engine for goes without. */
static tide_status add_convs(const tide__cuda *cuda, tide__gpu_kernel *k, const tide_op_desc *d) {
    const tide__dnn_gpu gpu = {.dnn = &cuda->libraries->dnn, .handle = cuda->libraries->dnn_handle};
    if (!gpu.handle) return TIDE_OK;
    tide__dnn_conv *conv = calloc(1, sizeof *conv);
    if (!conv) return tide__fail_memory();
    if (tide__dnn_conv_open(&gpu, d, conv) != TIDE_OK) {
        free(conv);
        return TIDE_OK;
    }
    k->ways = conv;
    TIDE_TRY(add_conv(k, d, &conv->engine[TIDE__DNN_FINE], TIDE__DNN_FINE, "cuDNN"));
    return add_conv(k, d, &conv->engine[TIDE__DNN_COARSE], TIDE__DNN_COARSE, "cuDNN, TF32");
}

/* ---- both ---- */

static tide_status add_ways(tide__cuda *cuda, tide__gpu_kernel *k, const tide_op_desc *d) {
    switch (d->kind) {
    case TIDE_OP_FC_FWD:
    case TIDE_OP_FC_BWD_DATA:
    case TIDE_OP_FC_BWD_WEIGHTS: return add_products(cuda, k, d);
    case TIDE_OP_CONV_FWD:
    case TIDE_OP_CONV_BWD_DATA:
    case TIDE_OP_CONV_BWD_WEIGHTS: return add_convs(cuda, k, d);
    default: return TIDE_OK;
    }
}

/* Of the op on this GPU. */
static uint64_t op_key(const tide__cuda_libraries *l, const tide_op_desc *d) {
    const int64_t words[] = {d->kind, d->x.n,  d->x.c,      d->x.h,      d->x.w,    d->y.n,   d->y.c,  d->y.h,
                             d->y.w,  d->bias, d->kernel_h, d->kernel_w, d->stride, d->pad_h, d->pad_w};
    return tide__hash_bytes(l->key, words, sizeof words);
}

tide_status tide__cuda_add_ways(tide__gpu_kernel *k, const tide_op_desc *d) {
    tide__cuda *cuda = (tide__cuda *)k->base.device;
    const uint32_t own = k->n_variants;
    if (!cuda->libraries) return TIDE_OK;
    TIDE_TRY(tide__cuda_enter(cuda));
    pthread_mutex_lock(&cuda->libraries->lock);
    tide_status status = add_ways(cuda, k, d);
    pthread_mutex_unlock(&cuda->libraries->lock);
    tide__cuda_leave(cuda);
    if (status == TIDE_OK && k->n_variants > own) tide__cuda_try_ways(k, op_key(cuda->libraries, d));
    return status;
}

/* ---- running, on a queue's thread ---- */

static tide_status run_conv(tide__cuda_libraries *l, const tide__cuda_queue *queue, const tide__gpu_kernel *k,
                            const tide__gpu_product *product, const tide__blas_places *places) {
    void *const tensors[3] = {places->a, places->b, places->c};
    if (l->dnn.SetStream(l->dnn_handle, queue->stream) != CUDNN_STATUS_SUCCESS)
        return tide__fail(TIDE_E_DEVICE, "cuDNN cannot take a stream");
    return tide__dnn_conv_run(k->ways, (tide__dnn_way)product->way, l->dnn_handle, tensors, places->workspace);
}

tide_status tide__cuda_run_way(tide__host_queue *base, const tide__command *command, const tide__gpu_product *product) {
    const tide__cuda_queue *queue = (const tide__cuda_queue *)base;
    const tide__gpu_kernel *k = (const tide__gpu_kernel *)command->kernel.kernel;
    tide__cuda *cuda = (tide__cuda *)base->base.device;
    const CUdeviceptr arena = ((const tide__cuda_arena *)command->kernel.arena)->bytes;
    const uint64_t *offsets = command->offsets;
    tide__blas_places places = {tide__cu_pointer(arena + offsets[product->a]),
                                tide__cu_pointer(arena + offsets[product->b]),
                                tide__cu_pointer(arena + offsets[product->c]), NULL};
    if (product->temporary_bytes)
        places.workspace =
            tide__cu_pointer(arena + offsets[tide__workspace(k)] + tide__gpu_product_place(k, command->kernel.variant));
    TIDE_TRY(tide__cuda_before(cuda));
    pthread_mutex_lock(&cuda->libraries->lock);
    tide_status status = product->is_conv
                             ? run_conv(cuda->libraries, queue, k, product, &places)
                             : tide__blas_multiply(&cuda->libraries->blas, cuda->libraries->blas_handle, queue->stream,
                                                   &product->shape, product->way == PRODUCT_COARSE, &places);
    pthread_mutex_unlock(&cuda->libraries->lock);
    return status;
}
