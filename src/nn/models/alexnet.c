/* AlexNet (Krizhevsky et al. 2012) in one column: no groups, so 62,378,344 parameters. And the smaller form of Krizhevsky 2014
 * ("one weird trick"), without local response norms, which is torchvision's AlexNet, by its names. */
#include "nn/model.h"

static uint32_t conv_relu(tide__graph *g, uint32_t x, const char *conv_name, const char *relu_name, tide__conv conv) {
    conv.bias = true;
    return tide__graph_relu(g, relu_name, tide__graph_conv(g, conv_name, x, conv));
}

static uint32_t features(tide__graph *g, uint32_t x) {
    const tide__pool pool = {.kernel = 3, .stride = 2};
    const tide__conv wide = {.channels = 384, .kernel = 3, .stride = 1, .pad = 1};
    x = conv_relu(g, x, "conv1", "relu1", (tide__conv){.channels = 96, .kernel = 11, .stride = 4});
    x = tide__graph_maxpool(g, "pool1", tide__graph_lrn(g, "lrn1", x, 5), pool);
    x = conv_relu(g, x, "conv2", "relu2", (tide__conv){.channels = 256, .kernel = 5, .stride = 1, .pad = 2});
    x = tide__graph_maxpool(g, "pool2", tide__graph_lrn(g, "lrn2", x, 5), pool);
    x = conv_relu(g, x, "conv3", "relu3", wide);
    x = conv_relu(g, x, "conv4", "relu4", wide);
    x = conv_relu(g, x, "conv5", "relu5", (tide__conv){.channels = 256, .kernel = 3, .stride = 1, .pad = 1});
    return tide__graph_maxpool(g, "pool5", x, pool);
}

void tide__build_alexnet(tide__graph *g, const tide__request *r) {
    uint32_t x = features(g, tide__graph_input(g, r->input));
    g->deviation = 0.01f; /* as in the paper; the convolutions have He's, which learns from the first step on */
    x = tide__graph_relu(g, "relu6", tide__graph_fc(g, "fc6", x, 4096));
    x = tide__graph_dropout(g, "drop6", x, 0.5f);
    x = tide__graph_relu(g, "relu7", tide__graph_fc(g, "fc7", x, 4096));
    x = tide__graph_dropout(g, "drop7", x, 0.5f);
    x = tide__graph_fc(g, "fc8", x, r->classes);
    tide__graph_softmax_loss(g, "loss", x);
}

/* ---- torchvision's ---- */

static uint32_t owt_features(tide__graph *g, uint32_t x) {
    const tide__pool pool = {.kernel = 3, .stride = 2};
    tide__graph_prefix(g, "features.");
    x = tide__graph_conv(g, "0", x, (tide__conv){.channels = 64, .kernel = 11, .stride = 4, .pad = 2, .bias = true});
    x = tide__graph_relu_maxpool(g, "1", "2", x, pool);
    x = tide__graph_conv(g, "3", x, (tide__conv){.channels = 192, .kernel = 5, .stride = 1, .pad = 2, .bias = true});
    x = tide__graph_relu_maxpool(g, "4", "5", x, pool);
    x = conv_relu(g, x, "6", "7", (tide__conv){.channels = 384, .kernel = 3, .stride = 1, .pad = 1});
    x = conv_relu(g, x, "8", "9", (tide__conv){.channels = 256, .kernel = 3, .stride = 1, .pad = 1});
    x = tide__graph_conv(g, "10", x, (tide__conv){.channels = 256, .kernel = 3, .stride = 1, .pad = 1, .bias = true});
    return tide__graph_relu_maxpool(g, "11", "12", x, pool);
}

void tide__build_alexnet_owt(tide__graph *g, const tide__request *r) {
    uint32_t x = owt_features(g, tide__graph_input(g, r->input));
    tide__graph_prefix(g, "classifier.");
    g->deviation = 0.01f;
    x = tide__graph_fc(g, "1", tide__graph_dropout(g, "0", x, 0.5f), 4096);
    x = tide__graph_dropout(g, "3", tide__graph_relu(g, "2", x), 0.5f);
    x = tide__graph_relu(g, "5", tide__graph_fc(g, "4", x, 4096));
    x = tide__graph_fc(g, "6", x, r->classes);
    tide__graph_prefix(g, "%s", "");
    tide__graph_softmax_loss(g, "loss", x);
}
