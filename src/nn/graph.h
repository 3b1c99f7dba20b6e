/* A network as a graph: layers in execution order, their shapes and their parameters. Families (models/) append
 * layers; forward.c, backward.c and update.c turn the graph into a training step.
 *
 * Invariant: a layer's inputs come before it, so the order of `layers` is topological. Families append depth-first
 * (a branch up to its join, then the next branch), as SuperNeurons linearises its routes. A fork is implicit: a
 * layer with several consumers.
 *
 * Failures are sticky: after the first one every call does nothing, and tide__graph_finish() returns it. So a family
 * reads as a list of layers. */
#ifndef TIDE_NN_GRAPH_H
#define TIDE_NN_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include <tidemark/nn.h>

#include "base/vec.h"

/* The kind of the one layer that is not an op: the input. */
#define TIDE__LAYER_INPUT TIDE_OP_KIND_COUNT

#define TIDE__MAX_LAYERS (UINT32_C(1) << 20)

typedef struct tide__layer {
    tide_op_desc desc; /* of its forward op, without pointers; backward ops differ from it in `kind` only */
    uint32_t first_input, n_inputs; /* in the graph's `inputs` */
    uint32_t first_param, n_params; /* in the graph's `layer_params` */
    uint32_t n_consumers;
    uint32_t name;   /* offset in the graph's names */
    bool needs_grad; /* a trainable parameter at this layer or before it: the gradient of its output is wanted */
} tide__layer;

typedef struct tide__param {
    uint32_t layer;   /* its first reader, which it is named after; layers that share it come later */
    const char *role; /* "weight", "bias", "running_mean" ...; a literal */
    tide_shape shape; /* (O, I, H, W) or (C, 1, 1, 1) */
    uint32_t rank;    /* of a filter 4, of a matrix 2, of a vector 1 */
    tide_init_kind init;
    float init_scale;
    bool trainable;
} tide__param;

typedef struct tide__graph_block {
    bool fixed; /* it changes the shape and cannot be left out */
    bool skipped;
} tide__graph_block;

typedef struct tide__graph {
    TIDE_VEC(tide__layer) layers;
    TIDE_VEC(tide__param) params;
    TIDE_VEC(uint32_t) layer_params;    /* what each layer reads; those of one layer after those of the one before */
    TIDE_VEC(uint32_t) inputs;          /* layers; those of one layer after those of the one before */
    TIDE_VEC(int64_t) input_channels;   /* of each of `inputs` */
    TIDE_VEC(char) names;               /* zero-terminated, one after the other */
    TIDE_VEC(tide__graph_block) blocks; /* residual ones */
    char prefix[48];                    /* put before the names of the layers to come */
    uint64_t parameter_count;           /* trainable scalars */
    float deviation;                    /* of weights to come; 0: He's */
    bool bn_from_zero;                  /* scales of batch norms to come begin at 0, not at 1 */
    tide_status status;
} tide__graph;

typedef struct tide__conv {
    uint32_t channels, kernel, stride, pad;
    uint32_t kernel_w, pad_w; /* of a window that is not square: kernel and pad are its height's; 0: square */
    bool bias;
} tide__conv;

typedef struct tide__pool {
    uint32_t kernel, stride, pad;
} tide__pool;

void tide__graph_deinit(tide__graph *g);
void tide__graph_prefix(tide__graph *g, const char *format, ...) TIDE_PRINTF(2, 3);

/* Each returns the new layer's id; shapes are inferred and checked. Convolutions and fully connected layers start
 * with a normal distribution of deviation g->deviation, or He's (sqrt(2 / inputs)) where that is 0; biases at 0, batch norm at scale 1 and shift 0. */
uint32_t tide__graph_input(tide__graph *g, tide_shape shape);
uint32_t tide__graph_conv(tide__graph *g, const char *name, uint32_t x, tide__conv conv);
uint32_t tide__graph_fc(tide__graph *g, const char *name, uint32_t x, uint32_t outputs);
/* Fully connected, to class scores: begins with all classes about equally likely (deviation 1 / sqrt(3 inputs), PyTorch's),
 * where He's begins with scores of several units. */
uint32_t tide__graph_classifier(tide__graph *g, const char *name, uint32_t x, uint32_t classes);
uint32_t tide__graph_bn(tide__graph *g, const char *name, uint32_t x);
uint32_t tide__graph_relu(tide__graph *g, const char *name, uint32_t x);
uint32_t tide__graph_maxpool(tide__graph *g, const char *name, uint32_t x, tide__pool pool);
/* Max pooling of a ReLU, the other way round: the largest of what is above zero is what is above zero of the largest, bit for
 * bit, and so are the gradients. The ReLU's output before pooling, which only its own backward would read, never exists. */
uint32_t tide__graph_relu_maxpool(tide__graph *g, const char *relu_name, const char *pool_name, uint32_t x,
                                  tide__pool pool);
