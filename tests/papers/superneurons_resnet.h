/* ResNet as the SuperNeurons paper counts it: activations and activation gradients only, with its fork and join layers.
 * A fork's output has bytes of its own and is read by both branches, its backward adds the branches' gradients; the
 * backward of a join hands dy to branch 0 and a copy to branch 1.
 *
 *        ┌─▶ conv bn relu conv bn relu conv bn ─┐
 *   fork ┤                                      ├─▶ join ─▶ relu ─▶ fork ...
 *        └─▶ (conv bn: first block of a stage) ─┘
 *
 *   conv, fc: x, dy -> dx     bn: x, dy -> dx     relu: x, y, dy -> dx in dy     pool: x, y, dy -> dx     softmax: x, y -> dx
 */
#ifndef TIDE_TESTS_PAPERS_SUPERNEURONS_RESNET_H
#define TIDE_TESTS_PAPERS_SUPERNEURONS_RESNET_H

#include <tidemark/program.h>

#include "support/test.h"

typedef enum layer_kind { CONV, BN, RELU, POOL, FORK, JOIN, FC, SOFTMAX } layer_kind;

enum { RESNET_MAX_LAYERS = 1024, NO_LAYER = RESNET_MAX_LAYERS };

typedef struct resnet_layer {
    layer_kind kind;
    uint64_t elements; /* of its output, per image */
    uint32_t in[2];    /* layers; NO_LAYER: the data, or nothing */
    tide_id y;
    tide_id dy[2]; /* two for a fork */
    uint32_t n_dy;
} resnet_layer;

typedef struct resnet {
    tide_program_builder *builder;
    uint64_t batch;
    resnet_layer layers[RESNET_MAX_LAYERS];
    uint32_t count;
} resnet;

static inline tide_id resnet_tensor(resnet *r, uint64_t elements, tide_class cls) {
    tide_id id;
    tide_tensor tensor = {.size_bytes = 4 * r->batch * elements, .cls = cls};
    assert_ok(tide_program_builder_tensor(r->builder, &tensor, &id));
    return id;
}

/* Costs are made up: convolutions and matrix products cost more per byte than other layers. */
static inline void resnet_op(resnet *r, const resnet_layer *layer, tide_op op) {
    bool dense = layer->kind == CONV || layer->kind == FC;
    tide_variant variant = {.cost_ns = (dense ? 100 : 1) * layer->elements};
    op.rerunnable = true;
    op.n_variants = 1;
    op.variants = &variant;
    assert_ok(tide_program_builder_op(r->builder, &op, NULL));
}

/* Adds a layer and its forward op; gives its number. */
static inline uint32_t resnet_add(resnet *r, layer_kind kind, uint64_t elements, uint32_t in, uint32_t other) {
    assert_true(r->count < RESNET_MAX_LAYERS);
    resnet_layer *layer = &r->layers[r->count];
    tide_id reads[2];
    tide_op op = {.reads = reads, .n_writes = 1, .writes = &layer->y};
    *layer = (resnet_layer){.kind = kind, .elements = elements, .in = {in, other}};
    if (in != NO_LAYER) reads[op.n_reads++] = r->layers[in].y;
    if (other != NO_LAYER) reads[op.n_reads++] = r->layers[other].y;
    layer->y = resnet_tensor(r, elements, TIDE_CLASS_ACTIVATION);
    resnet_op(r, layer, op);
    return r->count++;
}

static inline uint32_t resnet_conv_bn(resnet *r, uint64_t elements, uint32_t in, bool relu) {
    uint32_t at = resnet_add(r, BN, elements, resnet_add(r, CONV, elements, in, NO_LAYER), NO_LAYER);
    return relu ? resnet_add(r, RELU, elements, at, NO_LAYER) : at;
}

