/* ResNet (He et al. 2015) as in torchvision: stem, four stages of basic or bottleneck blocks, the stride of a stage in
 * its first 3 x 3 convolution, projection shortcuts (1 x 1 convolution + batch norm) where shapes change. And the
 * CIFAR form: three stages of basic blocks of 16, 32 and 64 channels, 6 n + 2 layers.
 *
 * A block appends its main path first, then its shortcut, then the join. */
#include "nn/model.h"

typedef struct stage {
    uint32_t number; /* from 1: "layer1" */
    uint32_t blocks, channels, stride;
    bool bottleneck;
    uint32_t first; /* blocks in the stages before */
    bool from_zero; /* the last batch norm of a block begins with scale 0 (Goyal et al. 2017): fresh blocks hand on what
                       comes in, however many there are */
} stage;

static uint32_t conv_bn(tide__graph *g, uint32_t x, const char *conv_name, const char *bn_name, tide__conv conv) {
    return tide__graph_bn(g, bn_name, tide__graph_conv(g, conv_name, x, conv));
}

static tide__conv conv3x3(uint32_t channels, uint32_t stride) {
    return (tide__conv){.channels = channels, .kernel = 3, .stride = stride, .pad = 1};
}

static tide__conv conv1x1(uint32_t channels, uint32_t stride) {
    return (tide__conv){.channels = channels, .kernel = 1, .stride = stride};
}

static uint32_t last_conv_bn(tide__graph *g, uint32_t x, const stage *s, const char *conv_name, const char *bn_name,
                             tide__conv conv) {
    g->bn_from_zero = s->from_zero;
    x = conv_bn(g, x, conv_name, bn_name, conv);
    g->bn_from_zero = false;
    return x;
}

static uint32_t basic_path(tide__graph *g, uint32_t x, const stage *s, uint32_t stride) {
    x = conv_bn(g, x, "conv1", "bn1", conv3x3(s->channels, stride));
    x = tide__graph_relu(g, "relu1", x);
    return last_conv_bn(g, x, s, "conv2", "bn2", conv3x3(s->channels, 1));
}

static uint32_t bottleneck_path(tide__graph *g, uint32_t x, const stage *s, uint32_t stride) {
    x = conv_bn(g, x, "conv1", "bn1", conv1x1(s->channels, 1));
    x = tide__graph_relu(g, "relu1", x);
    x = conv_bn(g, x, "conv2", "bn2", conv3x3(s->channels, stride));
    x = tide__graph_relu(g, "relu2", x);
    return last_conv_bn(g, x, s, "conv3", "bn3", conv1x1(4 * s->channels, 1));
}

/* Left out: what comes in goes on. */
static uint32_t leave_out(tide__graph *g, uint32_t x, bool project) {
    if (project) g->status = tide__fail(TIDE_E_ARGUMENT, "a block that changes the shape cannot be left out");
    return x;
}

static uint32_t block(tide__graph *g, uint32_t x, const stage *s, uint32_t stride, bool skip) {
    uint32_t outputs = s->bottleneck ? 4 * s->channels : s->channels;
    bool project = stride != 1 || tide__layer_shape(g, x).c != outputs;
    if (g->status == TIDE_OK) g->status = tide__vec_push(&g->blocks, ((tide__graph_block){project, skip}));
    if (skip) return leave_out(g, x, project);
    uint32_t main = s->bottleneck ? bottleneck_path(g, x, s, stride) : basic_path(g, x, s, stride);
    if (project) x = conv_bn(g, x, "downsample.0", "downsample.1", conv1x1(outputs, stride));
    return tide__graph_relu(g, "relu", tide__graph_add(g, "add", main, x));
}

static uint32_t append_stage(tide__graph *g, uint32_t x, const stage *s, const tide__request *r) {
    for (uint32_t i = 0; i < s->blocks && g->status == TIDE_OK; i++) {
        tide__graph_prefix(g, "layer%u.%u.", s->number, i);
        uint32_t number = s->first + i;
        x = block(g, x, s, i == 0 ? s->stride : 1, number < r->n_skip && r->skip[number]);
    }
    tide__graph_prefix(g, "%s", "");
    return x;
}

static void head(tide__graph *g, uint32_t x, uint32_t classes) {
    x = tide__graph_global_avgpool(g, "avgpool", x);
    tide__graph_softmax_loss(g, "loss", tide__graph_classifier(g, "fc", x, classes));
}

/* ---- ImageNet form ---- */

static void build(tide__graph *g, const tide__request *r, const uint32_t blocks[4], bool bottleneck) {
    uint32_t x = tide__graph_input(g, r->input);
    x = conv_bn(g, x, "conv1", "bn1", (tide__conv){.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
    x = tide__graph_relu_maxpool(g, "relu", "maxpool", x, (tide__pool){.kernel = 3, .stride = 2, .pad = 1});
    for (uint32_t i = 0, first = 0; i < 4; first += blocks[i++]) {
        stage s = {i + 1, blocks[i], UINT32_C(64) << i, i == 0 ? 1 : 2, bottleneck, first, true};
        x = append_stage(g, x, &s, r);
    }
    head(g, x, r->classes);
}

void tide__build_resnet(tide__graph *g, const tide__request *r) {
    static const struct {
        uint32_t depth, blocks[4];
        bool bottleneck;
    } known[] = {
        {18, {2, 2, 2, 2}, false},  {34, {3, 4, 6, 3}, false},  {50, {3, 4, 6, 3}, true},
        {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true},
    };
    int i = 0;
    while (known[i].depth != r->depth) i++;
    build(g, r, known[i].blocks, known[i].bottleneck);
}

void tide__build_resnet_bottleneck(tide__graph *g, const tide__request *r) { build(g, r, r->numbers, true); }

/* ---- CIFAR form ---- */

void tide__build_resnet_cifar(tide__graph *g, const tide__request *r) {
    uint32_t x = tide__graph_input(g, r->input);
    x = tide__graph_relu(g, "relu", conv_bn(g, x, "conv1", "bn1", conv3x3(16, 1)));
    for (uint32_t i = 0; i < 3; i++) {
        stage s = {i + 1, r->numbers[0], UINT32_C(16) << i, i == 0 ? 1 : 2, false, i * r->numbers[0], false};
        x = append_stage(g, x, &s, r);
    }
    head(g, x, r->classes);
}
