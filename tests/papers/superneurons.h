/* Networks as the SuperNeurons paper counts them (Wang et al., PPoPP 2018): activations and activation gradients only,
 * float32; weights, masks and workspaces are not counted. A program of its own, with what cuDNN's backward needs:
 *
 *   conv, fc: x, dy -> dx     relu, pool, lrn: x, y, dy -> dx     dropout: dy -> dx     softmax: x, y -> dx
 *
 * The data itself is not counted (so it is no tensor here), but its gradient is: that reading gives both of the
 * paper's figures. Header only, so that several tests can share it. */
#ifndef TIDE_TESTS_PAPERS_SUPERNEURONS_H
#define TIDE_TESTS_PAPERS_SUPERNEURONS_H

#include <tidemark/program.h>

#include "support/test.h"

typedef enum paper_kind {
    PAPER_DATA,
    PAPER_CONV,
    PAPER_RELU,
    PAPER_LRN,
    PAPER_POOL,
    PAPER_FC,
    PAPER_DROPOUT,
    PAPER_SOFTMAX,
    PAPER_KIND_COUNT
} paper_kind;

/* A chain: each layer reads the one before it. */
typedef struct paper_layer {
    const char *name;
    paper_kind kind;
    uint64_t elements; /* of its output, per image */
} paper_layer;

static const paper_layer paper_alexnet[] = {
    {"data", PAPER_DATA, 3 * 227 * 227},
    {"conv1", PAPER_CONV, 96 * 55 * 55},
    {"relu1", PAPER_RELU, 96 * 55 * 55},
    {"lrn1", PAPER_LRN, 96 * 55 * 55},
    {"pool1", PAPER_POOL, 96 * 27 * 27},
    {"conv2", PAPER_CONV, 256 * 27 * 27},
    {"relu2", PAPER_RELU, 256 * 27 * 27},
    {"lrn2", PAPER_LRN, 256 * 27 * 27},
    {"pool2", PAPER_POOL, 256 * 13 * 13},
    {"conv3", PAPER_CONV, 384 * 13 * 13},
    {"relu3", PAPER_RELU, 384 * 13 * 13},
    {"conv4", PAPER_CONV, 384 * 13 * 13},
    {"relu4", PAPER_RELU, 384 * 13 * 13},
    {"conv5", PAPER_CONV, 256 * 13 * 13},
    {"relu5", PAPER_RELU, 256 * 13 * 13},
    {"pool5", PAPER_POOL, 256 * 6 * 6},
    {"fc6", PAPER_FC, 4096},
    {"relu6", PAPER_RELU, 4096},
    {"drop6", PAPER_DROPOUT, 4096},
    {"fc7", PAPER_FC, 4096},
    {"relu7", PAPER_RELU, 4096},
    {"drop7", PAPER_DROPOUT, 4096},
    {"fc8", PAPER_FC, 1000},
    {"softmax", PAPER_SOFTMAX, 1000},
};
#define PAPER_ALEXNET_LAYERS (sizeof paper_alexnet / sizeof paper_alexnet[0])
#define PAPER_MAX_LAYERS 64

/* Kinds whose gradient is in place in dy (softmax: in y). */
typedef struct paper_options {
    uint64_t batch;
    bool inplace[PAPER_KIND_COUNT];
} paper_options;

static inline tide_id paper_tensor(tide_program_builder *b, const char *name, const char *suffix, uint64_t elements,
                                   tide_class cls) {
    char text[32];
    tide_id id;
    snprintf(text, sizeof text, "%s%s", name, suffix);
    tide_tensor tensor = {.name = text, .size_bytes = 4 * elements, .cls = cls};
    assert_ok(tide_program_builder_tensor(b, &tensor, &id));
    return id;
}

/* Costs are made up: what counts is that convolutions and matrix products cost more per byte than other layers. */
static inline void paper_op(tide_program_builder *b, tide_op op, const paper_layer *layer, const char *suffix) {
    bool dense = layer->kind == PAPER_CONV || layer->kind == PAPER_FC;
    const tide_variant variant = {.cost_ns = (dense ? 100 : 1) * layer->elements};
    const char *name = layer->name;
    char text[32];
    snprintf(text, sizeof text, "%s%s", name, suffix);
    op.name = text;
    op.rerunnable = true;
    op.n_variants = 1;
    op.variants = &variant;
    assert_ok(tide_program_builder_op(b, &op, NULL));
}

/* Reads of the backward op of a layer, without those that are no tensor; returns their number. dy comes last. */
static inline uint32_t paper_backward_reads(paper_kind kind, tide_id x, tide_id y, tide_id dy, tide_id reads[3]) {
    bool needs_y = kind != PAPER_DROPOUT && kind != PAPER_CONV && kind != PAPER_FC;
    uint32_t n = 0;
    if (kind != PAPER_DROPOUT && x != TIDE_NONE) reads[n++] = x;
    if (needs_y) reads[n++] = y;
    if (dy != TIDE_NONE) reads[n++] = dy;
    return n;
}

static inline tide_id paper_backward(tide_program_builder *b, const paper_layer *layers, size_t i,
                                     const paper_options *o, const tide_id *y, tide_id dy) {
    tide_id reads[3];
    tide_id dx =
        paper_tensor(b, layers[i].name, ".dx", o->batch * layers[i - 1].elements, TIDE_CLASS_ACTIVATION_GRADIENT);
    tide_op op = {.phase = TIDE_BACKWARD, .reads = reads, .n_writes = 1, .writes = &dx};
    op.n_reads = paper_backward_reads(layers[i].kind, y[i - 1], y[i], dy, reads);
    tide_inplace pair = {.read = op.n_reads - 1, .write = 0, .must = true};
    op.n_inplace = o->inplace[layers[i].kind];
    op.inplace = &pair;
    paper_op(b, op, &layers[i], ".bwd");
    return dx;
}

static inline tide_id paper_forward(tide_program_builder *b, const paper_layer *layer, uint64_t batch, tide_id x) {
    tide_id y = paper_tensor(b, layer->name, "", batch * layer->elements, TIDE_CLASS_ACTIVATION);
    tide_op op = {.n_reads = x != TIDE_NONE, .reads = &x, .n_writes = 1, .writes = &y};
    paper_op(b, op, layer, "");
    return y;
}

/* One step of a chain of n layers; layer 0 is the data. */
static inline tide_program *paper_program(const paper_layer *layers, size_t n, const paper_options *o) {
    tide_program_builder *b;
    tide_program *p;
    tide_id y[PAPER_MAX_LAYERS] = {TIDE_NONE}, dy = TIDE_NONE;
    assert_true(n <= PAPER_MAX_LAYERS);
    assert_ok(tide_program_builder_create("paper", false, &b));
    for (size_t i = 1; i < n; i++) y[i] = paper_forward(b, &layers[i], o->batch, y[i - 1]);
    for (size_t i = n; i-- > 1;) dy = paper_backward(b, layers, i, o, y, dy);
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

#endif
