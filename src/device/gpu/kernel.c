/* Creating and enqueueing kernels: the table of builders and what all kernels share. */
#include "device/gpu/kernel.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/size.h"
#include "device/op_check.h"

typedef tide_status (*build_fn)(tide__gpu_kernel *k, const tide_op_desc *d);

/* A kind without one is refused. */
static const build_fn builders[TIDE_OP_KIND_COUNT] = {
    [TIDE_OP_CONV_FWD] = tide__gpu_build_conv,
    [TIDE_OP_CONV_BWD_DATA] = tide__gpu_build_conv,
    [TIDE_OP_CONV_BWD_WEIGHTS] = tide__gpu_build_conv,
    [TIDE_OP_UPCONV_FWD] = tide__gpu_build_conv,
    [TIDE_OP_UPCONV_BWD_DATA] = tide__gpu_build_conv,
    [TIDE_OP_UPCONV_BWD_WEIGHTS] = tide__gpu_build_conv,
    [TIDE_OP_FC_FWD] = tide__gpu_build_fc,
    [TIDE_OP_FC_BWD_DATA] = tide__gpu_build_fc,
    [TIDE_OP_FC_BWD_WEIGHTS] = tide__gpu_build_fc,
    [TIDE_OP_BN_FWD] = tide__gpu_build_bn,
    [TIDE_OP_BN_STATS] = tide__gpu_build_bn,
    [TIDE_OP_BN_INFER] = tide__gpu_build_bn,
    [TIDE_OP_BN_BWD] = tide__gpu_build_bn,
    [TIDE_OP_RELU_FWD] = tide__gpu_build_elementwise,
    [TIDE_OP_RELU_BWD] = tide__gpu_build_elementwise,
    [TIDE_OP_ADD] = tide__gpu_build_elementwise,
    [TIDE_OP_ACCUMULATE] = tide__gpu_build_elementwise,
    [TIDE_OP_ZERO] = tide__gpu_build_elementwise,
    [TIDE_OP_GELU_FWD] = tide__gpu_build_elementwise,
    [TIDE_OP_GELU_BWD] = tide__gpu_build_elementwise,
    [TIDE_OP_MAXPOOL_FWD] = tide__gpu_build_pool,
    [TIDE_OP_MAXPOOL_BWD] = tide__gpu_build_pool,
    [TIDE_OP_AVGPOOL_FWD] = tide__gpu_build_pool,
    [TIDE_OP_AVGPOOL_BWD] = tide__gpu_build_pool,
    [TIDE_OP_SOFTMAX_LOSS_FWD] = tide__gpu_build_softmax_loss,
    [TIDE_OP_SOFTMAX_LOSS_BWD] = tide__gpu_build_softmax_loss,
    [TIDE_OP_DROPOUT_FWD] = tide__gpu_build_dropout,
    [TIDE_OP_DROPOUT_BWD] = tide__gpu_build_dropout,
    [TIDE_OP_LRN_FWD] = tide__gpu_build_lrn,
    [TIDE_OP_LRN_BWD] = tide__gpu_build_lrn,
    [TIDE_OP_REORDER] = tide__gpu_build_reorder,
    [TIDE_OP_SGD] = tide__gpu_build_update,
    [TIDE_OP_MOMENTUM] = tide__gpu_build_update,
    [TIDE_OP_ADAM] = tide__gpu_build_update,
    [TIDE_OP_ADAMW] = tide__gpu_build_update,
    [TIDE_OP_GRAD_NORM] = tide__gpu_build_grad_norm,
    [TIDE_OP_CUT] = tide__gpu_build_cut,
    [TIDE_OP_PASTE] = tide__gpu_build_cut,
    [TIDE_OP_CONCAT_FWD] = tide__gpu_build_concat,
    [TIDE_OP_CONCAT_BWD] = tide__gpu_build_concat,
    [TIDE_OP_ATTENTION_FWD] = tide__gpu_build_attention,
    [TIDE_OP_ATTENTION_BWD] = tide__gpu_build_attention,
    [TIDE_OP_SLICE] = tide__gpu_build_steps,
    [TIDE_OP_STACK] = tide__gpu_build_steps,
    [TIDE_OP_LAYERNORM_FWD] = tide__gpu_build_layernorm,
    [TIDE_OP_LAYERNORM_BWD] = tide__gpu_build_layernorm,
    [TIDE_OP_EMBEDDING_FWD] = tide__gpu_build_embedding,
    [TIDE_OP_EMBEDDING_BWD] = tide__gpu_build_embedding,
    [TIDE_OP_LSTM_FWD] = tide__gpu_build_lstm,
    [TIDE_OP_LSTM_BWD_GATES] = tide__gpu_build_lstm,
    [TIDE_OP_LSTM_BWD_WEIGHTS] = tide__gpu_build_lstm,
    [TIDE_OP_LSTM_BWD_DATA] = tide__gpu_build_lstm,
    [TIDE_OP_HEAD_LOSS] = tide__gpu_build_head,
    [TIDE_OP_HEAD_SCORE] = tide__gpu_build_head,
};

