/* What lies at one rank instead of at all: optimizer state, or weights as well.
 *
 *      rank            0          1          2          3       Every parameter has an owner. Sums of its gradient go to it by the tree
 *      weight 0     owner  ◀──  sum        sum        sum       of exchange.c, it alone has the optimizer state and updates, and
 *      weight 1      sum        sum   ──▶ owner       sum       the new value goes to all (TIDE_SHARD_OPTIMIZER), or stays there and
 *                                                               goes to all for each use (TIDE_SHARD_ALL).
 *
 * Invariant: all ranks choose the same owners and count the same messages. Values have the bits that every rank alone would make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/tape.h"

/* ---- owners ---- */

typedef struct share {
    uint64_t elements;
    uint32_t param;
} share;

static int larger_first(const void *a, const void *b) {
    const share *x = a, *y = b;
    if (x->elements != y->elements) return x->elements > y->elements ? -1 : 1;
    return x->param < y->param ? -1 : 1;
}

static uint32_t least_of(const uint64_t *loads, uint32_t n) {
    uint32_t least = 0;
    for (uint32_t r = 1; r < n; r++)
        if (loads[r] < loads[least]) least = r;
    return least;
}

/* The largest first, each to the rank that has least. */
tide_status tide__tape_choose_owners(tide__tape *tape) {
    size_t n_params = tape->graph->params.count, n = 0;
    if (tape->options->shard == TIDE_SHARD_NONE || tape->n_ranks == 1) return TIDE_OK;
    share *shares = malloc((n_params + 1) * sizeof *shares);
    uint64_t *loads = calloc(tape->n_ranks, sizeof *loads);
    for (uint32_t i = 0; shares && loads && i < n_params; i++) {
        const tide__param *p = &tape->graph->params.data[i];
        const uint64_t elements =
            (uint64_t)p->shape.n * (uint64_t)p->shape.c * (uint64_t)p->shape.h * (uint64_t)p->shape.w;
        if (p->trainable) shares[n++] = (share){elements, i};
    }
    if (shares && loads) qsort(shares, n, sizeof *shares, larger_first);
    for (size_t i = 0; shares && loads && i < n; i++) {
        uint32_t owner = least_of(loads, tape->n_ranks);
        tape->weights[shares[i].param].owner = owner;
        loads[owner] += shares[i].elements;
    }
    tide_status status = shares && loads ? TIDE_OK : tide__fail_memory();
    free(shares);
    free(loads);
    return status;
}

bool tide__tape_is_elsewhere(const tide__tape *tape, uint32_t param) {
    uint32_t owner = tape->weights[param].owner;
    return owner != TIDE_NONE && owner != tape->rank;
}

bool tide__tape_is_gathered(const tide__tape *tape, uint32_t param) {
    return tape->options->shard == TIDE_SHARD_ALL && tape->weights[param].owner != TIDE_NONE;
}

/* ---- states of others ---- */

tide_status tide__tape_miss_state(tide__tape *tape, const tide__param *param, const char *name, const char *role,
                                  tide_state state) {
    size_t size = strlen(name) + strlen(role) + 2;
    TIDE_TRY(tide__vec_reserve(&tape->names, 1));
    TIDE_TRY(tide__vec_reserve(&tape->states, 1));
    char *text = malloc(size);
    if (!text) return tide__fail_memory();
    snprintf(text, size, "%s.%s", name, role);
    tape->names.data[tape->names.count++] = text;
    state.name = text;
    state.at_start = state.at_end = state.op = TIDE_NONE;
    state.shape = param->shape;
    state.rank = param->rank;
    tape->states.data[tape->states.count++] = state;
    return TIDE_OK;
}

/* ---- messages ---- */

static tide_status pass_one(tide__tape *tape, const tide__passing *p, uint32_t from, uint32_t to, tide_id *value) {
    uint64_t number = tape->n_messages++;
    tide__draft draft = p->draft;
    draft.again = p->draft.again * tape->n_ranks + to;
    if (tape->rank == from) return tide__emit_send(&tape->emit, &draft, *value, to, number);
    if (tape->rank != to) return TIDE_OK;
    return p->like != TIDE_NONE ? tide__emit_receive(&tape->emit, &draft, p->like, from, number, value)
                                : tide__emit_receive_as(&tape->emit, &draft, p->operand, p->cls, from, number, value);
}

/* To all by a binary tree, in which who has the value hands it on: far ones first, so that hosts get it once and hand it on inside. */
tide_status tide__tape_pass(tide__tape *tape, const tide__passing *p, tide_id *value) {
    if (p->to != TIDE_NONE) return pass_one(tape, p, p->from, p->to, value);
    for (uint32_t far = tape->n_ranks / 2; far > 0; far /= 2)
        for (uint32_t r = 0; r < tape->n_ranks; r += 2 * far)
            TIDE_TRY(pass_one(tape, p, r ^ p->from, (r + far) ^ p->from, value));
    return TIDE_OK;
}

tide_status tide__tape_gather(tide__tape *tape, uint32_t param, const tide_op_desc *desc, uint32_t operand,
                              tide_id *out) {
    tide__weight *w = &tape->weights[param];
    char name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, &tape->graph->params.data[param], name);
    tide__passing p = {.operand = operand, .cls = TIDE_CLASS_WEIGHT, .like = w->like, .from = w->owner};
    p.draft = (tide__draft){.desc = desc, .phase = TIDE_FORWARD, .name = name, .again = 1 + w->uses++};
    p.to = TIDE_NONE;
    *out = w->now; /* TIDE_NONE: it comes */
    TIDE_TRY(tide__tape_pass(tape, &p, out));
    if (w->like == TIDE_NONE) w->like = *out;
    return TIDE_OK;
}

tide_status tide__tape_spread(tide__tape *tape, uint32_t param) {
    tide__weight *w = &tape->weights[param];
    if (w->owner == TIDE_NONE || tape->options->shard == TIDE_SHARD_ALL) return TIDE_OK;
    char name[TIDE__PARAM_NAME_BYTES];
    tide__param_name(tape->graph, &tape->graph->params.data[param], name);
    tide__passing p = {.like = w->like, .from = w->owner, .to = TIDE_NONE};
    p.draft = (tide__draft){.phase = TIDE_UPDATE, .name = name, .again = 1 + w->uses++};
    return tide__tape_pass(tape, &p, &w->now);
}
