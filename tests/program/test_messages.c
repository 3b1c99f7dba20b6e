/* Messages in programs: what the builder refuses, files, signatures, unrolling. */
#include <stdlib.h>

#include <tidemark/program.h>

#include "support/program_equal.h"
#include "support/random_messages.h"
#include "support/random_program.h"
#include "support/scratch_file.h"
#include "support/test.h"

static const tide_variant variant = {.cost_ns = 1};

static tide_program_builder *start(void) {
    tide_program_builder *b;
    const tide_tensor present = {.name = "a", .size_bytes = 8, .start = TIDE_START_PRESENT},
                      absent = {.name = "b", .size_bytes = 8};
    assert_ok(tide_program_builder_create("p", false, &b));
    assert_ok(tide_program_builder_tensor(b, &present, NULL));
    assert_ok(tide_program_builder_tensor(b, &absent, NULL));
    return b;
}

static tide_op message_op(const tide_message *message) {
    static const tide_id a = 0, b = 1;
    tide_op op = {.name = "m", .n_variants = 1, .variants = &variant, .message = message};
    if (message->receives)
        op.n_writes = 1, op.writes = &b;
    else
        op.n_reads = 1, op.reads = &a;
    return op;
}

static void refuse(tide_program_builder *b, const tide_op *op, const char *why) {
    assert_status(tide_program_builder_op(b, op, NULL), TIDE_E_ARGUMENT);
    assert_error_has(why);
}

static void test_refused(void **state) {
    (void)state;
    static const tide_variant roomy = {.workspace_bytes = 1};
    tide_program_builder *b = start();
    tide_message send = {.peer = 1, .number = 5}, receive = {.receives = true, .peer = 1, .number = 5};
    tide_op op = message_op(&send), other = message_op(&receive);
    op.rerunnable = true;
    refuse(b, &op, "runs once");
    op = message_op(&send);
    op.variants = &roomy;
    refuse(b, &op, "no workspace");
    op = message_op(&send);
    op.n_writes = 1;
    op.writes = other.writes;
    refuse(b, &op, "the one tensor");
    send.number = UINT64_C(1) << 48;
    op = message_op(&send);
    refuse(b, &op, "below 2^48");
    send.number = 5;
    op = message_op(&send);
    assert_ok(tide_program_builder_op(b, &op, NULL));
    refuse(b, &other, "ascend");
    receive.number = 6;
    assert_ok(tide_program_builder_op(b, &other, NULL));
    tide_program *p;
    assert_ok(tide_program_builder_finish(b, &p));
    assert_int_equal(tide_program_message_count(p), 2);
    tide_program_destroy(p);
}

static tide_program *draw(uint64_t seed) {
    random_program_options o = random_program_varied(seed);
    uint64_t random = seed;
    return random_messages(random_program(&o), &random);
}

static void test_files(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 1 + rounds(50); seed++) {
        tide_program *p = draw(seed), *q;
        assert_ok(tide_program_write(p, scratch_path));
        assert_ok(tide_program_read(scratch_path, &q));
        assert_null(program_difference(p, q));
        tide_signature x = tide_program_signature(p), y = tide_program_signature(q);
        assert_memory_equal(&x, &y, sizeof x);
        tide_program_destroy(q);
        tide_program_destroy(p);
    }
}

static tide_signature signature_with(tide_message message) {
    tide_program_builder *b = start();
    tide_program *p;
    tide_op op = message_op(&message);
    assert_ok(tide_program_builder_op(b, &op, NULL));
    assert_ok(tide_program_builder_finish(b, &p));
    tide_signature s = tide_program_signature(p);
    tide_program_destroy(p);
    return s;
}

static void test_signatures(void **state) {
    (void)state;
    tide_signature a = signature_with((tide_message){false, 1, 5}), b = signature_with((tide_message){false, 2, 5}),
                   c = signature_with((tide_message){false, 1, 6}), same = signature_with((tide_message){false, 1, 5});
    assert_memory_equal(&a, &same, sizeof a);
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_memory_not_equal(&a, &c, sizeof a);
}

static void test_unrolled(void **state) {
    (void)state;
    random_program_options o = random_program_defaults(3);
    uint64_t random = 3;
    tide_program *p = random_messages(random_program(&o), &random), *three;
    assert_true(tide_program_message_count(p) > 0);
    assert_ok(tide_program_unroll(p, 3, &three));
    assert_int_equal(tide_program_message_count(three), 3 * tide_program_message_count(p));
    tide_program_destroy(three);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_unrolled),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
