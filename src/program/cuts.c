/* See split.h. Everything is cut at first; what breaks a rule is taken out, and with it what then breaks one, until nothing does. */
#include <stdlib.h>

#include "base/error.h"
#include "program/split.h"

typedef struct finding {
    const tide_program *p;
    tide__cuts *cuts;
    bool changed;
} finding;

static void keep_whole(finding *f, bool *cut) {
    f->changed |= *cut;
    *cut = false;
}

static tide_id operand_of(const tide_op *op, uint32_t operand) {
    return operand < op->n_reads ? op->reads[operand] : op->writes[operand - op->n_reads];
}

static bool may_be_cut(const tide_op *op, uint32_t parts, bool bits_any) {
    const tide_split *s = op->split;
    if (!s || s->units % parts != 0) return false;
    return bits_any || s->bits_class == op->variants[0].bits_class;
}

/* One value, in the end: both are cut or none. */
static void pair_operands(finding *f, tide_id id) {
    const tide_op *op = tide_program_op(f->p, id);
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        bool *read = &f->cuts->tensors[op->reads[op->inplace[i].read]];
        bool *write = &f->cuts->tensors[op->writes[op->inplace[i].write]];
        if (!op->inplace[i].must || *read == *write) continue;
        keep_whole(f, read);
        keep_whole(f, write);
    }
}

/* An op that is not cut takes whole what it would take cut. */
static void hold_operands(finding *f, tide_id id) {
    const tide_op *op = tide_program_op(f->p, id);
    for (uint32_t i = 0; i < op->n_reads + op->n_writes; i++) {
        const tide_along along = tide__along(op, i);
        const bool fine = along == TIDE_ALONG_PARTS || (along == TIDE_ALONG_CUT && f->cuts->ops[id]);
        if (!fine) keep_whole(f, &f->cuts->tensors[operand_of(op, i)]);
    }
}

static void check_op(finding *f, tide_id id) {
    const tide_op *op = tide_program_op(f->p, id);
    bool any = false;
    if (!f->cuts->ops[id]) return;
    for (uint32_t i = 0; i < op->n_reads + op->n_writes; i++) {
        const bool cut = tide__along(op, i) == TIDE_ALONG_CUT, is_cut = f->cuts->tensors[operand_of(op, i)];
        if (cut && !is_cut && i >= op->n_reads) keep_whole(f, &f->cuts->ops[id]);
        any |= cut && is_cut;
    }
    if (!any) keep_whole(f, &f->cuts->ops[id]);
}

/* Forwards and backwards in turn: what spreads along a chain of ops takes one pass, whichever way. */
static void settle(finding *f) {
    const tide_id n = tide_program_op_count(f->p);
    bool backwards = true;
    do {
        backwards = !backwards;
        f->changed = false;
        for (tide_id i = 0; i < n; i++) {
            const tide_id id = backwards ? n - 1 - i : i;
            pair_operands(f, id);
            check_op(f, id);
            hold_operands(f, id);
        }
        for (uint32_t i = 0; i < tide_program_carry_count(f->p); i++) {
            const tide_carry *c = tide_program_carry(f->p, i);
            if (f->cuts->tensors[c->from] == f->cuts->tensors[c->to]) continue;
            keep_whole(f, &f->cuts->tensors[c->from]);
            keep_whole(f, &f->cuts->tensors[c->to]);
        }
    } while (f->changed);
}

/* Values that no op uses are in nobody's way, and stay whole. */
static void cut_all(const tide_program *p, bool bits_any, tide__cuts *cuts) {
    for (tide_id i = 0; i < tide_program_op_count(p) && cuts->parts > 1; i++) {
        const tide_op *op = tide_program_op(p, i);
        cuts->ops[i] = may_be_cut(op, cuts->parts, bits_any);
        for (uint32_t k = 0; k < op->n_reads + op->n_writes; k++) {
            const tide_id t = operand_of(op, k);
            cuts->tensors[t] = tide_program_tensor(p, t)->size_bytes % cuts->parts == 0;
        }
    }
}

tide_status tide__cuts_find(const tide_program *p, uint32_t parts, bool bits_any, tide__cuts *out) {
    tide__cuts cuts = {.parts = parts};
    cuts.ops = calloc(tide_program_op_count(p) + (size_t)1, sizeof *cuts.ops);
    cuts.tensors = calloc(tide_program_tensor_count(p) + (size_t)1, sizeof *cuts.tensors);
    if (!cuts.ops || !cuts.tensors) {
        free(cuts.ops);
        free(cuts.tensors);
        return tide__fail_memory();
    }
    cut_all(p, bits_any, &cuts);
    settle(&(finding){.p = p, .cuts = &cuts});
    *out = cuts;
    return TIDE_OK;
}

void tide__cuts_deinit(tide__cuts *cuts) {
    free(cuts->ops);
    free(cuts->tensors);
}

uint32_t tide_program_units(const tide_program *p) {
    uint32_t most = 1;
    for (tide_id i = 0; p && i < tide_program_op_count(p); i++) {
        const tide_split *s = tide_program_op(p, i)->split;
        if (s && s->units > most) most = s->units;
    }
    return most;
}
