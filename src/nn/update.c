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

static cut cut_floats(const tide__tape *tape, uint64_t floats) {
    const uint64_t asked = tape->options->state_part_bytes;
    const uint64_t part = (asked ? asked : DEFAULT_PART_BYTES) / sizeof(float);
    if (optimizers[tape->options->optimizer].n_states == 0 || floats / 4 <= part) return (cut){floats, floats, 1};
    return (cut){floats, part, (uint32_t)((floats + part - 1) / part)};
}

/* What every part of a parameter's states is, before there is a value of it. */
static void describe_parts(const tide__tape *tape, const tide__weight *w, tide_state_part *part) {
    for (uint32_t i = 0; i < w->n_stakes; i++) {
        const tide__stake *s = &tape->stakes.data[w->first_stake + i];
        const cut c = cut_floats(tape, s->floats);
        for (uint64_t at = 0; at < s->floats; at += c.part_floats) {
            const uint64_t floats = tide__min_u64(c.part_floats, s->floats - at);
            *part++ = (tide_state_part){TIDE_NONE, TIDE_NONE, floats * sizeof(float), s->owner};
        }
    }
}

/* The optimizer states of a parameter, of which no value is there yet. */
static tide_status add_states(tide__tape *tape, uint32_t param) {
    const optimizer *o = &optimizers[tape->options->optimizer];
    const tide_state state = {.cls = TIDE_CLASS_OPTIMIZER, .at_start = TIDE_NONE};
    tide__weight *w = &tape->weights[param];
    const bool owned = tide__tape_has_owners(tape, param);
    uint32_t n = 0;
    w->optimizer = (uint32_t)tape->states.count;
    for (uint32_t i = 0; i < w->n_stakes; i++)
        n += cut_floats(tape, tape->stakes.data[w->first_stake + i].floats).n_parts;
    for (uint32_t i = 0; i < o->n_states; i++) {
        TIDE_TRY(tide__tape_add_state(tape, param, state, owned ? o->state[i] : NULL, owned || n > 1 ? n : 0));
        if (owned || n > 1) describe_parts(tape, w, tape->states.data[tape->states.count - 1].parts);
    }
    return TIDE_OK;
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
    if (state->at_start == TIDE_NONE) state->at_start = value.to, state->at_end = value.from;
    if (state->parts) state->parts[part].from = value.from, state->parts[part].to = value.to;
}

/* What is updated: the newest value of a weight, or of what is owned of it. */
typedef struct subject {
    const char *name; /* of the parameter */
    tide_id now, grad;
    uint32_t first_state, first_part; /* of the parameter's states, and of their parts */
} subject;

/* One part of it. */
static tide_status emit_part(tide__tape *tape, subject *s, const cut *c, uint32_t part) {
    const optimizer *o = &optimizers[tape->options->optimizer];
    const uint32_t number = s->first_part + part;
    tide_op_desc desc = {.kind = o->kind, .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps, .elements = c->floats};
    desc.weight_decay = tape->options->weight_decay;
    desc.clipped = tape->clip_scale != TIDE_NONE;
    if (c->n_parts > 1) desc.part_first = part * c->part_floats;
    const uint64_t floats = tide__min_u64(c->part_floats, c->floats - desc.part_first);
    if (c->n_parts > 1) desc.part_elements = floats;
    tide_id reads[MAX_READS] = {s->now}, writes[TIDE__MAX_WRITES];
    tide__draft draft = {&desc, TIDE_UPDATE, s->name, reads, 1, number};
    for (uint32_t i = 0; i < o->n_states; i++)
        TIDE_TRY(add_leaf(tape, s->name, o->state[i], s->now, number, floats * sizeof(float), &reads[draft.n_reads++]));
    TIDE_TRY(tide__emit_in_layout_of(&tape->emit, &draft, s->grad, s->now, &reads[draft.n_reads++]));
    if (desc.clipped) reads[draft.n_reads++] = tape->clip_scale;
    TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
    s->now = writes[0];
    for (uint32_t i = 0; i < o->n_states; i++)
        set_value(&tape->states.data[s->first_state + i], number,
                  (tide_carry){.from = writes[1 + i], .to = reads[1 + i]});
    return TIDE_OK;
}

