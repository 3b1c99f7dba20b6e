/* LeNet-5 (LeCun et al. 1998) as it is written today: ReLU, max pooling, 28 x 28 padded to 32 x 32. */
#include "nn/model.h"

void tide__build_lenet(tide__graph *g, const tide__request *r) {
    const tide__pool halve = {.kernel = 2, .stride = 2};
    uint32_t x = tide__graph_input(g, r->input);
    x = tide__graph_conv(g, "conv1", x, (tide__conv){.channels = 6, .kernel = 5, .stride = 1, .pad = 2, .bias = true});
    x = tide__graph_relu(g, "relu1", x);
    x = tide__graph_maxpool(g, "pool1", x, halve);
    x = tide__graph_conv(g, "conv2", x, (tide__conv){.channels = 16, .kernel = 5, .stride = 1, .bias = true});
    x = tide__graph_relu(g, "relu2", x);
    x = tide__graph_maxpool(g, "pool2", x, halve);
    x = tide__graph_fc(g, "fc1", x, 120);
    x = tide__graph_relu(g, "relu3", x);
    x = tide__graph_fc(g, "fc2", x, 84);
    x = tide__graph_relu(g, "relu4", x);
    x = tide__graph_fc(g, "fc3", x, r->classes);
    tide__graph_softmax_loss(g, "loss", x);
}
