/* A language model of LSTM layers (Hochreiter and Schmidhuber 1997), unrolled over its steps: an op per cell and step,
 * as frameworks without a fused sequence kernel run it. All steps of a layer share one weight over input and state,
 * and one bias; so their gradients are sums over the steps. */
#include <stdio.h>
#include <stdlib.h>

#include "nn/model.h"

/* at[i] goes from the input of step i to the output of the layer. */
static void append_layer(tide__graph *g, uint32_t number, uint32_t width, uint32_t steps, uint32_t *at) {
    uint32_t previous = TIDE_NONE;
    char name[16];
    tide__graph_prefix(g, "layer%u.", number);
    for (uint32_t i = 0; i < steps && g->status == TIDE_OK; i++) {
        snprintf(name, sizeof name, "t%u", i);
        at[i] = previous = tide__graph_lstm(g, name, at[i], previous, width);
    }
}

static void build_layers(tide__graph *g, const tide__request *r, uint32_t *at) {
    uint32_t layers = r->numbers[0], width = r->numbers[1], steps = (uint32_t)r->input.c;
    uint32_t x = tide__graph_input(g, r->input);
    x = tide__graph_embedding(g, "embedding", x, r->classes, width, 0);
    tide__graph_slices(g, "step", x, steps, at);
    for (uint32_t i = 1; i <= layers && g->status == TIDE_OK; i++) append_layer(g, i, width, steps, at);
    tide__graph_prefix(g, "%s", "");
    x = tide__graph_fc(g, "decoder", tide__graph_stack(g, "stack", at, steps), r->classes);
    tide__graph_softmax_loss(g, "loss", x);
}

void tide__build_lstm(tide__graph *g, const tide__request *r) {
    if (r->input.c > TIDE__MAX_LAYERS || r->numbers[1] > INT32_MAX / 4) {
        g->status =
            tide__fail(TIDE_E_ARGUMENT, "%u steps of width %u are too large", (uint32_t)r->input.c, r->numbers[1]);
        return;
    }
    uint32_t *at = malloc((size_t)r->input.c * sizeof *at);
    if (at)
        build_layers(g, r, at);
    else
        g->status = tide__fail_memory();
    free(at);
}
