/* Creating and enqueueing kernels: the table of builders and what all kernels share. */
#include "device/opencl/kernel.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/size.h"
#include "device/op_check.h"
#include "device/opencl/gemm.h"

typedef tide_status (*build_fn)(tide__opencl_kernel *k, const tide_op_desc *d);

/* A kind without one is refused. */
static const build_fn builders[TIDE_OP_KIND_COUNT] = {
    [TIDE_OP_CONV_FWD] = tide__cl_build_conv,
    [TIDE_OP_CONV_BWD_DATA] = tide__cl_build_conv,
    [TIDE_OP_CONV_BWD_WEIGHTS] = tide__cl_build_conv,
    [TIDE_OP_UPCONV_FWD] = tide__cl_build_conv,
    [TIDE_OP_UPCONV_BWD_DATA] = tide__cl_build_conv,
    [TIDE_OP_UPCONV_BWD_WEIGHTS] = tide__cl_build_conv,
    [TIDE_OP_FC_FWD] = tide__cl_build_fc,
    [TIDE_OP_FC_BWD_DATA] = tide__cl_build_fc,
    [TIDE_OP_FC_BWD_WEIGHTS] = tide__cl_build_fc,
    [TIDE_OP_BN_FWD] = tide__cl_build_bn,
    [TIDE_OP_BN_STATS] = tide__cl_build_bn,
    [TIDE_OP_BN_INFER] = tide__cl_build_bn,
    [TIDE_OP_BN_BWD] = tide__cl_build_bn,
    [TIDE_OP_RELU_FWD] = tide__cl_build_elementwise,
    [TIDE_OP_RELU_BWD] = tide__cl_build_elementwise,
    [TIDE_OP_ADD] = tide__cl_build_elementwise,
    [TIDE_OP_ACCUMULATE] = tide__cl_build_elementwise,
    [TIDE_OP_ZERO] = tide__cl_build_elementwise,
    [TIDE_OP_GELU_FWD] = tide__cl_build_elementwise,
    [TIDE_OP_GELU_BWD] = tide__cl_build_elementwise,
    [TIDE_OP_MAXPOOL_FWD] = tide__cl_build_pool,
    [TIDE_OP_MAXPOOL_BWD] = tide__cl_build_pool,
    [TIDE_OP_AVGPOOL_FWD] = tide__cl_build_pool,
    [TIDE_OP_AVGPOOL_BWD] = tide__cl_build_pool,
    [TIDE_OP_SOFTMAX_LOSS_FWD] = tide__cl_build_softmax_loss,
    [TIDE_OP_SOFTMAX_LOSS_BWD] = tide__cl_build_softmax_loss,
    [TIDE_OP_DROPOUT_FWD] = tide__cl_build_dropout,
    [TIDE_OP_DROPOUT_BWD] = tide__cl_build_dropout,
    [TIDE_OP_LRN_FWD] = tide__cl_build_lrn,
    [TIDE_OP_LRN_BWD] = tide__cl_build_lrn,
    [TIDE_OP_REORDER] = tide__cl_build_reorder,
    [TIDE_OP_SGD] = tide__cl_build_update,
    [TIDE_OP_MOMENTUM] = tide__cl_build_update,
    [TIDE_OP_ADAM] = tide__cl_build_update,
    [TIDE_OP_ADAMW] = tide__cl_build_update,
    [TIDE_OP_GRAD_NORM] = tide__cl_build_grad_norm,
    [TIDE_OP_CONCAT_FWD] = tide__cl_build_concat,
    [TIDE_OP_CONCAT_BWD] = tide__cl_build_concat,
    [TIDE_OP_SLICE] = tide__cl_build_steps,
    [TIDE_OP_STACK] = tide__cl_build_steps,
    [TIDE_OP_LAYERNORM_FWD] = tide__cl_build_layernorm,
    [TIDE_OP_LAYERNORM_BWD] = tide__cl_build_layernorm,
    [TIDE_OP_EMBEDDING_FWD] = tide__cl_build_embedding,
    [TIDE_OP_EMBEDDING_BWD] = tide__cl_build_embedding,
    [TIDE_OP_SCORES_FWD] = tide__cl_build_scores,
    [TIDE_OP_SCORES_BWD] = tide__cl_build_scores,
    [TIDE_OP_CAUSAL_SOFTMAX_FWD] = tide__cl_build_causal_softmax,
    [TIDE_OP_CAUSAL_SOFTMAX_BWD] = tide__cl_build_causal_softmax,
    [TIDE_OP_VALUES_FWD] = tide__cl_build_values,
    [TIDE_OP_VALUES_BWD] = tide__cl_build_values,
    [TIDE_OP_LSTM_FWD] = tide__cl_build_lstm,
    [TIDE_OP_LSTM_BWD_GATES] = tide__cl_build_lstm,
    [TIDE_OP_LSTM_BWD_WEIGHTS] = tide__cl_build_lstm,
    [TIDE_OP_LSTM_BWD_DATA] = tide__cl_build_lstm,
};

