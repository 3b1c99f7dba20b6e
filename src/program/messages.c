/* Do the programs of all ranks of a job exchange the same messages? Numbers ascend in each, so one pass per pair of neighbours in
 * that order would do; a table by number is as quick and says more.
 *
 * Invariant: where every message of every rank has its other side, and all ranks take messages in the order of their numbers, no
 * rank waits in a circle: of the messages that are not through, both sides of the one with the least number have nothing before
 * it that waits for another. */
#include <stdlib.h>

#include "base/error.h"
#include "program/program_data.h"

/* One side of a message. */
typedef struct side {
    const tide_message *message;
    uint32_t rank;
    uint64_t size_bytes;
} side;

static int by_number(const void *a, const void *b) {
    const side *x = a, *y = b;
    if (x->message->number != y->message->number) return x->message->number < y->message->number ? -1 : 1;
    return (int)x->message->receives - (int)y->message->receives; /* senders first */
}

static size_t list_sides(const tide_program *p, uint32_t rank, side *sides) {
    size_t n = 0;
    for (size_t i = 0; i < p->ops.count; i++) {
        const tide_op *op = &p->ops.data[i];
        if (!op->message) continue;
        tide_id tensor = op->message->receives ? op->writes[0] : op->reads[0];
        sides[n++] = (side){op->message, rank, p->tensors.data[tensor].size_bytes};
    }
    return n;
}

static tide_status match(const side *sides, size_t n) {
    for (size_t i = 0; i < n; i += 2) {
        const side *a = &sides[i], *b = &sides[i + 1];
        unsigned long long number = a->message->number;
        if (i + 1 == n || b->message->number != number || a->message->receives || !b->message->receives)
            return tide__fail(TIDE_E_ARGUMENT, "message %llu of rank %u has no other side", number, a->rank);
        if (a->message->peer != b->rank || b->message->peer != a->rank)
            return tide__fail(TIDE_E_ARGUMENT, "message %llu goes from rank %u to %u and is awaited by rank %u from %u",
                              number, a->rank, a->message->peer, b->rank, b->message->peer);
        if (a->size_bytes != b->size_bytes)
            return tide__fail(TIDE_E_ARGUMENT, "message %llu has %llu bytes at rank %u and %llu at rank %u", number,
                              (unsigned long long)a->size_bytes, a->rank, (unsigned long long)b->size_bytes, b->rank);
    }
    return TIDE_OK;
}

tide_status tide_program_match_messages(const tide_program *const *ranks, uint32_t n_ranks) {
    size_t n = 0, at = 0;
    TIDE_NEED(ranks);
    for (uint32_t r = 0; r < n_ranks; r++) n += ranks[r]->n_messages;
    side *sides = malloc((n + 1) * sizeof *sides);
    if (!sides) return tide__fail_memory();
    for (uint32_t r = 0; r < n_ranks; r++) at += list_sides(ranks[r], r, sides + at);
    qsort(sides, n, sizeof *sides, by_number);
    tide_status status = match(sides, n);
    free(sides);
    return status;
}
