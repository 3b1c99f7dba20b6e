/* The verifier under mutation: random valid plans are broken in every way it claims to catch, and both it and the
 * reference interpreter judge the result.
 *
 *                         interpreter: broken      interpreter: harmless under many timings
 *   verifier rejects      caught                   strict: a rule the timings do not need (counted)
 *   verifier accepts      NEVER                    harmless (counted; not too many per kind)
 */
#include <inttypes.h>

#include "plan/verify/verify_rules.h"
#include "support/interpreter.h"
#include "support/mutations.h"
#include "support/random_program.h"
#include "support/test.h"

enum { PER_KIND = 120, N_MIXED = 1500, MAX_OPS = 20 };
enum { TIMINGS_REJECTED = 4, TIMINGS_ACCEPTED = 24 };

/* TIDE_VERIFY_SCALE=50 makes the test that much longer, for a night's hunt. */
static uint32_t scaled(uint32_t n) {
    const char *scale = getenv("TIDE_VERIFY_SCALE");
    return scale ? n * (uint32_t)atoi(scale) : rounds(n);
}

typedef struct tally {
    uint32_t mutants, rejected, confirmed, harmless;
} tally;

static uint32_t caught_by[TIDE__RULE_COUNT];

static void count_rule(const char *name) {
    for (int rule = 0; rule < TIDE__RULE_COUNT; rule++)
        if (strcmp(name, tide__rule_name((tide__rule)rule)) == 0) {
            caught_by[rule]++;
            return;
        }
    fail_msg("rule \"%s\" is not in the table", name);
}

static interpretation interpret_often(const random_case *c, uint64_t seed, uint32_t timings) {
    interpretation result = {.ok = true};
    for (uint32_t k = 0; k < timings && result.ok; k++)
        result = interpret(c->plan, c->program, &c->machine, &c->budgets, seed + k);
    return result;
}

static void judge(const random_case *mutant, const char *kind, uint64_t seed, tally *t) {
    tide_verdict verdict;
    tide_status status = tide_plan_verify(mutant->plan, mutant->program, &mutant->machine, &mutant->budgets, &verdict);
    bool accepted = status == TIDE_OK;
    if (!accepted && status != TIDE_E_PLAN) fail_msg("%s: %s", kind, tide_last_error());
    interpretation result = interpret_often(mutant, seed << 8, accepted ? TIMINGS_ACCEPTED : TIMINGS_REJECTED);
    if (accepted && !result.ok)
        fail_msg("%s, seed %" PRIu64 ": accepted, but in step %u action %d %s", kind, seed, result.step,
                 (int)result.action, result.why);
    if (!accepted) count_rule(verdict.rule);
    t->mutants++;
    t->rejected += !accepted;
    t->confirmed += !accepted && !result.ok;
    t->harmless += accepted;
}

static void print_tally(const char *kind, const tally *t) {
    print_message("%-20s %7u %9u %9u %9u\n", kind, t->mutants, t->rejected, t->confirmed, t->harmless);
}

static void check_tally(const mutation *kind, const tally *t) {
    print_tally(kind->name, t);
    if (t->mutants < scaled(PER_KIND) / 4) fail_msg("%s: only %u mutants", kind->name, t->mutants);
    if (t->harmless * 100 > t->mutants * kind->max_accepted_percent) fail_msg("%s: too many accepted", kind->name);
    if (t->rejected == 0) fail_msg("%s: none is caught", kind->name);
    if (t->confirmed * 100 < t->rejected * kind->min_confirmed_percent) fail_msg("%s: too few confirmed", kind->name);
}

static void try_kind(const mutation *kind, uint64_t kind_seed, tally *t) {
    uint32_t n = scaled(PER_KIND);
    for (uint64_t k = 0; k < 20 * n && t->mutants < n; k++) {
        uint64_t seed = (kind_seed << 32) + k, random = seed;
        random_case original = random_case_make(seed, MAX_OPS), mutant = mutation_copy(&original);
        if (kind->apply(&mutant, &random)) judge(&mutant, kind->name, seed, t);
        tide_plan_destroy(mutant.plan);
        random_case_free(&original);
    }
}

static void try_table(const mutation *table, size_t n, uint64_t first_seed, tally *sum) {
    for (size_t i = 0; i < n; i++) {
        tally t = {0};
        try_kind(&table[i], first_seed + i, &t);
        check_tally(&table[i], &t);
        sum->mutants += t.mutants;
        sum->rejected += t.rejected;
        sum->confirmed += t.confirmed;
        sum->harmless += t.harmless;
    }
}

static void test_mutants_are_caught_or_harmless(void **state) {
    (void)state;
    size_t n_fields, n_orders;
    const mutation *fields = mutation_field_table(&n_fields), *orders = mutation_order_table(&n_orders);
    print_message("%-20s %7s %9s %9s %9s\n", "", "mutants", "rejected", "confirmed", "harmless");
    tally sum = {0};
    try_table(fields, n_fields, 1000, &sum);
    try_table(orders, n_orders, 2000, &sum);
    print_tally("all", &sum);
}

/* Several changes at once: whole actions first, which leaves a plan that makes sense, then perhaps a single field. */
static void test_mixed_mutants(void **state) {
    (void)state;
    tally t = {0};
    size_t n_fields, n_orders;
    const mutation *fields = mutation_field_table(&n_fields), *orders = mutation_order_table(&n_orders);
    for (uint64_t seed = UINT64_C(3000) << 32; t.mutants < scaled(N_MIXED); seed++) {
        uint64_t random = seed;
        random_case original = random_case_make(seed, MAX_OPS), mutant = mutation_copy(&original);
        uint32_t n_changes = 0;
        for (int k = 0; k < 2; k++) n_changes += orders[random_below(&random, n_orders)].apply(&mutant, &random);
        if (random_below(&random, 2)) n_changes += fields[random_below(&random, n_fields)].apply(&mutant, &random);
        if (n_changes > 1) judge(&mutant, "mixed", seed, &t);
        tide_plan_destroy(mutant.plan);
        random_case_free(&original);
    }
    print_tally("mixed", &t);
    assert_true(t.rejected > t.mutants / 2 && t.harmless > 0);
}

/* Runs after the test above, which fills caught_by. */
static void test_no_rule_is_dead(void **state) {
    (void)state;
    for (int rule = 0; rule < TIDE__RULE_COUNT; rule++) {
        print_message("%-10s %5u\n", tide__rule_name((tide__rule)rule), caught_by[rule]);
        if (caught_by[rule] == 0) fail_msg("rule %s caught nothing", tide__rule_name((tide__rule)rule));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutants_are_caught_or_harmless),
        cmocka_unit_test(test_no_rule_is_dead),
        cmocka_unit_test(test_mixed_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
