/* An op that makes one tensor of others and can be re-run: what small programs of a test are built of. */
#ifndef TIDE_TESTS_PLAIN_OP_H
#define TIDE_TESTS_PLAIN_OP_H

#include <tidemark/program.h>

#include "support/test.h"

/* The tensor that it makes. */
static inline tide_id add_op(tide_program_builder *b, uint64_t size_bytes, uint32_t n_reads, const tide_id *reads) {
    tide_tensor tensor = {.size_bytes = size_bytes, .cls = TIDE_CLASS_ACTIVATION};
    tide_variant variant = {.cost_ns = 1};
    tide_id id;
    assert_ok(tide_program_builder_tensor(b, &tensor, &id));
    tide_op op = {.name = "op",
                  .rerunnable = true,
                  .n_reads = n_reads,
                  .reads = reads,
                  .n_writes = 1,
                  .writes = &id,
                  .n_variants = 1,
                  .variants = &variant};
    assert_ok(tide_program_builder_op(b, &op, NULL));
    return id;
}

#endif
