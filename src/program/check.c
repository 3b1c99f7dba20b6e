/* What the builder refuses, and why. One function per rule group; texts name ids, so that a person can find them.
 *
 * Invariant: after tide__check_whole a program keeps every promise of <tidemark/program.h>; nothing behind it checks
 * again. Every check is linear in the size of what is added. */
#include "program/build.h"

#include <string.h>

#include "base/size.h"

#define COUNT_ONE(e, name) +1
enum {
    N_DTYPES = 0 TIDE_DTYPE_TABLE(COUNT_ONE),
    N_CLASSES = 0 TIDE_CLASS_TABLE(COUNT_ONE),
    N_PHASES = 0 TIDE_PHASE_TABLE(COUNT_ONE),
    N_STARTS = 0 TIDE_START_TABLE(COUNT_ONE),
    N_ALONGS = 0 TIDE_ALONG_TABLE(COUNT_ONE)
};
#undef COUNT_ONE

static tide_status refuse_sum(const char *what) {
    return tide__fail(TIDE_E_OVERFLOW, "the program's %s add up to 2^62 or more", what);
}

static bool sum_fits(uint64_t sum, uint64_t more) { return tide__add(sum, more, &sum) && sum <= TIDE__PROGRAM_SUM_MAX; }

tide_status tide__check_tensor(const tide_program_builder *b, const tide_tensor *t) {
    if (!t) return tide__fail(TIDE_E_ARGUMENT, "no tensor given");
    if (b->program->tensors.count >= TIDE_NONE) return tide__fail(TIDE_E_OVERFLOW, "more than 2^32 - 1 tensors");
    if ((unsigned)t->dtype >= N_DTYPES || (unsigned)t->cls >= N_CLASSES || (unsigned)t->start >= N_STARTS)
        return tide__fail(TIDE_E_ARGUMENT, "tensor %zu: dtype, class or start is not one of the table",
                          b->program->tensors.count);
    return sum_fits(b->sum_bytes, t->size_bytes) ? TIDE_OK : refuse_sum("bytes");
}

/* ---- ops ---- */

static tide_status check_shape(const tide_program_builder *b, const tide_op *op) {
    bool lists = (op->n_reads == 0 || op->reads) && (op->n_writes == 0 || op->writes) &&
                 (op->n_inplace == 0 || op->inplace) && (op->n_variants == 0 || op->variants);
    if (!lists) return tide__fail(TIDE_E_ARGUMENT, "a list is NULL but its count is not 0");
    if (op->n_variants == 0) return tide__fail(TIDE_E_ARGUMENT, "it has no variant");
    if ((unsigned)op->phase >= N_PHASES) return tide__fail(TIDE_E_ARGUMENT, "phase is not one of the table");
    if (b->program->ops.count >= TIDE_NONE) return tide__fail(TIDE_E_OVERFLOW, "more than 2^32 - 1 ops");
    return TIDE_OK;
}

static tide_status check_message(const tide_program_builder *b, const tide_op *op) {
    const tide_message *m = op->message;
    if (op->n_reads != (m->receives ? 0u : 1u) || op->n_writes != (m->receives ? 1u : 0u))
        return tide__fail(TIDE_E_ARGUMENT, "a message sends the one tensor it reads or receives the one it writes");
    if (op->rerunnable || op->random || op->n_variants != 1 || op->variants[0].workspace_bytes > 0)
        return tide__fail(TIDE_E_ARGUMENT, "a message runs once, with no choice and no workspace");
    if (m->number >> 48 || (b->program->n_messages > 0 && m->number <= b->program->last_message))
        return tide__fail(TIDE_E_ARGUMENT, "numbers of messages ascend, below 2^48; this one is %llu",
                          (unsigned long long)m->number);
    return TIDE_OK;
}

