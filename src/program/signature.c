/* The signature: 128 bits, equal for equal steps, whatever the names, costs and order of declaration.
 *
 * Tensors are renumbered in an order that the step itself gives:
 *   1. by first appearance in the ops, reads before writes;
 *   2. then, from each of those back through the carries: where its value comes from (a `to` has one `from`);
 *   3. then what no op and no chain of carries to an op touches, sorted by attributes.
 * Everything that matters is hashed in that numbering. Invariant: programs that differ in anything hashed get
 * different signatures up to chance. (Only among values of step 3 that are carried to one another and look alike can
 * the order of declaration still show; such values have no use in any step.) */
#include "program/program_data.h"

#include <stdlib.h>

#include "base/hash.h"

typedef struct numbering {
    const tide_program *p;
    size_t n;        /* tensors that have a number */
    uint32_t *of;    /* per tensor: its number, TIDE_NONE until it has one */
    tide_id *order;  /* per number: its tensor */
    tide_id *source; /* per tensor: the `from` of the carry to it, or TIDE_NONE */
} numbering;

/* Two chains with different beginnings make 128 bits. */
typedef struct digest {
    uint64_t a, b;
} digest;

static void put(digest *d, uint64_t word) {
    d->a = tide__hash_word(d->a, word);
    d->b = tide__hash_word(d->b ^ UINT64_C(0x5851f42d4c957f2d), word);
}

static void give_number(numbering *n, tide_id tensor) {
    if (n->of[tensor] != TIDE_NONE) return;
    n->of[tensor] = (uint32_t)n->n;
    n->order[n->n++] = tensor;
}

static void number_by_ops(numbering *n) {
    for (size_t i = 0; i < n->p->ops.count; i++) {
        const tide_op *op = &n->p->ops.data[i];
        for (uint32_t k = 0; k < op->n_reads; k++) give_number(n, op->reads[k]);
        for (uint32_t k = 0; k < op->n_writes; k++) give_number(n, op->writes[k]);
    }
}

/* The list grows while it is walked: a source may have a source itself. */
static void number_by_carries(numbering *n) {
    for (size_t i = 0; i < n->p->carries.count; i++) n->source[n->p->carries.data[i].to] = n->p->carries.data[i].from;
    for (size_t i = 0; i < n->n; i++)
        if (n->source[n->order[i]] != TIDE_NONE) give_number(n, n->source[n->order[i]]);
}

static uint64_t kinds(const tide_tensor *t) {
    return (uint64_t)t->dtype << 24 | (uint64_t)t->cls << 16 | (uint64_t)t->start << 8 | t->keep;
}

typedef struct idle {
    uint64_t look; /* hash of what can be said of it without its number */
    tide_id tensor;
} idle;

static int compare_idle(const void *x, const void *y) {
    const idle *a = x, *b = y;
    if (a->look != b->look) return a->look < b->look ? -1 : 1;
    return a->tensor < b->tensor ? -1 : 1;
}

static uint64_t idle_look(const numbering *n, tide_id tensor) {
    tide_id source = n->source[tensor];
    uint64_t from = source == TIDE_NONE          ? 0
                    : source == tensor           ? 1
                    : n->of[source] == TIDE_NONE ? 2
                                                 : 3 + (uint64_t)n->of[source];
    const tide_tensor *t = &n->p->tensors.data[tensor];
    return tide__hash_word(tide__hash_word(kinds(t), t->size_bytes), from);
}

static tide_status number_idle(numbering *n) {
    TIDE_VEC(idle) rest = {0};
    for (size_t t = 0; t < n->p->tensors.count; t++) {
        if (n->of[t] != TIDE_NONE) continue;
        idle item = {idle_look(n, (tide_id)t), (tide_id)t};
        if (tide__vec_push(&rest, item) != TIDE_OK) {
            tide__vec_free(&rest);
            return TIDE_E_MEMORY;
        }
    }
    if (rest.count > 0) qsort(rest.data, rest.count, sizeof *rest.data, compare_idle);
    for (size_t i = 0; i < rest.count; i++) give_number(n, rest.data[i].tensor);
    tide__vec_free(&rest);
    return TIDE_OK;
}

static void put_op(digest *d, const numbering *n, const tide_op *op) {
    put(d, (uint64_t)op->phase << 8 | (uint64_t)op->rerunnable << 1 | op->random);
    if (op->random) put(d, op->counter);
    if (op->message) put(d, op->message->number << 1 | op->message->receives);
    if (op->message) put(d, op->message->peer);
    put(d, (uint64_t)op->n_reads << 32 | op->n_writes);
    put(d, (uint64_t)op->n_inplace << 32 | op->n_variants);
    for (uint32_t i = 0; i < op->n_reads; i++) put(d, n->of[op->reads[i]]);
    for (uint32_t i = 0; i < op->n_writes; i++) put(d, n->of[op->writes[i]]);
    for (uint32_t i = 0; i < op->n_inplace; i++) {
        put(d, (uint64_t)op->inplace[i].read << 32 | op->inplace[i].write);
        put(d, op->inplace[i].must);
    }
    for (uint32_t i = 0; i < op->n_variants; i++) {
        put(d, op->variants[i].workspace_bytes);
        put(d, op->variants[i].bits_class);
    }
}

/* Carries are hashed with their `to`, which has only one. */
static void put_tensor(digest *d, const numbering *n, tide_id tensor) {
    const tide_tensor *t = &n->p->tensors.data[tensor];
    tide_id source = n->source[tensor];
    put(d, t->size_bytes);
    put(d, kinds(t) << 32 | (source == TIDE_NONE ? TIDE_NONE : n->of[source]));
}

static tide_signature hash_all(const numbering *n) {
    const tide_program *p = n->p;
    digest d = {UINT64_C(0x7469646d61726b31), UINT64_C(0x70726f6772616d31)};
    put(&d, p->repeating);
    put(&d, p->ops.count);
    put(&d, p->tensors.count);
    for (size_t i = 0; i < p->ops.count; i++) put_op(&d, n, &p->ops.data[i]);
    for (size_t i = 0; i < n->n; i++) put_tensor(&d, n, n->order[i]);
    return (tide_signature){{d.a, d.b}};
}

tide_status tide__signature_compute(const tide_program *p, tide_signature *out) {
    size_t count = p->tensors.count;
    uint32_t *words = malloc((count * 3 + 1) * sizeof *words);
    if (!words) return tide__fail_memory();
    numbering n = {.p = p, .of = words, .order = words + count, .source = words + 2 * count};
    for (size_t i = 0; i < count; i++) n.of[i] = n.source[i] = TIDE_NONE;
    number_by_ops(&n);
    number_by_carries(&n);
    tide_status status = number_idle(&n);
    if (status == TIDE_OK) *out = hash_all(&n);
    free(words);
    return status;
}
