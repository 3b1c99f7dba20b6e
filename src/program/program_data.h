/* The program as data, for the files of this room; everybody else goes through <tidemark/program.h>. */
#ifndef TIDE_PROGRAM_PROGRAM_DATA_H
#define TIDE_PROGRAM_PROGRAM_DATA_H

#include <stdio.h>

#include <tidemark/program.h>

#include "base/vec.h"
#include "program/store.h"

struct tide_program {
    const char *name; /* in store, like all names and lists below */
    bool repeating;
    TIDE_VEC(tide_tensor) tensors;
    TIDE_VEC(tide_id) producers; /* per tensor: the op that writes it, or TIDE_NONE */
    TIDE_VEC(tide_op) ops;
    TIDE_VEC(tide_carry) carries;
    tide__store store;
    uint64_t cost_ns; /* of the default variants */
    uint32_t n_messages;
    uint64_t last_message; /* the largest number */
    tide_signature signature;
};

/* Of a complete program. Fails only for lack of memory. */
tide_status tide__signature_compute(const tide_program *p, tide_signature *out);

/* The same step as a program that runs once: no carries, so nothing has to end where it started. */
tide_status tide__program_once(const tide_program *p, tide_program **out);

/* The same step with op order[i] as op i; TIDE_E_ARGUMENT where one reads what does not exist yet or was destroyed. Tensors
 * keep their ids. */
tide_status tide__program_reorder(const tide_program *p, const tide_id *order, tide_program **out);

/* tide_program_unroll; last_only: what is kept but not carried on need only be there after the last step. */
tide_status tide__program_unroll(const tide_program *p, uint32_t steps, bool last_only, tide_program **out);

/* The text of tide_program_write; errors stay in the stream. */
void tide__program_write_stream(const tide_program *p, FILE *f);

#endif
