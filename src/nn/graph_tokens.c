/* Layers of language models: tokens are rows (ops.h), so only attention, slices and stacks know samples. */
#include <stdio.h>

#include "nn/graph.h"

#define INIT_DEVIATION 0.02f /* of embeddings, as GPT-2 has it */

static tide_status append_embedding(tide__graph *g, const char *name, uint32_t x, uint32_t vocabulary, uint32_t width,
                                    uint32_t positions) {
    tide_shape in = tide__layer_shape(g, x);
    tide_op_desc desc = {.kind = TIDE_OP_EMBEDDING_FWD, .x = in, .y = {in.n * in.c, width, 1, 1}};
    desc.bias = positions > 0;
    desc.vocabulary = vocabulary;
    desc.positions = positions;
    TIDE_TRY(tide__graph_append(g, name, &desc, &x, 1));
    tide__param table = {.role = "weight", .shape = {vocabulary, width, 1, 1}, .rank = 2};
    table.init = TIDE_INIT_NORMAL;
    table.init_scale = INIT_DEVIATION;
    table.trainable = true;
    TIDE_TRY(tide__graph_add_param(g, table));
    if (!positions) return TIDE_OK;
    table.role = "positions";
    table.shape.n = positions;
    return tide__graph_add_param(g, table);
}

uint32_t tide__graph_embedding(tide__graph *g, const char *name, uint32_t x, uint32_t vocabulary, uint32_t width,
                               uint32_t positions) {
    if (g->status != TIDE_OK) return 0;
    return tide__graph_settle(g, append_embedding(g, name, x, vocabulary, width, positions));
}

static tide_status append_layernorm(tide__graph *g, const char *name, uint32_t x) {
    tide_shape shape = tide__layer_shape(g, x);
    tide_op_desc desc = {.kind = TIDE_OP_LAYERNORM_FWD, .x = shape, .y = shape, .eps = 1e-5f};
    TIDE_TRY(tide__graph_append(g, name, &desc, &x, 1));
    tide__param scale = {.role = "weight", .shape = {shape.c, 1, 1, 1}, .rank = 1};
    tide__param shift = {.role = "bias", .shape = scale.shape, .rank = 1, .trainable = true};
    scale.init = TIDE_INIT_ONE;
    scale.trainable = true;
    TIDE_TRY(tide__graph_add_param(g, scale));
    return tide__graph_add_param(g, shift);
}

uint32_t tide__graph_layernorm(tide__graph *g, const char *name, uint32_t x) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_layernorm(g, name, x));
}

uint32_t tide__graph_gelu(tide__graph *g, const char *name, uint32_t x) {
    return tide__graph_append_same(g, name, x, (tide_op_desc){.kind = TIDE_OP_GELU_FWD});
}

static tide_status append_attention(tide__graph *g, const char *name, uint32_t qkv, int64_t heads, int64_t context) {
    tide_shape x = tide__layer_shape(g, qkv);
    if (heads == 0 || context == 0 || x.c % (3 * heads) != 0 || x.n % context != 0)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: %lld heads over %lld rows of %lld for samples of %lld",
                          g->prefix, name, (long long)heads, (long long)x.n, (long long)x.c, (long long)context);
    tide_op_desc desc = {.kind = TIDE_OP_ATTENTION_FWD, .x = x, .y = {x.n, x.c / 3, 1, 1}};
    desc.heads = (int32_t)heads;
    desc.context = (int32_t)context;
    return tide__graph_append(g, name, &desc, &qkv, 1);
}

uint32_t tide__graph_attention(tide__graph *g, const char *name, uint32_t qkv, uint32_t heads, uint32_t context) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_attention(g, name, qkv, heads, context));
}

/* ---- the way out ---- */

static tide_status append_tied_fc(tide__graph *g, const char *name, uint32_t x, uint32_t owner) {
    tide_shape in = tide__layer_shape(g, x);
    uint32_t param = tide__layer_param(g, owner, 0);
    tide_shape weight = g->params.data[param].shape;
    if (weight.c != in.c || weight.h != in.h || weight.w != in.w)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: the weight of layer %s has another width", g->prefix, name,
                          tide__layer_name(g, owner));
    tide_op_desc desc = {.kind = TIDE_OP_FC_FWD, .x = in, .y = {in.n, weight.n, 1, 1}};
    TIDE_TRY(tide__graph_append(g, name, &desc, &x, 1));
    return tide__graph_share_param(g, param);
}

uint32_t tide__graph_tied_fc(tide__graph *g, const char *name, uint32_t x, uint32_t owner) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_tied_fc(g, name, x, owner));
}

/* ---- steps ---- */

static tide_status append_slice(tide__graph *g, const char *name, uint32_t x, uint32_t steps, uint32_t step) {
    tide_shape in = tide__layer_shape(g, x), out = in;
    if (steps == 0 || in.n % steps != 0)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: %u steps do not divide %lld rows", g->prefix, name, steps,
                          (long long)in.n);
    out.n = in.n / steps;
    tide_op_desc desc = {.kind = TIDE_OP_SLICE, .x = in, .y = out, .steps = (int32_t)steps, .step = (int32_t)step};
    return tide__graph_append(g, name, &desc, &x, 1);
}

void tide__graph_slices(tide__graph *g, const char *name, uint32_t x, uint32_t steps, uint32_t *layers) {
    char numbered[32];
    for (uint32_t i = 0; i < steps && g->status == TIDE_OK; i++) {
        snprintf(numbered, sizeof numbered, "%.16s%u", name, i);
        layers[i] = tide__graph_settle(g, append_slice(g, numbered, x, steps, i));
    }
}

static tide_status append_stack(tide__graph *g, const char *name, const uint32_t *layers, uint32_t steps) {
    tide_shape part = tide__layer_shape(g, layers[0]), y = part;
    y.n *= steps;
    tide_op_desc desc = {.kind = TIDE_OP_STACK, .x = part, .y = y, .steps = (int32_t)steps};
    return tide__graph_append(g, name, &desc, layers, steps);
}

uint32_t tide__graph_stack(tide__graph *g, const char *name, const uint32_t *layers, uint32_t steps) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_stack(g, name, layers, steps));
}

static tide_status append_lstm(tide__graph *g, const char *name, uint32_t x, uint32_t previous, int64_t width) {
    tide_shape in = tide__layer_shape(g, x);
    bool first = previous == TIDE_NONE;
    tide_op_desc desc = {.kind = TIDE_OP_LSTM_FWD, .x = in, .y = {in.n, width, 1, 1}, .has_prev = !first};
    TIDE_TRY(tide__graph_append(g, name, &desc, (uint32_t[]){x, previous}, first ? 1 : 2));
    if (first) return tide__graph_add_weight(g, (tide_shape){4 * width, in.c + width, 1, 1}, 2, in.c + width, true);
    g->layers.data[previous].desc.has_next = 1;
    TIDE_TRY(tide__graph_share_param(g, tide__layer_param(g, previous, 0)));
    return tide__graph_share_param(g, tide__layer_param(g, previous, 1));
}

uint32_t tide__graph_lstm(tide__graph *g, const char *name, uint32_t x, uint32_t previous, uint32_t width) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_lstm(g, name, x, previous, width));
}
