/* Inception-v4 (Szegedy et al. 2017), with the shapes of the published weights: every convolution without bias, then
 * batch norm and ReLU; 149 of them in a stem, 4 blocks A, 7 blocks B and 3 blocks C with reductions between.
 *
 * A branch is a list of windows, so a block reads like the figure in the paper. Average pooling inside blocks counts
 * its padding, as everywhere here.
 *
 * The last ReLU of the branches of a block comes after they are joined: the same bits, and what each branch alone would
 * have to keep for its ReLU's backward is the joined value, which the next block needs anyway. What max pooling brings to a
 * join is zero or more, so the ReLU changes none of it; nor its gradients, as where it is zero, so is what was pooled, and
 * the ReLU before lets none pass. */
#include <stdio.h>

#include "nn/model.h"

#define MAX_BRANCH 5

/* One convolution; height and width of its window, padding that keeps the size unless `valid`. */
typedef struct window {
    uint32_t channels, h, w, stride;
    bool valid;
} window;

/* Counts the names within a block: "conv0", "bn0", "relu0", "conv1" ... */
typedef struct block {
    tide__graph *g;
    uint32_t n_convs;
} block;

static block start(tide__graph *g, const char *kind, uint32_t number) {
    tide__graph_prefix(g, "%s%u.", kind, number);
    return (block){.g = g};
}

static const char *number(char name[16], const char *kind, uint32_t i) {
    snprintf(name, 16, "%s%u", kind, i);
    return name;
}

static uint32_t conv_bn(block *b, uint32_t x, window w) {
    char name[16];
    uint32_t i = b->n_convs++;
    tide__conv c = {.channels = w.channels, .kernel = w.h, .kernel_w = w.w, .stride = w.stride ? w.stride : 1};
    c.pad = w.valid ? 0 : w.h / 2;
    c.pad_w = w.valid ? 0 : w.w / 2;
    x = tide__graph_conv(b->g, number(name, "conv", i), x, c);
    return tide__graph_bn(b->g, number(name, "bn", i), x);
}

/* Up to the first window of no channels. `joined`: its last ReLU is the join's. */
static uint32_t branch(block *b, uint32_t x, const window windows[MAX_BRANCH], bool joined) {
    char name[16];
    for (int i = 0; i < MAX_BRANCH && windows[i].channels; i++) {
        x = conv_bn(b, x, windows[i]);
        bool last = i + 1 == MAX_BRANCH || !windows[i + 1].channels;
        if (!last || !joined) x = tide__graph_relu(b->g, number(name, "relu", b->n_convs - 1), x);
    }
    return x;
}

static uint32_t join(block *b, const uint32_t *parts, uint32_t n) {
    return tide__graph_relu(b->g, "relu", tide__graph_concat(b->g, "concat", parts, n));
}

