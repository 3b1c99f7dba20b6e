/* Unrolling: k steps of a repeating program as one program.
 *
 * Why: a carried value and its successor have one place (the end of a step is the start of the next). If the value is
 * still in use when the successor is born, one place is not enough, as with the blocks of SmartPool that live longer
 * than an iteration. Over k steps they alternate between k places.
 *
 *     one step     │████ x     ┌── x' ──│████ x      x' is born before x dies: x and x' cannot share
 *     two steps    │████ x     ┌── x'───│─────┘  ┌── x''──│      x'' starts where x was, long after x died */
#include <tidemark/program.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "program/program_data.h"

enum { MAX_UNROLL = 16 };

typedef struct unroller {
    const tide_program *program;
    tide_program_builder *builder;
    uint32_t steps, n_tensors;
    bool last_only;      /* what is kept but not carried is so in the last step alone */
    uint64_t n_messages; /* numbers of messages are below */
    tide_id *ids;        /* [step][tensor] in the new program */
    tide_id *carried;    /* per tensor: what it is carried from; TIDE_NONE: nothing */
    TIDE_VEC(tide_id) operands;
} unroller;

static tide_id *id_of(unroller *u, uint32_t step, tide_id tensor) {
    return &u->ids[(size_t)step * u->n_tensors + tensor];
}

/* A PRESENT tensor of a later step is the value it was carried from; everything else is new. */
static tide_status add_tensor(unroller *u, uint32_t step, tide_id t) {
    const tide_tensor *original = tide_program_tensor(u->program, t);
    char name[256];
    tide_tensor copy = *original;
    if (original->start == TIDE_START_PRESENT && step > 0) return TIDE_OK;
    snprintf(name, sizeof name, "%s#%u", original->name, step);
    copy.name = name;
    copy.keep = false; /* decided once everything exists */
    return tide_program_builder_tensor(u->builder, &copy, id_of(u, step, t));
}

/* The carried values' ids in `step`; a value that is itself carried was resolved in the step before. */
static void resolve_carried(unroller *u, uint32_t step) {
    for (tide_id t = 0; t < u->n_tensors; t++)
        if (tide_program_tensor(u->program, t)->start == TIDE_START_PRESENT)
            *id_of(u, step, t) = *id_of(u, step - 1, u->carried[t]);
}

static tide_status add_op(unroller *u, uint32_t step, tide_id o) {
    const tide_op *original = tide_program_op(u->program, o);
    char name[256];
    tide_op copy = *original;
    u->operands.count = 0;
    TIDE_TRY(tide__vec_reserve(&u->operands, original->n_reads + original->n_writes));
    for (uint32_t i = 0; i < original->n_reads; i++) u->operands.data[i] = *id_of(u, step, original->reads[i]);
    tide_id *writes = u->operands.data + original->n_reads;
    for (uint32_t i = 0; i < original->n_writes; i++) writes[i] = *id_of(u, step, original->writes[i]);
    snprintf(name, sizeof name, "%s#%u", original->name, step);
    tide_message message;
    if (original->message) {
        message = *original->message;
        message.number += step * u->n_messages;
        copy.message = &message;
    }
    copy.name = name;
    copy.reads = u->operands.data;
    copy.writes = writes;
    return tide_program_builder_op(u->builder, &copy, &(tide_id){0});
}

static tide_status add_step(unroller *u, uint32_t step) {
    if (step > 0) resolve_carried(u, step);
    for (tide_id t = 0; t < u->n_tensors; t++) TIDE_TRY(add_tensor(u, step, t));
    for (tide_id o = 0; o < tide_program_op_count(u->program); o++) TIDE_TRY(add_op(u, step, o));
    return TIDE_OK;
}

/* What is kept in every step but not carried (a loss, say) stays needed; of the carried only the last. */
static tide_status keep_and_carry(unroller *u) {
    bool *moves_on = calloc(u->n_tensors + 1, sizeof *moves_on);
    if (!moves_on) return tide__fail_memory();
    tide_status status = TIDE_OK;
    for (tide_id t = 0; t < u->n_tensors; t++)
        if (u->carried[t] != TIDE_NONE) moves_on[u->carried[t]] = true;
    for (uint32_t step = 0; step < u->steps; step++)
        for (tide_id t = 0; t < u->n_tensors && status == TIDE_OK; t++)
            if (tide_program_tensor(u->program, t)->keep && (step + 1 == u->steps || (!moves_on[t] && !u->last_only)))
                status = tide_program_builder_keep(u->builder, *id_of(u, step, t));
    for (tide_id t = 0; t < u->n_tensors && status == TIDE_OK; t++)
        if (u->carried[t] != TIDE_NONE)
            status = tide_program_builder_carry(
                u->builder, (tide_carry){.from = *id_of(u, u->steps - 1, u->carried[t]), .to = *id_of(u, 0, t)});
    free(moves_on);
    return status;
}

static tide_status unroll(unroller *u) {
    for (uint32_t i = 0; i < tide_program_carry_count(u->program); i++) {
        const tide_carry *c = tide_program_carry(u->program, i);
        u->carried[c->to] = c->from;
    }
    for (tide_id o = 0; o < tide_program_op_count(u->program); o++) {
        const tide_message *m = tide_program_op(u->program, o)->message;
        if (m) u->n_messages = m->number + 1; /* they ascend */
    }
    for (uint32_t step = 0; step < u->steps; step++) TIDE_TRY(add_step(u, step));
    return keep_and_carry(u);
}