static tide_status check_read(const tide_program_builder *b, tide_id id) {
    const tide_program *p = b->program;
    if (id >= p->tensors.count) return tide__fail(TIDE_E_ARGUMENT, "it reads tensor %u, which is not defined", id);
    const tide__build_state *state = &b->states.data[id];
    if (state->read_mark == b->mark) return tide__fail(TIDE_E_ARGUMENT, "it lists tensor %u twice as a read", id);
    if (p->tensors.data[id].start == TIDE_START_ABSENT && p->producers.data[id] == TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "tensor %u is read before it is written", id);
    if (state->destroyed_by != TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "it reads tensor %u, which op %u has overwritten in place", id,
                          state->destroyed_by);
    return TIDE_OK;
}

static tide_status check_reads(tide_program_builder *b, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_reads; i++) {
        TIDE_TRY(check_read(b, op->reads[i]));
        b->states.data[op->reads[i]].read_mark = b->mark;
    }
    return TIDE_OK;
}

static tide_status check_write(const tide_program_builder *b, tide_id id) {
    const tide_program *p = b->program;
    if (id >= p->tensors.count) return tide__fail(TIDE_E_ARGUMENT, "it writes tensor %u, which is not defined", id);
    if (p->tensors.data[id].start != TIDE_START_ABSENT)
        return tide__fail(TIDE_E_ARGUMENT, "it writes tensor %u, which exists at the start", id);
    if (p->producers.data[id] != TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "it writes tensor %u, which op %u has written", id, p->producers.data[id]);
    if (b->states.data[id].read_mark == b->mark)
        return tide__fail(TIDE_E_ARGUMENT, "it lists tensor %u twice as a write", id);
    return TIDE_OK;
}

/* An op cannot read what it writes (the read would come before the write), so both lists can share the marks. */
static tide_status check_writes(tide_program_builder *b, const tide_op *op) {
    for (uint32_t i = 0; i < op->n_writes; i++) {
        TIDE_TRY(check_write(b, op->writes[i]));
        b->states.data[op->writes[i]].read_mark = b->mark;
    }
    return TIDE_OK;
}

static tide_status check_pair_ends(const tide_program_builder *b, const tide_op *op, tide_inplace pair) {
    if (pair.read >= op->n_reads || pair.write >= op->n_writes)
        return tide__fail(TIDE_E_ARGUMENT, "in-place pair [%u,%u] is out of range: it has %u reads and %u writes",
                          pair.read, pair.write, op->n_reads, op->n_writes);
    tide_id read = op->reads[pair.read], write = op->writes[pair.write];
    const tide_tensor *tensors = b->program->tensors.data;
    if (tensors[read].size_bytes != tensors[write].size_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "in-place pair of tensors %u and %u, which differ in size", read, write);
    if (pair.must && tensors[read].keep)
        return tide__fail(TIDE_E_ARGUMENT, "it overwrites tensor %u in place, which is needed at the end", read);
    return TIDE_OK;
}

enum { IN_A_PAIR = 1, IN_A_MUST_PAIR = 2 };

/* A write takes over one read at most; a read that a `must` pair destroys has nothing left for another pair. */
static tide_status check_pair_alone(const tide_op *op, tide_inplace pair, uint32_t *read_marks, uint32_t *write_marks) {
    uint32_t *read = &read_marks[pair.read], *write = &write_marks[pair.write];
    if (*write != 0)
        return tide__fail(TIDE_E_ARGUMENT, "written tensor %u is in two in-place pairs", op->writes[pair.write]);
    if (*read == IN_A_MUST_PAIR || (*read != 0 && pair.must))
        return tide__fail(TIDE_E_ARGUMENT, "read tensor %u is in a `must` pair and in another one",
                          op->reads[pair.read]);
    *write = IN_A_PAIR;
    *read = pair.must ? IN_A_MUST_PAIR : IN_A_PAIR;
    return TIDE_OK;
}

static tide_status check_pairs(tide_program_builder *b, const tide_op *op) {
    if (op->n_inplace == 0) return TIDE_OK;
    size_t n = (size_t)op->n_reads + op->n_writes;
    b->pair_marks.count = 0;
    TIDE_TRY(tide__vec_reserve(&b->pair_marks, n));
    uint32_t *marks = b->pair_marks.data;
    if (n > 0) memset(marks, 0, n * sizeof *marks);
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        TIDE_TRY(check_pair_ends(b, op, op->inplace[i]));
        TIDE_TRY(check_pair_alone(op, op->inplace[i], marks, marks + op->n_reads));
    }
    return TIDE_OK;
}

