/* Neural networks as programs: a model family becomes a graph, the graph one whole training step (forward, backward,
 * update) with exactly the reads that backward needs. `nn` is a client of the runtime like any other framework. */
#ifndef TIDEMARK_NN_H
#define TIDEMARK_NN_H

#include <tidemark/device.h>
#include <tidemark/machine.h>
#include <tidemark/ops.h>
#include <tidemark/program.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_model tide_model;
typedef struct tide_step tide_step;

/* ---- optimizers ---- */
#define TIDE_OPTIMIZER_TABLE(X) \
    X(TIDE_SGD, "sgd") X(TIDE_MOMENTUM, "momentum") X(TIDE_ADAM, "adam") X(TIDE_ADAMW, "adamw")
typedef enum tide_optimizer {
#define TIDE_ENUM_MEMBER(e, name) e,
    TIDE_OPTIMIZER_TABLE(TIDE_ENUM_MEMBER)
#undef TIDE_ENUM_MEMBER
} tide_optimizer;

/* ---- models ---- */
typedef struct tide_model_options {
    size_t size;                      /* sizeof(tide_model_options) */
    uint32_t batch;                   /* 0: 32 */
    uint32_t channels, height, width; /* of one image; 0: the family's own (e.g. 3 x 224 x 224) */
    uint32_t classes;                 /* 0: the family's own */
    /* ResNets: residual block i, counted from 0 through all stages, is left out where skip[i] is not 0 (stochastic depth).
     * Blocks that change the shape cannot be. */
    const uint8_t *skip;
    uint32_t n_skip; /* numbers in skip; blocks beyond are there */
    uint32_t length; /* language models: tokens of a sample, at most the context of the spec; 0: that many */
} tide_model_options;
TIDE_API void tide_model_options_init(tide_model_options *options);

/* spec: "lenet", "resnet50", "resnet:6,32,100,6", "resnet-cifar:3", "mlp:784,512,10", "unet:16", "gpt2:medium", "lstm:2,650,35" ...;
 * unknown names list the known ones. */
TIDE_API tide_status tide_model_create(const char *spec, const tide_model_options *options, tide_model **out);
TIDE_API void tide_model_destroy(tide_model *model);
TIDE_API const char *tide_model_name(const tide_model *model);
TIDE_API uint64_t tide_model_parameter_count(const tide_model *model); /* trainable scalars */
TIDE_API uint32_t tide_model_layer_count(const tide_model *model);     /* basic layers: conv, bn, relu, pool, add ... */
TIDE_API tide_shape tide_model_input(const tide_model *model);         /* language models: N, T, 1, 1 (i32 tokens) */
TIDE_API uint32_t tide_model_classes(const tide_model *model);         /* language models: the vocabulary */
TIDE_API bool tide_model_takes_tokens(const tide_model *model);        /* a language model */
TIDE_API uint64_t tide_model_labels(const tide_model *model); /* per sample: 1, or one per pixel, or one per token */
/* Residual blocks of a ResNet, those that are left out included; 0 elsewhere. Fixed ones change the shape and cannot be. */
TIDE_API uint32_t tide_model_block_count(const tide_model *model);
TIDE_API bool tide_model_block_is_fixed(const tide_model *model, uint32_t block);
TIDE_API bool tide_model_skips(const tide_model *model, uint32_t block); /* it is left out */
/* How a family is trained unless told otherwise: what makes it learn from its first weights on. The rate grows with the batch,
 * in proportion, or by its square root where rate_by_root says so: of Adam and its kin, and of deep networks without
 * batch norm, which hardly begin at a rate in proportion to a small batch and take that of a large one badly. */
typedef struct tide_training_recipe {
    tide_optimizer optimizer;
    float learning_rate; /* at base_batch samples per step */
    uint32_t base_batch;
    uint64_t warmup_steps; /* for a long training; a short one takes at most a tenth of its steps */
    float weight_decay, clip_norm;
    const char *weights; /* how they begin, in words */
    bool rate_by_root;
} tide_training_recipe;
TIDE_API const tide_training_recipe *tide_model_recipe(const tide_model *model);
TIDE_API float tide_recipe_rate(const tide_training_recipe *recipe, uint64_t batch); /* batch: samples per step */
/* Families for help texts; NULL after the last. */
TIDE_API const char *tide_model_family(uint32_t i, const char **summary);

/* From [0, 1), by counter: equal arguments, equal number, on every machine. What everything random here is drawn with. */
TIDE_API float tide_random_unit(uint64_t seed, uint64_t stream, uint64_t counter);

/* ---- steps ---- */

/* What lies at one of the ranks that share a step, its owner, instead of at all of them (docs/cluster.md): large values in parts, each
 * with an owner of its own. Bits do not depend on it. */
#define TIDE_SHARD_TABLE(X)                                                               \
    X(TIDE_SHARD_NONE, "none")                                                            \
    X(TIDE_SHARD_OPTIMIZER, "optimizer") /* optimizer state, and the sums of gradients */ \
    X(TIDE_SHARD_ALL, "all")             /* weights, too: they come from their owner for each use */
typedef enum tide_shard {
#define TIDE_ENUM_MEMBER(e, name) e,
    TIDE_SHARD_TABLE(TIDE_ENUM_MEMBER)
#undef TIDE_ENUM_MEMBER
} tide_shard;