tide_status tide_program_unroll(const tide_program *program, uint32_t steps, tide_program **out) {
    TIDE_NEED(program, out);
    return tide__program_unroll(program, steps, false, out);
}

tide_status tide__program_unroll(const tide_program *program, uint32_t steps, bool last_only, tide_program **out) {
    if (!tide_program_is_repeating(program) || steps == 0 || steps > MAX_UNROLL)
        return tide__fail(TIDE_E_ARGUMENT, "only repeating programs are unrolled, into 1 to %d steps", MAX_UNROLL);
    unroller u = {
        .program = program, .steps = steps, .last_only = last_only, .n_tensors = tide_program_tensor_count(program)};
    u.ids = malloc(((size_t)steps * u.n_tensors + 1) * sizeof *u.ids);
    u.carried = malloc((u.n_tensors + (size_t)1) * sizeof *u.carried);
    tide_status status = u.ids && u.carried ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        memset(u.carried, 0xff, u.n_tensors * sizeof *u.carried);
        status = tide_program_builder_create(tide_program_name(program), true, &u.builder);
    }
    if (status == TIDE_OK) status = unroll(&u);
    if (status == TIDE_OK) status = tide_program_builder_finish(u.builder, out);
    if (status != TIDE_OK) tide_program_builder_destroy(u.builder);
    free(u.ids);
    free(u.carried);
    tide__vec_free(&u.operands);
    return status;
}

/* ---- how many steps are needed ---- */

/* Values tied to one place by `must` pairs: per tensor the first of them, and per first their birth and death. */
typedef struct places {
    tide_id *first;
    uint32_t *birth, *death; /* instants; birth 0 for what is there at the start */
} places;

static void find_places(const tide_program *p, const tide_liveness *l, places *x) {
    for (tide_id t = 0; t < l->n_tensors; t++) {
        x->first[t] = t;
        x->birth[t] = l->first[t];
        x->death[t] = l->last[t];
    }
    for (tide_id o = 0; o < l->n_ops; o++) {
        const tide_op *op = tide_program_op(p, o);
        for (uint32_t i = 0; i < op->n_inplace; i++) {
            if (!op->inplace[i].must) continue;
            tide_id first = x->first[op->reads[op->inplace[i].read]], write = op->writes[op->inplace[i].write];
            x->first[write] = first;
            if (l->last[write] > x->death[first]) x->death[first] = l->last[write];
        }
    }
}

/* A value that crosses `length` borders and is in use at instant `death` of its last step, born at `birth` of its
 * first, needs a place of its own in each of so many steps. */
static uint32_t steps_for(uint32_t length, uint32_t birth, uint32_t death) {
    return death < birth ? length : length + 1;
}

static uint32_t chain_steps(const places *x, const tide_id *carried_to, tide_id from) {
    uint32_t length = 0;
    tide_id place = x->first[from], at = from;
    while (carried_to[at] != TIDE_NONE && length < MAX_UNROLL) { /* follow the value over the borders */
        tide_id next = carried_to[at];
        length++;
        if (x->first[next] == place) return length; /* it comes back to itself: so many places take turns */
        if (carried_to[next] == TIDE_NONE) return steps_for(length, x->birth[place], x->death[x->first[next]]);
        at = next;
    }
    return length;
}

/* Where a value lives on through a chain of in-place updates, its last form is what is carried on. */
static void follow_updates(const tide_program *p, const places *x, tide_id *carried_to) {
    for (uint32_t i = 0; i < tide_program_carry_count(p); i++) {
        const tide_carry *c = tide_program_carry(p, i);
        tide_id first = x->first[c->from];
        if (tide_program_tensor(p, first)->start == TIDE_START_PRESENT) carried_to[first] = c->to;
    }
}

tide_status tide_program_unroll_needed(const tide_program *p, uint32_t *steps) {
    TIDE_NEED(p, steps);
    tide_liveness *l;
    TIDE_TRY(tide_liveness_create(p, &l));
    size_t n = l->n_tensors + (size_t)1;
    places x = {malloc(n * sizeof *x.first), malloc(n * sizeof *x.birth), malloc(n * sizeof *x.death)};
    tide_id *carried_to = malloc(n * sizeof *carried_to);
    tide_status status = x.first && x.birth && x.death && carried_to ? TIDE_OK : tide__fail_memory();
    uint32_t needed = 1;
    if (status == TIDE_OK) {
        memset(carried_to, 0xff, n * sizeof *carried_to);
        find_places(p, l, &x);
        for (uint32_t i = 0; i < tide_program_carry_count(p); i++)
            carried_to[tide_program_carry(p, i)->from] = tide_program_carry(p, i)->to;
        follow_updates(p, &x, carried_to);
        for (uint32_t i = 0; i < tide_program_carry_count(p); i++) {
            uint32_t one = chain_steps(&x, carried_to, tide_program_carry(p, i)->from);
            if (one > needed) needed = one;
        }
        *steps = needed;
    }
    free(x.first);
    free(x.birth);
    free(x.death);
    free(carried_to);
    tide_liveness_destroy(l);
    return status;
}
