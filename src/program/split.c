/* A program in parts: what cuts.c found is carried out, op by op.
 *
 *     program      a   b   c   L   d                a, b, c, d are cut, L is not
 *     in 2 parts   a@0 b@0 c@0 a@1 b@1 c@1 L d@0 d@1
 *
 * Ops that follow one another are a *stretch*; it goes through part by part. An op that needs of the stretch more than its own part
 * (a sum, a value in parts, what a `must` pair leaves) begins the next one, and so does one that overwrites what the stretch reads. */
#include "program/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { MAX_PARTS = 4096, MAX_LEVELS = 13, NAME_BYTES = 256 };

typedef struct splitter {
    const tide_program *p;
    tide_program_builder *b;
    tide__cuts cuts;
    tide_id *first;    /* per tensor: the id of its first part, or its own; parts follow one another */
    tide_id *now;      /* per tensor that is whole: the value at hand, on its way through a `must` pair in turn */
    uint32_t *written; /* per tensor: the stretch that writes it last, counted from 1 */
    uint32_t *seen;    /* per tensor: the stretch that reads it last, other than each part its own */
    uint32_t stretch;
    tide_id *sums; /* per tensor: MAX_LEVELS sums over 2^level parts, where it is a sum */
    TIDE_VEC(tide_id) operands;
    TIDE_VEC(tide_inplace) pairs;
    TIDE_VEC(tide_variant) variants;
    TIDE_VEC(uint32_t) places; /* per operand of the op at hand: its place among the new ones; then their number */
} splitter;

/* A long name is cut, its end is not: nor is a character of several bytes. */
static const char *name_part(const char *base, const char *end, char name[NAME_BYTES]) {
    size_t n = strlen(base);
    const size_t room = NAME_BYTES - 1 - strlen(end);
    if (n > room)
        for (n = room; n > 0 && ((unsigned char)base[n] & 0xC0) == 0x80;) n--;
    snprintf(name, NAME_BYTES, "%.*s%s", (int)n, base, end);
    return name;
}

/* ---- values ---- */

static tide_status add_value(splitter *s, tide_id original, const char *end, uint64_t size_bytes, bool keep,
                             tide_id *out) {
    tide_tensor t = *tide_program_tensor(s->p, original);
    char name[NAME_BYTES];
    if (*end) t.name = name_part(t.name, end, name);
    t.size_bytes = size_bytes;
    t.keep = keep;
    return tide_program_builder_tensor(s->b, &t, out);
}

static tide_status add_values(splitter *s) {
    for (tide_id t = 0; t < tide_program_tensor_count(s->p); t++) {
        const tide_tensor *original = tide_program_tensor(s->p, t);
        const uint32_t parts = s->cuts.tensors[t] ? s->cuts.parts : 1;
        for (uint32_t k = 0; k < parts; k++) {
            char end[16] = "";
            tide_id id;
            if (s->cuts.tensors[t]) snprintf(end, sizeof end, "@%u", k);
            TIDE_TRY(add_value(s, t, end, original->size_bytes / parts, original->keep, &id));
            if (k == 0) s->first[t] = s->now[t] = id;
        }
    }
    return TIDE_OK;
}

/* ---- operands ---- */

/* What part `k` of a cut op writes where the whole is neither cut nor in parts: a sum of its own, or the value in turn. */
static tide_status add_partial(splitter *s, tide_id t, uint32_t k, bool sum, tide_id *out) {
    char end[24];
    if (!sum && k + 1 == s->cuts.parts) return *out = s->first[t], TIDE_OK;
    snprintf(end, sizeof end, sum ? "@%u" : "'@%u", k);
    return add_value(s, t, end, tide_program_tensor(s->p, t)->size_bytes, false, out);
}

