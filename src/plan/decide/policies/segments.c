/* See segments.h. Everything is linear in the program but one sort of the ops' cost per byte. */
#include "plan/decide/policies/segments.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"

enum {
    SIDE_RESULT_SHARE = 64, /* below 1/64 of the op's largest result */
    SCALAR_BYTES = 8,       /* step counters and the like are no weights */
    DENSE_FACTOR = 4,       /* over the cost per byte of ops that only stream */
    MAX_MEMBERS = 32        /* memory-centric re-runs grow with the square of the length */
};

/* What the inference needs to know of a program. */
typedef struct roles {
    const tide_program *p;
    uint32_t n_ops, n_tensors;
    const bool *side;                   /* per tensor, as in the segments */
    uint32_t *forward_readers;          /* per op: forward ops that read its results, side results not counted */
    uint32_t *first_after, *last_after; /* per tensor: the ops after forward that read it; TIDE_NONE if none does */
    uint32_t *destroyed;                /* per tensor: the op that updates it in place, n_ops if none does */
    double stream_cost;                 /* ns per byte of ops that only stream; 0 if unknown */
    tide__arrays arrays;                /* owns the arrays above */
} roles;

static bool is_forward(const tide_op *op) { return op->phase == TIDE_FORWARD; }

static uint64_t bytes_of(const tide_program *p, tide_id t) { return tide_program_tensor(p, t)->size_bytes; }

static uint64_t largest_result(const tide_program *p, const tide_op *op) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < op->n_writes; i++) largest = tide__max_u64(largest, bytes_of(p, op->writes[i]));
    return largest;
}

void tide__find_side_results(const tide_program *p, bool *side) {
    for (tide_id id = 0; id < tide_program_op_count(p); id++) {
        const tide_op *op = tide_program_op(p, id);
        uint64_t small = largest_result(p, op) / SIDE_RESULT_SHARE;
        for (uint32_t i = 0; i < op->n_writes; i++) side[op->writes[i]] = bytes_of(p, op->writes[i]) < small;
    }
}

/* ---- dense ops ---- */

/* A convolution or matrix product reads one weight, or a weight and a bias; a normalisation reads vectors of one size.
 * An op that reads no weight at all may still be dense; its cost tells. */
static bool reads_matrix(const tide_program *p, const tide_op *op) {
    uint64_t smallest = UINT64_MAX, largest = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        const tide_tensor *t = tide_program_tensor(p, op->reads[i]);
        if (t->start != TIDE_START_PRESENT || t->size_bytes <= SCALAR_BYTES) continue;
        smallest = tide__min_u64(smallest, t->size_bytes);
        largest = tide__max_u64(largest, t->size_bytes);
        n++;
    }
    return n == 1 || (n > 1 && smallest != largest);
}

static double cost_per_byte(const tide_program *p, const tide_op *op) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < op->n_reads; i++) bytes += bytes_of(p, op->reads[i]);
    for (uint32_t i = 0; i < op->n_writes; i++) bytes += bytes_of(p, op->writes[i]);
    return bytes ? (double)op->variants[0].cost_ns / (double)bytes : 0;
}

