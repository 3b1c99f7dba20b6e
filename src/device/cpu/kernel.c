/* Creating and enqueueing kernels: the table of builders and what all kernels share. */
#include "device/cpu/kernel.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/prim.h"
#include "device/op_check.h"

typedef tide_status (*build_fn)(tide__cpu_kernel *k, const tide_op_desc *source);

/* A kind without one is refused. */
static const build_fn builders[TIDE_OP_KIND_COUNT] = {
    [TIDE_OP_CONV_FWD] = tide__build_conv,
    [TIDE_OP_CONV_BWD_DATA] = tide__build_conv,
    [TIDE_OP_CONV_BWD_WEIGHTS] = tide__build_conv,
    [TIDE_OP_FC_FWD] = tide__build_fc,
    [TIDE_OP_FC_BWD_DATA] = tide__build_fc,
    [TIDE_OP_FC_BWD_WEIGHTS] = tide__build_fc,
    [TIDE_OP_BN_FWD] = tide__build_bn,
    [TIDE_OP_BN_STATS] = tide__build_bn,
    [TIDE_OP_BN_INFER] = tide__build_bn,
    [TIDE_OP_BN_BWD] = tide__build_bn,
    [TIDE_OP_RELU_FWD] = tide__build_relu,
    [TIDE_OP_RELU_BWD] = tide__build_relu,
    [TIDE_OP_MAXPOOL_FWD] = tide__build_maxpool,
    [TIDE_OP_MAXPOOL_BWD] = tide__build_maxpool,
    [TIDE_OP_AVGPOOL_FWD] = tide__build_avgpool,
    [TIDE_OP_AVGPOOL_BWD] = tide__build_avgpool,
    [TIDE_OP_ADD] = tide__build_add,
    [TIDE_OP_SOFTMAX_LOSS_FWD] = tide__build_softmax_loss,
    [TIDE_OP_SOFTMAX_LOSS_BWD] = tide__build_softmax_loss,
    [TIDE_OP_DROPOUT_FWD] = tide__build_dropout,
    [TIDE_OP_DROPOUT_BWD] = tide__build_dropout,
    [TIDE_OP_LRN_FWD] = tide__build_lrn,
    [TIDE_OP_LRN_BWD] = tide__build_lrn,
    [TIDE_OP_REORDER] = tide__build_reorder,
    [TIDE_OP_SGD] = tide__build_update,
    [TIDE_OP_MOMENTUM] = tide__build_update,
    [TIDE_OP_ADAM] = tide__build_update,
    [TIDE_OP_ADAMW] = tide__build_update,
    [TIDE_OP_GRAD_NORM] = tide__build_grad_norm,
    [TIDE_OP_ACCUMULATE] = tide__build_accumulate,
    [TIDE_OP_CUT] = tide__build_cut,
    [TIDE_OP_PASTE] = tide__build_paste,
    [TIDE_OP_ZERO] = tide__build_zero,
    [TIDE_OP_CONCAT_FWD] = tide__build_concat,
    [TIDE_OP_CONCAT_BWD] = tide__build_concat,
    [TIDE_OP_UPCONV_FWD] = tide__build_upconv,
    [TIDE_OP_UPCONV_BWD_DATA] = tide__build_upconv,
    [TIDE_OP_UPCONV_BWD_WEIGHTS] = tide__build_upconv,
    [TIDE_OP_LAYERNORM_FWD] = tide__build_layernorm,
    [TIDE_OP_LAYERNORM_BWD] = tide__build_layernorm,
    [TIDE_OP_GELU_FWD] = tide__build_gelu,
    [TIDE_OP_GELU_BWD] = tide__build_gelu,
    [TIDE_OP_EMBEDDING_FWD] = tide__build_embedding,
    [TIDE_OP_EMBEDDING_BWD] = tide__build_embedding,
    [TIDE_OP_ATTENTION_FWD] = tide__build_attention,
    [TIDE_OP_ATTENTION_BWD] = tide__build_attention,
    [TIDE_OP_SLICE] = tide__build_steps,
    [TIDE_OP_STACK] = tide__build_steps,
    [TIDE_OP_LSTM_FWD] = tide__build_lstm_cell,
    [TIDE_OP_LSTM_BWD_GATES] = tide__build_lstm_cell,
    [TIDE_OP_LSTM_BWD_WEIGHTS] = tide__build_lstm_cell,
    [TIDE_OP_LSTM_BWD_DATA] = tide__build_lstm_cell,
    [TIDE_OP_HEAD_LOSS] = tide__build_head,
    [TIDE_OP_HEAD_SCORE] = tide__build_head,
};