/* A bottleneck of `width` channels at `pixels`. */
static inline uint32_t resnet_block(resnet *r, uint64_t width, uint64_t pixels, bool first, uint32_t in) {
    uint32_t fork = resnet_add(r, FORK, r->layers[in].elements, in, NO_LAYER);
    uint32_t at = resnet_conv_bn(r, width * pixels, fork, true);
    at = resnet_conv_bn(r, width * pixels, at, true);
    at = resnet_conv_bn(r, 4 * width * pixels, at, false);
    uint32_t other = first ? resnet_conv_bn(r, 4 * width * pixels, fork, false) : fork;
    at = resnet_add(r, JOIN, 4 * width * pixels, at, other);
    return resnet_add(r, RELU, 4 * width * pixels, at, NO_LAYER);
}

static inline void resnet_give(resnet *r, uint32_t layer, tide_id dy) {
    if (layer == NO_LAYER) return;
    assert_true(r->layers[layer].n_dy < 2);
    r->layers[layer].dy[r->layers[layer].n_dy++] = dy;
}

static inline uint32_t resnet_backward_reads(const resnet *r, const resnet_layer *layer, tide_id reads[4]) {
    static const bool needs_x[] = {
        [CONV] = true, [BN] = true, [RELU] = true, [POOL] = true, [FC] = true, [SOFTMAX] = true};
    static const bool needs_y[] = {[RELU] = true, [POOL] = true, [SOFTMAX] = true};
    uint32_t n = 0;
    if (needs_x[layer->kind] && layer->in[0] != NO_LAYER) reads[n++] = r->layers[layer->in[0]].y;
    if (needs_y[layer->kind]) reads[n++] = layer->y;
    for (uint32_t i = 0; i < layer->n_dy; i++) reads[n++] = layer->dy[i];
    return n;
}

static inline void resnet_backward(resnet *r, uint32_t i) {
    resnet_layer *layer = &r->layers[i];
    uint64_t elements = layer->in[0] == NO_LAYER ? 3 * 224 * 224 : r->layers[layer->in[0]].elements;
    tide_id reads[4], writes[2];
    tide_op op = {.phase = TIDE_BACKWARD, .reads = reads, .writes = writes};
    op.n_reads = resnet_backward_reads(r, layer, reads);
    op.n_writes = layer->kind == JOIN ? 2 : 1;
    for (uint32_t k = 0; k < op.n_writes; k++) {
        writes[k] = resnet_tensor(r, elements, TIDE_CLASS_ACTIVATION_GRADIENT);
        resnet_give(r, layer->in[k], writes[k]);
    }
    tide_inplace pair = {.read = op.n_reads - 1, .write = 0, .must = true};
    op.n_inplace = layer->kind == RELU || layer->kind == JOIN;
    op.inplace = &pair;
    resnet_op(r, layer, op);
}

/* blocks: per stage, e.g. {3, 4, 6, 3} for ResNet-50. */
static inline tide_program *resnet_program(const uint32_t blocks[4], uint64_t batch) {
    static resnet r; /* large */
    tide_program *p;
    r.batch = batch;
    r.count = 0;
    assert_ok(tide_program_builder_create("resnet", false, &r.builder));
    uint32_t at = resnet_conv_bn(&r, 64 * 112 * 112, NO_LAYER, true);
    at = resnet_add(&r, POOL, 64 * 56 * 56, at, NO_LAYER);
    for (uint32_t stage = 0; stage < 4; stage++)
        for (uint32_t i = 0; i < blocks[stage]; i++) {
            uint64_t side = 56 >> stage;
            at = resnet_block(&r, (uint64_t)64 << stage, side * side, i == 0, at);
        }
    at = resnet_add(&r, POOL, 2048, at, NO_LAYER);
    at = resnet_add(&r, FC, 1000, at, NO_LAYER);
    resnet_add(&r, SOFTMAX, 1000, at, NO_LAYER);
    for (uint32_t i = r.count; i-- > 0;) resnet_backward(&r, i);
    assert_ok(tide_program_builder_finish(r.builder, &p));
    return p;
}

#endif
