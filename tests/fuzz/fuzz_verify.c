/* Fuzzes the verifier: the input edits a random valid plan, field by field. The verifier must give a verdict, and what
 * it accepts must be harmless to the reference interpreter.
 *
 *   byte 0: which plan      then edits of 6 bytes: table, entry (2), field, value (2)
 *   bit 7 of field: the value is added (signed) instead of set */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/plan_data.h"
#include "support/interpreter.h"
#include "support/random_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EDIT_BYTES = 6, MAX_OPS = 10, TIMINGS = 3 };

typedef struct edit {
    uint8_t table, field;
    uint16_t entry;
    int16_t value;
    bool add;
} edit;

static uint32_t edit_u32(uint32_t old, const edit *e) { return (e->add ? old : 0u) + (uint32_t)e->value; }
static uint64_t edit_u64(uint64_t old, const edit *e) { return (e->add ? old : 0u) + (uint64_t)e->value; }

static void edit_action(tide__action *a, const edit *e) {
    switch (e->field % 8) {
    case 0: a->kind = (tide_action_kind)((uint16_t)e->value % 5); break;
    case 1: a->queue = edit_u32(a->queue, e); break;
    case 2: a->op = edit_u32(a->op, e); break;
    case 3: a->variant = edit_u32(a->variant, e); break;
    case 4: a->copy = edit_u32(a->copy, e); break;
    case 5: a->n_uses = edit_u32(a->n_uses, e); break;
    case 6: a->n_waits = edit_u32(a->n_waits, e); break;
    default: a->waits = (size_t)edit_u64(a->waits, e); break;
    }
}

static void edit_residency(tide_residency *r, const edit *e) {
    switch (e->field % 7) {
    case 0: r->tensor = edit_u32(r->tensor, e); break;
    case 1: r->offset_bytes = edit_u64(r->offset_bytes, e); break;
    case 2: r->size_bytes = edit_u64(r->size_bytes, e); break;
    case 3: r->begin = edit_u32(r->begin, e); break;
    case 4: r->end = edit_u32(r->end, e); break;
    case 5: r->at_start = e->value & 1; break;
    default: r->at_end = e->value & 1; break;
    }
}

static void edit_copy(tide_copy *c, const edit *e) {
    switch (e->field % 8) {
    case 0: c->tensor = edit_u32(c->tensor, e); break;
    case 1: c->offset_bytes = edit_u64(c->offset_bytes, e); break;
    case 2: c->size_bytes = edit_u64(c->size_bytes, e); break;
    case 3: c->begin = edit_u32(c->begin, e); break;
    case 4: c->end = edit_u32(c->end, e); break;
    case 5: c->at_start = e->value & 1; break;
    case 6: c->at_end = e->value & 1; break;
    default: c->tier = edit_u32(c->tier, e); break;
    }
}

static void apply(tide_plan *p, const edit *e) {
    switch (e->table % 6) {
    case 0:
        if (p->actions.count) edit_action(&p->actions.data[e->entry % p->actions.count], e);
        break;
    case 1:
        if (p->residencies.count) edit_residency(&p->residencies.data[e->entry % p->residencies.count], e);
        break;
    case 2:
        if (p->copies.count) edit_copy(&p->copies.data[e->entry % p->copies.count], e);
        break;
    case 3:
        if (p->uses.count) {
            uint32_t *u = &p->uses.data[e->entry % p->uses.count];
            *u = edit_u32(*u, e);
        }
        break;
    case 4:
        if (p->waits.count) {
            uint32_t *w = &p->waits.data[e->entry % p->waits.count];
            *w = edit_u32(*w, e);
        }
        break;
    default: p->arena_bytes = edit_u64(p->arena_bytes, e); break;
    }
}

static void judge(const random_case *c) {
    tide_verdict verdict;
    tide_status status = tide_plan_verify(c->plan, c->program, &c->machine, &c->budgets, &verdict);
    if (status != TIDE_OK && status != TIDE_E_PLAN) abort();
    if ((status == TIDE_OK) != (verdict.rule[0] == '\0')) abort();
    if (status != TIDE_OK || c->plan->arena_bytes > INTERPRETER_MAX_BYTES) return;
    for (uint64_t timing = 0; timing < TIMINGS; timing++) {
        interpretation result = interpret(c->plan, c->program, &c->machine, &c->budgets, timing);
        if (result.ok) continue;
        fprintf(stderr, "accepted, but step %u action %u: %s\n", result.step, result.action, result.why);
        abort();
    }
}

/* Made once each; kept until the process ends. */
static random_case original(uint8_t which) {
    static random_case cases[256];
    if (!cases[which].plan) cases[which] = random_case_make(which, MAX_OPS);
    return cases[which];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    random_case c = original(data[0]);
    if (tide__plan_clone(c.plan, &c.plan) != TIDE_OK) abort();
    for (size_t at = 1; at + EDIT_BYTES <= size && at < 256; at += EDIT_BYTES) {
        const uint8_t *d = data + at;
        edit e = {.table = d[0], .field = d[3] & 0x7f, .add = d[3] >> 7};
        e.entry = (uint16_t)(d[1] | d[2] << 8);
        e.value = (int16_t)(uint16_t)(d[4] | d[5] << 8);
        apply(c.plan, &e);
    }
    judge(&c);
    tide_plan_destroy(c.plan);
    return 0;
}
