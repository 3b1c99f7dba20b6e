/* Unrolling: k steps in one program do what k steps do, and give carried values places of their own. */
#include "support/test.h"

#include "support/random_program.h"

static tide_id add(tide_program_builder *b, tide_start start, bool keep) {
    tide_id id;
    assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.name = "t", .size_bytes = 8, .start = start, .keep = keep},
                                          &id));
    return id;
}

static void op(tide_program_builder *b, const tide_id *reads, uint32_t n_reads, const tide_id *writes,
               uint32_t n_writes, bool must) {
    static const tide_variant variant = {.cost_ns = 1};
    static const tide_inplace pair = {0, 0, true};
    tide_op o = {.name = "o",
                 .reads = reads,
                 .n_reads = n_reads,
                 .writes = writes,
                 .n_writes = n_writes,
                 .variants = &variant,
                 .n_variants = 1,
                 .inplace = &pair,
                 .n_inplace = must};
    assert_ok(tide_program_builder_op(b, &o, &(tide_id){0}));
}

static uint32_t needed(tide_program_builder *b, tide_program **p) {
    uint32_t steps = 0;
    assert_ok(tide_program_builder_finish(b, p));
    assert_ok(tide_program_unroll_needed(*p, &steps));
    return steps;
}

/* x from the last step is read at op `read_at`; its successor is written at op `write_at` of four. */
static uint32_t one_carry(uint32_t read_at, uint32_t write_at, tide_program **p) {
    tide_program_builder *b;
    assert_ok(tide_program_builder_create("p", true, &b));
    tide_id x = add(b, TIDE_START_PRESENT, false), next = add(b, TIDE_START_ABSENT, true);
    assert_ok(tide_program_builder_carry(b, (tide_carry){next, x}));
    for (uint32_t i = 0; i < 4; i++) op(b, &x, i == read_at, &next, i == write_at, false);
    return needed(b, p);
}

static void test_needed(void **state) {
    (void)state;
    tide_program *p;
    assert_int_equal(one_carry(0, 2, &p), 1); /* dead before its successor is born */
    tide_program_destroy(p);
    assert_int_equal(one_carry(2, 1, &p), 2); /* both alive for a while */
    tide_program *twice;
    uint32_t steps;
    assert_ok(tide_program_unroll(p, 2, &twice));
    assert_ok(tide_program_unroll_needed(twice, &steps));
    assert_int_equal(steps, 1);
    tide_program_destroy(twice);
    tide_program_destroy(p);

    tide_program_builder *b; /* a weight, updated in place, never leaves its place */
    assert_ok(tide_program_builder_create("p", true, &b));
    tide_id w = add(b, TIDE_START_PRESENT, false), w2 = add(b, TIDE_START_ABSENT, true);
    assert_ok(tide_program_builder_carry(b, (tide_carry){w2, w}));
    op(b, &w, 1, &w2, 1, true);
    assert_int_equal(needed(b, &p), 1);
    tide_program_destroy(p);

    assert_ok(tide_program_builder_create("p", true, &b)); /* two values that change places every step */
    tide_id y = add(b, TIDE_START_PRESENT, true), z = add(b, TIDE_START_PRESENT, true);
    assert_ok(tide_program_builder_carry(b, (tide_carry){y, z}));
    assert_ok(tide_program_builder_carry(b, (tide_carry){z, y}));
    op(b, &y, 1, NULL, 0, false);
    assert_int_equal(needed(b, &p), 2);
    tide_program_destroy(p);

    assert_ok(tide_program_builder_create("p", true, &b)); /* born late, read early two steps later */
    tide_id a2 = add(b, TIDE_START_PRESENT, false), a1 = add(b, TIDE_START_PRESENT, true),
            a0 = add(b, TIDE_START_ABSENT, true);
    assert_ok(tide_program_builder_carry(b, (tide_carry){a0, a1}));
    assert_ok(tide_program_builder_carry(b, (tide_carry){a1, a2}));
    op(b, &a2, 1, NULL, 0, false);
    op(b, NULL, 0, &a0, 1, false);
    assert_int_equal(needed(b, &p), 2);
    tide_program_destroy(p);
}

static void test_shape(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        random_program_options o = random_program_varied(seed);
        o.repeating = true;
        tide_program *p = random_program(&o), *three, *one;
        tide_liveness *l, *l3;
        uint32_t steps;
        assert_ok(tide_program_unroll(p, 3, &three));
        assert_ok(tide_program_unroll(p, 1, &one));
        tide_signature a = tide_program_signature(p), b = tide_program_signature(one);
        assert_memory_equal(&a, &b, sizeof a);
        assert_int_equal(tide_program_op_count(three), 3 * tide_program_op_count(p));
        assert_int_equal(tide_program_carry_count(three), tide_program_carry_count(p));
        assert_true(tide_program_cost_ns(three) == 3 * tide_program_cost_ns(p));
        assert_ok(tide_liveness_create(p, &l));
        assert_ok(tide_liveness_create(three, &l3));
        assert_true(l3->peak_bytes >= l->peak_bytes || o.prefetch);
        assert_ok(tide_program_unroll_needed(three, &steps));
        assert_int_equal(steps, 1);
        tide_liveness_destroy(l);
        tide_liveness_destroy(l3);
        tide_program_destroy(p);
        tide_program_destroy(one);
        tide_program_destroy(three);
    }
}

static void test_refused(void **state) {
    (void)state;
    random_program_options o = random_program_defaults(1);
    o.repeating = false;
    tide_program *p = random_program(&o), *out = NULL;
    assert_status(tide_program_unroll(p, 2, &out), TIDE_E_ARGUMENT);
    tide_program_destroy(p);
    o.repeating = true;
    p = random_program(&o);
    assert_status(tide_program_unroll(p, 0, &out), TIDE_E_ARGUMENT);
    assert_status(tide_program_unroll(p, 1000000, &out), TIDE_E_ARGUMENT);
    assert_null(out);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_needed),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
