/* See random_graph.h. Shape first (who reads whom), then the program is built from it, forward and back. Value i of the
 * shape is the output of forward op i. */
#include "support/random_graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "support/random_below.h"

enum {
    SMALLEST_BYTES = 16 * 4096,
    UNIT_BYTES = 4096, /* sizes are multiples of this */
    SMALLEST_COST = 8000,
    UNIT_NS = 1000,
    BYTES_PER_NS = 8 /* of ops whose cost goes with their operands */
};

random_graph_options random_graph_varied(uint64_t seed, uint32_t n_ops) {
    uint64_t s = tide__mix(seed ^ 0x6772617068);
    random_graph_options o = {.seed = seed, .n_ops = n_ops};
    o.training = random_below(&s, 5) < 3;
    do o.width = 1u << random_below(&s, 6); /* a dozen layers or more */
    while (o.width > 1 && n_ops / o.width < (o.training ? 24 : 12));
    o.skip_layers = o.training ? 1u << random_below(&s, 5) : 4u << random_below(&s, 3);
    o.reads = 1 + (uint32_t)random_below(&s, 3);
    o.octaves = 3 + (uint32_t)random_below(&s, 5);
    o.correlated = random_below(&s, 2);
    o.weight_percent = (uint32_t)random_below(&s, 2) * (o.training ? 60 : 10);
    o.keep_percent = (uint32_t)random_below(&s, 4);
    o.fixed_percent = (uint32_t)random_below(&s, 2) * 5;
    o.workspace_percent = (uint32_t)random_below(&s, 2) * 20;
    o.bytes_per_s = UINT64_C(3000000000) << random_below(&s, 4);
    return o;
}

void random_graph_machine(const random_graph_options *options, tide_machine *out) {
    tide_machine_init_default(out);
    uint32_t ram = tide_machine_find_tier(out, TIDE_TIER_RAM);
    for (uint32_t i = 0; i < out->n_channels; i++)
        if (out->channel[i].tier == ram) out->channel[i].bytes_per_s = options->bytes_per_s;
}

/* A forward op and its output. */
typedef struct node {
    uint32_t layer, first_read, n_reads, n_readers;
    bool weighted;
    uint64_t size_bytes;
    tide_id output, weight, gradient; /* TIDE_NONE: none; the gradient so far */
} node;

/* An op while it is put together; the vectors are used again for the next. */
typedef struct draft {
    uint64_t bytes; /* of the operands */
    TIDE_VEC(tide_id) reads;
    TIDE_VEC(tide_id) writes;
} draft;

typedef struct generator {
    random_graph_options o;
    uint64_t random;
    tide_program_builder *builder;
    TIDE_VEC(node) nodes;
    TIDE_VEC(uint32_t) reads;  /* of all nodes, one after the other */
    TIDE_VEC(uint32_t) layers; /* the first node of each */
    draft draft;
} generator;

static uint32_t below(generator *g, uint64_t n) { return (uint32_t)random_below(&g->random, n); }

static bool chance(generator *g, uint32_t percent) { return below(g, 100) < percent; }

/* smallest to smallest * 2^octaves: the power even, linear in between. */
static uint64_t spread(generator *g, uint64_t smallest, uint64_t unit) {
    uint64_t low = g->o.octaves > 0 ? smallest << below(g, g->o.octaves) : smallest;
    uint64_t more = g->o.octaves > 0 ? random_below(&g->random, low) : 0;
    return (low + more) / unit * unit;
}

static uint64_t draw_size(generator *g) { return spread(g, SMALLEST_BYTES, UNIT_BYTES); }

/* ---- the shape ---- */

static bool reads_already(const generator *g, const node *x, uint32_t value) {
    for (uint32_t i = 0; i < x->n_reads; i++)
        if (g->reads.data[x->first_read + i] == value) return true;
    return false;
}

static tide_status add_read(generator *g, node *x, uint32_t value) {
    if (reads_already(g, x, value)) return TIDE_OK;
    TIDE_TRY(tide__vec_push(&g->reads, value));
    x->n_reads++;
    g->nodes.data[value].n_readers++;
    return TIDE_OK;
}

/* A value of the layer `back` before this one; one that nobody has read, if there is any. */
static uint32_t choose_value(generator *g, uint32_t back) {
    size_t layer = g->layers.count - 1 - back;
    uint32_t first = g->layers.data[layer], n = g->layers.data[layer + 1] - first, at = below(g, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t value = first + (at + i) % n;
        if (g->nodes.data[value].n_readers == 0) return value;
    }
    return first + at;
}

/* How many of the layer before nobody has read so far. */
static uint32_t count_unread(const generator *g) {
    uint32_t n = 0;
    for (uint32_t i = g->layers.data[g->layers.count - 2]; i < g->layers.data[g->layers.count - 1]; i++)
        n += g->nodes.data[i].n_readers == 0;
    return n;
}

