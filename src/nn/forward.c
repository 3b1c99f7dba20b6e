/* The forward pass. All layers follow one pattern: read the inputs, the parameters and (the loss) the labels; write
 * y and what else backward wants. Leaves are created at their first use, in the layout of that use. */
#include "nn/tape.h"

bool tide__tape_is_last_micro(const tide__tape *tape) {
    return tape->emit.micro + 1 == tape->first_micro + tape->n_micros;
}

tide__micro *tide__tape_micro(const tide__tape *tape) { return &tape->micros[tape->emit.micro - tape->first_micro]; }

/* ---- leaves ---- */

/* Floats of an operand, as stored. */
static tide_status stored_floats(tide__tape *tape, const tide_op_desc *desc, uint32_t operand, uint64_t *out) {
    const tide__recipe *recipe;
    TIDE_TRY(tide__recipes_find(tape->emit.recipes, desc, &recipe));
    *out = tide__recipe_operand(recipe, operand)->size_bytes / sizeof(float);
    return TIDE_OK;
}

tide_tensor tide__tape_weight_leaf(const tide__tape *tape, tide_class cls) {
    const tide_step_options *o = tape->options;
    return (tide_tensor){.cls = cls,
                         .start = o->client_weights ? TIDE_START_CLIENT : TIDE_START_PRESENT,
                         .keep = o->inference && !o->client_weights};
}

static tide_status add_whole(tide__tape *tape, uint32_t param, tide_state state, const tide_op_desc *desc,
                             uint32_t operand) {
    tide__weight *weight = &tape->weights[param];
    const tide__param *p = &tape->graph->params.data[param];
    tide__leaf leaf = {.desc = desc, .operand = operand, .name = tide__layer_name(tape->graph, p->layer)};
    leaf.role = p->role;
    leaf.tensor = tide__tape_weight_leaf(tape, state.cls);
    TIDE_TRY(tide__emit_leaf(&tape->emit, &leaf, &weight->now));
    weight->start = weight->like = state.at_start = weight->now;
    return tide__tape_add_state(tape, param, state, NULL, 0);
}

static tide_status add_param(tide__tape *tape, uint32_t param, const tide_op_desc *desc, uint32_t operand) {
    const tide__param *p = &tape->graph->params.data[param];
    tide_state state = {.cls = p->trainable ? TIDE_CLASS_WEIGHT : TIDE_CLASS_OTHER, .trainable = p->trainable};
    uint64_t floats;
    state.init = p->init;
    state.init_scale = p->init_scale;
    tape->weights[param].state = (uint32_t)tape->states.count;
    TIDE_TRY(stored_floats(tape, desc, operand, &floats));
    TIDE_TRY(tide__tape_deal(tape, param, floats));
    uint32_t micro = tape->emit.micro;
    tape->emit.micro = 0; /* a parameter belongs to the step */
    tide_status status = tide__tape_is_gathered(tape, param) ? tide__tape_add_owned(tape, param, state, desc, operand)
                                                             : add_whole(tape, param, state, desc, operand);
    tape->emit.micro = micro;
    return status;
}

tide_status tide__tape_param(tide__tape *tape, uint32_t param, const tide_op_desc *desc, uint32_t operand,
                             tide_id *out) {
    tide__weight *weight = &tape->weights[param];
    if (weight->state == TIDE_NONE) TIDE_TRY(add_param(tape, param, desc, operand));
    if (tide__tape_is_gathered(tape, param)) return tide__tape_gather(tape, param, desc, operand, out);
    *out = weight->now;
    return TIDE_OK;
}

static tide_status client_leaf(tide__tape *tape, const tide_op_desc *desc, uint32_t operand, const char *name,
                               tide_dtype dtype, tide_id *out) {
    tide__leaf leaf = {.desc = desc, .operand = operand, .name = name};
    leaf.tensor = (tide_tensor){.cls = TIDE_CLASS_INPUT, .start = TIDE_START_CLIENT, .dtype = dtype};
    return tide__emit_leaf(&tape->emit, &leaf, out);
}

/* Dropout in inference: nothing is dropped, its output is its input. */
static bool is_skipped(const tide__tape *tape, uint32_t layer) {
    return tape->options->inference && tape->graph->layers.data[layer].desc.kind == TIDE_OP_DROPOUT_FWD;
}