/* Each part goes on with the weight as the one before left it. */
static tide_status emit_update(tide__tape *tape, uint32_t stake, tide_id *now) {
    const tide__stake s = tape->stakes.data[stake];
    const tide__weight *w = &tape->weights[s.param];
    const cut c = cut_floats(tape, s.floats);
    char name[TIDE__PARAM_NAME_BYTES], part_name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, &tape->graph->params.data[s.param], name);
    subject it = {.name = name, .now = *now, .grad = s.grad, .first_state = w->optimizer};
    for (uint32_t i = w->first_stake; i < stake; i++)
        it.first_part += cut_floats(tape, tape->stakes.data[i].floats).n_parts;
    if (tide__tape_is_cut(tape, &s) && !tide__tape_is_gathered(tape, s.param)) {
        tide__tape_name_stake(tape, stake, part_name);
        const tide__draft draft = {.phase = TIDE_UPDATE, .name = part_name};
        TIDE_TRY(tide__emit_cut(&tape->emit, draft, *now, s.first, s.floats, &it.now));
    }
    for (uint32_t part = 0; part < c.n_parts; part++) TIDE_TRY(emit_part(tape, &it, &c, part));
    *now = it.now;
    return TIDE_OK;
}

/* Its owner updates it and tells the others. */
static tide_status update_stake(tide__tape *tape, uint32_t stake) {
    tide__stake *s = &tape->stakes.data[stake];
    tide__weight *w = &tape->weights[s->param];
    const bool gathered = tide__tape_is_gathered(tape, s->param);
    tide_id now = gathered ? s->now : w->now;
    if (w->optimizer == TIDE_NONE) TIDE_TRY(add_states(tape, s->param));
    if (tide__tape_is_here(tape, s)) TIDE_TRY(emit_update(tape, stake, &now));
    if (gathered)
        s->now = now;
    else if (!tide__tape_is_cut(tape, s))
        w->now = now;
    return tide__tape_spread(tape, stake, now);
}

/* Updates belong to the step, not to a micro-batch: their names carry no number. */
tide_status tide__tape_update_stake(tide__tape *tape, uint32_t stake) {
    uint32_t micro = tape->emit.micro;
    tape->emit.micro = 0;
    tide_status status = update_stake(tape, stake);
    tape->emit.micro = micro;
    return status;
}

static tide_status update_param(tide__tape *tape, uint32_t param) {
    const tide__weight *w = &tape->weights[param];
    for (uint32_t i = 0; tape->graph->params.data[param].trainable && i < w->n_stakes; i++)
        TIDE_TRY(tide__tape_update_stake(tape, w->first_stake + i));
    return TIDE_OK;
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
    const tide__passing p = {.draft = *draft,
                             .as = {.like = TIDE_NONE, .operand = draft->n_reads, .cls = TIDE_CLASS_OTHER},
                             .from = from,
                             .to = to};
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

/* A gradient that is here goes as its weight is stored, so that the order of its squares does not depend on who owns which part. */
static tide_status list_gradient(tide__tape *tape, tide__stake *s, norms *l) {
    static const tide_op_desc norm = {.kind = TIDE_OP_GRAD_NORM};
    char name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, &tape->graph->params.data[s->param], name);
    const tide__draft draft = {.desc = &norm, .phase = TIDE_UPDATE, .name = name};
    if (tide__tape_is_here(tape, s))
        TIDE_TRY(tide__emit_in_layout_of(&tape->emit, &draft, s->grad, tape->weights[s->param].like, &s->grad));
    l->grads[l->n] = s->grad;
    l->elements[l->n] = s->floats;
    l->owners[l->n++] = s->owner;
    return TIDE_OK;
}

static tide_status clip(tide__tape *tape) {
    const size_t n = tape->stakes.count + 1;
    norms l = {malloc(n * sizeof *l.grads), malloc(n * sizeof *l.elements), malloc(n * sizeof *l.owners), 0};
    tide_status status = l.grads && l.elements && l.owners ? TIDE_OK : tide__fail_memory();
    for (size_t i = 0; i < tape->graph->params.count && status == TIDE_OK; i++) {
        const tide__weight *w = &tape->weights[i];
        for (uint32_t k = 0; tape->graph->params.data[i].trainable && k < w->n_stakes && status == TIDE_OK; k++)
            status = list_gradient(tape, &tape->stakes.data[w->first_stake + k], &l);
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
    for (uint32_t i = 0; i < tape->graph->params.count; i++) TIDE_TRY(update_param(tape, i));
    return TIDE_OK;
}
