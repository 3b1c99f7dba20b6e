/* Reverse-mode differentiation: layers from last to first, each reading exactly what ops.h lists. Less than cuDNN's
 * table asks for: ReLU needs y, or its signs, but not x, max pooling an index of a byte per output instead of x and y.
 *
 * Order within a layer: weight gradients first, because then x is dead when dx comes into being; updates last,
 * because the data gradient still reads the old weights. */
#include "nn/tape.h"

/* One layer in backward. */
typedef struct visit {
    tide__tape *tape;
    uint32_t index;
    const tide__layer *layer;
    const tide__node *node;
    tide_id x; /* value of its first input */
} visit;

static uint32_t input_of(const visit *v, uint32_t i) { return tide__layer_input(v->tape->graph, v->index, i); }

/* Forward has read it before, so no op need tell its layout. */
static tide_status weight_of(const visit *v, uint32_t i, tide_id *out) {
    return tide__tape_param(v->tape, tide__layer_param(v->tape->graph, v->index, i), NULL, 0, out);
}

static tide_status emit_backward(const visit *v, tide_op_kind kind, const tide_id *reads, uint32_t n_reads,
                                 tide_id writes[TIDE__MAX_WRITES]) {
    tide_op_desc desc = tide__layer_desc(v->tape->graph, v->index);
    desc.kind = kind;
    if (kind == TIDE_OP_SOFTMAX_LOSS_BWD) desc.loss_scale = 1.0f / (float)v->tape->n_all;
    tide__draft draft = {.desc = &desc,
                         .phase = TIDE_BACKWARD,
                         .name = tide__layer_name(v->tape->graph, v->index),
                         .reads = reads,
                         .n_reads = n_reads,
                         .draw = v->node->draw};
    return tide__emit(&v->tape->emit, &draft, writes);
}

/* ---- where gradients go ---- */

/* Adds `dx` to the gradient of a layer's output. */
static tide_status contribute(tide__tape *tape, uint32_t layer, tide_id dx) {
    tide__node *node = &tape->nodes[layer];
    if (!tape->graph->layers.data[layer].needs_grad) return TIDE_OK;
    if (node->dy == TIDE_NONE) return node->dy = dx, TIDE_OK;
    const char *name = tide__layer_name(tape->graph, layer);
    if (node->dy == dx)
        return tide__fail(TIDE_E_UNSUPPORTED, "layer %s: two joins of the same gradient would double it", name);
    tide_shape shape = tide__layer_shape(tape->graph, layer);
    tide_op_desc desc = {.kind = TIDE_OP_ADD, .x = shape, .y = shape, .needs_dx = 1};
    tide_id reads[2] = {node->dy, dx}, writes[TIDE__MAX_WRITES];
    tide__draft draft = {&desc, TIDE_BACKWARD, name, reads, 2, node->n_sums++};
    TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
    node->dy = writes[0];
    return TIDE_OK;
}

/* A gradient of the layer's i-th parameter. Other layers that read the parameter add to it. */
static tide_status collect(const visit *v, uint32_t i, tide_id grad) {
    tide__tape *tape = v->tape;
    uint32_t param = tide__layer_param(tape->graph, v->index, i);
    tide__weight *weight = &tape->weights[param];
    if (weight->grad == TIDE_NONE) return weight->grad = grad, TIDE_OK;
    tide__param here = tape->graph->params.data[param];
    here.layer = v->index;
    char name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, &here, name);
    const tide__addend of = {TIDE_BACKWARD, name, param};
    return tide__tape_add(tape, &of, 0, weight->grad, grad, &weight->grad);
}

/* The gradients of a micro-batch that are complete with this layer: those of its parameters, but for what it shares with an
 * earlier one. */
static tide_status sum_layer(tide__tape *tape, uint32_t layer) {
    for (uint32_t i = 0; i < tape->graph->layers.data[layer].n_params; i++) {
        uint32_t param = tide__layer_param(tape->graph, layer, i);
        const tide__param *p = &tape->graph->params.data[param];
        if (!p->trainable || p->layer != layer) continue;
        char name[TIDE__PARAM_NAME_BYTES];
        tide__param_name(tape->graph, p, name);
        const tide__addend of = {TIDE_BACKWARD, name, param};
        tide_id grad = tape->weights[param].grad;
        tape->weights[param].grad = TIDE_NONE;
        TIDE_TRY(tide__tape_sum(tape, &of, grad));
    }
    return TIDE_OK;
}

/* ---- layers ---- */

/* Convolutions and fully connected layers. */
static tide_status backward_linear(const visit *v, tide_op_kind weights_kind, tide_op_kind data_kind) {
    tide_id for_weights[2] = {v->x, v->node->dy}, writes[TIDE__MAX_WRITES];
    TIDE_TRY(emit_backward(v, weights_kind, for_weights, 2, writes));
    for (uint32_t i = 0; i < v->layer->n_params; i++) TIDE_TRY(collect(v, i, writes[i]));
    if (!v->layer->desc.needs_dx) return TIDE_OK;
    tide_id for_data[2] = {TIDE_NONE, v->node->dy};
    TIDE_TRY(weight_of(v, 0, &for_data[0]));
    TIDE_TRY(emit_backward(v, data_kind, for_data, 2, writes));
    return contribute(v->tape, input_of(v, 0), writes[0]);
}

