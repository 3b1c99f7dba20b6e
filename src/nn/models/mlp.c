/* mlp:W0,W1,...: fully connected layers of widths W1, W2 ... over W0 inputs, ReLU between. */
#include <stdio.h>

#include "nn/model.h"

static void build_layers(tide__graph *g, const tide__request *r) {
    uint32_t x = tide__graph_input(g, r->input);
    char name[24];
    for (uint32_t i = 1; i < r->n_numbers; i++) {
        snprintf(name, sizeof name, "fc%u", i);
        x = tide__graph_fc(g, name, x, r->numbers[i]);
        snprintf(name, sizeof name, "relu%u", i);
        if (i + 1 < r->n_numbers) x = tide__graph_relu(g, name, x);
    }
    tide__graph_softmax_loss(g, "loss", x);
}

void tide__build_mlp(tide__graph *g, const tide__request *r) {
    uint64_t inputs;
    tide_shape one = {1, r->input.c, r->input.h, r->input.w};
    if (tide__shape_elements(one, &inputs) && inputs == r->numbers[0]) {
        build_layers(g, r);
        return;
    }
    g->status = tide__fail(TIDE_E_ARGUMENT, "the first width is %u, but the input is %lld x %lld x %lld", r->numbers[0],
                           (long long)one.c, (long long)one.h, (long long)one.w);
}
