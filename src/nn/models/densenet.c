/* DenseNet (Huang et al. 2017) as in torchvision: growth 32, bottlenecks of 128, four dense blocks, transitions that
 * halve channels and size.
 *
 * A dense layer reads the concatenation of everything its block has made so far, as one op over all the parts. So a
 * concatenation can be recomputed from the parts alone, which are few bytes: what makes dense blocks cheap to train. */
#include "nn/model.h"

#define GROWTH 32
#define BOTTLENECK (4 * GROWTH)
#define MAX_LAYERS 48 /* of a block */

typedef struct configuration {
    uint32_t depth, layers[4];
} configuration;

static const configuration configurations[] = {
    {121, {6, 12, 24, 16}},
    {169, {6, 12, 32, 32}},
    {201, {6, 12, 48, 32}},
};

static const configuration *find(uint32_t depth) {
    const configuration *c = configurations;
    while (c->depth != depth) c++;
    return c;
}

static uint32_t bn_relu(tide__graph *g, uint32_t x, const char *bn_name, const char *relu_name) {
    return tide__graph_relu(g, relu_name, tide__graph_bn(g, bn_name, x));
}

static uint32_t dense_layer(tide__graph *g, uint32_t x) {
    x = bn_relu(g, x, "norm1", "relu1");
    x = tide__graph_conv(g, "conv1", x, (tide__conv){.channels = BOTTLENECK, .kernel = 1, .stride = 1});
    x = bn_relu(g, x, "norm2", "relu2");
    return tide__graph_conv(g, "conv2", x, (tide__conv){.channels = GROWTH, .kernel = 3, .stride = 1, .pad = 1});
}

static uint32_t dense_block(tide__graph *g, uint32_t x, uint32_t number, uint32_t n_layers) {
    uint32_t parts[MAX_LAYERS + 1] = {x};
    for (uint32_t i = 1; i <= n_layers; i++) {
        tide__graph_prefix(g, "denseblock%u.denselayer%u.", number, i);
        parts[i] = dense_layer(g, x);
        x = tide__graph_concat(g, "concat", parts, i + 1);
    }
    return x;
}

static uint32_t transition(tide__graph *g, uint32_t x, uint32_t number) {
    tide__graph_prefix(g, "transition%u.", number);
    x = bn_relu(g, x, "norm", "relu");
    uint32_t channels = g->status == TIDE_OK ? (uint32_t)tide__layer_shape(g, x).c / 2 : 1;
    x = tide__graph_conv(g, "conv", x, (tide__conv){.channels = channels, .kernel = 1, .stride = 1});
    return tide__graph_avgpool(g, "pool", x, (tide__pool){.kernel = 2, .stride = 2});
}

void tide__build_densenet(tide__graph *g, const tide__request *r) {
    const configuration *c = find(r->depth);
    uint32_t x = tide__graph_input(g, r->input);
    x = tide__graph_conv(g, "conv0", x, (tide__conv){.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
    x = tide__graph_bn(g, "norm0", x);
    x = tide__graph_relu_maxpool(g, "relu0", "pool0", x, (tide__pool){.kernel = 3, .stride = 2, .pad = 1});
    for (uint32_t i = 1; i <= 4; i++) {
        x = dense_block(g, x, i, c->layers[i - 1]);
        if (i < 4) x = transition(g, x, i);
    }
    tide__graph_prefix(g, "%s", "");
    x = tide__graph_global_avgpool(g, "avgpool", bn_relu(g, x, "norm5", "relu5"));
    tide__graph_softmax_loss(g, "loss", tide__graph_classifier(g, "classifier", x, r->classes));
}
