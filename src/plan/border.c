/* See border.h. The step is unrolled into two, program and plan; sync finds the waits between them as it finds all others, and
 * the verifier, which shares nothing with it, judges the result.
 *
 * A carried value is one value in the program of two steps. So a place at the end of the first and the place that it is at
 * the start of the second become one that spans both. */
#include "plan/border.h"

#include <stdlib.h>

#include "base/error.h"
#include "plan/schedule/schedule.h"
#include "program/program_data.h"

typedef struct border {
    const tide_plan *plan;
    const tide_program *program;
    const tide_machine *machine;
    tide_program *twice; /* the program of both steps, and the plan */
    tide_plan *both;
    tide_id *carried;            /* per tensor: what it was in the step before; TIDE_NONE: nothing */
    tide_id *tensor;             /* per tensor: its id in the second step */
    tide_id *residency, *copies; /* per residency and copy: its id in the second step */
    uint32_t n;                  /* actions of one step */
} border;

/* ---- ids of the second step ---- */

static tide_id *ids(size_t n) { return malloc((n + 1) * sizeof(tide_id)); }

/* As tide_program_unroll numbers them: the first step's, then what the second has of its own. */
static void number_tensors(border *b) {
    uint32_t n = tide_program_tensor_count(b->program), next = n;
    for (tide_id t = 0; t < n; t++) b->carried[t] = TIDE_NONE;
    for (uint32_t i = 0; i < tide_program_carry_count(b->program); i++) {
        const tide_carry *c = tide_program_carry(b->program, i);
        b->carried[c->to] = c->from;
    }
    for (tide_id t = 0; t < n; t++) {
        bool carried = tide_program_tensor(b->program, t)->start == TIDE_START_PRESENT;
        b->tensor[t] = carried ? b->carried[t] : next++;
    }
}

static tide_id second_tensor(const border *b, tide_id tensor) {
    return tensor == TIDE_NONE ? TIDE_NONE : b->tensor[tensor];
}

/* ---- places ---- */

/* The place of the first step's end that this one of the start goes on from. */
static tide_id find_residency(const border *b, const tide_residency *start) {
    for (tide_id i = 0; i < b->plan->residencies.count; i++) {
        const tide_residency *r = &b->plan->residencies.data[i];
        if (r->at_end && r->tensor == b->carried[start->tensor] && r->offset_bytes == start->offset_bytes &&
            r->size_bytes == start->size_bytes)
            return i;
    }
    return TIDE_NONE;
}

static tide_id find_copy(const border *b, const tide_copy *start) {
    for (tide_id i = 0; i < b->plan->copies.count; i++) {
        const tide_copy *c = &b->plan->copies.data[i];
        if (c->at_end && c->tier == start->tier && c->tensor == b->carried[start->tensor] &&
            c->offset_bytes == start->offset_bytes && c->size_bytes == start->size_bytes)
            return i;
    }
    return TIDE_NONE;
}

static tide_status fail_border(const char *why) { return tide__fail(TIDE_E_UNSUPPORTED, "no border: %s", why); }

static tide_status place_residencies(border *b) {
    tide_plan *both = b->both;
    const size_t n = b->plan->residencies.count;
    for (tide_id i = 0; i < n; i++) both->residencies.data[i].at_end = false;
    for (tide_id i = 0; i < n; i++) {
        tide_residency r = b->plan->residencies.data[i];
        b->residency[i] = r.at_start ? find_residency(b, &r) : (tide_id)both->residencies.count;
        if (b->residency[i] == TIDE_NONE) return fail_border("a value starts where none ended");
        r.begin += b->n;
        r.end += b->n;
        r.tensor = second_tensor(b, r.tensor);
        if (!r.at_start) {
            TIDE_TRY(tide__vec_push(&both->residencies, r));
            continue;
        }
        both->residencies.data[b->residency[i]].end = r.end;
        both->residencies.data[b->residency[i]].at_end = r.at_end;
    }
    return TIDE_OK;
}

/* What a client offers is there from the beginning. */
static tide_status place_copies(border *b) {
    tide_plan *both = b->both;
    const size_t n = b->plan->copies.count;
    for (tide_id i = 0; i < n; i++) both->copies.data[i].at_end = false;
    for (tide_id i = 0; i < n; i++) {
        tide_copy c = b->plan->copies.data[i];
        bool client = b->machine->tier[c.tier].kind == TIDE_TIER_CLIENT, goes_on = c.at_start && !client;
        b->copies[i] = goes_on ? find_copy(b, &c) : (tide_id)both->copies.count;
        if (b->copies[i] == TIDE_NONE) return fail_border("a copy starts where none ended");
        c.begin += client ? 0 : b->n;
        c.end += b->n;
        c.tensor = second_tensor(b, c.tensor);
        if (!goes_on) {
            TIDE_TRY(tide__vec_push(&both->copies, c));
            continue;
        }
        both->copies.data[b->copies[i]].end = c.end;
        both->copies.data[b->copies[i]].at_end = c.at_end;
    }
    return TIDE_OK;
}

