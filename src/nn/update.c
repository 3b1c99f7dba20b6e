/* Updates: clip factor, then one op per parameter, or per part of its state, in place. Weight decay goes for every parameter, biases and batch
 * norm included. */
#include "nn/tape.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"

/* What an optimizer is made of. Betas and eps are the usual ones (momentum's mu is beta1). */
typedef struct optimizer {
    tide_op_kind kind;
    float beta1, beta2, eps;
    uint32_t n_states;
    const char *state[2]; /* roles of its state tensors */
} optimizer;

static const optimizer optimizers[] = {
    [TIDE_SGD] = {TIDE_OP_SGD, 0.0f, 0.0f, 0.0f, 0, {NULL, NULL}},
    [TIDE_MOMENTUM] = {TIDE_OP_MOMENTUM, 0.9f, 0.0f, 0.0f, 1, {"momentum", NULL}},
    [TIDE_ADAM] = {TIDE_OP_ADAM, 0.9f, 0.999f, 1e-8f, 2, {"m", "v"}},
    [TIDE_ADAMW] = {TIDE_OP_ADAMW, 0.9f, 0.999f, 1e-8f, 2, {"m", "v"}},
};

#define MAX_READS 5

/* Stored floats of a weight that one update changes. The rule knows no budget: a program is the same under all of them. */
typedef struct cut {
    uint64_t floats, part_floats;
    uint32_t n_parts;
} cut;

#define DEFAULT_PART_BYTES (UINT64_C(16) << 20)

static cut cut_weight(const tide__tape *tape, const optimizer *o, tide_id weight) {
    const uint64_t floats = tide__emitter_floats(&tape->emit, weight), asked = tape->options->state_part_bytes;
    const uint64_t part = (asked ? asked : DEFAULT_PART_BYTES) / sizeof(float);
    if (o->n_states == 0 || floats / 4 <= part) return (cut){floats, floats, 1};
    return (cut){floats, part, (uint32_t)((floats + part - 1) / part)};
}

/* A state of the step, of which no value is there yet. */
static tide_status add_state(tide__tape *tape, const tide__param *param, uint32_t owner, uint32_t n_parts) {
    tide_state state = {.cls = TIDE_CLASS_OPTIMIZER, .at_start = TIDE_NONE, .at_end = TIDE_NONE, .op = TIDE_NONE};
    tide_carry *parts = n_parts > 1 ? malloc(n_parts * sizeof *parts) : NULL;
    if (n_parts > 1 && !parts) return tide__fail_memory();
    state.shape = param->shape;
    state.rank = param->rank;
    state.owner = owner;
    state.n_parts = parts ? n_parts : 0;
    state.parts = parts;
    tide_status status = tide__vec_push(&tape->states, state);
    if (status != TIDE_OK) free(parts);
    return status;
}

/* Optimizer state exists since the first step, with the weight's layout. */
static tide_status add_leaf(tide__tape *tape, const char *param_name, const char *role, tide_id weight, uint32_t part,
                            uint64_t part_bytes, tide_id *out) {
    char numbered[32];
    tide__leaf leaf = {.name = param_name, .role = role, .part_bytes = part_bytes};
    leaf.tensor = (tide_tensor){.cls = TIDE_CLASS_OPTIMIZER, .start = TIDE_START_PRESENT};
    if (part > 0) {
        snprintf(numbered, sizeof numbered, "%s.%u", role, part);
        leaf.role = numbered;
    }
    return tide__emit_leaf_like(&tape->emit, &leaf, weight, out);
}

static void set_value(tide_state *state, uint32_t part, tide_carry value) {
    if (part == 0) state->at_start = value.to, state->at_end = value.from;
    if (state->parts) state->parts[part] = value;
}