static int by_value(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The lower quartile over forward ops without a matrix: even among more dense ops than others, one that streams. */
static tide_status find_stream_cost(roles *r) {
    double *costs = malloc((r->n_ops + (size_t)1) * sizeof *costs);
    size_t n = 0;
    if (!costs) return tide__fail_memory();
    for (tide_id i = 0; i < r->n_ops; i++) {
        const tide_op *op = tide_program_op(r->p, i);
        double cost = cost_per_byte(r->p, op);
        if (is_forward(op) && cost > 0 && !reads_matrix(r->p, op)) costs[n++] = cost;
    }
    qsort(costs, n, sizeof *costs, by_value);
    r->stream_cost = n ? costs[n / 4] : 0;
    free(costs);
    return TIDE_OK;
}

static bool is_dense(const roles *r, const tide_op *op) {
    if (reads_matrix(r->p, op)) return true;
    return r->stream_cost > 0 && cost_per_byte(r->p, op) > DENSE_FACTOR * r->stream_cost;
}

/* ---- roles ---- */

static void note_read(roles *r, tide_id id, const tide_op *op, tide_id t) {
    tide_id producer = tide_program_producer(r->p, t);
    if (!is_forward(op)) {
        if (r->first_after[t] == TIDE_NONE) r->first_after[t] = id;
        r->last_after[t] = id;
    } else if (producer != TIDE_NONE && !r->side[t]) {
        r->forward_readers[producer]++;
    }
}

static void note_op(roles *r, tide_id id) {
    const tide_op *op = tide_program_op(r->p, id);
    for (uint32_t i = 0; i < op->n_reads; i++) note_read(r, id, op, op->reads[i]);
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) r->destroyed[op->reads[op->inplace[i].read]] = id;
}

static tide_status roles_init(const tide_program *p, const bool *side, roles *r) {
    *r = (roles){.p = p, .side = side, .n_ops = tide_program_op_count(p), .n_tensors = tide_program_tensor_count(p)};
    size_t n = r->n_tensors + (size_t)1;
    tide__array(&r->arrays, r->forward_readers, r->n_ops + (size_t)1);
    tide__array_ones(&r->arrays, r->first_after, n);
    tide__array_ones(&r->arrays, r->last_after, n);
    tide__array(&r->arrays, r->destroyed, n);
    TIDE_TRY(tide__arrays_check(&r->arrays));
    for (tide_id t = 0; t < r->n_tensors; t++) r->destroyed[t] = r->n_ops;
    for (tide_id i = 0; i < r->n_ops; i++) note_op(r, i);
    return find_stream_cost(r);
}

/* ---- cheap ops ---- */

/* The results of forward ops that it reads, those left out that are small beside its own; *main is the largest. */
static uint32_t count_activations(const roles *r, const tide_op *op, tide_id *main) {
    uint64_t small = largest_result(r->p, op) / SIDE_RESULT_SHARE;
    uint32_t n = 0;
    *main = TIDE_NONE;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide_id t = op->reads[i];
        if (tide_program_producer(r->p, t) == TIDE_NONE || bytes_of(r->p, t) < small) continue;
        if (*main == TIDE_NONE || bytes_of(r->p, t) > bytes_of(r->p, *main)) *main = t;
        n++;
    }
    return n;
}

static bool may_run_again(const roles *r, const tide_op *op) {
    if (!op->rerunnable || op->n_writes == 0) return false;
    for (uint32_t i = 0; i < op->n_writes; i++)
        if (tide_program_tensor(r->p, op->writes[i])->keep) return false;
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) return false;
    return true;
}

/* Not dense, no join (two inputs), no fork (two readers in forward), not where forward ends (none). */
static bool is_cheap(const roles *r, tide_id id, tide_id *main) {
    const tide_op *op = tide_program_op(r->p, id);
    return is_forward(op) && may_run_again(r, op) && r->forward_readers[id] == 1 &&
           count_activations(r, op, main) <= 1 && !is_dense(r, op);
}

/* Backward does not need what the op reads, and what it writes is no larger: better a checkpoint itself. */
static bool is_better_checkpoint(const roles *r, tide_id id, tide_id main) {
    if (main == TIDE_NONE || r->first_after[main] != TIDE_NONE || tide_program_tensor(r->p, main)->keep) return false;
    return largest_result(r->p, tide_program_op(r->p, id)) <= bytes_of(r->p, main);
}

/* ---- segments ---- */