static tide_status list_operand(splitter *s, const tide_op *op, uint32_t i, bool cut, uint32_t k) {
    const bool write = i >= op->n_reads;
    const tide_id t = write ? op->writes[i - op->n_reads] : op->reads[i];
    tide_id id = write ? s->first[t] : s->now[t];
    uint32_t n = 1;
    if (s->cuts.tensors[t] && tide__along(op, i) == TIDE_ALONG_CUT)
        id = s->first[t] + k;
    else if (s->cuts.tensors[t])
        n = s->cuts.parts;
    else if (write && cut)
        TIDE_TRY(add_partial(s, t, k, tide__along(op, i) == TIDE_ALONG_SUM, &id));
    TIDE_TRY(tide__vec_push(&s->places, (uint32_t)s->operands.count));
    for (uint32_t j = 0; j < n; j++) TIDE_TRY(tide__vec_push(&s->operands, id + j));
    return TIDE_OK;
}

/* Into operands and places; *n_reads of them are reads. */
static tide_status list_operands(splitter *s, const tide_op *op, bool cut, uint32_t k, uint32_t *n_reads) {
    s->operands.count = s->places.count = 0;
    for (uint32_t i = 0; i < op->n_reads; i++) TIDE_TRY(list_operand(s, op, i, cut, k));
    *n_reads = (uint32_t)s->operands.count;
    for (uint32_t i = 0; i < op->n_writes; i++) TIDE_TRY(list_operand(s, op, op->n_reads + i, cut, k));
    return tide__vec_push(&s->places, (uint32_t)s->operands.count);
}

/* A read that later parts need as well cannot be taken over before the last. */
static bool is_needed_again(const splitter *s, const tide_op *op, uint32_t read, bool cut, uint32_t k) {
    return cut && k + 1 < s->cuts.parts &&
           !(s->cuts.tensors[op->reads[read]] && tide__along(op, read) == TIDE_ALONG_CUT);
}

static tide_status list_pairs(splitter *s, const tide_op *op, uint32_t n_reads, bool cut, uint32_t k) {
    s->pairs.count = 0;
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        const tide_inplace *pair = &op->inplace[i];
        const uint32_t read = s->places.data[pair->read], write = s->places.data[op->n_reads + pair->write];
        const uint32_t n = s->places.data[pair->read + 1] - read;
        const uint32_t n_written = s->places.data[op->n_reads + pair->write + 1] - write;
        const bool alike = s->cuts.tensors[op->reads[pair->read]] == s->cuts.tensors[op->writes[pair->write]];
        if (n != n_written || !alike || (!pair->must && is_needed_again(s, op, pair->read, cut, k))) continue;
        for (uint32_t j = 0; j < n; j++)
            TIDE_TRY(tide__vec_push(&s->pairs, ((tide_inplace){read + j, write + j - n_reads, pair->must})));
    }
    return TIDE_OK;
}

/* A part of the time, such that the parts take what the whole does. */
static tide_status list_variants(splitter *s, const tide_op *op, bool cut, uint32_t k) {
    const uint64_t n = cut ? s->cuts.parts : 1;
    s->variants.count = 0;
    for (uint32_t i = 0; i < op->n_variants; i++) {
        tide_variant v = op->variants[i];
        v.cost_ns = v.cost_ns / n + (k < v.cost_ns % n);
        if (cut && op->split->cut_workspace) v.workspace_bytes = (v.workspace_bytes + n - 1) / n;
        TIDE_TRY(tide__vec_push(&s->variants, v));
    }
    return TIDE_OK;
}

/* ---- ops ---- */

static tide_status add_sum(splitter *s, const tide_op *op, tide_id t, tide_id left, tide_id right, bool last,
                           tide_id *out) {
    const tide_variant cost = {.cost_ns = op->split->sum_cost_ns};
    const tide_inplace pair = {0, 0, false};
    const tide_id reads[2] = {left, right};
    char name[NAME_BYTES];
    if (last)
        *out = s->first[t];
    else
        TIDE_TRY(add_value(s, t, "+", tide_program_tensor(s->p, t)->size_bytes, false, out));
    name_part(tide_program_tensor(s->p, t)->name, ".sum", name);
    tide_op sum = {.name = name, .phase = op->phase, .rerunnable = true, .n_reads = 2, .n_writes = 1, .n_inplace = 1};
    sum.n_variants = 1;
    sum.reads = reads;
    sum.writes = out;
    sum.inplace = &pair;
    sum.variants = &cost;
    return tide_program_builder_op(s->b, &sum, NULL);
}