/* The output of layer `input`, as operand `operand` of `desc`; the network's input comes into being here. */
static tide_status read_layer(tide__tape *tape, uint32_t input, const tide_op_desc *desc, uint32_t operand,
                              tide_id *out) {
    while (is_skipped(tape, input)) input = tide__layer_input(tape->graph, input, 0);
    tide__node *node = &tape->nodes[input];
    if (node->y == TIDE_NONE) {
        tide_dtype dtype = desc->kind == TIDE_OP_EMBEDDING_FWD ? TIDE_I32 : TIDE_F32;
        TIDE_TRY(client_leaf(tape, desc, operand, "input", dtype, &node->y));
        tide__tape_micro(tape)->input = node->y;
    }
    *out = node->y;
    return TIDE_OK;
}

/* ---- layers ---- */

/* Inputs, parameters and labels in the order of ops.h, into tape->reads. */
static tide_status list_reads(tide__tape *tape, uint32_t index, const tide_op_desc *desc) {
    const tide__layer *layer = &tape->graph->layers.data[index];
    tape->reads.count = 0;
    TIDE_TRY(tide__vec_reserve(&tape->reads, layer->n_inputs + layer->n_params + 2));
    tide_id *reads = tape->reads.data;
    uint32_t n = 0;
    for (; n < layer->n_inputs; n++)
        TIDE_TRY(read_layer(tape, tide__layer_input(tape->graph, index, n), desc, n, &reads[n]));
    if (desc->kind == TIDE_OP_LSTM_FWD && desc->has_prev)
        reads[n++] = tape->nodes[tide__layer_input(tape->graph, index, 1)].aux[0]; /* c comes with h */
    for (uint32_t i = 0; i < layer->n_params; i++) {
        uint32_t param = tide__layer_param(tape->graph, index, i);
        if (!tape->graph->params.data[param].trainable && !tape->options->inference) continue;
        TIDE_TRY(tide__tape_param(tape, param, desc, n, &reads[n]));
        n++;
    }
    if (desc->kind == TIDE_OP_SOFTMAX_LOSS_FWD || desc->kind == TIDE_OP_HEAD_LOSS || desc->kind == TIDE_OP_HEAD_SCORE) {
        TIDE_TRY(client_leaf(tape, desc, n, "label", TIDE_I32, &reads[n]));
        tide__tape_micro(tape)->label = reads[n++];
    }
    tape->reads.count = n;
    return TIDE_OK;
}

/* Running statistics: a side effect, so an op of its own that is never re-run. Where its rank received them from another, the op
 * tells how the state is stored. */
tide_status tide__tape_update_statistics(tide__tape *tape, const tide__statistics *s) {
    uint32_t index = s->layer;
    const tide__layer *layer = &tape->graph->layers.data[index];
    uint32_t mean = tide__layer_param(tape->graph, index, 2), var = tide__layer_param(tape->graph, index, 3);
    tide_op_desc desc = layer->desc;
    desc.kind = TIDE_OP_BN_STATS;
    tide_id reads[4] = {s->mean, s->inv_std}, writes[TIDE__MAX_WRITES];
    TIDE_TRY(tide__tape_param(tape, mean, &desc, 2, &reads[2]));
    TIDE_TRY(tide__tape_param(tape, var, &desc, 3, &reads[3]));
    tide__draft draft = {&desc, TIDE_FORWARD, tide__layer_name(tape->graph, index), reads, 4, 0};
    TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
    for (uint32_t k = 0; k < 2; k++) {
        tide__weight *weight = &tape->weights[k ? var : mean];
        tide_state *state = &tape->states.data[weight->state];
        weight->now = writes[k];
        if (state->op != TIDE_NONE) continue;
        state->op = (tide_id)(tape->emit.ops.count - 1);
        state->operand = 2 + k;
    }
    return TIDE_OK;
}

/* At once, or with several ranks when it is this one's turn. */
static tide_status note_statistics(tide__tape *tape, uint32_t index) {
    const tide__node *node = &tape->nodes[index];
    const tide__statistics s = {index, tape->emit.micro, node->aux[0], node->aux[1]};
    tide_op_desc desc = tape->graph->layers.data[index].desc;
    tide_id leaf;
    desc.kind = TIDE_OP_BN_STATS;
    if (tape->n_ranks == 1) return tide__tape_update_statistics(tape, &s);
    for (uint32_t k = 2; k < 4; k++)
        TIDE_TRY(tide__tape_param(tape, tide__layer_param(tape->graph, index, k), &desc, k, &leaf));
    return tide__vec_push(&tape->statistics, s);
}