/* ---- launches ---- */

tide_status tide__gpu_launch_add(tide__gpu_kernel *k, const char *family, const char *name, const size_t groups[3],
                                 const tide__gpu_arg *args, size_t n_args) {
    tide__gpu_launch launch = {.groups = {groups[0], groups[1], groups[2]},
                               .first_arg = k->args.count,
                               .n_args = n_args,
                               .variant = k->n_variants - 1};
    tide__gpu *gpu = (tide__gpu *)k->base.device;
    if (n_args > TIDE__GPU_MAX_ARGS) return tide__fail(TIDE_E_INTERNAL, "%s has %zu arguments", name, n_args);
    TIDE_TRY(gpu->backend->function(gpu, family, name, &launch.function));
    for (size_t i = 0; i < n_args; i++) TIDE_TRY(tide__vec_push(&k->args, args[i]));
    return tide__vec_push(&k->launches, launch);
}

tide_status tide__gpu_product_add(tide__gpu_kernel *k, const tide__gpu_product *product) {
    tide__gpu_launch launch = {.product = k->products.count, .variant = k->n_variants - 1};
    uint64_t *temporary = &k->temporary_bytes[launch.variant];
    *temporary = tide__max_u64(*temporary, product->temporary_bytes);
    TIDE_TRY(tide__vec_push(&k->products, *product));
    return tide__vec_push(&k->launches, launch);
}

uint64_t tide__gpu_product_place(const tide__gpu_kernel *k, uint32_t variant) {
    const uint64_t align = k->base.device->align_bytes;
    return (k->variants[variant].workspace_bytes + align - 1) & ~(align - 1);
}

void tide__gpu_set_workspace(tide__gpu_kernel *k, uint64_t bytes) {
    k->variants[k->n_variants - 1].workspace_bytes = bytes;
}

void tide__gpu_variant(tide__gpu_kernel *k, bool same_bits) {
    k->variants[k->n_variants] = (tide_variant){.bits_class = same_bits ? 0 : k->n_variants};
    k->n_variants++;
}

static uint32_t other_place(uint32_t variant, uint32_t a, uint32_t b) {
    return variant == a ? b : variant == b ? a : variant;
}

void tide__gpu_variant_first(tide__gpu_kernel *k, uint32_t variant) {
    const tide_variant first = k->variants[0];
    const uint64_t bytes = k->temporary_bytes[0];
    const char *library = k->libraries[0];
    k->variants[0] = k->variants[variant], k->variants[variant] = first;
    k->temporary_bytes[0] = k->temporary_bytes[variant], k->temporary_bytes[variant] = bytes;
    k->libraries[0] = k->libraries[variant], k->libraries[variant] = library;
    for (size_t i = 0; i < k->launches.count; i++)
        k->launches.data[i].variant = other_place(k->launches.data[i].variant, 0, variant);
}

const char *tide__gpu_variant_library(const tide_kernel *kernel, uint32_t variant) {
    return ((const tide__gpu_kernel *)kernel)->libraries[variant];
}

/* ---- creating ---- */

void tide__gpu_kernel_destroy(tide_kernel *base) {
    tide__gpu_kernel *k = (tide__gpu_kernel *)base;
    const tide__gpu_backend *backend = ((const tide__gpu *)base->device)->backend;
    if (backend->forget_ways) backend->forget_ways(k);
    tide__vec_free(&k->operands);
    tide__vec_free(&k->launches);
    tide__vec_free(&k->args);
    tide__vec_free(&k->products);
    free(k->operand_bytes);
    free(k);
}

/* Ops that work on stored floats in any order. */
static bool takes_any_layout(tide_op_kind kind) { return (kind >= TIDE_OP_SGD && kind <= TIDE_OP_ZERO); }

static tide_operand_info describe(const tide__gpu_kernel *k, const tide__gpu_operand *o) {
    uint64_t layout = tide__hash_word(tide__hash_word(0, o->type), o->elements);
    bool any = takes_any_layout(k->desc.kind);
    return (tide_operand_info){.size_bytes = o->elements * tide__element_bytes(o->type),
                               .layout = any      ? TIDE_LAYOUT_ANY
                                         : layout ? layout
                                                  : 1};
}