#define TRUNK(b, x, ...) branch(b, x, (const window[MAX_BRANCH]){__VA_ARGS__}, false)
#define BRANCH(b, x, ...) branch(b, x, (const window[MAX_BRANCH]){__VA_ARGS__}, true) /* for a JOIN */
#define JOIN(b, ...) \
    join(b, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static uint32_t pooled(block *b, uint32_t x, uint32_t channels) {
    x = tide__graph_avgpool(b->g, "pool", x, (tide__pool){.kernel = 3, .stride = 1, .pad = 1});
    return conv_bn(b, x, (window){channels, 1, 1});
}

static uint32_t halved(block *b, uint32_t x) {
    return tide__graph_maxpool(b->g, "pool", x, (tide__pool){.kernel = 3, .stride = 2});
}

static uint32_t stem(tide__graph *g, uint32_t x) {
    block b = start(g, "stem", 1);
    x = TRUNK(&b, x, {32, 3, 3, 2, true}, {32, 3, 3, 1, true}, {64, 3, 3});
    uint32_t wide = BRANCH(&b, x, {96, 3, 3, 2, true});
    x = JOIN(&b, halved(&b, x), wide);
    b = start(g, "stem", 2);
    uint32_t square = BRANCH(&b, x, {64, 1, 1}, {96, 3, 3, 1, true});
    uint32_t cross = BRANCH(&b, x, {64, 1, 1}, {64, 1, 7}, {64, 7, 1}, {96, 3, 3, 1, true});
    x = JOIN(&b, square, cross);
    b = start(g, "stem", 3);
    wide = BRANCH(&b, x, {192, 3, 3, 2, true});
    return JOIN(&b, wide, halved(&b, x));
}

static uint32_t block_a(tide__graph *g, uint32_t x, uint32_t i) {
    block b = start(g, "a", i);
    uint32_t one = BRANCH(&b, x, {96, 1, 1});
    uint32_t three = BRANCH(&b, x, {64, 1, 1}, {96, 3, 3});
    uint32_t five = BRANCH(&b, x, {64, 1, 1}, {96, 3, 3}, {96, 3, 3});
    return JOIN(&b, one, three, five, pooled(&b, x, 96));
}

static uint32_t reduction_a(tide__graph *g, uint32_t x) {
    block b = start(g, "reduce", 1);
    uint32_t three = BRANCH(&b, x, {384, 3, 3, 2, true});
    uint32_t five = BRANCH(&b, x, {192, 1, 1}, {224, 3, 3}, {256, 3, 3, 2, true});
    return JOIN(&b, three, five, halved(&b, x));
}

static uint32_t block_b(tide__graph *g, uint32_t x, uint32_t i) {
    block b = start(g, "b", i);
    uint32_t one = BRANCH(&b, x, {384, 1, 1});
    uint32_t cross = BRANCH(&b, x, {192, 1, 1}, {224, 1, 7}, {256, 7, 1});
    uint32_t twice = BRANCH(&b, x, {192, 1, 1}, {192, 7, 1}, {224, 1, 7}, {224, 7, 1}, {256, 1, 7});
    return JOIN(&b, one, cross, twice, pooled(&b, x, 128));
}

static uint32_t reduction_b(tide__graph *g, uint32_t x) {
    block b = start(g, "reduce", 2);
    uint32_t three = BRANCH(&b, x, {192, 1, 1}, {192, 3, 3, 2, true});
    uint32_t seven = BRANCH(&b, x, {256, 1, 1}, {256, 1, 7}, {320, 7, 1}, {320, 3, 3, 2, true});
    return JOIN(&b, three, seven, halved(&b, x));
}

static uint32_t block_c(tide__graph *g, uint32_t x, uint32_t i) {
    block b = start(g, "c", i);
    const window row = {256, 1, 3}, column = {256, 3, 1};
    uint32_t one = BRANCH(&b, x, {256, 1, 1});
    uint32_t fork = TRUNK(&b, x, {384, 1, 1});
    uint32_t fork_row = conv_bn(&b, fork, row), fork_column = conv_bn(&b, fork, column);
    uint32_t deep = TRUNK(&b, x, {384, 1, 1}, {448, 3, 1}, {512, 1, 3});
    uint32_t deep_row = conv_bn(&b, deep, row), deep_column = conv_bn(&b, deep, column);
    return JOIN(&b, one, fork_row, fork_column, deep_row, deep_column, pooled(&b, x, 256));
}

void tide__build_inception_v4(tide__graph *g, const tide__request *r) {
    uint32_t x = stem(g, tide__graph_input(g, r->input));
    for (uint32_t i = 1; i <= 4; i++) x = block_a(g, x, i);
    x = reduction_a(g, x);
    for (uint32_t i = 1; i <= 7; i++) x = block_b(g, x, i);
    x = reduction_b(g, x);
    for (uint32_t i = 1; i <= 3; i++) x = block_c(g, x, i);
    tide__graph_prefix(g, "%s", "");
    x = tide__graph_global_avgpool(g, "avgpool", x);
    tide__graph_softmax_loss(g, "loss", tide__graph_classifier(g, "fc", x, r->classes));
}
