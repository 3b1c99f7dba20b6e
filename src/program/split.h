/* Which values and ops of a program are cut, for a number of parts: the largest set that tide_program_split's rules allow. */
#ifndef TIDE_PROGRAM_SPLIT_H
#define TIDE_PROGRAM_SPLIT_H

#include <tidemark/program.h>

/* Of the reads and then the writes. */
static inline tide_along tide__along(const tide_op *op, uint32_t operand) {
    if (!op->split) return TIDE_ALONG_WHOLE;
    return operand < op->n_reads ? op->split->reads[operand] : op->split->writes[operand - op->n_reads];
}

typedef struct tide__cuts {
    uint32_t parts;
    bool *ops, *tensors; /* per id: it is cut */
} tide__cuts;

tide_status tide__cuts_find(const tide_program *p, uint32_t parts, bool bits_any, tide__cuts *out);
void tide__cuts_deinit(tide__cuts *cuts);

#endif
