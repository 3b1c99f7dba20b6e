/* What lies at one rank instead of at all: optimizer state, or weights as well.
 *
 *      weights    |  conv1  | conv2 |            fc1            | fc2 |      Laid end to end and cut into as many equal shares as there
 *      owners     |     rank 0      |  rank 1  |  rank 2  |  rank 3   |      are ranks: what lies in a share has that rank as its owner,
 *                                                                            so a large weight has several, each with a part of it.
 *
 * Sums of gradients go to the owner by the tree of exchange.c, it alone has the optimizer state and updates, and the new value goes to all
 * (TIDE_SHARD_OPTIMIZER), or stays there and goes to all for each use (TIDE_SHARD_ALL). Cuts are where the norm of gradients begins
 * another block, so that it has the same bits.
 *
 * Invariant: all ranks choose the same owners and count the same messages. Values have the bits that every rank alone would make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "nn/tape.h"

/* ---- owners ---- */

#define GRAIN_FLOATS UINT64_C(16384) /* 64 KiB; blocks of GRAD_NORM have as many */

static uint64_t elements_of(const tide__param *p) {
    return (uint64_t)p->shape.n * (uint64_t)p->shape.c * (uint64_t)p->shape.h * (uint64_t)p->shape.w;
}

void tide__tape_count_elements(tide__tape *tape) {
    for (size_t i = 0; i < tape->graph->params.count; i++) {
        tape->weights[i].before = tape->n_elements;
        if (tape->graph->params.data[i].trainable) tape->n_elements += elements_of(&tape->graph->params.data[i]);
    }
}

/* The stored floats of a parameter that belong to the ranks before this one: whole grains, or all. */
static uint64_t floats_before(const tide__tape *tape, uint32_t param, uint32_t rank, uint64_t floats) {
    const uint64_t n = tape->n_elements, begin = tape->weights[param].before;
    const uint64_t elements = elements_of(&tape->graph->params.data[param]);
    const uint64_t share = n / tape->n_ranks * rank + n % tape->n_ranks * rank / tape->n_ranks;
    if (share <= begin) return 0;
    if (share >= begin + elements || rank == tape->n_ranks) return floats;
    const double at = (double)(share - begin) / (double)elements * (double)floats;
    return tide__min_u64((uint64_t)(at / (double)GRAIN_FLOATS + 0.5) * GRAIN_FLOATS, floats);
}

bool tide__tape_has_owners(const tide__tape *tape, uint32_t param) {
    return tape->options->shard != TIDE_SHARD_NONE && tape->n_ranks > 1 && tape->graph->params.data[param].trainable;
}

bool tide__tape_is_gathered(const tide__tape *tape, uint32_t param) {
    return tape->options->shard == TIDE_SHARD_ALL && tide__tape_has_owners(tape, param);
}

bool tide__tape_is_here(const tide__tape *tape, const tide__stake *s) {
    return s->owner == TIDE_NONE || s->owner == tape->rank;
}

bool tide__tape_is_cut(const tide__tape *tape, const tide__stake *s) { return tape->weights[s->param].n_stakes > 1; }

tide_status tide__tape_deal(tide__tape *tape, uint32_t param, uint64_t floats) {
    tide__weight *w = &tape->weights[param];
    const bool shared = tide__tape_has_owners(tape, param);
    tide__stake s = {.param = param, .owner = TIDE_NONE, .floats = floats, .now = TIDE_NONE, .grad = TIDE_NONE};
    w->first_stake = (uint32_t)tape->stakes.count;
    if (!shared) TIDE_TRY(tide__vec_push(&tape->stakes, s));
    for (uint32_t r = 0; shared && r < tape->n_ranks; r++) {
        s.first = floats_before(tape, param, r, floats);
        s.floats = floats_before(tape, param, r + 1, floats) - s.first;
        s.owner = r;
        if (s.floats > 0) TIDE_TRY(tide__vec_push(&tape->stakes, s));
    }
    w->n_stakes = (uint32_t)tape->stakes.count - w->first_stake;
    return TIDE_OK;
}

void tide__tape_name_stake(const tide__tape *tape, uint32_t stake, char name[TIDE__PARAM_NAME_BYTES]) {
    const tide__stake *s = &tape->stakes.data[stake];
    tide__param_name(tape->graph, &tape->graph->params.data[s->param], name);
    const size_t length = strlen(name);
    if (tide__tape_is_cut(tape, s))
        snprintf(name + length, TIDE__PARAM_NAME_BYTES - length, ".%u", stake - tape->weights[s->param].first_stake);
}

/* ---- states ---- */

static tide_status keep_name(tide__tape *tape, uint32_t param, const char *role, const char **out) {
    char name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, &tape->graph->params.data[param], name);
    const size_t size = strlen(name) + strlen(role) + 2;
    TIDE_TRY(tide__vec_reserve(&tape->names, 1));
    char *text = malloc(size);
    if (!text) return tide__fail_memory();
    snprintf(text, size, "%s%s%s", name, *role ? "." : "", role);
    *out = tape->names.data[tape->names.count++] = text;
    return TIDE_OK;
}