/* ---- launches ---- */

tide_status tide__cl_launch_add(tide__opencl_kernel *k, const char *family, const char *name, const size_t groups[3],
                                const tide__cl_arg *args, size_t n_args) {
    tide__cl_launch launch = {.groups = {groups[0], groups[1], groups[2]},
                              .first_arg = k->args.count,
                              .n_args = n_args,
                              .variant = k->n_variants - 1};
    TIDE_TRY(tide__opencl_function((tide__opencl *)k->base.device, family, name, &launch.function));
    for (size_t i = 0; i < n_args; i++) TIDE_TRY(tide__vec_push(&k->args, args[i]));
    return tide__vec_push(&k->launches, launch);
}

tide_status tide__cl_product_add(tide__opencl_kernel *k, const tide__cl_product *product) {
    tide__cl_launch launch = {.product = k->products.count, .variant = k->n_variants - 1};
    uint64_t *temporary = &k->temporary_bytes[launch.variant];
    *temporary = tide__max_u64(*temporary, product->temporary_bytes);
    TIDE_TRY(tide__vec_push(&k->products, *product));
    return tide__vec_push(&k->launches, launch);
}

void tide__cl_set_workspace(tide__opencl_kernel *k, uint64_t bytes) {
    k->variants[k->n_variants - 1].workspace_bytes = bytes;
}

void tide__cl_variant(tide__opencl_kernel *k, bool same_bits) {
    k->variants[k->n_variants] = (tide_variant){.bits_class = same_bits ? 0 : k->n_variants};
    k->n_variants++;
}

/* ---- creating ---- */

void tide__opencl_kernel_destroy(tide_kernel *base) {
    tide__opencl_kernel *k = (tide__opencl_kernel *)base;
    tide__vec_free(&k->operands);
    tide__vec_free(&k->launches);
    tide__vec_free(&k->args);
    tide__vec_free(&k->products);
    free(k->operand_bytes);
    free(k);
}

/* Ops that work on stored floats in any order. */
static bool takes_any_layout(tide_op_kind kind) { return (kind >= TIDE_OP_SGD && kind <= TIDE_OP_ZERO); }

static tide_operand_info describe(const tide__opencl_kernel *k, const tide__cl_operand *o) {
    uint64_t layout = tide__hash_word(tide__hash_word(0, o->type), o->elements);
    bool any = takes_any_layout(k->desc.kind);
    return (tide_operand_info){.size_bytes = o->elements * tide__element_bytes(o->type),
                               .layout = any      ? TIDE_LAYOUT_ANY
                                         : layout ? layout
                                                  : 1};
}

static tide_status fill_info(tide__opencl_kernel *k) {
    tide_kernel_info *info = &k->base.info;
    info->n_reads = k->n_reads;
    info->n_writes = (uint32_t)k->operands.count - k->n_reads;
    info->n_variants = k->n_variants;
    for (uint32_t i = 0; i < k->n_variants; i++) {
        info->variant[i] = k->variants[i];
        if (k->temporary_bytes[i]) info->variant[i].workspace_bytes = tide__product_place(k, i) + k->temporary_bytes[i];
    }
    k->operand_bytes = malloc(k->operands.count * sizeof *k->operand_bytes);
    if (!k->operand_bytes) return tide__fail_memory();
    for (uint32_t i = 0; i < k->operands.count; i++) {
        tide_operand_info o = describe(k, &k->operands.data[i]);
        uint32_t at = i < k->n_reads ? i : i - k->n_reads;
        k->operand_bytes[i] = o.size_bytes;
        if (at < TIDE_KERNEL_MAX_OPERANDS) *(i < k->n_reads ? &info->read[at] : &info->write[at]) = o;
    }
    k->base.operand_bytes = k->operand_bytes;
    return TIDE_OK;
}

static tide_status build(tide__opencl_kernel *k, const tide_op_desc *d) {
    if (!builders[d->kind])
        return tide__fail(TIDE_E_UNSUPPORTED, "the OpenCL device has no kernel for op kind \"%s\"",
                          tide_op_kind_name(d->kind));
    TIDE_TRY(tide__op_check(d));
    return builders[d->kind](k, d);
}

tide_status tide__opencl_kernel_create(tide_device *device, const tide_op_desc *desc, tide_kernel **out) {
    tide_status status;
    tide__opencl_kernel *k = calloc(1, sizeof *k);
    if (!k) return tide__fail_memory();
    k->base.device = device;
    k->n_variants = 1;
    k->desc = tide__op_desc_own(desc);
    TIDE_TRY_GOTO(build(k, desc), destroy);
    TIDE_TRY_GOTO(fill_info(k), destroy);
    *out = &k->base;
    return TIDE_OK;
destroy:
    tide__opencl_kernel_destroy(&k->base);
    return status;
}

