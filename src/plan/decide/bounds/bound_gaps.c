/* See bound_gaps.h. Linear in the program but for one sort.
 *
 *   op           0     1     2     3     4     5     6
 *   x (written)        w     .     r     .     .     r           absences [2, 3) and [4, 6)
 *   weight       .     .     r     .     r                       absence  [3, 4)
 *   its update                           w     .     .  kept     absence  [5, 7), and [0, 2) of the weight: it is carried
 *
 * Where an op may write over a value that lives on, the value counts there too and its absence begins at that op. */
#include "plan/decide/bounds/bound_gaps.h"

#include <math.h>
#include <stdlib.h>

#include "base/arrays.h"
#include "base/size.h"

typedef struct finder {
    const tide_program *program;
    tide__absences *out;
    uint32_t n_tensors;
    bool reruns, moves;
    uint32_t *first, *last; /* per tensor: the ops that use it first and last so far; TIDE_NONE: none */
    tide_id *saver;         /* per tensor: what a move of it saves, itself or what it is carried from */
    uint32_t *n_from;       /* per tensor: carries that begin with it */
    tide_id *joined;        /* per tensor: the only one it is carried to, whose head joins its tail; TIDE_NONE */
    bool *is_head;          /* per tensor: its head is counted with the tail of what it is carried from */
    int64_t *change;        /* per op: how the load changes there */
    tide__arrays arrays;    /* owns the arrays above */
} finder;

static uint64_t size_of(const finder *f, tide_id t) { return tide_program_tensor(f->program, t)->size_bytes; }

/* ---- what a re-run costs ---- */

static bool destroys_present(const finder *f, const tide_op *op) {
    for (uint32_t k = 0; k < op->n_inplace; k++)
        if (op->inplace[k].must &&
            tide_program_tensor(f->program, op->reads[op->inplace[k].read])->start == TIDE_START_PRESENT)
            return true;
    return false;
}

/* An op that overwrites a weight cannot run again without moving as many bytes as its result has; in a step that
 * repeats, a move of the result is then at least as good. */
static bool can_rerun(const finder *f, const tide_op *op) {
    bool weights_move = f->moves && !tide_program_is_repeating(f->program);
    return f->reruns && op->rerunnable && (weights_move || !destroys_present(f, op));
}

static uint64_t fastest_ns(const tide_op *op) {
    uint64_t ns = UINT64_MAX;
    for (uint32_t k = 0; k < op->n_variants; k++) ns = tide__min_u64(ns, op->variants[k].cost_ns);
    return ns;
}

/* One re-run brings back all outputs of an op: each is charged in proportion to its bytes, so that together they are
 * charged once. */
static double rerun_ns(const finder *f, tide_id tensor) {
    tide_id producer = tide_program_producer(f->program, tensor);
    if (producer == TIDE_NONE) return HUGE_VAL;
    const tide_op *op = tide_program_op(f->program, producer);
    if (!can_rerun(f, op)) return HUGE_VAL;
    double all = 0, mine = (double)size_of(f, tensor);
    for (uint32_t k = 0; k < op->n_writes; k++) all += (double)size_of(f, op->writes[k]);
    return all > 0 ? (double)fastest_ns(op) * (mine / all) : 0;
}

/* ---- absences ---- */

static void count_load(finder *f, uint32_t from, uint32_t to, uint64_t bytes) {
    f->change[from] += (int64_t)bytes;
    f->change[to] -= (int64_t)bytes;
}

static tide_status add(finder *f, tide_id tensor, tide__absence a) {
    a.size_bytes = size_of(f, tensor);
    if ((a.from >= a.to && a.head == 0) || a.size_bytes == 0) return TIDE_OK;
    a.run_ns = a.from < a.to ? rerun_ns(f, tensor) : HUGE_VAL;
    a.moves = f->moves;
    a.saver = f->saver[tensor];
    if (a.from < a.to) count_load(f, a.from, a.to, a.size_bytes);
    if (a.head > 0) count_load(f, 0, a.head, a.size_bytes);
    return tide__vec_push(&f->out->all, a);
}

static bool is_paired_read(const tide_op *op, tide_id tensor) {
    for (uint32_t k = 0; k < op->n_inplace; k++)
        if (op->reads[op->inplace[k].read] == tensor) return true;
    return false;
}

/* The first op at which the value may be absent after it was used by `op`. */
static uint32_t absent_from(const finder *f, tide_id tensor, uint32_t op) {
    return is_paired_read(tide_program_op(f->program, op), tensor) ? op : op + 1;
}

static tide_status use(finder *f, tide_id tensor, uint32_t op) {
    uint32_t last = f->last[tensor];
    if (f->first[tensor] == TIDE_NONE) f->first[tensor] = op;
    f->last[tensor] = op;
    if (last == TIDE_NONE) return TIDE_OK;
    return add(f, tensor, (tide__absence){.from = absent_from(f, tensor, last), .to = op, .loads = true});
}

/* Operands count at their op; a read that an output may take over counts through the absence that begins there, or not
 * at all if it dies. Further pairs of the same read cannot come true. */
static tide_status walk_op(finder *f, uint32_t i) {
    const tide_op *op = tide_program_op(f->program, i);
    for (uint32_t k = 0; k < op->n_reads; k++) {
        TIDE_TRY(use(f, op->reads[k], i));
        if (!is_paired_read(op, op->reads[k])) count_load(f, i, i + 1, size_of(f, op->reads[k]));
    }
    for (uint32_t k = 0; k < op->n_writes; k++) {
        TIDE_TRY(use(f, op->writes[k], i));
        count_load(f, i, i + 1, size_of(f, op->writes[k]));
    }
    return TIDE_OK;
}