static tide_status fill_info(tide__gpu_kernel *k) {
    tide_kernel_info *info = &k->base.info;
    info->n_reads = k->n_reads;
    info->n_writes = (uint32_t)k->operands.count - k->n_reads;
    info->n_variants = k->n_variants;
    for (uint32_t i = 0; i < k->n_variants; i++) {
        info->variant[i] = k->variants[i];
        if (k->temporary_bytes[i])
            info->variant[i].workspace_bytes = tide__gpu_product_place(k, i) + k->temporary_bytes[i];
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

static tide_status build(tide__gpu_kernel *k, const tide_op_desc *d) {
    if (!builders[d->kind])
        return tide__fail(TIDE_E_UNSUPPORTED, "the %s device has no kernel for op kind \"%s\"",
                          ((const tide__gpu *)k->base.device)->backend->title, tide_op_kind_name(d->kind));
    const tide__gpu_backend *backend = ((const tide__gpu *)k->base.device)->backend;
    if (d->bf16)
        return tide__fail(TIDE_E_UNSUPPORTED, "the %s device stores float32 alone: it has no \"%s\" of bf16",
                          backend->title, tide_op_kind_name(d->kind));
    TIDE_TRY(tide__op_check(d));
    TIDE_TRY(builders[d->kind](k, d));
    return backend->add_ways ? backend->add_ways(k, d) : TIDE_OK;
}

tide_status tide__gpu_kernel_create(tide_device *device, const tide_op_desc *desc, tide_kernel **out) {
    tide_status status;
    tide__gpu_kernel *k = calloc(1, sizeof *k);
    if (!k) return tide__fail_memory();
    k->base.device = device;
    k->n_variants = 1;
    k->desc = tide__op_desc_own(desc);
    TIDE_TRY_GOTO(build(k, desc), destroy);
    TIDE_TRY_GOTO(fill_info(k), destroy);
    *out = &k->base;
    return TIDE_OK;
destroy:
    tide__gpu_kernel_destroy(&k->base);
    return status;
}

/* ---- running, on a queue's thread ---- */

/* 1 / (1 - beta^t), t counted from 1. */
static float bias_share(float beta, uint64_t step) { return (float)(1 / (1 - pow((double)beta, (double)step + 1))); }

static tide__gpu_value value_u(uint64_t u) { return (tide__gpu_value){.size_bytes = sizeof u, .u = u}; }
static tide__gpu_value value_f(float f) { return (tide__gpu_value){.size_bytes = sizeof f, .f = f}; }

static tide__gpu_value evaluate(const tide__gpu_kernel *k, const tide__command *command, const tide__gpu_arg *arg) {
    const tide_step_args *step = &command->kernel.args;
    const tide_op_desc *d = &k->desc;
    switch (arg->kind) {
    case TIDE__ARG_PLACE: return value_u(command->offsets[arg->operand] + (uint64_t)arg->number);
    case TIDE__ARG_INT: return (tide__gpu_value){.size_bytes = sizeof(int32_t), .i = (int32_t)arg->number};
    case TIDE__ARG_LONG: return value_u((uint64_t)arg->number);
    case TIDE__ARG_FLOAT: return value_f(arg->real);
    case TIDE__ARG_SEED: return value_u(step->seed);
    case TIDE__ARG_STREAM: return value_u(tide__hash_word(tide__hash_word(0, step->step), step->counter));
    case TIDE__ARG_RATE: return value_f(step->learning_rate);
    case TIDE__ARG_M_SHARE: return value_f(bias_share(d->beta1, step->step));
    case TIDE__ARG_V_SHARE: return value_f(bias_share(d->beta2, step->step));
    case TIDE__ARG_KEEP: return value_f(1 - step->learning_rate * d->weight_decay);
    case TIDE__ARG_LOCAL: break;
    }
    return (tide__gpu_value){.size_bytes = 0, .u = (uint64_t)arg->number};
}

static tide_status run_launch(tide__host_queue *queue, const tide__gpu_kernel *k, const tide__command *command,
                              const tide__gpu_launch *l) {
    const tide__gpu_backend *backend = ((const tide__gpu *)k->base.device)->backend;
    tide__gpu_value values[TIDE__GPU_MAX_ARGS];
    if (!l->function) return backend->run_product(queue, command, &k->products.data[l->product]);
    for (size_t i = 0; i < l->n_args; i++) values[i] = evaluate(k, command, &k->args.data[l->first_arg + i]);
    return backend->launch(queue, command, l, values);
}

tide_status tide__gpu_run_kernel(tide__host_queue *queue, const tide__command *command) {
    const tide__gpu_kernel *k = (const tide__gpu_kernel *)command->kernel.kernel;
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < k->launches.count && status == TIDE_OK; i++)
        if (k->launches.data[i].variant == command->kernel.variant)
            status = run_launch(queue, k, command, &k->launches.data[i]);
    return status;
}
