/* The builder as data, shared by build.c (what it stores) and check.c (what it refuses). */
#ifndef TIDE_PROGRAM_BUILD_H
#define TIDE_PROGRAM_BUILD_H

#include "program/program_data.h"

/* No sum of a program's bytes or nanoseconds reaches this: adding up tensors, workspaces and costs in 64 bits, even
 * rounded up or signed, is then safe everywhere without another check. */
#define TIDE__PROGRAM_SUM_MAX ((UINT64_C(1) << 62) - 1)

/* What the builder must remember of a tensor besides what the program keeps. */
typedef struct tide__build_state {
    tide_id destroyed_by; /* op whose `must` pair overwrote it, or TIDE_NONE */
    uint32_t read_mark;   /* the builder's mark when an op last listed it as a read */
    bool carried_to;      /* it is the `to` of a carry */
} tide__build_state;

struct tide_program_builder {
    tide_program *program;
    TIDE_VEC(tide__build_state) states; /* per tensor */
    TIDE_VEC(uint32_t) pair_marks;      /* scratch, per read and then per write of one op: pairs it is in */
    uint32_t mark;                      /* a new one for every op that is tried, so that failures leave no trace */
    uint64_t sum_bytes;                 /* all tensors, and the largest workspace of every op */
    uint64_t sum_ns;                    /* the slowest variant of every op */
};

/* Each gives TIDE_E_ARGUMENT or TIDE_E_OVERFLOW with the reason, and changes nothing but scratch. */
tide_status tide__check_tensor(const tide_program_builder *b, const tide_tensor *tensor);
tide_status tide__check_op(tide_program_builder *b, const tide_op *op);
tide_status tide__check_carry(const tide_program_builder *b, tide_carry carry);
tide_status tide__check_keep(const tide_program_builder *b, tide_id id);
tide_status tide__check_whole(const tide_program_builder *b);

/* Largest workspace and slowest cost over an op's variants (which need not be the same variant). */
void tide__op_extremes(const tide_op *op, uint64_t *workspace_bytes, uint64_t *cost_ns);

#endif
