/* The table behind rules.h. Keep it in step with the operand list in tidemark/ops.h.
 *
 * ADD could take over either read, but a program names one per write: the read that always dies there. Joining two
 * branches that is the first (the main path; the shortcut is often needed again in backward), summing gradients the
 * second (the newest one, which nobody else has). */
#include "nn/rules.h"

#include <stddef.h>

#define ACTIVATION(suffix_) \
    { suffix_, TIDE_CLASS_ACTIVATION, TIDE_F32, false }
#define BYTE_ACTIVATION(suffix_) \
    { suffix_, TIDE_CLASS_ACTIVATION, TIDE_U8, false }
#define ACTIVATION_GRADIENT(suffix_) \
    { suffix_, TIDE_CLASS_ACTIVATION_GRADIENT, TIDE_F32, false }
#define GRADIENT(suffix_) \
    { suffix_, TIDE_CLASS_GRADIENT, TIDE_F32, false }
#define WEIGHT(suffix_) \
    { suffix_, TIDE_CLASS_WEIGHT, TIDE_F32, false } /* the last one of a step is kept: step.c */
#define OPTIMIZER(suffix_) \
    { suffix_, TIDE_CLASS_OPTIMIZER, TIDE_F32, true }
#define OTHER(suffix_) \
    { suffix_, TIDE_CLASS_OTHER, TIDE_F32, false }

#define OP(suffix_, n, ...) .suffix = suffix_, .write = {__VA_ARGS__}, .n_writes = n
#define FORWARD OP("", 1, ACTIVATION(""))
#define WEIGHT_GRADIENTS OP(".bwd-weights", 2, GRADIENT(".weight.grad"), GRADIENT(".bias.grad"))
#define INPUT_GRADIENT(suffix_) OP(suffix_, 1, ACTIVATION_GRADIENT(".dx"))

#define MAY(read_, write_) .n_pairs = 1, .pair = {{read_, write_, false}}
#define MUST(n, ...) .n_pairs = n, .pair = {__VA_ARGS__}, .once = true