/* One part of a weight, or all of it. The states of the weight begin at first_state. */
static tide_status emit_part(tide__tape *tape, uint32_t param, const char *name, const cut *c, uint32_t part,
                             uint32_t first_state) {
    const optimizer *o = &optimizers[tape->options->optimizer];
    tide__weight *weight = &tape->weights[param];
    tide_op_desc desc = {.kind = o->kind, .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps, .elements = c->floats};
    desc.weight_decay = tape->options->weight_decay;
    desc.clipped = tape->clip_scale != TIDE_NONE;
    if (c->n_parts > 1) desc.part_first = part * c->part_floats;
    const uint64_t floats = tide__min_u64(c->part_floats, c->floats - desc.part_first);
    if (c->n_parts > 1) desc.part_elements = floats;
    tide_id reads[MAX_READS] = {weight->now}, writes[TIDE__MAX_WRITES];
    tide__draft draft = {&desc, TIDE_UPDATE, name, reads, 1, part};
    for (uint32_t i = 0; i < o->n_states; i++)
        TIDE_TRY(add_leaf(tape, name, o->state[i], weight->now, part, floats * sizeof(float), &reads[draft.n_reads++]));
    TIDE_TRY(tide__emit_in_layout_of(&tape->emit, &draft, weight->grad, weight->now, &reads[draft.n_reads++]));
    if (desc.clipped) reads[draft.n_reads++] = tape->clip_scale;
    TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
    weight->now = writes[0];
    for (uint32_t i = 0; i < o->n_states; i++)
        set_value(&tape->states.data[first_state + i], part, (tide_carry){.from = writes[1 + i], .to = reads[1 + i]});
    return TIDE_OK;
}

/* Each part goes on with the weight as the one before left it. */
static tide_status emit_update(tide__tape *tape, uint32_t param) {
    const optimizer *o = &optimizers[tape->options->optimizer];
    const tide__param *p = &tape->graph->params.data[param];
    const cut c = cut_weight(tape, o, tape->weights[param].now);
    const uint32_t first_state = (uint32_t)tape->states.count;
    char name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, p, name);
    for (uint32_t i = 0; i < o->n_states; i++) TIDE_TRY(add_state(tape, p, tape->weights[param].owner, c.n_parts));
    for (uint32_t part = 0; part < c.n_parts; part++) TIDE_TRY(emit_part(tape, param, name, &c, part, first_state));
    return TIDE_OK;
}

/* Another rank has the states. */
static tide_status miss_update(tide__tape *tape, uint32_t param) {
    const optimizer *o = &optimizers[tape->options->optimizer];
    const tide__param *p = &tape->graph->params.data[param];
    const tide_state state = {.cls = TIDE_CLASS_OPTIMIZER, .owner = tape->weights[param].owner};
    char name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, p, name);
    for (uint32_t i = 0; i < o->n_states; i++) TIDE_TRY(tide__tape_miss_state(tape, p, name, o->state[i], state));
    return TIDE_OK;
}

/* Updates belong to the step, not to a micro-batch: their names carry no number. */
tide_status tide__tape_update_param(tide__tape *tape, uint32_t param) {
    if (!tape->graph->params.data[param].trainable) return TIDE_OK;
    uint32_t micro = tape->emit.micro;
    tape->emit.micro = 0;
    tide_status status = tide__tape_is_elsewhere(tape, param) ? miss_update(tape, param) : emit_update(tape, param);
    if (status == TIDE_OK) status = tide__tape_spread(tape, param);
    tape->emit.micro = micro;
    return status;
}

/* ---- clipping by the global norm ---- */

/* Gradients of one op: all of a small network, else no more than the largest one and these. */
#define GROUP_FLOATS (UINT64_C(16) << 20)

typedef struct norms {
    tide_id *grads; /* of all parameters, and room for a sum; TIDE_NONE: its owner has it */
    uint64_t *elements;
    uint32_t *owners;
    uint32_t n;
} norms;

/* The group from `first` on; its end. */
static uint32_t group_end(const norms *l, uint32_t first, uint64_t most) {
    uint64_t floats = l->elements[first];
    uint32_t end = first + 1;
    while (end < l->n && l->owners[end] == l->owners[first] && l->elements[end] <= most &&
           floats <= most - l->elements[end])
        floats += l->elements[end++];
    return end;
}

