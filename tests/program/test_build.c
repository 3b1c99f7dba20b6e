/* The builder: what it stores, what it refuses and why, and that a refusal changes nothing. */
#include "support/test.h"

#include "program/build.h"
#include "support/program_equal.h"

static const tide_variant one_ns = {.cost_ns = 1};

static tide_program_builder *builder(bool repeating) {
    tide_program_builder *b = NULL;
    assert_ok(tide_program_builder_create("p", repeating, &b));
    return b;
}

static tide_id tensor(tide_program_builder *b, uint64_t size, tide_start start, bool keep) {
    tide_id id = TIDE_NONE;
    tide_tensor t = {.name = "t", .size_bytes = size, .start = start, .keep = keep};
    assert_ok(tide_program_builder_tensor(b, &t, &id));
    return id;
}

#define LIST(...) ((tide_id[]){__VA_ARGS__})
#define COUNT(...) ((uint32_t)(sizeof LIST(__VA_ARGS__) / sizeof(tide_id)))
#define OP(...) \
    (tide_op) { .rerunnable = true, .n_variants = 1, .variants = &one_ns, __VA_ARGS__ }
#define READS(...) .n_reads = COUNT(__VA_ARGS__), .reads = LIST(__VA_ARGS__)
#define WRITES(...) .n_writes = COUNT(__VA_ARGS__), .writes = LIST(__VA_ARGS__)
#define INPLACE(...)                                                                       \
    .n_inplace = (uint32_t)(sizeof((tide_inplace[]){__VA_ARGS__}) / sizeof(tide_inplace)), \
    .inplace = (tide_inplace[]) {                                                          \
        __VA_ARGS__                                                                        \
    }

static void add(tide_program_builder *b, tide_op op) { assert_ok(tide_program_builder_op(b, &op, NULL)); }

static void refuse(tide_program_builder *b, tide_op op, const char *why) {
    tide_id id = 77;
    assert_status(tide_program_builder_op(b, &op, &id), TIDE_E_ARGUMENT);
    assert_error_has(why);
    assert_error_has("op ");
    assert_int_equal(id, 77);
}

