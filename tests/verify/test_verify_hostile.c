/* Plans that nobody would write: the verifier answers, soon, and touches nothing it should not (sanitizers watch). */
#include "plan/plan_data.h"
#include "support/mutations.h"
#include "support/random_program.h"
#include "support/test.h"

static tide_status verify(const random_case *c) {
    tide_verdict verdict;
    tide_status status = tide_plan_verify(c->plan, c->program, &c->machine, &c->budgets, &verdict);
    assert_true(status == TIDE_OK || (status == TIDE_E_PLAN && verdict.rule[0] && verdict.message[0]));
    return status;
}

static bool is_garbage(const mutation *m) { return strcmp(m->name, "garbage") == 0; }

/* Many flipped bits in one plan. */
static void test_garbage(void **state) {
    (void)state;
    size_t n, rejected = 0;
    const mutation *table = mutation_field_table(&n);
    while (!is_garbage(table)) table++;
    for (uint64_t seed = 0; seed < rounds(1000); seed++) {
        random_case c = random_case_make(seed, 12);
        uint64_t random = seed;
        for (uint64_t k = 0; k < 1 + seed % 40; k++) table->apply(&c, &random);
        rejected += verify(&c) == TIDE_E_PLAN;
        random_case_free(&c);
    }
    assert_true(rejected > rounds(900));
}

/* Tables cut off anywhere. (What is cut off may be superfluous: a second place of a value at the start.) */
static void test_truncated(void **state) {
    (void)state;
    size_t cut = 0, rejected = 0;
    for (uint64_t seed = 0; seed < rounds(1000); seed++) {
        random_case c = random_case_make(seed, 12);
        uint64_t random = seed;
        tide_plan *p = c.plan;
        size_t *counts[] = {&p->actions.count, &p->uses.count, &p->waits.count, &p->residencies.count,
                            &p->copies.count};
        size_t *count = counts[seed % 5];
        if (*count > 0) {
            *count = random_below(&random, *count);
            cut++;
            rejected += verify(&c) == TIDE_E_PLAN;
        }
        random_case_free(&c);
    }
    assert_true(cut > rounds(800) && rejected > cut * 95 / 100);
}

/* Every action claims the same long list of waits: 10^10 of them in all, were they read. */
static void test_shared_lists(void **state) {
    (void)state;
    random_case c = random_case_make(7, 12);
    tide_plan *p = c.plan;
    enum { N = 100000 };
    assert_true(p->actions.count > 0);
    tide__action a = p->actions.data[0];
    for (uint32_t i = 0; i < N; i++) assert_ok(tide__vec_push(&p->waits, i));
    a.waits = p->waits.count - N;
    for (uint32_t i = 0; i < N; i++) {
        a.n_waits = i;
        assert_ok(tide__vec_push(&p->actions, a));
    }
    assert_status(verify(&c), TIDE_E_PLAN);
    random_case_free(&c);
}

/* A long plan that waits for everything: 2 * 10^6 waits, all right. */
static void test_many_waits(void **state) {
    (void)state;
    enum { N = 2000 };
    tide_program_builder *b;
    tide_variant variant = {0, 1, 0};
    tide_op op = {.name = "nothing", .n_variants = 1, .variants = &variant};
    random_case c = {0};
    assert_ok(tide_program_builder_create("idle", false, &b));
    for (uint32_t i = 0; i < N; i++) assert_ok(tide_program_builder_op(b, &op, NULL));
    assert_ok(tide_program_builder_finish(b, &c.program));
    tide_machine_init_default(&c.machine);
    tide_budgets_init(&c.budgets);
    assert_ok(tide__plan_new(&c.plan));
    c.plan->signature = tide_program_signature(c.program);
    c.plan->n_queues = 1 + c.machine.n_channels;
    c.plan->n_tiers = c.machine.n_tiers;
    for (uint32_t i = 0; i < N; i++) {
        tide__action a = {.kind = TIDE_RUN, .op = i, .copy = TIDE_NONE, .n_waits = i, .waits = c.plan->waits.count};
        for (uint32_t k = 0; k < i; k++) assert_ok(tide__vec_push(&c.plan->waits, k));
        assert_ok(tide__vec_push(&c.plan->actions, a));
    }
    assert_ok(verify(&c));
    random_case_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_shared_lists),
        cmocka_unit_test(test_many_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
