/* GPT-2 (Radford et al. 2019): blocks of attention and a two-layer perceptron, layer norm before each, residual sums
 * around both; the token table is also the output projection. Without dropout, as it is mostly trained today. */
#include <math.h>

#include "nn/model.h"

#define DEVIATION 0.02f /* of fresh weights */

typedef struct sizes {
    uint32_t layers, width, heads, context;
} sizes;

/* Into the residual sum, which 2 L of these add up to: the smaller the more there are. */
static uint32_t project(tide__graph *g, const char *name, uint32_t x, const sizes *s) {
    g->deviation = DEVIATION / sqrtf(2 * (float)s->layers);
    x = tide__graph_fc(g, name, x, s->width);
    g->deviation = DEVIATION;
    return x;
}

static uint32_t attention(tide__graph *g, uint32_t x, const sizes *s) {
    uint32_t qkv = tide__graph_fc(g, "attn.c_attn", tide__graph_layernorm(g, "ln_1", x), 3 * s->width);
    return project(g, "attn.c_proj", tide__graph_attention(g, "attn", qkv, s->heads, s->context), s);
}

static uint32_t perceptron(tide__graph *g, uint32_t x, const sizes *s) {
    x = tide__graph_fc(g, "mlp.c_fc", tide__graph_layernorm(g, "ln_2", x), 4 * s->width);
    return project(g, "mlp.c_proj", tide__graph_gelu(g, "mlp.gelu", x), s);
}

static void build_layers(tide__graph *g, const tide__request *r, const sizes *s) {
    uint32_t tokens = tide__graph_input(g, r->input);
    g->deviation = DEVIATION;
    uint32_t wte = tide__graph_embedding(g, "wte", tokens, r->classes, s->width, r->context), x = wte;
    for (uint32_t i = 0; i < s->layers && g->status == TIDE_OK; i++) {
        tide__graph_prefix(g, "h.%u.", i);
        x = tide__graph_add(g, "attn.add", attention(g, x, s), x);
        x = tide__graph_add(g, "mlp.add", perceptron(g, x, s), x);
    }
    tide__graph_prefix(g, "%s", "");
    x = tide__graph_tied_fc(g, "lm_head", tide__graph_layernorm(g, "ln_f", x), wte);
    tide__graph_softmax_loss(g, "loss", x);
}

void tide__build_gpt2(tide__graph *g, const tide__request *r) {
    sizes s = {r->numbers[0], r->numbers[1], r->numbers[2], (uint32_t)r->input.c};
    if (s.width > INT32_MAX / 4)
        g->status = tide__fail(TIDE_E_OVERFLOW, "a width of %u is too large", s.width);
    else if (s.width % s.heads != 0)
        g->status = tide__fail(TIDE_E_ARGUMENT, "%u heads do not divide a width of %u", s.heads, s.width);
    else
        build_layers(g, r, &s);
}