/* What a group writes goes from its owner to that of the next, or to all. */
static tide_status pass_sum(tide__tape *tape, const tide__draft *draft, uint32_t from, uint32_t to, tide_id *sum) {
    const tide__passing p = {
        .draft = *draft, .operand = draft->n_reads, .cls = TIDE_CLASS_OTHER, .like = TIDE_NONE, .from = from, .to = to};
    return from == to ? TIDE_OK : tide__tape_pass(tape, &p, sum);
}

/* One group: the clip factor after the last, else the sum of squares so far. */
static tide_status emit_group(tide__tape *tape, const norms *l, uint32_t first, uint32_t end, uint32_t group,
                              tide_id *sum) {
    tide_op_desc desc = {.kind = TIDE_OP_GRAD_NORM, .n_grads = end - first, .grad_elements = l->elements + first};
    desc.clip_norm = tape->options->clip_norm > 0 ? tape->options->clip_norm : FLT_MAX; /* no finite norm reaches it */
    desc.has_prev = group > 0;
    desc.has_next = end < l->n;
    for (uint32_t i = first; i < end; i++) desc.elements += l->elements[i];
    const tide_id behind = l->grads[end]; /* its place is lent to the sum */
    tide_id writes[TIDE__MAX_WRITES];
    tide__draft draft = {&desc, TIDE_UPDATE, "grad-norm", l->grads + first, end - first + (group > 0), group};
    const uint32_t owner = l->owners[first];
    if (owner == TIDE_NONE || owner == tape->rank) {
        if (group > 0) l->grads[end] = *sum;
        TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
        l->grads[end] = behind;
        *sum = writes[0];
    }
    return pass_sum(tape, &draft, owner, desc.has_next ? l->owners[end] : TIDE_NONE, sum);
}

static tide_status emit_norm(tide__tape *tape, const norms *l) {
    uint64_t most = GROUP_FLOATS;
    for (uint32_t i = 0; i < l->n; i++) most = tide__max_u64(most, l->elements[i]);
    for (uint32_t first = 0, end, group = 0; first < l->n; first = end, group++) {
        end = group_end(l, first, most);
        TIDE_TRY(emit_group(tape, l, first, end, group, &tape->clip_scale));
    }
    if (!tape->options->skip_nonfinite) return TIDE_OK;
    return tide_program_builder_keep(tape->emit.builder, tape->clip_scale);
}

static tide_status clip(tide__tape *tape) {
    size_t n_params = tape->graph->params.count;
    norms l = {malloc((n_params + 1) * sizeof *l.grads), malloc(n_params * sizeof *l.elements),
               malloc(n_params * sizeof *l.owners), 0};
    tide_status status = l.grads && l.elements && l.owners ? TIDE_OK : tide__fail_memory();
    for (size_t i = 0; i < n_params && status == TIDE_OK; i++) {
        if (!tape->graph->params.data[i].trainable) continue;
        l.grads[l.n] = tape->weights[i].grad;
        l.elements[l.n] = tape->weights[i].grad_floats;
        l.owners[l.n++] = tape->weights[i].owner;
    }
    if (status == TIDE_OK) l.grads[l.n] = TIDE_NONE;
    if (status == TIDE_OK) status = emit_norm(tape, &l);
    free(l.grads);
    free(l.elements);
    free(l.owners);
    return status;
}

/* In the order of the parameters, which is against the order in which gradients came: the newest gradients, the
 * likeliest to be still on the device, go first. (The peak is the same in any order: every update only frees.) */
tide_status tide__tape_update(tide__tape *tape) {
    tape->emit.micro = 0;
    if (tape->options->clip_norm > 0 || tape->options->skip_nonfinite) TIDE_TRY(clip(tape));
    for (uint32_t i = 0; i < tape->graph->params.count; i++) TIDE_TRY(tide__tape_update_param(tape, i));
    return TIDE_OK;
}
