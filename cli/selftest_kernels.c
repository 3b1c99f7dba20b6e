/* Kernels against the CPU device, op by op: the same numbers go in, and what comes out is the same bits or close. And twice
 * on the device itself, which must be the same bits. */
#include "selftest.h"

#define CLOSE 1e-4 /* of the largest number of an operand */

enum { CLASSES = SELFTEST_CLASSES };

static const tide_op_desc ops[] = {
    {.kind = TIDE_OP_CONV_FWD,
     .x = {2, 8, 13, 11},
     .y = {2, 12, 13, 11},
     .kernel_h = 3,
     .kernel_w = 3,
     .stride = 1,
     .pad_h = 1,
     .pad_w = 1,
     .bias = 1},
    {.kind = TIDE_OP_CONV_BWD_DATA,
     .x = {2, 8, 13, 11},
     .y = {2, 12, 7, 6},
     .kernel_h = 3,
     .kernel_w = 3,
     .stride = 2,
     .pad_h = 1,
     .pad_w = 1},
    {.kind = TIDE_OP_CONV_BWD_WEIGHTS,
     .x = {2, 8, 13, 11},
     .y = {2, 12, 13, 11},
     .kernel_h = 3,
     .kernel_w = 3,
     .stride = 1,
     .pad_h = 1,
     .pad_w = 1,
     .bias = 1},
    {.kind = TIDE_OP_UPCONV_FWD, .x = {2, 8, 5, 6}, .y = {2, 6, 10, 12}, .kernel_h = 2, .kernel_w = 2, .stride = 2},
    {.kind = TIDE_OP_FC_FWD, .x = {17, 70, 1, 1}, .y = {17, 33, 1, 1}, .bias = 1},
    {.kind = TIDE_OP_FC_BWD_DATA, .x = {17, 70, 1, 1}, .y = {17, 33, 1, 1}},
    {.kind = TIDE_OP_FC_BWD_WEIGHTS, .x = {17, 70, 1, 1}, .y = {17, 33, 1, 1}, .bias = 1},
    {.kind = TIDE_OP_BN_FWD, .x = {4, 6, 9, 7}, .y = {4, 6, 9, 7}, .eps = 1e-5f},
    {.kind = TIDE_OP_LAYERNORM_FWD, .x = {33, 70, 1, 1}, .y = {33, 70, 1, 1}, .eps = 1e-5f},
    {.kind = TIDE_OP_RELU_FWD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}},
    {.kind = TIDE_OP_RELU_BWD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}},
    {.kind = TIDE_OP_RELU_FWD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}, .signs = 1},
    {.kind = TIDE_OP_RELU_BWD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}, .signs = 1},
    {.kind = TIDE_OP_ADD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}},
    {.kind = TIDE_OP_GELU_FWD, .x = {33, 70, 1, 1}, .y = {33, 70, 1, 1}},
    {.kind = TIDE_OP_GELU_BWD, .x = {33, 70, 1, 1}, .y = {33, 70, 1, 1}},
    {.kind = TIDE_OP_MAXPOOL_FWD,
     .x = {2, 5, 9, 7},
     .y = {2, 5, 5, 4},
     .kernel_h = 3,
     .kernel_w = 3,
     .stride = 2,
     .pad_h = 1,
     .pad_w = 1},
    {.kind = TIDE_OP_AVGPOOL_FWD, .x = {2, 5, 8, 6}, .y = {2, 5, 4, 3}, .kernel_h = 2, .kernel_w = 2, .stride = 2},
    {.kind = TIDE_OP_AVGPOOL_BWD, .x = {2, 5, 8, 6}, .y = {2, 5, 4, 3}, .kernel_h = 2, .kernel_w = 2, .stride = 2},
    {.kind = TIDE_OP_LRN_FWD,
     .x = {2, 9, 5, 7},
     .y = {2, 9, 5, 7},
     .lrn_size = 5,
     .lrn_alpha = 1e-2f,
     .lrn_beta = 0.75f,
     .lrn_k = 2},
    {.kind = TIDE_OP_DROPOUT_FWD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}, .drop_rate = 0.3f},
    {.kind = TIDE_OP_SOFTMAX_LOSS_FWD, .x = {17, CLASSES, 1, 1}, .y = {17, CLASSES, 1, 1}},
    {.kind = TIDE_OP_EMBEDDING_FWD, .x = {3, 7, 1, 1}, .y = {21, 24, 1, 1}, .vocabulary = CLASSES},
    {.kind = TIDE_OP_ATTENTION_FWD, .x = {200, 48, 1, 1}, .y = {200, 16, 1, 1}, .heads = 4, .context = 100},
    {.kind = TIDE_OP_LSTM_FWD, .x = {9, 20, 1, 1}, .y = {9, 16, 1, 1}, .has_prev = 1},
    {.kind = TIDE_OP_SGD, .elements = 5000, .weight_decay = 1e-4f},
    {.kind = TIDE_OP_MOMENTUM, .elements = 5000, .weight_decay = 1e-4f, .beta1 = 0.9f},
    {.kind = TIDE_OP_ADAM, .elements = 5000, .beta1 = 0.9f, .beta2 = 0.999f},
};

static void compare_op(selftest *s, tide_device *cpu, const tide_op_desc *d) {
    selftest_operands first = {0}, second = {0}, reference = {0};
    bool again = false, same = false;
    char what[128], name[32];
    double apart = 0;
    snprintf(name, sizeof name, "%s%s", tide_op_kind_name(d->kind), d->signs ? ", signs" : "");
    tide_status status = selftest_run_op(s->device, d, 0, &first);
    if (status == TIDE_OK) status = selftest_run_op(s->device, d, 0, &second);
    if (status == TIDE_OK) status = selftest_run_op(cpu, d, 0, &reference);
    if (status == TIDE_OK) {
        (void)selftest_distance(&first, &second, &again);
        apart = selftest_distance(&first, &reference, &same);
    }
    if (same)
        snprintf(what, sizeof what, "%-18s the CPU's bits", name);
    else
        snprintf(what, sizeof what, "%-18s within %.1e of the CPU's%s", name, apart,
                 again ? "" : ", other bits when run again");
    selftest_check(s, what, status, again && apart <= CLOSE);
    selftest_free_operands(&first);
    selftest_free_operands(&second);
    selftest_free_operands(&reference);
}

void selftest_kernels(selftest *s) {
    tide_device *cpu = NULL;
    tide_device_options options;
    tide_device_options_init(&options);
    options.threads = 1;
    selftest_head(s, "kernels, each run twice");
    tide_status status = tide_device_open("cpu", &options, &cpu);
    if (status != TIDE_OK) {
        selftest_check(s, "the CPU device, to compare with", status, false);
        return;
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) compare_op(s, cpu, &ops[i]);
    tide_device_close(cpu);
}
