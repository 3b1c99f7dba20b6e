/* A model: a graph with a name; and what a family file provides. */
#ifndef TIDE_NN_MODEL_H
#define TIDE_NN_MODEL_H

#include "nn/graph.h"
#include "nn/published.h"

struct tide_model {
    tide__graph graph;
    char *name; /* the spec it was made from */
    uint32_t classes;
    const tide_training_recipe *recipe;
    const tide__naming *naming;
};

/* A parsed spec and the options, defaults filled in. */
typedef struct tide__request {
    const uint32_t *numbers; /* those after the colon */
    uint32_t n_numbers;
    uint32_t depth;   /* of the family's row: 50 for resnet50 */
    tide_shape input; /* n = batch; language models: c = tokens of a sample */
    uint32_t context; /* language models: the most tokens that a sample may have */
    uint32_t classes;
    const uint8_t *skip; /* as in tide_model_options */
    uint32_t n_skip;
} tide__request;

/* Appends all layers from the input to the loss. Failures are sticky in the graph. */
typedef void (*tide__family_build)(tide__graph *g, const tide__request *request);

void tide__build_mlp(tide__graph *g, const tide__request *request);
void tide__build_lenet(tide__graph *g, const tide__request *request);
void tide__build_alexnet(tide__graph *g, const tide__request *request);
void tide__build_alexnet_owt(tide__graph *g, const tide__request *request);
void tide__build_vgg(tide__graph *g, const tide__request *request);
void tide__build_resnet(tide__graph *g, const tide__request *request);
void tide__build_resnet_bottleneck(tide__graph *g, const tide__request *request); /* numbers: blocks per stage */
void tide__build_inception_v4(tide__graph *g, const tide__request *request);
void tide__build_unet(tide__graph *g, const tide__request *request);
void tide__build_gpt2(tide__graph *g, const tide__request *request); /* numbers: layers, width, heads ... */
void tide__build_lstm(tide__graph *g, const tide__request *request); /* numbers: layers, width, steps ... */
void tide__build_densenet(tide__graph *g, const tide__request *request);
void tide__build_resnet_cifar(tide__graph *g, const tide__request *request); /* number: blocks per stage */

#endif