uint32_t tide__graph_avgpool(tide__graph *g, const char *name, uint32_t x, tide__pool pool); /* padding counts */
uint32_t tide__graph_global_avgpool(tide__graph *g, const char *name, uint32_t x);
uint32_t tide__graph_add(tide__graph *g, const char *name, uint32_t a, uint32_t b);
/* Along channels; 2 to TIDE_KERNEL_MAX_OPERANDS different parts. */
uint32_t tide__graph_concat(tide__graph *g, const char *name, const uint32_t *parts, uint32_t n_parts);
uint32_t tide__graph_dropout(tide__graph *g, const char *name, uint32_t x, float rate);
uint32_t tide__graph_lrn(tide__graph *g, const char *name, uint32_t x, uint32_t size);
/* Transposed convolution with bias that makes images `factor` times as high and wide, by windows that do not overlap. */
uint32_t tide__graph_upconv(tide__graph *g, const char *name, uint32_t x, uint32_t channels, uint32_t factor);
uint32_t tide__graph_pixel_loss(tide__graph *g, const char *name, uint32_t x);   /* a class per pixel; the last layer */
uint32_t tide__graph_softmax_loss(tide__graph *g, const char *name, uint32_t x); /* the last layer */

/* ---- layers of language models (graph_tokens.c); tokens are rows, see ops.h ---- */

/* input is N x T tokens; a table of `vocabulary` rows ("weight") and, if asked for, one of T rows ("positions"). */
uint32_t tide__graph_embedding(tide__graph *g, const char *name, uint32_t x, uint32_t vocabulary, uint32_t width,
                               uint32_t positions);
uint32_t tide__graph_layernorm(tide__graph *g, const char *name, uint32_t x);
uint32_t tide__graph_gelu(tide__graph *g, const char *name, uint32_t x);
uint32_t tide__graph_attention(tide__graph *g, const char *name, uint32_t qkv, uint32_t heads, uint32_t context);
/* Fully connected without bias, by the first parameter of layer `owner` as it is: its outputs are the rows of it. */
uint32_t tide__graph_tied_fc(tide__graph *g, const char *name, uint32_t x, uint32_t owner);

/* One layer per step, "name0", "name1" ..., one after the other: layers[i] takes the rows of step i. */
void tide__graph_slices(tide__graph *g, const char *name, uint32_t x, uint32_t steps, uint32_t *layers);
/* The inverse: rows of all steps. */
uint32_t tide__graph_stack(tide__graph *g, const char *name, const uint32_t *layers, uint32_t steps);
/* A step of a layer of LSTM cells after step `previous`, whose parameters it shares; TIDE_NONE: the first, with its own. */
uint32_t tide__graph_lstm(tide__graph *g, const char *name, uint32_t x, uint32_t previous, uint32_t width);

/* ---- for files that add kinds of layers ---- */

/* desc->x and desc->y are set. */
tide_status tide__graph_append(tide__graph *g, const char *name, const tide_op_desc *desc, const uint32_t *inputs,
                               uint32_t n_inputs);
/* Remembers the first failure; the id of the layer just appended otherwise. */
uint32_t tide__graph_settle(tide__graph *g, tide_status status);
/* A parameter of the newest layer: its own, or one that another layer has. */
tide_status tide__graph_add_param(tide__graph *g, tide__param param);
tide_status tide__graph_share_param(tide__graph *g, uint32_t param);
/* Weight, a filter (rank 4) or a matrix (2), and perhaps bias of the newest layer; `inputs` go into one output. */
tide_status tide__graph_add_weight(tide__graph *g, tide_shape shape, uint32_t rank, int64_t inputs, bool bias);
/* Layers whose output has the shape of their input and that have no parameters. */
uint32_t tide__graph_append_same(tide__graph *g, const char *name, uint32_t x, tide_op_desc desc);

/* The first failure, or whether the whole is a network: one loss, at the end, and no output without a consumer. */
tide_status tide__graph_finish(tide__graph *g);

/* "conv1.weight". */
#define TIDE__PARAM_NAME_BYTES 128
void tide__param_name(const tide__graph *g, const tide__param *param, char out[TIDE__PARAM_NAME_BYTES]);
const char *tide__layer_name(const tide__graph *g, uint32_t layer);
uint32_t tide__layer_param(const tide__graph *g, uint32_t layer, uint32_t i);
uint32_t tide__layer_input(const tide__graph *g, uint32_t layer, uint32_t i);
/* Its forward op with everything filled in; valid while the graph does not grow. */
tide_op_desc tide__layer_desc(const tide__graph *g, uint32_t layer);
tide_shape tide__layer_shape(const tide__graph *g, uint32_t layer); /* of its output */

/* false if a dimension is not in [1, 2^31) or the product is 2^57 or more (so that bytes of a few operands can be added). */
bool tide__shape_elements(tide_shape shape, uint64_t *out);

#endif