static tide_status add_op(const roles *r, tide__segments *s, tide_id id) {
    tide_id main, before = TIDE_NONE;
    if (!is_cheap(r, id, &main)) return TIDE_OK;
    if (main != TIDE_NONE) before = tide_program_producer(r->p, main);
    bool joins = before != TIDE_NONE && s->of[before] != TIDE_NONE && s->next[before] == TIDE_NONE &&
                 s->position[before] + 1 < MAX_MEMBERS;
    if (joins) {
        s->of[id] = s->of[before];
        s->position[id] = s->position[before] + 1;
        s->next[before] = id;
        return TIDE_OK;
    }
    if (is_better_checkpoint(r, id, main)) return TIDE_OK;
    s->of[id] = (uint32_t)s->list.count;
    return tide__vec_push(&s->list, ((tide__segment){.head = id, .first_need = TIDE_NONE}));
}

/* Extends the needs of a segment by those of its member's results. */
static void note_needs(const roles *r, tide__segments *s, tide_id id) {
    const tide_op *op = tide_program_op(r->p, id);
    tide__segment *segment = &s->list.data[s->of[id]];
    for (uint32_t i = 0; i < op->n_writes; i++) {
        tide_id t = op->writes[i];
        if (r->first_after[t] == TIDE_NONE || s->side[t]) continue;
        if (segment->first_need == TIDE_NONE || r->first_after[t] < segment->first_need)
            segment->first_need = r->first_after[t];
        if (r->last_after[t] > segment->last_need) segment->last_need = r->last_after[t];
        segment->n_needed = s->position[id] + 1;
    }
}

/* Its members have run by the first need, and everything that they read is still there at the last. */
static bool can_run_for_its_needs(const roles *r, const tide__segments *s, const tide__segment *segment) {
    tide_id id = segment->head;
    for (uint32_t k = 0; k < segment->n_needed; k++, id = s->next[id]) {
        const tide_op *op = tide_program_op(r->p, id);
        if (id >= segment->first_need) return false; /* forward goes on behind a backward op */
        for (uint32_t i = 0; i < op->n_reads; i++)
            if (r->destroyed[op->reads[i]] < segment->last_need) return false;
    }
    return segment->n_needed > 0;
}

static void forget(tide__segments *s, const tide__segment *segment) {
    for (tide_id id = segment->head; id != TIDE_NONE; id = s->next[id]) s->of[id] = TIDE_NONE;
}

/* Keeps the segments that are needed and can be brought back; renumbers them. */
static void drop_useless(const roles *r, tide__segments *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->list.count; i++) {
        tide__segment segment = s->list.data[i];
        if (!can_run_for_its_needs(r, s, &segment)) {
            forget(s, &segment);
            continue;
        }
        for (tide_id id = segment.head; id != TIDE_NONE; id = s->next[id]) s->of[id] = (uint32_t)kept;
        s->list.data[kept++] = segment;
    }
    s->list.count = kept;
}

static tide_status build(const roles *r, tide__segments *s) {
    for (tide_id i = 0; i < r->n_ops; i++) TIDE_TRY(add_op(r, s, i));
    for (tide_id i = 0; i < r->n_ops; i++)
        if (s->of[i] != TIDE_NONE) note_needs(r, s, i);
    drop_useless(r, s);
    return TIDE_OK;
}

tide_status tide__segments_create(const tide_program *p, tide__segments *out) {
    size_t n = tide_program_op_count(p) + (size_t)1;
    tide__segments s = {0};
    roles r = {0};
    tide__array_ones(&s.arrays, s.of, n);
    tide__array(&s.arrays, s.position, n);
    tide__array_ones(&s.arrays, s.next, n);
    tide__array(&s.arrays, s.side, tide_program_tensor_count(p) + (size_t)1);
    tide_status status = tide__arrays_check(&s.arrays);
    if (status == TIDE_OK) tide__find_side_results(p, s.side);
    if (status == TIDE_OK) status = roles_init(p, s.side, &r);
    if (status == TIDE_OK) status = build(&r, &s);
    tide__arrays_free(&r.arrays);
    if (status == TIDE_OK)
        *out = s;
    else
        tide__segments_free(&s);
    return status;
}