/* Part k of a sum is there. As a binary counter carries; after the last part what is left is added, the smaller sums on the right. */
static tide_status gather(splitter *s, const tide_op *op, tide_id t, uint32_t k, tide_id value) {
    const uint32_t parts = s->cuts.parts, top = 31 - (uint32_t)__builtin_clz(parts);
    tide_id *sums = s->sums + (size_t)t * MAX_LEVELS;
    uint32_t level = 0;
    for (; k >> level & 1; level++)
        TIDE_TRY(add_sum(s, op, t, sums[level], value, parts == UINT32_C(1) << top && level + 1 == top, &value));
    sums[level] = value;
    if (k + 1 < parts || parts == UINT32_C(1) << top) return TIDE_OK;
    tide_id sum = TIDE_NONE;
    for (level = 0; level <= top; level++) {
        if (!(parts >> level & 1)) continue;
        if (sum == TIDE_NONE)
            sum = sums[level];
        else
            TIDE_TRY(add_sum(s, op, t, sums[level], sum, level == top, &sum));
    }
    return TIDE_OK;
}

/* What the next op, or part, finds. */
static tide_status follow_writes(splitter *s, const tide_op *op, bool cut, uint32_t k) {
    for (uint32_t i = 0; i < op->n_writes && cut; i++) {
        const tide_id t = op->writes[i], value = s->operands.data[s->places.data[op->n_reads + i]];
        if (op->split->writes[i] == TIDE_ALONG_SUM) TIDE_TRY(gather(s, op, t, k, value));
        if (op->split->writes[i] != TIDE_ALONG_WHOLE) continue;
        for (uint32_t j = 0; j < op->n_inplace; j++) /* the next part goes on with it */
            if (op->inplace[j].write == i) s->now[op->reads[op->inplace[j].read]] = value;
    }
    return TIDE_OK;
}

static tide_status add_op(splitter *s, tide_id id, uint32_t k) {
    const tide_op *original = tide_program_op(s->p, id);
    const bool cut = s->cuts.ops[id];
    tide_op op = *original;
    char name[NAME_BYTES], end[16];
    TIDE_TRY(list_operands(s, original, cut, k, &op.n_reads));
    TIDE_TRY(list_pairs(s, original, op.n_reads, cut, k));
    TIDE_TRY(list_variants(s, original, cut, k));
    if (cut) {
        snprintf(end, sizeof end, "@%u", k);
        op.name = name_part(original->name, end, name);
    }
    op.split = NULL;
    op.reads = s->operands.data;
    op.writes = s->operands.data + op.n_reads;
    op.n_writes = (uint32_t)s->operands.count - op.n_reads;
    op.inplace = s->pairs.data;
    op.n_inplace = (uint32_t)s->pairs.count;
    op.variants = s->variants.data;
    TIDE_TRY(tide_program_builder_op(s->b, &op, NULL));
    return follow_writes(s, original, cut, k);
}

/* ---- stretches ---- */

static bool begins_stretch(const splitter *s, tide_id id) {
    const tide_op *op = tide_program_op(s->p, id);
    for (uint32_t i = 0; i < op->n_reads; i++) {
        const tide_id t = op->reads[i];
        if (s->written[t] == s->stretch && !(s->cuts.tensors[t] && op->split->reads[i] == TIDE_ALONG_CUT)) return true;
    }
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        const tide_id t = op->reads[op->inplace[i].read];
        if (op->inplace[i].must && s->seen[t] == s->stretch) return true;
    }
    return false;
}