/* The loss, and in inference what is known about each label. */
static tide_status record_loss(tide__tape *tape, const tide__draft *draft, const tide_id *writes) {
    const tide_op_desc *desc = draft->desc;
    const tide__addend of = {TIDE_FORWARD, draft->name, (uint32_t)tape->graph->params.count};
    tide__micro *micro = tide__tape_micro(tape);
    micro->prob = desc->kind == TIDE_OP_SOFTMAX_LOSS_FWD ? writes[0] : TIDE_NONE;
    micro->score = desc->kind == TIDE_OP_HEAD_SCORE ? writes[0] : TIDE_NONE;
    TIDE_TRY(tide__tape_sum(tape, &of, writes[desc->kind == TIDE_OP_HEAD_LOSS ? 2 : 1]));
    return tape->options->inference ? tide_program_builder_keep(tape->emit.builder, writes[0]) : TIDE_OK;
}

/* The head and the loss as one op, with both gradients in training. */
static tide_status forward_head(tide__tape *tape, const char *loss_name) {
    tide_op_desc desc = tide__layer_desc(tape->graph, tape->head);
    tide_id writes[TIDE__MAX_WRITES];
    tide__draft draft = {.desc = &desc, .phase = TIDE_FORWARD, .name = loss_name};
    desc.kind = tape->options->inference ? TIDE_OP_HEAD_SCORE : TIDE_OP_HEAD_LOSS;
    desc.loss_scale = 1.0f / (float)tape->n_all;
    TIDE_TRY(list_reads(tape, tape->head, &desc));
    draft.reads = tape->reads.data;
    draft.n_reads = (uint32_t)tape->reads.count;
    TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
    tide__node *node = &tape->nodes[tape->head];
    node->aux[0] = writes[0]; /* dx and dw, for backward */
    node->aux[1] = writes[1];
    return record_loss(tape, &draft, writes);
}

static tide_status forward_layer(tide__tape *tape, uint32_t index) {
    tide__node *node = &tape->nodes[index];
    tide_op_desc desc = tide__layer_desc(tape->graph, index);
    if (tape->options->inference && desc.kind == TIDE_OP_BN_FWD) desc.kind = TIDE_OP_BN_INFER;
    if (tape->options->inference) desc.signs = 0;
    tide_id writes[TIDE__MAX_WRITES] = {TIDE_NONE, TIDE_NONE, TIDE_NONE};
    tide__draft draft = {.desc = &desc, .phase = TIDE_FORWARD, .name = tide__layer_name(tape->graph, index)};
    TIDE_TRY(list_reads(tape, index, &desc));
    draft.reads = tape->reads.data;
    draft.n_reads = (uint32_t)tape->reads.count;
    const uint64_t draw = tape->emit.counter;
    TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
    *node = (tide__node){.y = writes[0], .aux = {writes[1], writes[2]}, .dy = TIDE_NONE, .dc = TIDE_NONE, .draw = draw};
    if (desc.kind == TIDE_OP_BN_FWD) return note_statistics(tape, index);
    return desc.kind == TIDE_OP_SOFTMAX_LOSS_FWD ? record_loss(tape, &draft, writes) : TIDE_OK;
}

tide_status tide__tape_forward(tide__tape *tape) {
    uint32_t n = (uint32_t)tape->graph->layers.count;
    for (uint32_t i = 0; i < n; i++)
        tape->nodes[i] = (tide__node){.y = TIDE_NONE, .aux = {TIDE_NONE, TIDE_NONE}, .dy = TIDE_NONE, .dc = TIDE_NONE};
    const uint32_t plain = tape->head == TIDE_NONE ? n : tape->head;
    for (uint32_t i = 1; i < plain; i++)
        if (!is_skipped(tape, i)) TIDE_TRY(forward_layer(tape, i));
    return plain < n ? forward_head(tape, tide__layer_name(tape->graph, n - 1)) : TIDE_OK;
}