typedef struct tide_step_options {
    size_t size; /* sizeof(tide_step_options) */
    tide_optimizer optimizer;
    float weight_decay;
    bool inference;      /* forward only, batch norm from running statistics; one-shot in its weights: no update */
    bool client_weights; /* of inference: parameters are inputs, as the batch is, brought in where they are needed */
    bool fused_update;   /* update each weight right after its gradient; refused together with clip_norm */
    /* Micro-batches per step, each of the model's batch; 0: one. Gradients and the loss are summed over them by a fixed binary
     * tree (docs/micro.md), batch norm goes by micro-batch. */
    uint32_t accumulate;
    float clip_norm;     /* 0: no clipping */
    bool skip_nonfinite; /* gradients whose norm is not finite update nothing; refused together with fused_update */
    const tide_machine *machine; /* costs by its roofline; NULL: costs are 0 */
    tide_device *device;         /* sizes, layouts, reorders and workspaces as this device has them; NULL: plain float32
                            shapes and an analytic model of workspaces */
    /* Of activations and their gradients: TIDE_F32; TIDE_BF16 (docs/bf16.md), which the CPU device has; TIDE_F16, for plans without
     * a device. Weights, their gradients and optimizer states stay float32. */
    tide_dtype dtype;
    bool scores_only; /* of inference: no probabilities where a model can score its labels without (tide_step_scores) */
    /* One rank of several that share the micro-batches: it computes micro_count of them from first_micro on, and gets the sums over
     * the others by messages (docs/micro.md). micro_count and the number of ranks, accumulate / micro_count, are powers of two. 0: all
     * of them. */
    uint32_t first_micro, micro_count;
    /* Optimizer state of a weight that takes more than four times as much as stored lies in parts of this size, and each part has an
     * update of its own: so an update needs the weight and its gradient, but no more than a part of each state. A multiple of 4096;
     * 0: 16 MiB; UINT64_MAX: states are never cut. Bits do not depend on it. */
    uint64_t state_part_bytes;
    /* Of one rank of several. A step of inference with TIDE_SHARD_ALL takes the three numbers of the training step, to know its rank, and
     * computes one micro-batch of its own. */
    tide_shard shard;
} tide_step_options;
TIDE_API void tide_step_options_init(tide_step_options *options);
TIDE_API tide_status tide_step_create(const tide_model *model, const tide_step_options *options, tide_step **out);
TIDE_API void tide_step_destroy(tide_step *step);
TIDE_API const tide_program *tide_step_program(const tide_step *step);
TIDE_API const tide_op_desc *tide_step_op_desc(const tide_step *step, tide_id op);
TIDE_API uint64_t tide_step_op_flops(const tide_step *step, tide_id op);
TIDE_API uint64_t tide_step_op_bytes(const tide_step *step, tide_id op); /* operand bytes touched */
/* Inputs and results; micro counts from 0 through those that the step computes itself. */
TIDE_API tide_id tide_step_input(const tide_step *step, uint32_t micro);
TIDE_API tide_id tide_step_label(const tide_step *step, uint32_t micro);
/* 1 float, kept: the sum over the micro-batches of the mean loss of each. */
TIDE_API tide_id tide_step_loss(const tide_step *step);
/* Kept in inference steps; TIDE_NONE where no op writes them: in training a language model's head, see ops.h. */
TIDE_API tide_id tide_step_probabilities(const tide_step *step, uint32_t micro);
/* With scores_only: 2 floats per label (HEAD_SCORE in ops.h), kept. TIDE_NONE where there are probabilities. */
TIDE_API tide_id tide_step_scores(const tide_step *step, uint32_t micro);
/* With skip_nonfinite: 1 float, kept; what scaled the gradients, NaN where they updated nothing. Else TIDE_NONE. */
TIDE_API tide_id tide_step_update_scale(const tide_step *step);

/* Everything PRESENT at the start: weights, optimizer state, running statistics. */
typedef enum tide_init_kind { TIDE_INIT_ZERO, TIDE_INIT_ONE, TIDE_INIT_NORMAL, TIDE_INIT_UNIFORM } tide_init_kind;
typedef struct tide_state_part {
    tide_id from, to; /* at the end, and at the start of the next step: as in tide_carry; TIDE_NONE: its owner has it */
    uint64_t size_bytes;
    uint32_t owner; /* the only rank that has it; TIDE_NONE: every rank does */
} tide_state_part;
typedef struct tide_state {
    const char *name; /* "layer1.0.conv1.weight", "layer1.0.conv1.weight.momentum", "bn1.running_mean" */
    tide_class cls;   /* weight, optimizer, other (running statistics) */
    bool trainable;
    tide_id at_start,
        at_end; /* the carried pair (equal in inference steps); of one in parts that of the first here; TIDE_NONE: none is */
    tide_id op; /* an op whose operand `operand` has its layout */
    uint32_t operand;
    tide_shape shape; /* plain, (O, I, H, W) or (C, 1, 1, 1) */
    uint32_t rank;    /* dimensions as other tools have them: 4; 2, of O x (I H W); or 1 */
    tide_init_kind init;
    float init_scale; /* standard deviation or bound */
    /* A state in parts, or with an owner: what it is made of, in the order in which it is stored. 0: it is one value. */
    uint32_t n_parts;
    tide_state_part *parts;
} tide_state;
TIDE_API uint32_t tide_step_state_count(const tide_step *step);
TIDE_API const tide_state *tide_step_state(const tide_step *step, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
