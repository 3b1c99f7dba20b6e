/* Other costs, the same program. */
#include "support/test.h"

#include "support/program_equal.h"
#include "support/random_program.h"

static void assert_same_signature(const tide_program *p, const tide_program *q) {
    tide_signature a = tide_program_signature(p), b = tide_program_signature(q);
    assert_memory_equal(&a, &b, sizeof a);
}

static void same_costs(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o), *q;
        uint64_t costs[128];
        assert_true(tide_program_op_count(p) <= 128);
        for (tide_id i = 0; i < tide_program_op_count(p); i++) costs[i] = tide_program_op(p, i)->variants[0].cost_ns;
        assert_ok(tide_program_with_costs(p, costs, &q));
        assert_programs_equal(p, q);
        tide_program_destroy(p);
        tide_program_destroy(q);
    }
}

static void other_costs(void **state) {
    (void)state;
    random_program_options o = random_program_defaults(5);
    tide_program *p = random_program(&o), *q;
    uint64_t costs[128];
    for (tide_id i = 0; i < tide_program_op_count(p); i++) costs[i] = 3 * tide_program_op(p, i)->variants[0].cost_ns;
    assert_ok(tide_program_with_costs(p, costs, &q));
    assert_same_signature(p, q);
    assert_int_equal(tide_program_cost_ns(q), 3 * tide_program_cost_ns(p));
    for (tide_id i = 0; i < tide_program_op_count(p); i++) {
        const tide_op *a = tide_program_op(p, i), *b = tide_program_op(q, i);
        for (uint32_t v = 0; v < a->n_variants; v++)
            assert_int_equal(b->variants[v].cost_ns, 3 * a->variants[v].cost_ns);
    }
    tide_program_destroy(q);
    costs[0] = UINT64_MAX;
    assert_status(tide_program_with_costs(p, costs, &q), TIDE_E_OVERFLOW);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_costs), cmocka_unit_test(other_costs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