/* ---- splits ---- */

static bool in_must_pair(const tide_op *op, uint32_t write) {
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].write == write) return op->inplace[i].must;
    return false;
}

static tide_status check_along(const tide_program_builder *b, const tide_split *s, tide_along along, tide_id tensor) {
    if ((unsigned)along >= N_ALONGS) return tide__fail(TIDE_E_ARGUMENT, "split: no such word for tensor %u", tensor);
    if (along != TIDE_ALONG_CUT || b->program->tensors.data[tensor].size_bytes % s->units == 0) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "split: the bytes of tensor %u are no multiple of %u units", tensor, s->units);
}

/* What one run per part could not do: to write one value several times, unless in turn. */
static tide_status check_split_write(const tide_op *op, uint32_t i, bool cut) {
    const tide_along along = op->split->writes[i];
    if (cut && along == TIDE_ALONG_PARTS)
        return tide__fail(TIDE_E_ARGUMENT, "split: tensor %u would be written by each part", op->writes[i]);
    if (cut && along == TIDE_ALONG_WHOLE && !in_must_pair(op, i))
        return tide__fail(TIDE_E_ARGUMENT, "split: tensor %u is written whole, but not in place", op->writes[i]);
    if (along == TIDE_ALONG_SUM && (!cut || in_must_pair(op, i)))
        return tide__fail(TIDE_E_ARGUMENT, "split: tensor %u cannot be a sum over parts", op->writes[i]);
    return TIDE_OK;
}

static tide_status check_split(const tide_program_builder *b, const tide_op *op) {
    const tide_split *s = op->split;
    bool cut = false;
    if (op->message) return tide__fail(TIDE_E_ARGUMENT, "split: a message is sent whole");
    if (s->units == 0 || (op->n_reads && !s->reads) || (op->n_writes && !s->writes))
        return tide__fail(TIDE_E_ARGUMENT, "split: it needs units, and a word per operand");
    for (uint32_t i = 0; i < op->n_reads; i++) {
        TIDE_TRY(check_along(b, s, s->reads[i], op->reads[i]));
        if (s->reads[i] == TIDE_ALONG_SUM)
            return tide__fail(TIDE_E_ARGUMENT, "split: tensor %u is read, so it is no sum", op->reads[i]);
        cut |= s->reads[i] == TIDE_ALONG_CUT;
    }
    for (uint32_t i = 0; i < op->n_writes; i++) {
        TIDE_TRY(check_along(b, s, s->writes[i], op->writes[i]));
        cut |= s->writes[i] == TIDE_ALONG_CUT;
    }
    if (cut && op->random)
        return tide__fail(TIDE_E_ARGUMENT, "split: a random op is not cut, as its parts would draw the same numbers");
    for (uint32_t i = 0; i < op->n_writes; i++) TIDE_TRY(check_split_write(op, i, cut));
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must && s->reads[op->inplace[i].read] != s->writes[op->inplace[i].write])
            return tide__fail(TIDE_E_ARGUMENT, "split: the tensors of a `must` pair are both whole, cut or in parts");
    return TIDE_OK;
}

void tide__op_extremes(const tide_op *op, uint64_t *workspace_bytes, uint64_t *cost_ns) {
    *workspace_bytes = *cost_ns = 0;
    for (uint32_t i = 0; i < op->n_variants; i++) {
        *workspace_bytes = tide__max_u64(*workspace_bytes, op->variants[i].workspace_bytes);
        *cost_ns = tide__max_u64(*cost_ns, op->variants[i].cost_ns);
    }
}