static const tide__op_rule rules[TIDE_OP_KIND_COUNT] = {
    [TIDE_OP_CONV_FWD] = {FORWARD},
    [TIDE_OP_CONV_BWD_DATA] = {INPUT_GRADIENT(".bwd-data")},
    [TIDE_OP_CONV_BWD_WEIGHTS] = {WEIGHT_GRADIENTS},
    [TIDE_OP_FC_FWD] = {FORWARD},
    [TIDE_OP_FC_BWD_DATA] = {INPUT_GRADIENT(".bwd-data")},
    [TIDE_OP_FC_BWD_WEIGHTS] = {WEIGHT_GRADIENTS},
    [TIDE_OP_BN_FWD] = {OP("", 3, ACTIVATION(""), ACTIVATION(".mean"), ACTIVATION(".inv_std"))},
    [TIDE_OP_BN_STATS] = {OP(".stats", 2, OTHER(".running_mean'"), OTHER(".running_var'")),
                          MUST(2, {2, 0, true}, {3, 1, true})},
    [TIDE_OP_BN_INFER] = {FORWARD},
    [TIDE_OP_BN_BWD] = {OP(".bwd", 3, ACTIVATION_GRADIENT(".dx"), GRADIENT(".weight.grad"), GRADIENT(".bias.grad")),
                        MAY(1, 0)},
    [TIDE_OP_RELU_FWD] = {OP("", 2, ACTIVATION(""), BYTE_ACTIVATION(".signs")), MAY(0, 0), .forgets = true},
    [TIDE_OP_RELU_BWD] = {INPUT_GRADIENT(".bwd"), MAY(1, 0)},
    [TIDE_OP_MAXPOOL_FWD] = {OP("", 2, ACTIVATION(""), BYTE_ACTIVATION(".index")), .forgets = true},
    [TIDE_OP_MAXPOOL_BWD] = {INPUT_GRADIENT(".bwd")},
    [TIDE_OP_AVGPOOL_FWD] = {FORWARD, .forgets = true},
    [TIDE_OP_AVGPOOL_BWD] = {INPUT_GRADIENT(".bwd")},
    [TIDE_OP_ADD] = {FORWARD, MAY(0, 0), .forgets = true},
    [TIDE_OP_SOFTMAX_LOSS_FWD] = {OP("", 2, ACTIVATION(".prob"), OTHER("")), .forgets = true},
    [TIDE_OP_SOFTMAX_LOSS_BWD] = {INPUT_GRADIENT(".bwd"), MAY(0, 0)},
    [TIDE_OP_DROPOUT_FWD] = {FORWARD, MAY(0, 0), .random = true, .forgets = true},
    [TIDE_OP_DROPOUT_BWD] = {INPUT_GRADIENT(".bwd"), MAY(0, 0), .random = true},
    [TIDE_OP_LRN_FWD] = {FORWARD},
    [TIDE_OP_LRN_BWD] = {INPUT_GRADIENT(".bwd")},
    [TIDE_OP_REORDER] = {OP(".reorder", 1, ACTIVATION(".reorder"))}, /* of its source's class, in fact */
    [TIDE_OP_SGD] = {OP(".sgd", 1, WEIGHT("'")), MUST(1, {0, 0, true}), .flat = true},
    [TIDE_OP_MOMENTUM] = {OP(".momentum", 2, WEIGHT("'"), OPTIMIZER(".momentum'")), MUST(2, {0, 0, true}, {1, 1, true}),
                          .flat = true},
    [TIDE_OP_ADAM] = {OP(".adam", 3, WEIGHT("'"), OPTIMIZER(".m'"), OPTIMIZER(".v'")),
                      MUST(3, {0, 0, true}, {1, 1, true}, {2, 2, true}), .flat = true},
    [TIDE_OP_ADAMW] = {OP(".adamw", 3, WEIGHT("'"), OPTIMIZER(".m'"), OPTIMIZER(".v'")),
                       MUST(3, {0, 0, true}, {1, 1, true}, {2, 2, true}), .flat = true},
    [TIDE_OP_GRAD_NORM] = {OP("", 1, OTHER(".scale")), .flat = true},
    [TIDE_OP_ACCUMULATE] = {OP(".accumulate", 1, GRADIENT(".grad-sum")), MAY(0, 0), .flat = true},
    [TIDE_OP_CUT] = {OP(".cut", 1, WEIGHT(".part")), MAY(0, 0), .once = true, .flat = true, .same_class = true},
    [TIDE_OP_PASTE] = {OP(".paste", 1, WEIGHT(".whole")), MUST(1, {0, 0, true}), .flat = true, .same_class = true},
    [TIDE_OP_CONCAT_FWD] = {FORWARD, .forgets = true},
    [TIDE_OP_CONCAT_BWD] = {INPUT_GRADIENT(".bwd"), .numbered = true},
    [TIDE_OP_UPCONV_FWD] = {FORWARD},
    [TIDE_OP_UPCONV_BWD_DATA] = {INPUT_GRADIENT(".bwd-data")},
    [TIDE_OP_UPCONV_BWD_WEIGHTS] = {WEIGHT_GRADIENTS},
    [TIDE_OP_LAYERNORM_FWD] = {OP("", 3, ACTIVATION(""), ACTIVATION(".mean"), ACTIVATION(".inv_std"))},
    [TIDE_OP_LAYERNORM_BWD] = {OP(".bwd", 3, ACTIVATION_GRADIENT(".dx"), GRADIENT(".weight.grad"),
                                  GRADIENT(".bias.grad")),
                               MAY(1, 0)},
    [TIDE_OP_GELU_FWD] = {FORWARD, MAY(0, 0)},
    [TIDE_OP_GELU_BWD] = {INPUT_GRADIENT(".bwd"), MAY(1, 0)},
    [TIDE_OP_EMBEDDING_FWD] = {FORWARD},
    [TIDE_OP_EMBEDDING_BWD] = {OP(".bwd", 2, GRADIENT(".weight.grad"), GRADIENT(".positions.grad"))},
    [TIDE_OP_ATTENTION_FWD] = {OP("", 2, ACTIVATION(""), ACTIVATION(".lse"))},
    [TIDE_OP_ATTENTION_BWD] = {INPUT_GRADIENT(".bwd")},
    [TIDE_OP_SLICE] = {FORWARD, .forgets = true},
    [TIDE_OP_STACK] = {FORWARD, .forgets = true},
    [TIDE_OP_LSTM_FWD] = {OP("", 3, ACTIVATION(""), ACTIVATION(".c"), ACTIVATION(".gates"))},
    [TIDE_OP_LSTM_BWD_GATES] = {OP(".bwd-gates", 2, ACTIVATION_GRADIENT(".dgates"), ACTIVATION_GRADIENT(".dc")),
                                MAY(0, 0)},
    [TIDE_OP_LSTM_BWD_WEIGHTS] = {WEIGHT_GRADIENTS},
    [TIDE_OP_HEAD_LOSS] = {OP("", 3, ACTIVATION_GRADIENT(".dx"), GRADIENT(".weight.grad"), OTHER(""))},
    [TIDE_OP_HEAD_SCORE] = {OP("", 2, ACTIVATION(".score"), OTHER(""))},
    [TIDE_OP_LSTM_BWD_DATA] = {OP(".bwd-data", 2, ACTIVATION_GRADIENT(".dx"), ACTIVATION_GRADIENT(".dh"))},
};

static const tide__op_rule gradient_sum = {OP(".sum-dy", 1, ACTIVATION_GRADIENT(".dy")), MAY(1, 0)};

static const tide__op_rule gradient_of_steps = {INPUT_GRADIENT(".bwd")};

static const tide__op_rule loss_sum = {OP(".accumulate", 1, OTHER(".sum")), MAY(0, 0), .flat = true};

const tide__op_rule *tide__op_rule_of(tide_op_kind kind, tide_phase phase) {
    if (kind == TIDE_OP_ACCUMULATE && phase == TIDE_FORWARD) return &loss_sum;
    if (kind == TIDE_OP_ADD && phase == TIDE_BACKWARD) return &gradient_sum;
    if ((kind == TIDE_OP_SLICE || kind == TIDE_OP_STACK) && phase == TIDE_BACKWARD) return &gradient_of_steps;
    return kind < TIDE_OP_KIND_COUNT && rules[kind].n_writes > 0 ? &rules[kind] : NULL;
}

uint32_t tide__op_n_writes(const tide__op_rule *rule, const tide_op_desc *desc) {
    bool weights = desc->kind == TIDE_OP_CONV_BWD_WEIGHTS || desc->kind == TIDE_OP_FC_BWD_WEIGHTS ||
                   desc->kind == TIDE_OP_UPCONV_BWD_WEIGHTS || desc->kind == TIDE_OP_EMBEDDING_BWD;
    if (rule->numbered) return desc->n_parts;
    if (desc->kind == TIDE_OP_RELU_FWD && !desc->signs) return rule->n_writes - 1;
    bool to_previous = desc->kind == TIDE_OP_LSTM_BWD_GATES || desc->kind == TIDE_OP_LSTM_BWD_DATA;
    if (to_previous && !desc->has_prev) return rule->n_writes - 1;
    return weights && !desc->bias ? rule->n_writes - 1 : rule->n_writes;
}
