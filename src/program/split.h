/* Which values and ops of a program are cut, for a number of parts: the largest set that tide_program_split's rules allow. */
#ifndef TIDE_PROGRAM_SPLIT_H
#define TIDE_PROGRAM_SPLIT_H

#include <tidemark/program.h>

typedef struct tide__cuts {
    uint32_t parts;
    bool *ops, *tensors; /* per id: it is cut */
} tide__cuts;

tide_status tide__cuts_find(const tide_program *p, uint32_t parts, bool bits_any, tide__cuts *out);
void tide__cuts_deinit(tide__cuts *cuts);

#endif