int tide__set_threads(int threads) {
    int old = omp_get_max_threads();
    omp_set_num_threads(threads);
    return old;
}

void tide__cpu_kernel_destroy(tide_kernel *base) {
    tide__cpu_kernel *k = (tide__cpu_kernel *)base;
    tide__prim_destroy(k->prim);
    tide__widened_destroy(k->widened);
    for (uint32_t i = 0; i < k->n_alternatives; i++) tide__prim_destroy(k->alternatives[i].prim);
    tide__vec_free(&k->operands);
    tide__mds_free(&k->operand_mds);
    free(k->operand_bytes);
    free(k);
}

static tide_status build(tide__cpu_kernel *k, const tide_op_desc *source) {
    if (!builders[source->kind])
        return tide__fail(TIDE_E_UNSUPPORTED, "the CPU device has no kernel for op kind \"%s\"",
                          tide_op_kind_name(source->kind));
    TIDE_TRY(tide__op_check(source));
    int old = tide__set_threads((int)((tide__cpu *)k->base.device)->threads);
    tide_status status = (tide__is_widened(source) ? tide__build_widened : builders[source->kind])(k, source);
    tide__set_threads(old);
    tide__mds_free(&k->mds);
    return status;
}

static void fill_operands(const tide__operand *from, uint32_t n, tide_operand_info *to) {
    for (uint32_t i = 0; i < n && i < TIDE_KERNEL_MAX_OPERANDS; i++)
        to[i] = (tide_operand_info){.size_bytes = from[i].size_bytes, .layout = from[i].layout};
}

static tide_status fill_info(tide__cpu_kernel *k) {
    tide_kernel_info *info = &k->base.info;
    info->n_reads = k->n_reads;
    info->n_writes = (uint32_t)k->operands.count - k->n_reads;
    fill_operands(k->operands.data, info->n_reads, info->read);
    fill_operands(k->operands.data + k->n_reads, info->n_writes, info->write);
    info->n_variants = 1 + k->n_alternatives;
    info->variant[0].workspace_bytes = k->workspace_bytes;
    for (uint32_t i = 0; i < k->n_alternatives; i++)
        info->variant[1 + i] =
            (tide_variant){.workspace_bytes = k->alternatives[i].workspace_bytes, .bits_class = 1 + i};
    k->operand_bytes = malloc(k->operands.count * sizeof *k->operand_bytes);
    if (!k->operand_bytes) return tide__fail_memory();
    for (size_t i = 0; i < k->operands.count; i++) k->operand_bytes[i] = k->operands.data[i].size_bytes;
    k->base.operand_bytes = k->operand_bytes;
    return TIDE_OK;
}

tide_status tide__cpu_kernel_create(tide_device *device, const tide_op_desc *desc, tide_kernel **out) {
    tide_status status;
    tide__cpu_kernel *k = calloc(1, sizeof *k);
    if (!k) return tide__fail_memory();
    k->base.device = device;
    k->desc = tide__op_desc_own(desc);
    TIDE_TRY_GOTO(build(k, desc), destroy);
    TIDE_TRY_GOTO(fill_info(k), destroy);
    *out = &k->base;
    return TIDE_OK;
destroy:
    tide__cpu_kernel_destroy(&k->base);
    return status;
}

/* Under the device's number of threads, which primitives have built in. */
static tide_status prepare_variant(const tide__cpu_kernel *k, uint32_t variant) {
    if (variant == 0) return TIDE_OK;
    int old = tide__set_threads((int)((tide__cpu *)k->base.device)->threads);
    tide_status status = tide__prim_realise(k->alternatives[variant - 1].prim);
    tide__set_threads(old);
    return status;
}

tide_status tide__cpu_kernel_enqueue(tide_kernel *kernel, uint32_t variant, tide_queue *queue, tide_arena *arena,
                                     const uint64_t *offsets, uint32_t n_offsets, const tide_step_args *args) {
    TIDE_TRY(prepare_variant((const tide__cpu_kernel *)kernel, variant));
    return tide__host_kernel_enqueue(kernel, variant, queue, arena, offsets, n_offsets, args);
}
