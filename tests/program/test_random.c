/* The generator of random programs: valid, of the size asked for, deterministic, and as varied as it says. */
#include "support/test.h"

#include "support/random_program.h"

typedef struct census {
    uint32_t may, must, variants, fixed, random, kept, client, carries, long_reads, repeating, empty;
} census;

static void count_op(const tide_program *p, tide_id id, census *c) {
    const tide_op *op = tide_program_op(p, id);
    for (uint32_t i = 0; i < op->n_inplace; i++) *(op->inplace[i].must ? &c->must : &c->may) += 1;
    c->variants += op->n_variants > 1;
    c->fixed += !op->rerunnable;
    c->random += op->random;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide_id producer = tide_program_producer(p, op->reads[i]);
        c->long_reads += producer != TIDE_NONE && id - producer > 10;
    }
}

static void count_program(const tide_program *p, census *c) {
    for (tide_id i = 0; i < tide_program_op_count(p); i++) count_op(p, i, c);
    for (tide_id i = 0; i < tide_program_tensor_count(p); i++) {
        const tide_tensor *t = tide_program_tensor(p, i);
        c->kept += t->keep;
        c->client += t->start == TIDE_START_CLIENT;
        c->empty += t->size_bytes == 0;
    }
    c->carries += tide_program_carry_count(p);
    c->repeating += tide_program_is_repeating(p);
}

static void test_varied(void **state) {
    (void)state;
    census c = {0};
    for (uint64_t seed = 0; seed < 500; seed++) {
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        assert_int_equal(tide_program_op_count(p), o.n_ops);
        count_program(p, &c);
        tide_program_destroy(p);
    }
    assert_in_range(c.repeating, 150, 350);
    assert_true(c.may > 500 && c.must > 500 && c.variants > 500 && c.fixed > 500 && c.random > 500);
    assert_true(c.kept > 500 && c.client > 500 && c.carries > 300 && c.long_reads > 500 && c.empty > 100);
}

static void test_deterministic(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        random_program_options o = random_program_defaults(seed);
        tide_program *p = random_program(&o), *q = random_program(&o);
        tide_signature a = tide_program_signature(p), b = tide_program_signature(q);
        assert_memory_equal(&a, &b, sizeof a);
        o.seed += 1000;
        tide_program *r = random_program(&o);
        tide_signature c = tide_program_signature(r);
        assert_memory_not_equal(&a, &c, sizeof a);
        tide_program_destroy(p);
        tide_program_destroy(q);
        tide_program_destroy(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_varied), cmocka_unit_test(test_deterministic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