/* Batch and layer norm. */
static tide_status backward_norm(const visit *v, tide_op_kind kind) {
    tide_id reads[5] = {v->x, v->node->dy, TIDE_NONE, v->node->aux[0], v->node->aux[1]};
    tide_id writes[TIDE__MAX_WRITES];
    TIDE_TRY(weight_of(v, 0, &reads[2]));
    TIDE_TRY(emit_backward(v, kind, reads, 5, writes));
    TIDE_TRY(collect(v, 0, writes[1]));
    TIDE_TRY(collect(v, 1, writes[2]));
    return contribute(v->tape, input_of(v, 0), writes[0]);
}

/* What came with the loss. */
static tide_status backward_head(const visit *v) {
    TIDE_TRY(collect(v, 0, v->node->aux[1]));
    return v->layer->desc.needs_dx ? contribute(v->tape, input_of(v, 0), v->node->aux[0]) : TIDE_OK;
}

static tide_status backward_embedding(const visit *v) {
    tide_id reads[2] = {v->x, v->node->dy}, writes[TIDE__MAX_WRITES];
    TIDE_TRY(emit_backward(v, TIDE_OP_EMBEDDING_BWD, reads, 2, writes));
    for (uint32_t i = 0; i < v->layer->n_params; i++) TIDE_TRY(collect(v, i, writes[i]));
    return TIDE_OK;
}

/* Layers without parameters: one op from these reads to dx. */
static tide_status backward_plain(const visit *v, tide_op_kind kind, uint32_t n_reads, const tide_id *reads) {
    tide_id writes[TIDE__MAX_WRITES];
    if (!v->layer->desc.needs_dx) return TIDE_OK;
    TIDE_TRY(emit_backward(v, kind, reads, n_reads, writes));
    return contribute(v->tape, input_of(v, 0), writes[0]);
}

/* A join hands its gradient to both branches: no op, the same value. */
static tide_status backward_add(const visit *v) {
    TIDE_TRY(contribute(v->tape, input_of(v, 0), v->node->dy));
    return contribute(v->tape, input_of(v, 1), v->node->dy);
}

/* A concatenation cuts its gradient into parts. */
static tide_status backward_concat(const visit *v) {
    tide_id writes[TIDE__MAX_WRITES];
    if (!v->layer->desc.needs_dx) return TIDE_OK;
    TIDE_TRY(emit_backward(v, TIDE_OP_CONCAT_BWD, &v->node->dy, 1, writes));
    for (uint32_t i = 0; i < v->layer->n_inputs; i++) TIDE_TRY(contribute(v->tape, input_of(v, i), writes[i]));
    return TIDE_OK;
}

/* ---- steps ---- */

/* All slices of one layer, of which this is the first and so the last one to be visited, give one gradient. */
static tide_status backward_slices(const visit *v) {
    tide__tape *tape = v->tape;
    uint32_t steps = (uint32_t)v->layer->desc.steps;
    if (v->layer->desc.step > 0 || !v->layer->desc.needs_dx) return TIDE_OK;
    tape->reads.count = 0;
    for (uint32_t i = 0; i < steps; i++) TIDE_TRY(tide__vec_push(&tape->reads, tape->nodes[v->index + i].dy));
    tide_op_desc desc = {.kind = TIDE_OP_STACK, .x = v->layer->desc.y, .y = v->layer->desc.x, .steps = (int32_t)steps};
    tide_id writes[TIDE__MAX_WRITES];
    tide__draft draft = {&desc, TIDE_BACKWARD, tide__layer_name(tape->graph, v->index), tape->reads.data, steps, 0};
    TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
    return contribute(tape, input_of(v, 0), writes[0]);
}

static tide_status backward_stack(const visit *v) {
    tide_op_desc desc = {.kind = TIDE_OP_SLICE, .x = v->layer->desc.y, .y = v->layer->desc.x};
    desc.steps = v->layer->desc.steps;
    tide_id writes[TIDE__MAX_WRITES];
    for (uint32_t i = 0; i < v->layer->n_inputs; i++) {
        tide__draft draft = {&desc, TIDE_BACKWARD, tide__layer_name(v->tape->graph, v->index), &v->node->dy, 1, i};
        desc.step = (int32_t)i;
        TIDE_TRY(tide__emit(&v->tape->emit, &draft, writes));
        TIDE_TRY(contribute(v->tape, input_of(v, i), writes[0]));
    }
    return TIDE_OK;
}

/* Gradient of the gates before their functions; that of c goes to the step before. */
static tide_status backward_gates(const visit *v, tide__node *prev, tide_id *dgates) {
    tide_id reads[5], writes[TIDE__MAX_WRITES];
    uint32_t n = 0;
    reads[n++] = v->node->aux[1];
    reads[n++] = v->node->aux[0];
    if (prev) reads[n++] = prev->aux[0];
    reads[n++] = v->node->dy;
    if (v->layer->desc.has_next) reads[n++] = v->node->dc;
    TIDE_TRY(emit_backward(v, TIDE_OP_LSTM_BWD_GATES, reads, n, writes));
    *dgates = writes[0];
    if (prev) prev->dc = writes[1];
    return TIDE_OK;
}