/* ---- actions ---- */

static tide_status repeat_actions(border *b) {
    for (uint32_t i = 0; i < b->n; i++) {
        tide__action a = b->plan->actions.data[i];
        const size_t first = a.uses;
        a.uses = b->both->uses.count;
        if (a.op != TIDE_NONE) a.op += tide_program_op_count(b->program);
        if (a.copy != TIDE_NONE) a.copy = b->copies[a.copy];
        for (uint32_t k = 0; k < a.n_uses; k++)
            TIDE_TRY(tide__vec_push(&b->both->uses, b->residency[b->plan->uses.data[first + k]]));
        TIDE_TRY(tide__vec_push(&b->both->actions, a));
    }
    return TIDE_OK;
}

/* Of all waits that sync finds, those of the second step for the first. */
static tide_status list_crossings(border *b, tide__crossings *out) {
    TIDE_TRY(tide__sync(b->both));
    for (uint32_t i = 0; i < b->n; i++) {
        const tide__action *a = &b->both->actions.data[b->n + i];
        for (uint32_t k = 0; k < a->n_waits; k++) {
            uint32_t from = b->both->waits.data[a->waits + k];
            if (from < b->n) TIDE_TRY(tide__vec_push(out, ((tide__crossing){from, i})));
        }
    }
    return TIDE_OK;
}

/* What a run will do: in each step the plan's own waits, and the crossings. */
static tide_status set_waits(border *b, const tide__crossings *crossings) {
    tide_plan *both = b->both;
    size_t next = 0;
    both->waits.count = 0;
    for (uint32_t i = 0; i < 2 * b->n; i++) {
        const tide__action *own = &b->plan->actions.data[i % b->n];
        const uint32_t shift = i < b->n ? 0 : b->n;
        tide__action *a = &both->actions.data[i];
        a->waits = both->waits.count;
        for (; shift && next < crossings->count && crossings->data[next].to == i - shift; next++)
            TIDE_TRY(tide__vec_push(&both->waits, crossings->data[next].from));
        for (uint32_t k = 0; k < own->n_waits; k++)
            TIDE_TRY(tide__vec_push(&both->waits, b->plan->waits.data[own->waits + k] + shift));
        a->n_waits = (uint32_t)(both->waits.count - a->waits);
    }
    return TIDE_OK;
}

/* ---- all of it ---- */

static void close_border(border *b) {
    free(b->carried);
    free(b->tensor);
    free(b->residency);
    free(b->copies);
    tide_plan_destroy(b->both);
    tide_program_destroy(b->twice);
}

/* The border is to be closed, whatever comes of this. */
static tide_status build(border *b, const tide_plan *plan, const tide_program *program, const tide_machine *machine) {
    *b = (border){.plan = plan, .program = program, .machine = machine, .n = tide_plan_action_count(plan)};
    TIDE_TRY(tide__program_unroll(b->program, 2, true, &b->twice));
    TIDE_TRY(tide__plan_clone(b->plan, &b->both));
    b->carried = ids(tide_program_tensor_count(b->program));
    b->tensor = ids(tide_program_tensor_count(b->program));
    b->residency = ids(b->plan->residencies.count);
    b->copies = ids(b->plan->copies.count);
    if (!b->carried || !b->tensor || !b->residency || !b->copies) return tide__fail_memory();
    number_tensors(b);
    TIDE_TRY(place_residencies(b));
    TIDE_TRY(place_copies(b));
    TIDE_TRY(repeat_actions(b));
    b->both->signature = tide_program_signature(b->twice);
    return TIDE_OK;
}

static tide_status find(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                        tide__crossings *out) {
    if (!tide_program_is_repeating(program)) return fail_border("a one-shot program");
    if (tide_program_message_count(program) > 0) return fail_border("a program with messages");
    border b;
    tide_status status = build(&b, plan, program, machine);
    if (status == TIDE_OK) status = list_crossings(&b, out);
    close_border(&b);
    return status;
}

tide_status tide__plan_check_crossings(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                       const tide_budgets *budgets, const tide__crossings *crossings) {
    border b;
    tide_status status = build(&b, plan, program, machine);
    if (status == TIDE_OK) status = set_waits(&b, crossings);
    if (status == TIDE_OK) status = tide_plan_verify(b.both, b.twice, machine, budgets, NULL);
    close_border(&b);
    return status;
}

tide_status tide__plan_cross(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                             const tide_budgets *budgets, tide__crossings *out) {
    out->count = 0;
    tide_status status = find(plan, program, machine, out);
    if (status == TIDE_OK) status = tide__plan_check_crossings(plan, program, machine, budgets, out);
    if (status != TIDE_OK) out->count = 0;
    return status;
}