/* left: ops of this layer that have no reads yet. Each takes its part of what nobody has read, so that nothing is left. */
static tide_status draw_reads(generator *g, node *x, uint32_t left) {
    if (x->layer == 0) return TIDE_OK;
    uint32_t reach = x->layer < g->o.skip_layers ? x->layer : g->o.skip_layers;
    uint32_t n = 1 + below(g, 2 * (uint64_t)g->o.reads - 1), near = (count_unread(g) + left - 1) / left;
    if (near == 0) near = 1;
    for (uint32_t i = 0; i < near || i < n; i++)
        TIDE_TRY(add_read(g, x, choose_value(g, i < near ? 1 : 1 + below(g, reach))));
    return TIDE_OK;
}

static tide_status add_node(generator *g, uint32_t left) {
    node x = {.layer = (uint32_t)g->layers.count - 1,
              .first_read = (uint32_t)g->reads.count,
              .size_bytes = draw_size(g),
              .output = TIDE_NONE,
              .weight = TIDE_NONE,
              .gradient = TIDE_NONE};
    TIDE_TRY(draw_reads(g, &x, left));
    return tide__vec_push(&g->nodes, x);
}

static tide_status draw_nodes(generator *g, uint32_t n) {
    while (g->nodes.count < n) {
        uint32_t left = n - (uint32_t)g->nodes.count, in_layer = g->o.width / 2 + 1 + below(g, g->o.width);
        if (in_layer > left) in_layer = left;
        if (g->o.training && in_layer == left && left > 1) in_layer--; /* the loss is alone in its layer */
        TIDE_TRY(tide__vec_push(&g->layers, (uint32_t)g->nodes.count));
        for (uint32_t i = 0; i < in_layer; i++) TIDE_TRY(add_node(g, in_layer - i));
    }
    return TIDE_OK;
}

/* n of the nodes, each with the same chance. */
static void draw_weights(generator *g, uint32_t n) {
    for (size_t i = 0; i < g->nodes.count; i++) {
        bool taken = random_below(&g->random, g->nodes.count - i) < n;
        g->nodes.data[i].weighted = taken;
        n -= taken;
    }
}

/* A training graph has two ops for each node and one for each weight, together n_ops. */
static tide_status draw_shape(generator *g) {
    uint64_t n = g->o.n_ops, nodes = n, weights = n * g->o.weight_percent / 100;
    if (g->o.training) {
        nodes = 100 * n / (200 + g->o.weight_percent);
        weights = n - 2 * nodes;
    }
    TIDE_TRY(draw_nodes(g, (uint32_t)nodes));
    draw_weights(g, (uint32_t)weights);
    return TIDE_OK;
}

/* ---- ops ---- */

static void begin_op(generator *g) {
    g->draft.reads.count = g->draft.writes.count = 0;
    g->draft.bytes = 0;
}

static tide_status op_reads(generator *g, tide_id id, uint64_t size_bytes) {
    g->draft.bytes += size_bytes;
    return tide__vec_push(&g->draft.reads, id);
}

static tide_status add_tensor(generator *g, const char *name, uint64_t size_bytes, tide_class cls, tide_start start,
                              bool keep, tide_id *out) {
    return tide_program_builder_tensor(g->builder, &(tide_tensor){name, size_bytes, TIDE_F32, cls, start, keep}, out);
}

static tide_status op_writes(generator *g, const char *name, uint64_t size_bytes, tide_class cls, bool keep,
                             tide_id *out) {
    TIDE_TRY(add_tensor(g, name, size_bytes, cls, TIDE_START_ABSENT, keep, out));
    g->draft.bytes += size_bytes;
    return tide__vec_push(&g->draft.writes, *out);
}

static uint64_t draw_cost(generator *g) {
    if (!g->o.correlated) return spread(g, SMALLEST_COST, UNIT_NS);
    uint64_t even = g->draft.bytes / BYTES_PER_NS;
    return (even / 2 + random_below(&g->random, even + even / 2 + 1)) / UNIT_NS * UNIT_NS + UNIT_NS;
}

/* The reads[0] of an update becomes its writes[0], in place. */
static tide_status end_op(generator *g, const char *name, tide_phase phase) {
    static const tide_inplace in_place = {0, 0, true};
    tide_variant v = {.cost_ns = draw_cost(g)};
    if (chance(g, g->o.workspace_percent)) v.workspace_bytes = draw_size(g);
    tide_op op = {.name = name,
                  .phase = phase,
                  .rerunnable = phase != TIDE_UPDATE && !chance(g, g->o.fixed_percent),
                  .n_reads = (uint32_t)g->draft.reads.count,
                  .n_writes = (uint32_t)g->draft.writes.count,
                  .n_inplace = phase == TIDE_UPDATE,
                  .n_variants = 1,
                  .reads = g->draft.reads.data,
                  .writes = g->draft.writes.data,
                  .inplace = &in_place,
                  .variants = &v};
    return tide_program_builder_op(g->builder, &op, NULL);
}