/* ---- over the ends of the step ---- */

static void find_carries(finder *f) {
    for (uint32_t i = 0; i < tide_program_carry_count(f->program); i++)
        f->n_from[tide_program_carry(f->program, i)->from]++;
    for (uint32_t i = 0; i < tide_program_carry_count(f->program); i++) {
        const tide_carry *c = tide_program_carry(f->program, i);
        bool made_here = tide_program_tensor(f->program, c->from)->start == TIDE_START_ABSENT;
        if (made_here) f->saver[c->to] = c->from;
        if (f->n_from[c->from] == 1 && (made_here || c->from == c->to)) f->joined[c->from] = c->to;
    }
}

/* From the start to the first use. */
static tide_status add_head(finder *f, tide_id tensor) {
    if (tide_program_tensor(f->program, tensor)->start != TIDE_START_PRESENT || f->first[tensor] == TIDE_NONE)
        return TIDE_OK;
    return add(f, tensor, (tide__absence){.head = f->first[tensor], .loads = true});
}

/* From the last use to the end, and from the start to the first use of what it is carried to, which was then absent at
 * the start. What is not made by this step and not carried to itself is not counted. */
static tide_status add_tail(finder *f, tide_id tensor) {
    const tide_tensor *t = tide_program_tensor(f->program, tensor);
    tide_id head = f->joined[tensor];
    if (!t->keep || f->last[tensor] == TIDE_NONE || (t->start != TIDE_START_ABSENT && head != tensor)) return TIDE_OK;
    tide__absence a = {.from = absent_from(f, tensor, f->last[tensor]), .to = f->out->n_ops};
    bool is_used = head != TIDE_NONE && f->first[head] != TIDE_NONE && size_of(f, head) == t->size_bytes;
    if (is_used) a.head = f->first[head], a.loads = true;
    return add(f, tensor, a);
}

static void mark_joined(const finder *f) {
    for (tide_id t = 0; t < f->n_tensors; t++) {
        tide_id head = f->joined[t];
        if (head == TIDE_NONE || f->last[t] == TIDE_NONE || f->first[head] == TIDE_NONE) continue;
        f->is_head[head] = tide_program_tensor(f->program, t)->keep && size_of(f, head) == size_of(f, t);
    }
}

static tide_status add_ends(finder *f) {
    mark_joined(f);
    for (tide_id t = 0; t < f->n_tensors; t++) {
        TIDE_TRY(add_tail(f, t));
        if (!f->is_head[t]) TIDE_TRY(add_head(f, t));
    }
    return TIDE_OK;
}

/* ---- the whole ---- */

static void clear(finder *f) {
    for (tide_id t = 0; t < f->n_tensors; t++) {
        bool made_here = tide_program_tensor(f->program, t)->start == TIDE_START_ABSENT;
        f->first[t] = f->last[t] = f->joined[t] = TIDE_NONE;
        f->saver[t] = made_here ? t : TIDE_NONE;
    }
}

static int by_saver(const void *a, const void *b) {
    const tide__absence *x = a, *y = b;
    if (x->saver != y->saver) return x->saver < y->saver ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static tide_status find(finder *f) {
    clear(f);
    find_carries(f);
    for (uint32_t i = 0; i < f->out->n_ops; i++) TIDE_TRY(walk_op(f, i));
    TIDE_TRY(add_ends(f));
    int64_t load = 0;
    for (uint32_t i = 0; i < f->out->n_ops; i++) f->out->load_bytes[i] = (uint64_t)(load += f->change[i]);
    if (f->out->all.count) qsort(f->out->all.data, f->out->all.count, sizeof *f->out->all.data, by_saver);
    return TIDE_OK;
}

tide_status tide__absences_find(const tide__policy_input *in, tide__absences *out) {
    size_t n = tide_program_tensor_count(in->program) + (size_t)1, ops = tide_program_op_count(in->program);
    tide__absences found = {.n_ops = (uint32_t)ops};
    finder f = {.program = in->program, .out = &found, .n_tensors = (uint32_t)(n - 1)};
    f.reruns = !tide__policy_has(in->argument, "norerun");
    f.moves = !tide__policy_has(in->argument, "nomove");
    found.load_bytes = calloc(ops + 1, sizeof *found.load_bytes);
    tide__array(&f.arrays, f.first, n);
    tide__array(&f.arrays, f.last, n);
    tide__array(&f.arrays, f.saver, n);
    tide__array(&f.arrays, f.joined, n);
    tide__array(&f.arrays, f.n_from, n);
    tide__array(&f.arrays, f.is_head, n);
    tide__array(&f.arrays, f.change, ops + 1);
    tide_status status = found.load_bytes ? tide__arrays_check(&f.arrays) : tide__fail_memory();
    if (status == TIDE_OK) status = find(&f);
    if (status == TIDE_OK)
        *out = found;
    else
        tide__absences_free(&found);
    tide__arrays_free(&f.arrays);
    return status;
}

void tide__absences_free(tide__absences *a) {
    free(a->load_bytes);
    a->load_bytes = NULL;
    tide__vec_free(&a->all);
}