tide_status tide__tape_add_state(tide__tape *tape, uint32_t param, tide_state state, const char *role,
                                 uint32_t n_parts) {
    const tide__param *p = &tape->graph->params.data[param];
    state.at_end = state.op = TIDE_NONE;
    state.shape = p->shape;
    state.rank = p->rank;
    TIDE_TRY(tide__vec_reserve(&tape->states, 1));
    TIDE_TRY(tide__vec_push(&tape->state_param, param));
    if (role) TIDE_TRY(keep_name(tape, param, role, &state.name));
    if (n_parts > 0) state.parts = calloc(n_parts, sizeof *state.parts);
    if (n_parts > 0 && !state.parts) return tide__fail_memory();
    state.n_parts = n_parts;
    tape->states.data[tape->states.count++] = state;
    return TIDE_OK;
}

tide_status tide__tape_add_owned(tide__tape *tape, uint32_t param, tide_state state, const tide_op_desc *desc,
                                 uint32_t operand) {
    const tide__weight *w = &tape->weights[param];
    char name[TIDE__PARAM_NAME_BYTES];
    state.at_start = TIDE_NONE;
    TIDE_TRY(tide__tape_add_state(tape, param, state, "", w->n_stakes));
    tide_state *added = &tape->states.data[tape->states.count - 1];
    for (uint32_t i = 0; i < w->n_stakes; i++) {
        tide__stake *s = &tape->stakes.data[w->first_stake + i];
        if (tide__tape_is_here(tape, s)) {
            tide__tape_name_stake(tape, w->first_stake + i, name);
            tide__leaf leaf = {.desc = desc, .operand = operand, .name = name};
            leaf.part_bytes = s->floats * sizeof(float);
            leaf.tensor = tide__tape_weight_leaf(tape, state.cls);
            TIDE_TRY(tide__emit_leaf(&tape->emit, &leaf, &s->now));
            if (added->at_start == TIDE_NONE) added->at_start = s->now;
        }
        added->parts[i] = (tide_state_part){TIDE_NONE, s->now, s->floats * sizeof(float), s->owner};
    }
    return TIDE_OK;
}

/* ---- messages ---- */

static tide_status pass_one(tide__tape *tape, const tide__passing *p, uint32_t from, uint32_t to, tide_id *value) {
    uint64_t number = tape->n_messages++;
    tide__draft draft = p->draft;
    draft.again = p->draft.again * tape->n_ranks + to;
    if (tape->rank == from) return tide__emit_send(&tape->emit, &draft, *value, to, number);
    return tape->rank == to ? tide__emit_receive(&tape->emit, &draft, &p->as, from, number, value) : TIDE_OK;
}

/* To all by a binary tree, in which who has the value hands it on: far ones first, so that hosts get it once and hand it on inside. */
tide_status tide__tape_pass(tide__tape *tape, const tide__passing *p, tide_id *value) {
    if (p->to != TIDE_NONE) return pass_one(tape, p, p->from, p->to, value);
    for (uint32_t far = tape->n_ranks / 2; far > 0; far /= 2)
        for (uint32_t r = 0; r < tape->n_ranks; r += 2 * far)
            TIDE_TRY(pass_one(tape, p, r ^ p->from, (r + far) ^ p->from, value));
    return TIDE_OK;
}

/* A stake goes from its owner to all, and where it is a part into *whole. */
static tide_status pass_stake(tide__tape *tape, uint32_t stake, tide__passing p, tide_id value, tide_id *whole) {
    const tide__stake *s = &tape->stakes.data[stake];
    const tide__weight *w = &tape->weights[s->param];
    char name[TIDE__PARAM_NAME_BYTES];
    tide__tape_name_stake(tape, stake, name);
    p.draft.name = name;
    p.as.like = w->like;
    p.as.cls = TIDE_CLASS_WEIGHT;
    p.as.part_bytes = s->floats * sizeof(float);
    p.from = s->owner;
    p.to = TIDE_NONE;
    TIDE_TRY(tide__tape_pass(tape, &p, &value));
    const bool replaces =
        *whole != TIDE_NONE && s->owner != tape->rank; /* in place: both at once would need its place */
    if (!tide__tape_is_cut(tape, s) && !replaces) return *whole = value, TIDE_OK;
    const tide__stake *last = &tape->stakes.data[w->first_stake + w->n_stakes - 1];
    return tide__emit_paste(&tape->emit, p.draft, value, s->first, last->first + last->floats, whole);
}

tide_status tide__tape_gather(tide__tape *tape, uint32_t param, const tide_op_desc *desc, uint32_t operand,
                              tide_id *out) {
    tide__weight *w = &tape->weights[param];
    tide__passing p = {.as.operand = operand};
    p.draft = (tide__draft){.desc = desc, .phase = TIDE_FORWARD, .again = 1 + w->uses++};
    *out = TIDE_NONE;
    for (uint32_t i = 0; i < w->n_stakes; i++)
        TIDE_TRY(pass_stake(tape, w->first_stake + i, p, tape->stakes.data[w->first_stake + i].now, out));
    if (w->like == TIDE_NONE) w->like = *out;
    return TIDE_OK;
}

tide_status tide__tape_spread(tide__tape *tape, uint32_t stake, tide_id value) {
    const tide__stake *s = &tape->stakes.data[stake];
    tide__weight *w = &tape->weights[s->param];
    if (s->owner == TIDE_NONE || tide__tape_is_gathered(tape, s->param)) return TIDE_OK;
    tide__passing p = {.draft = {.phase = TIDE_UPDATE, .again = 1 + w->uses++}};
    return pass_stake(tape, stake, p, value, &w->now);
}
