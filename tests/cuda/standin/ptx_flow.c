/* Which registers live across which barriers: the usual backward analysis over instructions, with bit sets. A register is
 * live where some path leads to a use without a definition before it. A guarded instruction defines nothing for sure. */
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

typedef struct flow {
    const ptx_kernel *kernel;
    uint32_t words;
    uint64_t *live; /* before each instruction; one more set behind the last, empty */
    uint64_t *now;
} flow;

uint32_t ptx_destinations(const ptx_instruction *i) {
    static const char *const none[] = {"st",      "red",    "bra",   "ret", "exit", "bar",
                                       "barrier", "membar", "fence", "nop", "trap"};
    for (size_t n = 0; n < sizeof none / sizeof none[0]; n++)
        if (ptx_is(i->word[0], none[n])) return 0;
    uint32_t n = i->n_operands > 0;
    while (n && n < i->n_operands && i->operand[0].group && i->operand[n].group == i->operand[0].group) n++;
    return n;
}

static uint64_t *set_before(const flow *f, uint32_t i) { return f->live + (size_t)i * f->words; }

static void join(const flow *f, uint32_t i) {
    const uint64_t *from = set_before(f, i);
    for (uint32_t w = 0; w < f->words; w++) f->now[w] |= from[w];
}

uint32_t ptx_find_label(const ptx_kernel *k, ptx_text label) {
    for (uint32_t i = 0; i < k->n_instructions; i++) {
        ptx_text l = k->instructions[i].label;
        if (l.length == label.length && memcmp(l.at, label.at, l.length) == 0) return i;
    }
    return k->n_instructions;
}

/* What is live behind instruction i, in f->now. */
static void live_behind(const flow *f, uint32_t i, const uint32_t *target) {
    const ptx_instruction *at = &f->kernel->instructions[i];
    const bool leaves = ptx_is(at->word[0], "bra") || ptx_is(at->word[0], "ret") || ptx_is(at->word[0], "exit");
    memset(f->now, 0, f->words * sizeof *f->now);
    if (!leaves || at->guarded) join(f, i + 1);
    if (ptx_is(at->word[0], "bra")) join(f, target[i]);
}

static void set_bit(uint64_t *set, uint32_t reg, bool value) {
    if (value)
        set[reg / 64] |= UINT64_C(1) << reg % 64;
    else
        set[reg / 64] &= ~(UINT64_C(1) << reg % 64);
}

/* From what is live behind an instruction to what is live before it. */
static void step_back(const flow *f, const ptx_instruction *i) {
    const uint32_t n = ptx_destinations(i);
    for (uint32_t o = 0; o < n && !i->guarded; o++)
        if (i->operand[o].form == PTX_REGISTER) set_bit(f->now, i->operand[o].reg, false);
    for (uint32_t o = 0; o < i->n_operands; o++)
        if (i->operand[o].has_reg && (o >= n || i->operand[o].form == PTX_ADDRESS))
            set_bit(f->now, i->operand[o].reg, true);
    if (i->guarded) set_bit(f->now, i->guard, true);
}

static bool pass(const flow *f, const uint32_t *target) {
    bool changed = false;
    for (uint32_t i = f->kernel->n_instructions; i-- > 0;) {
        live_behind(f, i, target);
        step_back(f, &f->kernel->instructions[i]);
        if (memcmp(set_before(f, i), f->now, f->words * sizeof *f->now) == 0) continue;
        memcpy(set_before(f, i), f->now, f->words * sizeof *f->now);
        changed = true;
    }
    return changed;
}

static uint64_t *at_barriers(const flow *f, const uint32_t *target) {
    uint64_t *out = calloc((size_t)f->kernel->n_barriers * f->words, sizeof *out);
    for (uint32_t i = 0; out && i < f->kernel->n_instructions; i++) {
        const uint32_t barrier = f->kernel->instructions[i].barrier;
        if (barrier == 0) continue;
        live_behind(f, i, target);
        memcpy(out + (size_t)(barrier - 1) * f->words, f->now, f->words * sizeof *f->now);
    }
    return out;
}

uint64_t *ptx_live_at_barriers(const ptx_kernel *k, uint32_t *words_out) {
    flow f = {.kernel = k, .words = (k->register_count + 63) / 64 + 1};
    uint64_t *out = NULL;
    uint32_t *target = calloc(k->n_instructions, sizeof *target);
    f.live = calloc((size_t)(k->n_instructions + 1) * f.words, sizeof *f.live);
    f.now = calloc(f.words, sizeof *f.now);
    if (target && f.live && f.now) {
        for (uint32_t i = 0; i < k->n_instructions; i++)
            if (ptx_is(k->instructions[i].word[0], "bra"))
                target[i] = ptx_find_label(k, k->instructions[i].operand[0].name);
        while (pass(&f, target)) {
        }
        out = at_barriers(&f, target);
    }
    free(target);
    free(f.live);
    free(f.now);
    *words_out = f.words;
    return out;
}