static tide_program *finish(tide_program_builder *b) {
    tide_program *p = NULL;
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

static void test_accessors(void **state) {
    (void)state;
    tide_program_builder *b = builder(true);
    tide_id w = tensor(b, 64, TIDE_START_PRESENT, false), x = tensor(b, 32, TIDE_START_CLIENT, false);
    tide_id y = tensor(b, 32, TIDE_START_ABSENT, false), v = tensor(b, 64, TIDE_START_ABSENT, true);
    tide_variant variants[] = {{16, 5, 0}, {0, 9, 1}};
    tide_op op = OP(READS(x, w), WRITES(y), INPLACE({0, 0, false}), .random = true, .counter = 7);
    op.variants = variants;
    op.n_variants = 2;
    tide_id id;
    assert_ok(tide_program_builder_op(b, &op, &id));
    assert_int_equal(id, 0);
    add(b, OP(READS(w, y), WRITES(v), INPLACE({0, 0, true}), .phase = TIDE_UPDATE, .name = NULL, .counter = 3));
    assert_ok(tide_program_builder_carry(b, (tide_carry){v, w}));
    tide_program *p = finish(b);

    assert_string_equal(tide_program_name(p), "p");
    assert_true(tide_program_is_repeating(p));
    assert_int_equal(tide_program_tensor_count(p), 4);
    assert_int_equal(tide_program_op_count(p), 2);
    assert_int_equal(tide_program_carry_count(p), 1);
    assert_int_equal(tide_program_carry(p, 0)->from, v);
    assert_null(tide_program_carry(p, 1));
    assert_null(tide_program_tensor(p, 4));
    assert_null(tide_program_op(p, 2));
    assert_int_equal(tide_program_producer(p, w), TIDE_NONE);
    assert_int_equal(tide_program_producer(p, v), 1);
    assert_int_equal(tide_program_producer(p, 99), TIDE_NONE);
    assert_int_equal(tide_program_cost_ns(p), 6);
    const tide_op *first = tide_program_op(p, 0), *second = tide_program_op(p, 1);
    assert_int_equal(first->reads[1], w);
    assert_int_equal(first->variants[1].bits_class, 1);
    assert_int_equal(first->counter, 7);
    assert_string_equal(second->name, "");
    assert_int_equal(second->counter, 0);
    assert_true(second->inplace[0].must);
    tide_program_destroy(p);
    tide_program_destroy(NULL);
    tide_program_builder_destroy(NULL);
}

static void test_reads_and_writes(void **state) {
    (void)state;
    tide_program_builder *b = builder(false);
    tide_id w = tensor(b, 8, TIDE_START_PRESENT, false), x = tensor(b, 8, TIDE_START_CLIENT, false);
    tide_id y = tensor(b, 8, TIDE_START_ABSENT, false), z = tensor(b, 8, TIDE_START_ABSENT, false);
    refuse(b, OP(READS(9)), "reads tensor 9, which is not defined");
    refuse(b, OP(READS(y), WRITES(z)), "tensor 2 is read before it is written");
    refuse(b, OP(READS(y), WRITES(y)), "tensor 2 is read before it is written");
    refuse(b, OP(READS(w, x, w)), "lists tensor 0 twice as a read");
    refuse(b, OP(WRITES(9)), "writes tensor 9, which is not defined");
    refuse(b, OP(WRITES(w)), "writes tensor 0, which exists at the start");
    refuse(b, OP(WRITES(x)), "writes tensor 1, which exists at the start");
    refuse(b, OP(WRITES(y, y)), "lists tensor 2 twice as a write");
    add(b, OP(READS(w, x), WRITES(y)));
    refuse(b, OP(WRITES(y)), "writes tensor 2, which op 0 has written");
    add(b, OP(READS(w, y), WRITES(z)));
    tide_program *p = finish(b);
    assert_int_equal(tide_program_op_count(p), 2);
    tide_program_destroy(p);
}

static void test_shapes(void **state) {
    (void)state;
    tide_program_builder *b = builder(false);
    tide_op op = OP(.n_reads = 1);
    refuse(b, op, "a list is NULL");
    op = OP(.n_reads = 0);
    op.n_variants = 0;
    refuse(b, op, "no variant");
    refuse(b, OP(.phase = (tide_phase)3), "phase");
    assert_status(tide_program_builder_op(b, NULL, NULL), TIDE_E_ARGUMENT);
    assert_status(tide_program_builder_tensor(b, NULL, NULL), TIDE_E_ARGUMENT);
    tide_tensor bad[] = {{.dtype = (tide_dtype)6}, {.cls = (tide_class)8}, {.start = (tide_start)3}};
    for (size_t i = 0; i < 3; i++) assert_status(tide_program_builder_tensor(b, &bad[i], NULL), TIDE_E_ARGUMENT);
    tide_program *p = finish(b);
    assert_int_equal(tide_program_tensor_count(p), 0);
    tide_program_destroy(p);
}

static void test_pairs(void **state) {
    (void)state;
    tide_program_builder *b = builder(false);
    tide_id w = tensor(b, 8, TIDE_START_PRESENT, false), k = tensor(b, 8, TIDE_START_PRESENT, true);
    tide_id y = tensor(b, 8, TIDE_START_ABSENT, false), z = tensor(b, 8, TIDE_START_ABSENT, false);
    tide_id large = tensor(b, 16, TIDE_START_ABSENT, false);
    refuse(b, OP(READS(w), WRITES(y), INPLACE({1, 0, false})), "out of range");
    refuse(b, OP(READS(w), WRITES(y), INPLACE({0, 1, false})), "out of range");
    refuse(b, OP(READS(w), WRITES(large), INPLACE({0, 0, false})), "differ in size");
    refuse(b, OP(READS(w, k), WRITES(y), INPLACE({0, 0, false}, {1, 0, false})), "tensor 2 is in two in-place pairs");
    refuse(b, OP(READS(w), WRITES(y, z), INPLACE({0, 0, true}, {0, 1, false})), "tensor 0 is in a `must` pair");
    refuse(b, OP(READS(w), WRITES(y, z), INPLACE({0, 0, false}, {0, 1, true})), "tensor 0 is in a `must` pair");
    refuse(b, OP(READS(k), WRITES(y), INPLACE({0, 0, true})), "tensor 1 in place, which is needed at the end");
    refuse(b, OP(INPLACE({0, 0, false})), "out of range");
    add(b, OP(READS(k), WRITES(y, z), INPLACE({0, 0, false}, {0, 1, false})));
    add(b, OP(READS(w), WRITES(tensor(b, 8, TIDE_START_ABSENT, false)), INPLACE({0, 0, true})));
    refuse(b, OP(READS(w)), "reads tensor 0, which op 1 has overwritten");
    assert_status(tide_program_builder_keep(b, w), TIDE_E_ARGUMENT);
    assert_error_has("op 1 has overwritten it");
    assert_status(tide_program_builder_keep(b, 99), TIDE_E_ARGUMENT);
    tide_program_destroy(finish(b));
}

static void refuse_carry(tide_program_builder *b, tide_id from, tide_id to, const char *why) {
    assert_status(tide_program_builder_carry(b, (tide_carry){from, to}), TIDE_E_ARGUMENT);
    assert_error_has(why);
}

static void refuse_finish(tide_program_builder *b, const char *why) {
    tide_program *p = NULL;
    assert_status(tide_program_builder_finish(b, &p), TIDE_E_ARGUMENT);
    assert_null(p);
    assert_error_has(why);
}

static void test_carries(void **state) {
    (void)state;
    tide_program_builder *b = builder(true);
    tide_id w = tensor(b, 8, TIDE_START_PRESENT, false), v = tensor(b, 8, TIDE_START_ABSENT, false);
    tide_id large = tensor(b, 16, TIDE_START_PRESENT, true);
    refuse_carry(b, 9, w, "tensor 9 is not defined");
    refuse_carry(b, v, 9, "tensor 9 is not defined");
    refuse_carry(b, large, w, "differ in size");
    refuse_carry(b, w, v, "tensor 1 is not present at the start");
    refuse_finish(b, "tensor 0 is present at the start of a repeating program");
    assert_ok(tide_program_builder_carry(b, (tide_carry){v, w}));
    refuse_carry(b, w, w, "from another carry already");
    assert_ok(tide_program_builder_carry(b, (tide_carry){large, large}));
    refuse_finish(b, "tensor 1 is not kept to the end");
    assert_ok(tide_program_builder_keep(b, v));
    refuse_finish(b, "tensor 1 is needed at the end but never written");
    add(b, OP(READS(w), WRITES(v), INPLACE({0, 0, true})));
    tide_program *p = finish(b);
    assert_int_equal(tide_program_carry_count(p), 2);
    tide_program_destroy(p);

    b = builder(false);
    w = tensor(b, 8, TIDE_START_PRESENT, true);
    refuse_carry(b, w, w, "one-shot");
    tide_program_destroy(finish(b));
}

static void test_sums(void **state) {
    (void)state;
    tide_program_builder *b = builder(false);
    tide_tensor huge = {.size_bytes = UINT64_MAX};
    assert_status(tide_program_builder_tensor(b, &huge, NULL), TIDE_E_OVERFLOW);
    huge.size_bytes = UINT64_C(1) << 61;
    assert_ok(tide_program_builder_tensor(b, &huge, NULL));
    assert_status(tide_program_builder_tensor(b, &huge, NULL), TIDE_E_OVERFLOW);
    tide_variant large[] = {{.cost_ns = 1}, {.workspace_bytes = UINT64_C(1) << 61}};
    tide_variant slow[] = {{.cost_ns = 1}, {.cost_ns = UINT64_C(1) << 62}};
    tide_op op = OP(.n_reads = 0);
    op.n_variants = 2;
    op.variants = large;
    assert_status(tide_program_builder_op(b, &op, NULL), TIDE_E_OVERFLOW);
    assert_error_has("workspaces included");
    op.variants = slow;
    assert_status(tide_program_builder_op(b, &op, NULL), TIDE_E_OVERFLOW);
    assert_error_has("costs");
    huge.size_bytes -= 1;
    assert_ok(tide_program_builder_tensor(b, &huge, NULL));
    huge.size_bytes = 1;
    assert_status(tide_program_builder_tensor(b, &huge, NULL), TIDE_E_OVERFLOW);
    tide_program_destroy(finish(b));
}

/* The same program, with refused calls between all others if told so. */
static tide_program *build_among_refusals(bool refusals) {
    tide_program_builder *b = builder(true);
    tide_id w = tensor(b, 8, TIDE_START_PRESENT, false), y = tensor(b, 8, TIDE_START_ABSENT, true);
    tide_id z = tensor(b, 8, TIDE_START_ABSENT, false);
    for (int i = 0; refusals && i < 3; i++) {
        tide_tensor huge = {.size_bytes = UINT64_MAX};
        assert_status(tide_program_builder_tensor(b, &huge, NULL), TIDE_E_OVERFLOW);
        refuse(b, OP(READS(w), WRITES(y, z, y), INPLACE({0, 0, true})), "twice");
        refuse(b, OP(READS(w), WRITES(z, y), INPLACE({0, 0, true}, {0, 1, true})), "in a `must` pair");
        refuse_carry(b, w, y, "not present at the start");
        refuse_finish(b, "no carry gives it a value");
    }
    add(b, OP(READS(w), WRITES(z)));
    if (refusals) refuse(b, OP(READS(w), WRITES(y, z), INPLACE({0, 0, true})), "op 0 has written");
    add(b, OP(READS(w, z), WRITES(y), INPLACE({0, 0, true})));
    if (refusals) refuse_finish(b, "no carry gives it a value");
    assert_ok(tide_program_builder_carry(b, (tide_carry){y, w}));
    return finish(b);
}

static void test_refusals_change_nothing(void **state) {
    (void)state;
    tide_program *p = build_among_refusals(false), *q = build_among_refusals(true);
    assert_programs_equal(p, q);
    tide_program_destroy(p);
    tide_program_destroy(q);
}

/* The marks that find duplicates may run out and begin again. */
static void test_mark_wraps(void **state) {
    (void)state;
    tide_program_builder *b = builder(false);
    tide_id x = tensor(b, 8, TIDE_START_CLIENT, false), y = tensor(b, 8, TIDE_START_CLIENT, false);
    add(b, OP(READS(x)));
    b->mark = UINT32_MAX - 1;
    for (int i = 0; i < 4; i++) {
        add(b, OP(READS(x, y)));
        refuse(b, OP(READS(x, y, x)), "lists tensor 0 twice");
    }
    tide_program_destroy(finish(b));
}

/* Lists far larger than a chunk of the store, and many small ones: all stay where they are. */
static void test_large(void **state) {
    (void)state;
    enum { N = 200000 };
    tide_program_builder *b = builder(false);
    tide_id *ids = malloc(N * sizeof *ids);
    char *name = malloc(N + 1);
    memset(name, 'n', N);
    name[N] = '\0';
    for (uint32_t i = 0; i < N; i++) ids[i] = tensor(b, i, TIDE_START_ABSENT, false);
    for (uint32_t i = 0; i < 100; i++) add(b, OP(WRITES(ids[i])));
    add(b, OP(.n_writes = N - 100, .writes = ids + 100, .name = name));
    add(b, OP(.n_reads = N, .reads = ids));
    tide_program *p = finish(b);
    for (uint32_t i = 0; i < 100; i++) assert_int_equal(tide_program_op(p, i)->writes[0], i);
    assert_memory_equal(tide_program_op(p, 100)->writes, ids + 100, (N - 100) * sizeof *ids);
    assert_string_equal(tide_program_op(p, 100)->name, name);
    assert_memory_equal(tide_program_op(p, 101)->reads, ids, N * sizeof *ids);
    assert_string_equal(tide_program_tensor(p, N - 1)->name, "t");
    tide_program_destroy(p);
    free(ids);
    free(name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accessors),
        cmocka_unit_test(test_reads_and_writes),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_carries),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_mark_wraps),
        cmocka_unit_test(test_refusals_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