/* ---- running, on a queue's thread ---- */

/* 1 / (1 - beta^t), t counted from 1. */
static float bias_share(float beta, uint64_t step) { return (float)(1 / (1 - pow((double)beta, (double)step + 1))); }

typedef union word {
    cl_int i;
    cl_ulong u;
    cl_float f;
} word;

/* The argument's value and its size; a size without a value is local memory. */
static size_t evaluate(const tide__opencl_kernel *k, const tide__command *command, const tide__cl_arg *arg, word *out) {
    const tide_step_args *step = &command->kernel.args;
    const tide_op_desc *d = &k->desc;
    switch (arg->kind) {
    case TIDE__ARG_PLACE: out->u = command->offsets[arg->operand] + (uint64_t)arg->number; return sizeof out->u;
    case TIDE__ARG_INT: out->i = (cl_int)arg->number; return sizeof out->i;
    case TIDE__ARG_LONG: out->u = (cl_ulong)arg->number; return sizeof out->u;
    case TIDE__ARG_FLOAT: out->f = arg->real; return sizeof out->f;
    case TIDE__ARG_SEED: out->u = step->seed; return sizeof out->u;
    case TIDE__ARG_STREAM:
        out->u = tide__hash_word(tide__hash_word(0, step->step), step->counter);
        return sizeof out->u;
    case TIDE__ARG_RATE: out->f = step->learning_rate; return sizeof out->f;
    case TIDE__ARG_M_SHARE: out->f = bias_share(d->beta1, step->step); return sizeof out->f;
    case TIDE__ARG_V_SHARE: out->f = bias_share(d->beta2, step->step); return sizeof out->f;
    case TIDE__ARG_KEEP: out->f = 1 - step->learning_rate * d->weight_decay; return sizeof out->f;
    case TIDE__ARG_LOCAL: break;
    }
    return 0;
}

static cl_int set_arg(const tide__cl *cl, const tide__opencl_kernel *k, const tide__command *command,
                      cl_kernel function, cl_uint index, const tide__cl_arg *arg) {
    word value;
    if (arg->kind == TIDE__ARG_LOCAL) return cl->SetKernelArg(function, index, (size_t)arg->number, NULL);
    size_t size = evaluate(k, command, arg, &value);
    return cl->SetKernelArg(function, index, size, &value);
}

/* Under the device's lock: functions, and with them their arguments, are shared by kernels and queues. */
static cl_int launch(const tide__opencl_queue *queue, const tide__opencl_kernel *k, const tide__command *command,
                     const tide__cl_launch *l) {
    const tide__opencl *opencl = (const tide__opencl *)k->base.device;
    const tide__cl *cl = &opencl->cl;
    const tide__opencl_arena *arena = (const tide__opencl_arena *)command->kernel.arena;
    const size_t lanes[3] = {opencl->lanes, 1, 1}, items[3] = {l->groups[0] * lanes[0], l->groups[1], l->groups[2]};
    cl_int error = cl->SetKernelArg(l->function, 0, sizeof(cl_mem), &arena->buffer);
    if (error == CL_SUCCESS) error = cl->SetKernelArg(l->function, 1, sizeof(cl_mem), &queue->faults);
    for (size_t i = 0; i < l->n_args && error == CL_SUCCESS; i++)
        error = set_arg(cl, k, command, l->function, (cl_uint)i + 2, &k->args.data[l->first_arg + i]);
    if (error != CL_SUCCESS) return error;
    return cl->EnqueueNDRangeKernel(queue->cl, l->function, 3, NULL, items, lanes, 0, NULL, NULL);
}

static tide_status run_launch(const tide__opencl_queue *queue, const tide__opencl_kernel *k,
                              const tide__command *command, const tide__cl_launch *l) {
    if (!l->function) return tide__product_run(queue, k, command, &k->products.data[l->product]);
    cl_int error = launch(queue, k, command, l);
    if (error == CL_SUCCESS) return TIDE_OK;
    return tide__fail(TIDE_E_DEVICE, "OpenCL cannot launch %s: %s (%d)", tide_op_kind_name(k->desc.kind),
                      tide__cl_error_name(error), error);
}

tide_status tide__opencl_run_kernel(tide__host_queue *base, const tide__command *command) {
    const tide__opencl_kernel *k = (const tide__opencl_kernel *)command->kernel.kernel;
    tide__opencl_queue *queue = (tide__opencl_queue *)base;
    tide__opencl *opencl = (tide__opencl *)k->base.device;
    tide_status status = TIDE_OK;
    queue->in_flight = true;
    pthread_mutex_lock(&opencl->lock);
    for (size_t i = 0; i < k->launches.count && status == TIDE_OK; i++)
        if (k->launches.data[i].variant == command->kernel.variant)
            status = run_launch(queue, k, command, &k->launches.data[i]);
    pthread_mutex_unlock(&opencl->lock);
    opencl->cl.Flush(queue->cl);
    return status;
}
