/* The signature: blind to names, costs and the order of declaration, and to nothing else. */
#include "support/test.h"

#include <tidemark/program.h>

/* A small step with one of everything. Each field below is a knob that the tests turn one at a time. */
typedef struct knobs {
    bool repeating, reversed; /* reversed: tensors and carries are declared in the opposite order */
    const char *name;
    tide_tensor tensors[7];
    tide_op ops[2];
    tide_variant variants[2];
    tide_inplace pair;
    bool extra_tensor, swap_reads, exchange_carries;
    uint64_t cost_ns;
} knobs;

enum { W, X, Y, W2, FROZEN, SPARE, NEXT, N_TENSORS }; /* SPARE: the prefetched batch, NEXT: where it comes from */

static knobs normal(void) {
    knobs k = {.repeating = true, .name = "p", .cost_ns = 5, .pair = {0, 0, true}};
    k.tensors[W] = (tide_tensor){.size_bytes = 8, .cls = TIDE_CLASS_WEIGHT, .start = TIDE_START_PRESENT};
    k.tensors[X] = (tide_tensor){.size_bytes = 16, .cls = TIDE_CLASS_INPUT, .start = TIDE_START_PRESENT};
    k.tensors[Y] = (tide_tensor){.size_bytes = 8, .cls = TIDE_CLASS_ACTIVATION};
    k.tensors[W2] = (tide_tensor){.size_bytes = 8, .cls = TIDE_CLASS_WEIGHT, .keep = true};
    k.tensors[FROZEN] = (tide_tensor){.size_bytes = 8, .start = TIDE_START_PRESENT, .keep = true};
    k.tensors[SPARE] = (tide_tensor){.size_bytes = 16, .start = TIDE_START_PRESENT, .keep = true};
    k.tensors[NEXT] = (tide_tensor){.size_bytes = 16, .start = TIDE_START_CLIENT, .keep = true};
    k.ops[0] = (tide_op){.rerunnable = true, .random = true, .counter = 3, .phase = TIDE_FORWARD};
    k.ops[1] = (tide_op){.rerunnable = true, .phase = TIDE_UPDATE};
    k.variants[0] = (tide_variant){.workspace_bytes = 4, .bits_class = 0};
    k.variants[1] = (tide_variant){.workspace_bytes = 0, .bits_class = 1};
    return k;
}

static void add_ops(tide_program_builder *b, const knobs *k, const tide_id *id) {
    tide_op forward = k->ops[0], update = k->ops[1];
    tide_variant variants[2] = {k->variants[0], k->variants[1]};
    variants[0].cost_ns = k->cost_ns;
    forward.n_reads = 2;
    forward.reads = k->swap_reads ? (tide_id[]){id[X], id[W]} : (tide_id[]){id[W], id[X]};
    forward.n_writes = 1;
    forward.writes = (tide_id[]){id[Y]};
    forward.n_variants = 2;
    forward.variants = variants;
    update.n_reads = 2;
    update.reads = (tide_id[]){id[W], id[Y]};
    update.n_writes = 1;
    update.writes = (tide_id[]){id[W2]};
    update.n_inplace = 1;
    update.inplace = &k->pair;
    update.n_variants = 1;
    update.variants = variants;
    update.name = k->name;
    assert_ok(tide_program_builder_op(b, &forward, NULL));
    assert_ok(tide_program_builder_op(b, &update, NULL));
}

static void add_carries(tide_program_builder *b, const knobs *k, const tide_id *id) {
    tide_carry carries[] = {{id[W2], id[W]}, {id[SPARE], id[X]}, {id[FROZEN], id[FROZEN]}, {id[NEXT], id[SPARE]}};
    if (k->exchange_carries) {
        carries[1].from = id[NEXT];
        carries[3].from = id[SPARE];
    }
    for (int i = 0; i < 4; i++) assert_ok(tide_program_builder_carry(b, carries[k->reversed ? 3 - i : i]));
}

static tide_signature sign(const knobs *k) {
    tide_program_builder *b = NULL;
    tide_program *p = NULL;
    tide_id id[N_TENSORS];
    assert_ok(tide_program_builder_create(k->name, k->repeating, &b));
    for (int i = 0; i < N_TENSORS; i++) {
        int t = k->reversed ? N_TENSORS - 1 - i : i;
        tide_tensor tensor = k->tensors[t];
        tensor.name = k->name;
        assert_ok(tide_program_builder_tensor(b, &tensor, &id[t]));
    }
    if (k->extra_tensor) assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.size_bytes = 0}, NULL));
    add_ops(b, k, id);
    if (k->repeating) add_carries(b, k, id);
    assert_ok(tide_program_builder_finish(b, &p));
    tide_signature s = tide_program_signature(p);
    tide_program_destroy(p);
    return s;
}

/* Both halves change with every field, as independent hashes do. */
static void expect_other(const knobs *k, const char *what) {
    knobs base = normal();
    tide_signature a = sign(&base), b = sign(k);
    if (a.word[0] == b.word[0] || a.word[1] == b.word[1]) fail_msg("%s does not change the signature", what);
}

static void expect_same(const knobs *k) {
    knobs base = normal();
    tide_signature a = sign(&base), b = sign(k);
    assert_memory_equal(&a, &b, sizeof a);
}

static void test_blind(void **state) {
    (void)state;
    knobs k = normal();
    expect_same(&k);
    k.name = "another";
    expect_same(&k);
    k.cost_ns = 99;
    expect_same(&k);
    k.reversed = true;
    expect_same(&k);
    k.ops[1].counter = 12; /* means nothing while the op is not random */
    expect_same(&k);
}

#define TURN(knob, value)        \
    do {                         \
        knobs k = normal();      \
        k.knob = (value);        \
        expect_other(&k, #knob); \
    } while (0)

static void test_sensitive(void **state) {
    (void)state;
    for (int t = 0; t < N_TENSORS; t++) {
        TURN(tensors[t].cls, TIDE_CLASS_GRADIENT);
        TURN(tensors[t].dtype, TIDE_U8);
    }
    TURN(repeating, false);
    TURN(tensors[Y].size_bytes, 9);
    TURN(tensors[Y].keep, true);
    TURN(exchange_carries, true);
    knobs shot = normal(), client = normal();
    shot.repeating = client.repeating = false;
    client.tensors[X].start = TIDE_START_CLIENT;
    tide_signature a = sign(&shot), b = sign(&client);
    assert_memory_not_equal(&a, &b, sizeof a);
}

static void test_sensitive_ops(void **state) {
    (void)state;
    TURN(ops[0].phase, TIDE_BACKWARD);
    TURN(ops[0].rerunnable, false);
    TURN(ops[0].random, false);
    TURN(ops[0].counter, 4);
    TURN(ops[1].random, true);
    TURN(variants[0].workspace_bytes, 5);
    TURN(variants[1].workspace_bytes, 5);
    TURN(variants[1].bits_class, 0);
    TURN(pair.must, false);
    TURN(pair.read, 1);
    TURN(extra_tensor, true);
    TURN(swap_reads, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blind), cmocka_unit_test(test_sensitive),
                                       cmocka_unit_test(test_sensitive_ops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