static tide_status check_sums(const tide_program_builder *b, const tide_op *op) {
    uint64_t workspace_bytes, cost_ns;
    tide__op_extremes(op, &workspace_bytes, &cost_ns);
    if (!sum_fits(b->sum_bytes, workspace_bytes)) return refuse_sum("bytes, workspaces included,");
    if (!sum_fits(b->sum_ns, cost_ns)) return refuse_sum("costs");
    return TIDE_OK;
}

/* Marks of earlier ops must not look like the new one when the counter wraps. */
static void next_mark(tide_program_builder *b) {
    if (++b->mark != 0) return;
    for (size_t i = 0; i < b->states.count; i++) b->states.data[i].read_mark = 0;
    b->mark = 1;
}

tide_status tide__check_op(tide_program_builder *b, const tide_op *op) {
    next_mark(b);
    TIDE_TRY(check_shape(b, op));
    if (op->message) TIDE_TRY(check_message(b, op));
    TIDE_TRY(check_reads(b, op));
    TIDE_TRY(check_writes(b, op));
    TIDE_TRY(check_pairs(b, op));
    if (op->split) TIDE_TRY(check_split(b, op));
    return check_sums(b, op);
}

/* ---- carries, keeping, and the whole ---- */

tide_status tide__check_carry(const tide_program_builder *b, tide_carry carry) {
    const tide_program *p = b->program;
    if (!p->repeating) return tide__fail(TIDE_E_ARGUMENT, "a one-shot program has no carries");
    if (carry.from >= p->tensors.count || carry.to >= p->tensors.count)
        return tide__fail(TIDE_E_ARGUMENT, "carry [%u,%u]: tensor %u is not defined", carry.from, carry.to,
                          carry.from >= p->tensors.count ? carry.from : carry.to);
    const tide_tensor *from = &p->tensors.data[carry.from], *to = &p->tensors.data[carry.to];
    if (from->size_bytes != to->size_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "carry [%u,%u]: the tensors differ in size", carry.from, carry.to);
    if (to->start != TIDE_START_PRESENT)
        return tide__fail(TIDE_E_ARGUMENT, "carry [%u,%u]: tensor %u is not present at the start", carry.from, carry.to,
                          carry.to);
    if (b->states.data[carry.to].carried_to)
        return tide__fail(TIDE_E_ARGUMENT, "carry [%u,%u]: tensor %u gets its value from another carry already",
                          carry.from, carry.to, carry.to);
    return TIDE_OK;
}

tide_status tide__check_keep(const tide_program_builder *b, tide_id id) {
    if (id >= b->program->tensors.count) return tide__fail(TIDE_E_ARGUMENT, "tensor %u is not defined", id);
    tide_id op = b->states.data[id].destroyed_by;
    if (op == TIDE_NONE) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "tensor %u cannot be kept: op %u has overwritten it in place", id, op);
}

static tide_status check_tensor_at_end(const tide_program_builder *b, tide_id id) {
    const tide_program *p = b->program;
    const tide_tensor *t = &p->tensors.data[id];
    if (t->keep && t->start == TIDE_START_ABSENT && p->producers.data[id] == TIDE_NONE)
        return tide__fail(TIDE_E_ARGUMENT, "tensor %u is needed at the end but never written", id);
    if (p->repeating && t->start == TIDE_START_PRESENT && !b->states.data[id].carried_to)
        return tide__fail(TIDE_E_ARGUMENT,
                          "tensor %u is present at the start of a repeating program, but no carry "
                          "gives it a value",
                          id);
    return TIDE_OK;
}

tide_status tide__check_whole(const tide_program_builder *b) {
    const tide_program *p = b->program;
    for (size_t i = 0; i < p->tensors.count; i++) TIDE_TRY(check_tensor_at_end(b, (tide_id)i));
    for (size_t i = 0; i < p->carries.count; i++) {
        tide_carry carry = p->carries.data[i];
        if (!p->tensors.data[carry.from].keep)
            return tide__fail(TIDE_E_ARGUMENT, "carry [%u,%u]: tensor %u is not kept to the end", carry.from, carry.to,
                              carry.from);
    }
    return TIDE_OK;
}