void tide__segments_free(tide__segments *s) {
    tide__vec_free(&s->list);
    tide__arrays_free(&s->arrays);
}

/* ---- re-runs ---- */

typedef struct rerunner {
    const tide_program *p;
    const tide__segments *s;
    bool *there;               /* per op: its results are in the arena, after forward */
    TIDE_VEC(uint64_t) wanted; /* by one op: segment << 32 | position of what it reads and is not there */
    tide__decisions *out;
} rerunner;

static int by_slot(const void *a, const void *b) {
    const tide__rerun *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static int by_key(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Members `first` to `last`, and those before them that are needed to get there and are not there. */
static tide_status run_members(rerunner *r, const tide__segment *segment, uint32_t slot, uint32_t first,
                               uint32_t last) {
    tide_id from = segment->head, id = segment->head;
    for (uint32_t k = 0; k < first; k++, id = r->s->next[id])
        if (r->there[id]) from = r->s->next[id];
    for (id = from; id != TIDE_NONE && r->s->position[id] <= last; id = r->s->next[id])
        TIDE_TRY(tide__vec_push(&r->out->reruns, ((tide__rerun){.slot = slot, .op = id})));
    return TIDE_OK;
}

/* wanted[0 .. n): of one segment, by position. */
static tide_status bring_back(rerunner *r, uint32_t slot, const uint64_t *wanted, size_t n) {
    const tide__segment *segment = &r->s->list.data[wanted[0] >> 32];
    uint32_t first = (uint32_t)wanted[0], last = (uint32_t)wanted[n - 1];
    if (!segment->memory_centric) first = 0, last = segment->n_needed - 1;
    TIDE_TRY(run_members(r, segment, slot, first, last));
    tide_id id = segment->head;
    size_t i = 0;
    for (uint32_t k = 0; k <= last; k++, id = r->s->next[id]) {
        while (i < n && (uint32_t)wanted[i] < k) i++;
        if (!segment->memory_centric || (i < n && (uint32_t)wanted[i] == k)) r->there[id] = true;
    }
    return TIDE_OK;
}

static tide_status list_wanted(rerunner *r, const tide_op *op) {
    r->wanted.count = 0;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide_id producer = tide_program_producer(r->p, op->reads[i]);
        if (producer == TIDE_NONE || r->s->of[producer] == TIDE_NONE || r->there[producer]) continue;
        if (r->s->side[op->reads[i]]) continue;
        TIDE_TRY(tide__vec_push(&r->wanted, (uint64_t)r->s->of[producer] << 32 | r->s->position[producer]));
    }
    if (r->wanted.count > 1) qsort(r->wanted.data, r->wanted.count, sizeof *r->wanted.data, by_key);
    return TIDE_OK;
}

static tide_status prepare(rerunner *r, tide_id x) {
    const tide_op *op = tide_program_op(r->p, x);
    if (is_forward(op)) return TIDE_OK;
    TIDE_TRY(list_wanted(r, op));
    for (size_t i = 0, n; i < r->wanted.count; i += n) {
        for (n = 1; i + n < r->wanted.count && r->wanted.data[i + n] >> 32 == r->wanted.data[i] >> 32;) n++;
        TIDE_TRY(bring_back(r, x, &r->wanted.data[i], n));
    }
    return TIDE_OK;
}

tide_status tide__segments_rerun(const tide_program *p, const tide__segments *s, tide__decisions *out) {
    uint32_t n = tide_program_op_count(p);
    rerunner r = {.p = p, .s = s, .there = calloc(n + (size_t)1, sizeof *r.there), .out = out};
    tide_status status = r.there ? TIDE_OK : tide__fail_memory();
    for (tide_id x = 0; x < n && status == TIDE_OK; x++) status = prepare(&r, x);
    free(r.there);
    tide__vec_free(&r.wanted);
    if (status == TIDE_OK && out->reruns.count)
        qsort(out->reruns.data, out->reruns.count, sizeof *out->reruns.data, by_slot);
    return status;
}