static tide_status forward_op(generator *g, node *x) {
    begin_op(g);
    for (uint32_t i = 0; i < x->n_reads; i++) {
        const node *from = &g->nodes.data[g->reads.data[x->first_read + i]];
        TIDE_TRY(op_reads(g, from->output, from->size_bytes));
    }
    if (x->weighted) {
        TIDE_TRY(add_tensor(g, "w", x->size_bytes, TIDE_CLASS_WEIGHT, TIDE_START_PRESENT, false, &x->weight));
        TIDE_TRY(op_reads(g, x->weight, x->size_bytes));
    }
    bool keep = x->n_readers == 0 || chance(g, g->o.keep_percent);
    TIDE_TRY(op_writes(g, "y", x->size_bytes, TIDE_CLASS_ACTIVATION, keep, &x->output));
    return end_op(g, "forward", TIDE_FORWARD);
}

/* The gradient of a value that the op read: the first, or the sum of the one there is and this op's. */
static tide_status flow_back(generator *g, node *to) {
    if (to->gradient != TIDE_NONE) TIDE_TRY(op_reads(g, to->gradient, to->size_bytes));
    return op_writes(g, "dy", to->size_bytes, TIDE_CLASS_ACTIVATION_GRADIENT, false, &to->gradient);
}

static tide_status update_op(generator *g, const node *x, tide_id weight_gradient) {
    tide_id renewed;
    begin_op(g);
    TIDE_TRY(op_reads(g, x->weight, x->size_bytes));
    TIDE_TRY(op_reads(g, weight_gradient, x->size_bytes));
    TIDE_TRY(op_writes(g, "w'", x->size_bytes, TIDE_CLASS_WEIGHT, true, &renewed));
    TIDE_TRY(tide_program_builder_carry(g->builder, (tide_carry){renewed, x->weight}));
    return end_op(g, "update", TIDE_UPDATE);
}

static tide_status backward_op(generator *g, node *x) {
    tide_id made = TIDE_NONE;
    bool is_loss = x->gradient == TIDE_NONE;
    begin_op(g);
    if (!is_loss) TIDE_TRY(op_reads(g, x->gradient, x->size_bytes));
    if (is_loss || chance(g, 50)) TIDE_TRY(op_reads(g, x->output, x->size_bytes));
    if (x->weighted) TIDE_TRY(op_reads(g, x->weight, x->size_bytes));
    for (uint32_t i = 0; i < x->n_reads; i++) {
        node *from = &g->nodes.data[g->reads.data[x->first_read + i]];
        if (chance(g, 70)) TIDE_TRY(op_reads(g, from->output, from->size_bytes));
        TIDE_TRY(flow_back(g, from));
    }
    if (x->weighted) TIDE_TRY(op_writes(g, "dw", x->size_bytes, TIDE_CLASS_GRADIENT, false, &made));
    if (g->draft.writes.count == 0) /* the gradient of an input, which nobody asks for */
        TIDE_TRY(op_writes(g, "dx", x->size_bytes, TIDE_CLASS_ACTIVATION_GRADIENT, false, &made));
    TIDE_TRY(end_op(g, "backward", TIDE_BACKWARD));
    return x->weighted ? update_op(g, x, made) : TIDE_OK;
}

static tide_status build(generator *g) {
    for (size_t i = 0; i < g->nodes.count; i++) TIDE_TRY(forward_op(g, &g->nodes.data[i]));
    for (size_t i = g->nodes.count; g->o.training && i-- > 0;) TIDE_TRY(backward_op(g, &g->nodes.data[i]));
    return TIDE_OK;
}

tide_status random_graph(const random_graph_options *options, tide_program **out) {
    generator g = {.o = *options, .random = tide__mix(options->seed)};
    char name[48];
    tide_status status;
    snprintf(name, sizeof name, "graph-%llu-%u", (unsigned long long)g.o.seed, g.o.n_ops);
    TIDE_TRY_GOTO(draw_shape(&g), done);
    TIDE_TRY_GOTO(tide_program_builder_create(name, g.o.training, &g.builder), done);
    TIDE_TRY_GOTO(build(&g), done);
    TIDE_TRY_GOTO(tide_program_builder_finish(g.builder, out), done);
    g.builder = NULL;
done:
    tide_program_builder_destroy(g.builder);
    tide__vec_free(&g.nodes);
    tide__vec_free(&g.reads);
    tide__vec_free(&g.layers);
    tide__vec_free(&g.draft.reads);
    tide__vec_free(&g.draft.writes);
    return status;
}
