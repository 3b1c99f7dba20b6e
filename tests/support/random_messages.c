/* See random_messages.h. */
#include "support/random_messages.h"

#include "base/vec.h"
#include "support/random_below.h"
#include "support/test.h"

typedef struct copier {
    tide_program_builder *builder;
    uint64_t *random, number;
} copier;

static void add_message(copier *c, tide_id tensor, bool receives) {
    static const tide_variant variant = {0};
    c->number += random_below(c->random, 3);
    const tide_message message = {receives, (uint32_t)random_below(c->random, 3), c->number++};
    tide_op op = {.name = receives ? "receive" : "send", .phase = TIDE_FORWARD, .n_variants = 1, .variants = &variant};
    op.message = &message;
    *(receives ? &op.n_writes : &op.n_reads) = 1;
    *(receives ? &op.writes : &op.reads) = &tensor;
    assert_ok(tide_program_builder_op(c->builder, &op, NULL));
}

/* Perhaps one value more, that a peer sends. */
static void copy_op(copier *c, tide_op op) {
    TIDE_VEC(tide_id) reads = {0};
    for (uint32_t k = 0; k < op.n_reads; k++) assert_ok(tide__vec_push(&reads, op.reads[k]));
    if (op.n_reads > 0 && random_below(c->random, 4) == 0) add_message(c, op.reads[0], false);
    if (random_below(c->random, 4) == 0) {
        const tide_tensor tensor = {.name = "received", .size_bytes = 4 * random_below(c->random, 16)};
        tide_id id;
        assert_ok(tide_program_builder_tensor(c->builder, &tensor, &id));
        add_message(c, id, true);
        assert_ok(tide__vec_push(&reads, id));
    }
    op.reads = reads.data;
    op.n_reads = (uint32_t)reads.count;
    op.split = NULL; /* which says nothing of that value */
    assert_ok(tide_program_builder_op(c->builder, &op, NULL));
    tide__vec_free(&reads);
}

tide_program *random_messages(tide_program *p, uint64_t *random) {
    copier c = {.random = random};
    tide_program *out;
    assert_ok(tide_program_builder_create(tide_program_name(p), tide_program_is_repeating(p), &c.builder));
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        assert_ok(tide_program_builder_tensor(c.builder, tide_program_tensor(p, t), NULL));
    for (tide_id i = 0; i < tide_program_op_count(p); i++) copy_op(&c, *tide_program_op(p, i));
    for (uint32_t i = 0; i < tide_program_carry_count(p); i++)
        assert_ok(tide_program_builder_carry(c.builder, *tide_program_carry(p, i)));
    assert_ok(tide_program_builder_finish(c.builder, &out));
    tide_program_destroy(p);
    return out;
}