static tide_status backward_lstm(const visit *v) {
    tide__node *prev = v->layer->desc.has_prev ? &v->tape->nodes[input_of(v, 1)] : NULL;
    tide_id dgates, writes[TIDE__MAX_WRITES];
    TIDE_TRY(backward_gates(v, prev, &dgates));
    tide_id for_weights[3] = {v->x, prev ? prev->y : dgates, dgates};
    TIDE_TRY(emit_backward(v, TIDE_OP_LSTM_BWD_WEIGHTS, for_weights, prev ? 3 : 2, writes));
    TIDE_TRY(collect(v, 0, writes[0]));
    TIDE_TRY(collect(v, 1, writes[1]));
    if (!v->layer->desc.needs_dx) return TIDE_OK;
    tide_id for_data[2] = {TIDE_NONE, dgates};
    TIDE_TRY(weight_of(v, 0, &for_data[0]));
    TIDE_TRY(emit_backward(v, TIDE_OP_LSTM_BWD_DATA, for_data, 2, writes));
    TIDE_TRY(contribute(v->tape, input_of(v, 0), writes[0]));
    return prev ? contribute(v->tape, input_of(v, 1), writes[1]) : TIDE_OK;
}

#define READS(...) \
    sizeof((tide_id[]){__VA_ARGS__}) / sizeof(tide_id), (tide_id[]) { __VA_ARGS__ }

static tide_status backward_layer(const visit *v) {
    const tide__node *n = v->node;
    tide_id label = tide__tape_micro(v->tape)->label;
    if (v->index == v->tape->head) return backward_head(v);
    switch (v->layer->desc.kind) {
    case TIDE_OP_CONV_FWD: return backward_linear(v, TIDE_OP_CONV_BWD_WEIGHTS, TIDE_OP_CONV_BWD_DATA);
    case TIDE_OP_FC_FWD: return backward_linear(v, TIDE_OP_FC_BWD_WEIGHTS, TIDE_OP_FC_BWD_DATA);
    case TIDE_OP_UPCONV_FWD: return backward_linear(v, TIDE_OP_UPCONV_BWD_WEIGHTS, TIDE_OP_UPCONV_BWD_DATA);
    case TIDE_OP_BN_FWD: return backward_norm(v, TIDE_OP_BN_BWD);
    case TIDE_OP_LAYERNORM_FWD: return backward_norm(v, TIDE_OP_LAYERNORM_BWD);
    case TIDE_OP_EMBEDDING_FWD: return backward_embedding(v);
    case TIDE_OP_SLICE: return backward_slices(v);
    case TIDE_OP_STACK: return backward_stack(v);
    case TIDE_OP_LSTM_FWD: return backward_lstm(v);
    case TIDE_OP_ADD: return backward_add(v);
    case TIDE_OP_CONCAT_FWD: return backward_concat(v);
    case TIDE_OP_RELU_FWD:
        return backward_plain(v, TIDE_OP_RELU_BWD, READS(v->layer->desc.signs ? n->aux[0] : n->y, n->dy));
    case TIDE_OP_MAXPOOL_FWD: return backward_plain(v, TIDE_OP_MAXPOOL_BWD, READS(n->aux[0], n->dy));
    case TIDE_OP_AVGPOOL_FWD: return backward_plain(v, TIDE_OP_AVGPOOL_BWD, READS(n->dy));
    case TIDE_OP_DROPOUT_FWD: return backward_plain(v, TIDE_OP_DROPOUT_BWD, READS(n->dy));
    case TIDE_OP_LRN_FWD: return backward_plain(v, TIDE_OP_LRN_BWD, READS(v->x, n->y, n->dy));
    case TIDE_OP_GELU_FWD: return backward_plain(v, TIDE_OP_GELU_BWD, READS(v->x, n->dy));
    case TIDE_OP_ATTENTION_FWD: return backward_plain(v, TIDE_OP_ATTENTION_BWD, READS(v->x, n->y, n->aux[0], n->dy));
    case TIDE_OP_SOFTMAX_LOSS_FWD: return backward_plain(v, TIDE_OP_SOFTMAX_LOSS_BWD, READS(n->y, label));
    default: return tide__fail(TIDE_E_INTERNAL, "op kind %d has no gradient", (int)v->layer->desc.kind);
    }
}

tide_status tide__tape_backward(tide__tape *tape) {
    uint32_t n = tape->head == TIDE_NONE ? (uint32_t)tape->graph->layers.count : tape->head + 1;
    for (uint32_t i = n; i-- > 1;) {
        const tide__layer *layer = &tape->graph->layers.data[i];
        if (!layer->needs_grad) continue;
        visit v = {tape, i, layer, &tape->nodes[i], tape->nodes[tide__layer_input(tape->graph, i, 0)].y};
        TIDE_TRY(backward_layer(&v));
        TIDE_TRY(sum_layer(tape, i));
    }
    return TIDE_OK;
}
