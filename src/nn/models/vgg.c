/* VGG (Simonyan and Zisserman 2014), configurations A, B, D and E; names as in torchvision ("features.0.weight").
 *
 * The classifier takes 7 x 7 features. Larger features that are a multiple of it are averaged down to 7 x 7, as
 * torchvision does; any others go into the first fully connected layer as they are. */
#include <stdio.h>

#include "nn/model.h"

typedef struct configuration {
    uint32_t depth;
    uint32_t convs[5]; /* per stage; a pooling layer ends each */
} configuration;

static const configuration configurations[] = {
    {11, {1, 1, 2, 2, 2}},
    {13, {2, 2, 2, 2, 2}},
    {16, {2, 2, 3, 3, 3}},
    {19, {2, 2, 4, 4, 4}},
};

static const configuration *find(uint32_t depth) {
    const configuration *c = configurations;
    while (c->depth != depth) c++;
    return c;
}

static const char *number(char name[12], uint32_t i) {
    snprintf(name, 12, "%u", i);
    return name;
}

static uint32_t features(tide__graph *g, uint32_t x, const configuration *c) {
    static const uint32_t channels[5] = {64, 128, 256, 512, 512};
    uint32_t i = 0;
    char name[12], pool_name[12];
    tide__graph_prefix(g, "features.");
    for (int stage = 0; stage < 5; stage++) {
        tide__conv conv = {.channels = channels[stage], .kernel = 3, .stride = 1, .pad = 1, .bias = true};
        for (uint32_t k = 0; k < c->convs[stage]; k++) {
            x = tide__graph_conv(g, number(name, i++), x, conv);
            if (k + 1 < c->convs[stage]) x = tide__graph_relu(g, number(name, i++), x);
        }
        number(name, i++);
        x = tide__graph_relu_maxpool(g, name, number(pool_name, i++), x, (tide__pool){.kernel = 2, .stride = 2});
    }
    return x;
}

static uint32_t shrink(tide__graph *g, uint32_t x) {
    tide_shape shape = tide__layer_shape(g, x);
    uint32_t factor = (uint32_t)(shape.h / 7);
    tide__graph_prefix(g, "%s", "");
    if (factor < 2 || shape.h != shape.w || shape.h % 7 != 0) return x;
    return tide__graph_avgpool(g, "avgpool", x, (tide__pool){.kernel = factor, .stride = factor});
}

static uint32_t classifier(tide__graph *g, uint32_t x, uint32_t classes) {
    tide__graph_prefix(g, "classifier.");
    g->deviation = 0.01f; /* as torchvision has it: He's would begin with scores of tens */
    x = tide__graph_relu(g, "1", tide__graph_fc(g, "0", x, 4096));
    x = tide__graph_dropout(g, "2", x, 0.5f);
    x = tide__graph_relu(g, "4", tide__graph_fc(g, "3", x, 4096));
    x = tide__graph_dropout(g, "5", x, 0.5f);
    x = tide__graph_fc(g, "6", x, classes);
    tide__graph_prefix(g, "%s", "");
    return x;
}

void tide__build_vgg(tide__graph *g, const tide__request *r) {
    uint32_t x = features(g, tide__graph_input(g, r->input), find(r->depth));
    if (g->status == TIDE_OK) x = shrink(g, x);
    tide__graph_softmax_loss(g, "loss", classifier(g, x, r->classes));
}