static void note_operands(splitter *s, tide_id id) {
    const tide_op *op = tide_program_op(s->p, id);
    for (uint32_t i = 0; i < op->n_reads; i++)
        if (!s->cuts.tensors[op->reads[i]] || tide__along(op, i) != TIDE_ALONG_CUT) s->seen[op->reads[i]] = s->stretch;
    for (uint32_t i = 0; i < op->n_writes; i++) s->written[op->writes[i]] = s->stretch;
}

static tide_status add_ops(splitter *s) {
    const tide_id n = tide_program_op_count(s->p);
    for (tide_id begin = 0, end; begin < n; begin = end) {
        const bool cut = s->cuts.ops[begin];
        s->stretch++;
        end = begin;
        do note_operands(s, end++);
        while (cut && end < n && s->cuts.ops[end] && !begins_stretch(s, end));
        for (uint32_t k = 0; k < (cut ? s->cuts.parts : 1); k++)
            for (tide_id id = begin; id < end; id++) TIDE_TRY(add_op(s, id, k));
    }
    return TIDE_OK;
}

static tide_status add_carries(splitter *s) {
    for (uint32_t i = 0; i < tide_program_carry_count(s->p); i++) {
        const tide_carry *c = tide_program_carry(s->p, i);
        for (uint32_t k = 0; k < (s->cuts.tensors[c->from] ? s->cuts.parts : 1); k++)
            TIDE_TRY(tide_program_builder_carry(s->b, (tide_carry){s->first[c->from] + k, s->first[c->to] + k}));
    }
    return TIDE_OK;
}

/* ---- the whole ---- */

static tide_status open_splitter(splitter *s) {
    const size_t n = tide_program_tensor_count(s->p) + (size_t)1;
    s->first = malloc(n * sizeof *s->first);
    s->now = malloc(n * sizeof *s->now);
    s->written = calloc(n, sizeof *s->written);
    s->seen = calloc(n, sizeof *s->seen);
    s->sums = malloc(n * MAX_LEVELS * sizeof *s->sums);
    if (!s->first || !s->now || !s->written || !s->seen || !s->sums) return tide__fail_memory();
    return tide_program_builder_create(tide_program_name(s->p), tide_program_is_repeating(s->p), &s->b);
}

static void close_splitter(splitter *s) {
    tide_program_builder_destroy(s->b);
    tide__cuts_deinit(&s->cuts);
    free(s->first);
    free(s->now);
    free(s->written);
    free(s->seen);
    free(s->sums);
    tide__vec_free(&s->operands);
    tide__vec_free(&s->pairs);
    tide__vec_free(&s->variants);
    tide__vec_free(&s->places);
}

static tide_status check_any_cut(const splitter *s) {
    if (s->cuts.parts == 1) return TIDE_OK;
    for (tide_id i = 0; i < tide_program_op_count(s->p); i++)
        if (s->cuts.ops[i]) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "no op of the program can be cut into %u parts", s->cuts.parts);
}

tide_status tide_program_split(const tide_program *p, uint32_t parts, bool bits_any, tide_program **out) {
    TIDE_NEED(p, out);
    splitter s = {.p = p};
    if (parts == 0 || parts > MAX_PARTS)
        return tide__fail(TIDE_E_ARGUMENT, "a program has 1 to %d parts, not %u", MAX_PARTS, parts);
    tide_status status = tide__cuts_find(p, parts, bits_any, &s.cuts);
    if (status == TIDE_OK) status = check_any_cut(&s);
    if (status == TIDE_OK) status = open_splitter(&s);
    if (status == TIDE_OK) status = add_values(&s);
    if (status == TIDE_OK) status = add_ops(&s);
    if (status == TIDE_OK) status = add_carries(&s);
    if (status == TIDE_OK) status = tide_program_builder_finish(s.b, out);
    if (status == TIDE_OK) s.b = NULL;
    close_splitter(&s);
    return status;
}
