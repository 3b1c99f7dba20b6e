/* Every check of the stand-in bites, and none bites without cause: the mutants of mutants*.c run right and broken. */
#include "support/test.h"

#include "cuda/mutants.h"

static const mutant *const lists[] = {call_mutants, memory_mutants, order_mutants, kernel_mutants};

static void run_right(const mutant *m) {
    standin_open();
    forget_errors();
    m->run(false);
    if (first_error() != CUDA_SUCCESS) fail_msg("%s, right: error %d, %s", m->name, (int)first_error(), cu.report(0));
    standin_close();
}

static void run_broken(const mutant *m) {
    standin_open();
    forget_errors();
    m->run(true);
    cu.finish();
    if (cu.misuse_count(m->kind) == 0)
        fail_msg("%s, broken, was not found; instead: %s", m->name, cu.report(0) ? cu.report(0) : "nothing");
    if ((first_error() == CUDA_SUCCESS) != m->quiet) fail_msg("%s, broken: error %d", m->name, (int)first_error());
}

static void run_list(const mutant *list) {
    for (const mutant *m = list; m->name; m++) {
        run_right(m);
        run_broken(m);
    }
}

static void test_calls(void **state) { (void)state, run_list(call_mutants); }
static void test_memory(void **state) { (void)state, run_list(memory_mutants); }
static void test_order(void **state) { (void)state, run_list(order_mutants); }
static void test_kernels(void **state) { (void)state, run_list(kernel_mutants); }

/* Races between streams are found whatever the timing. */
static void test_order_at_other_speeds(void **state) {
    (void)state;
    setenv("TIDE_STANDIN_DELAY_US", "300", 1);
    for (int seed = 1; seed <= 4; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        setenv("TIDE_STANDIN_SEED", text, 1);
        run_list(order_mutants);
    }
    unsetenv("TIDE_STANDIN_DELAY_US");
    unsetenv("TIDE_STANDIN_SEED");
}

/* A kind of misuse without a mutant is a check that nobody has seen work. */
static void test_every_kind_has_one(void **state) {
    (void)state;
    bool seen[MISUSES] = {false};
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (const mutant *m = lists[l]; m->name; m++) seen[m->kind] = true;
    for (int kind = 0; kind < MISUSES; kind++)
        if (!seen[kind]) fail_msg("kind %d of misuse has no mutant", kind);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_has_one),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_order_at_other_speeds),
    };
    setenv("TIDE_STANDIN_DEVICES", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
