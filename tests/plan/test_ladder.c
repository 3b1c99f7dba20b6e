/* A larger budget is never slower, and a smaller one never has the larger arena: policy hybrid, and hybrid:steady, for all
 * budgets that its ladder serves. What the other policies promise: an arena within the budget. */
#include "support/test.h"

#include <stdlib.h>

#include <tidemark/tidemark.h>

#include "plan/decide/hybrid/ladder.h"
#include "plan/decide/policies.h"
#include "support/hand_made.h"
#include "support/network.h"
#include "support/random_program.h"

enum { N_BUDGETS = 6, MOST_OPS = 24 }; /* a ladder has a dozen rungs, and each is searched */

typedef struct outcome {
    bool made;
    uint64_t step_ns, arena_bytes;
} outcome;

static tide_plan_options options_for(const char *policy, tide_effort effort, uint64_t budget) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.effort = effort;
    o.budgets.arena_bytes = budget;
    return o;
}

/* By the ladder alone: none below its lowest draft, where tide_plan_create searches for each budget by itself. */
static outcome climb_to(const tide_program *p, const tide_machine *m, const tide_plan_options *o) {
    const char *colon = strchr(o->policy, ':');
    tide__policy_input in = {.program = p,
                             .machine = m,
                             .options = o,
                             .argument = colon ? colon + 1 : "",
                             .target_bytes = o->budgets.arena_bytes};
    tide_plan *plan;
    outcome r = {0};
    assert_ok(tide__plan_hybrid(&in, &o->budgets.arena_bytes, 1, &plan));
    if (!plan) return r;
    assert_ok(tide_plan_verify(plan, p, m, &o->budgets, NULL));
    r = (outcome){true, plan->prediction.step_ns, plan->arena_bytes};
    tide_plan_destroy(plan);
    return r;
}

static outcome plan_in(const tide_program *p, const tide_machine *m, const tide_plan_options *o) {
    tide_plan *plan;
    outcome r = {0};
    tide_status status = tide_plan_create(p, m, o, NULL, &plan);
    if (status == TIDE_E_FIT || status == TIDE_E_TIER_FULL) return r;
    assert_ok(status);
    r = (outcome){true, tide_plan_prediction(plan)->step_ns, tide_plan_arena_bytes(plan)};
    assert_true(r.arena_bytes <= o->budgets.arena_bytes);
    tide_plan_destroy(plan);
    return r;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Budgets at random up to a fifth above the whole, and none at all. */
static void draw_budgets(uint64_t *rng, uint64_t whole_bytes, size_t n, uint64_t *budgets) {
    for (size_t i = 0; i + 1 < n; i++)
        budgets[i] = whole_bytes / 10 + random_below(rng, whole_bytes + whole_bytes / 10 + 1);
    budgets[n - 1] = UINT64_MAX;
    qsort(budgets, n, sizeof *budgets, ascending);
}

/* How many of the budgets the ladder serves. */
static uint32_t check_program(const tide_program *p, const tide_machine *m, const char *policy, tide_effort effort,
                              const uint64_t *budgets, size_t n) {
    outcome last = {0}, within = {0}; /* within: at the largest budget that is one */
    uint32_t served = 0;
    for (size_t i = 0; i < n; i++) {
        tide_plan_options o = options_for(policy, effort, budgets[i]);
        outcome r = climb_to(p, m, &o);
        assert_true(r.made || !last.made); /* what a smaller budget has serves this one, too */
        if (!r.made) continue;
        if (i == n - 2) within = r;
        if (last.made && (r.step_ns > last.step_ns || r.arena_bytes < last.arena_bytes))
            fail_msg("%s: budget %llu: %llu ns in %llu bytes, after %llu ns in %llu bytes", policy,
                     (unsigned long long)budgets[i], (unsigned long long)r.step_ns, (unsigned long long)r.arena_bytes,
                     (unsigned long long)last.step_ns, (unsigned long long)last.arena_bytes);
        last = r;
        served++;
    }
    if (within.made) { /* nothing is between the ladder and the plan */
        tide_plan_options o = options_for(policy, effort, budgets[n - 2]);
        outcome whole = plan_in(p, m, &o);
        assert_int_equal(within.step_ns, whole.step_ns);
        assert_int_equal(within.arena_bytes, whole.arena_bytes);
    }
    return served;
}

static uint64_t whole_of(const tide_program *p, const tide_machine *m) {
    tide_plan_options o = options_for("liveness", TIDE_EFFORT_LOW, UINT64_MAX);
    return plan_in(p, m, &o).arena_bytes;
}

static void random_programs(void **state) {
    (void)state;
    static const char *const settings[] = {"hybrid:steady", "hybrid:steady", "hybrid:steady,nomove",
                                           "hybrid:norerun,steady"};
    tide_machine m = machine_with_disk();
    uint32_t served = 0;
    for (uint64_t seed = 0; seed < rounds(8); seed++) {
        uint64_t rng = seed * 31 + 7, budgets[N_BUDGETS];
        random_program_options ro = random_program_varied(seed);
        if (ro.n_ops > MOST_OPS) ro.n_ops = MOST_OPS;
        tide_program *p = random_program(&ro);
        draw_budgets(&rng, whole_of(p, &m), N_BUDGETS, budgets);
        served += check_program(p, &m, settings[seed % 4], seed % 2 ? TIDE_EFFORT_NORMAL : TIDE_EFFORT_LOW, budgets,
                                N_BUDGETS);
        tide_program_destroy(p);
    }
    print_message("%u budgets\n", served);
    assert_true(served > rounds(25));
}

static void a_network(void **state) {
    (void)state;
    uint64_t rng = 1, budgets[6];
    network n = network_make("lenet", 16, "v100-16gb-pcie");
    draw_budgets(&rng, whole_of(n.program, &n.machine), 6, budgets);
    assert_true(check_program(n.program, &n.machine, "hybrid:steady", TIDE_EFFORT_NORMAL, budgets, 6) > 1);
    network_free(&n);
}

/* Where nobody asks for it: the same ladder, at normal effort. */
static void by_default(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    random_program_options ro = random_program_defaults(5);
    ro.n_ops = 104;
    tide_program *p = random_program(&ro);
    uint64_t whole = whole_of(p, &m);
    tide_plan_options o = options_for("hybrid", TIDE_EFFORT_NORMAL, whole / 2);
    outcome a = plan_in(p, &m, &o);
    o.policy = "hybrid:steady";
    outcome b = climb_to(p, &m, &o);
    assert_true(a.made && b.made);
    assert_int_equal(a.step_ns, b.step_ns);
    assert_int_equal(a.arena_bytes, b.arena_bytes);
    tide_program_destroy(p);
}

/* The others: honest about the budget, deterministic, no more. */
static void other_policies(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    for (uint64_t seed = 100; seed < 104; seed++) {
        uint64_t rng = seed, budgets[4];
        random_program_options ro = random_program_varied(seed);
        tide_program *p = random_program(&ro);
        draw_budgets(&rng, whole_of(p, &m), 4, budgets);
        const char *name;
        for (uint32_t i = 0; (name = tide_policy_name(i, NULL)) != NULL; i++)
            for (size_t k = 0; k < 4 && strcmp(name, "manual") != 0; k++) {
                tide_plan_options o = options_for(name, TIDE_EFFORT_LOW, budgets[k]);
                outcome a = plan_in(p, &m, &o), b = plan_in(p, &m, &o);
                assert_int_equal(a.made, b.made);
                assert_int_equal(a.arena_bytes, b.arena_bytes);
                assert_int_equal(a.step_ns, b.step_ns);
            }
        tide_program_destroy(p);
    }
}

/* Rungs ascend, do not depend on the budget they end at, and hold the multiples of ten percent. */
static void rungs(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    random_program_options ro = random_program_defaults(3);
    tide_program *p = random_program(&ro);
    uint64_t whole = whole_of(p, &m);
    tide_plan_options all = options_for("hybrid:steady", TIDE_EFFORT_NORMAL, UINT64_MAX);
    tide_plan_options half = options_for("hybrid:steady", TIDE_EFFORT_NORMAL, whole / 100 * 50);
    tide__policy_input in_all = {.program = p, .machine = &m, .options = &all, .argument = ""};
    tide__policy_input in_half = {.program = p, .machine = &m, .options = &half, .argument = ""};
    tide__ladder a, b;
    assert_ok(tide__ladder_init(&in_all, &all.budgets.arena_bytes, 1, &a));
    assert_ok(tide__ladder_init(&in_half, &half.budgets.arena_bytes, 1, &b));
    assert_true(b.rungs.count > 1 && b.rungs.count < a.rungs.count);
    for (size_t i = 0; i < a.rungs.count; i++) {
        if (i > 0) assert_true(a.rungs.data[i].bytes > a.rungs.data[i - 1].bytes);
        if (i < b.rungs.count) assert_int_equal(a.rungs.data[i].bytes, b.rungs.data[i].bytes);
    }
    assert_true(b.rungs.data[b.rungs.count - 1].bytes > half.budgets.arena_bytes); /* the one above, and only that */
    assert_true(b.rungs.data[b.rungs.count - 2].bytes <= half.budgets.arena_bytes);
    tide__ladder_deinit(&a);
    tide__ladder_deinit(&b);
    tide_program_destroy(p);
}

/* Several budgets at once: as good as one by one, and never slower for a larger one; none where none works. */
static void together(void **state) {
    (void)state;
    enum { N = 4 };
    tide_machine m = machine_with_disk();
    random_program_options ro = random_program_defaults(5);
    tide_program *p = random_program(&ro);
    uint64_t whole = whole_of(p, &m), budgets[N] = {1, whole * 5 / 10, whole * 6 / 10, whole * 2};
    tide_plan_options o = options_for("hybrid:steady", TIDE_EFFORT_LOW, UINT64_MAX);
    tide_fit_report fits[N];
    tide_plan *plans[N];
    assert_ok(tide_plan_frontier(p, &m, &o, budgets, N, fits, plans));
    assert_null(plans[0]);
    assert_true(fits[0].is_bound && fits[0].needed_bytes > 1);
    for (size_t i = 1; i < N; i++) {
        o.budgets.arena_bytes = budgets[i];
        outcome alone = plan_in(p, &m, &o);
        assert_true(plans[i] || !alone.made);
        if (!plans[i] || !alone.made) continue;
        assert_ok(tide_plan_verify(plans[i], p, &m, &o.budgets, NULL));
        assert_true(tide_plan_prediction(plans[i])->step_ns <= alone.step_ns);
        if (plans[i - 1])
            assert_true(tide_plan_prediction(plans[i])->step_ns <= tide_plan_prediction(plans[i - 1])->step_ns);
    }
    assert_non_null(plans[N - 1]);
    for (size_t i = 0; i < N; i++) tide_plan_destroy(plans[i]);
    tide_program_destroy(p);
}

/* Of a policy that has no searches to share: the very plans that it gives one by one. */
static void one_by_one(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    random_program_options ro = random_program_defaults(7);
    tide_program *p = random_program(&ro);
    uint64_t whole = whole_of(p, &m), budgets[2] = {whole * 8 / 10, whole};
    tide_plan_options o = options_for("capuchin", TIDE_EFFORT_NORMAL, UINT64_MAX);
    tide_plan *plans[2], *alone;
    assert_ok(tide_plan_frontier(p, &m, &o, budgets, 2, NULL, plans));
    for (size_t i = 0; i < 2; i++) {
        o.budgets.arena_bytes = budgets[i];
        tide_status status = tide_plan_create(p, &m, &o, NULL, &alone);
        assert_true((status == TIDE_OK) == (plans[i] != NULL));
        if (status != TIDE_OK) continue;
        assert_int_equal(tide_plan_fingerprint(alone), tide_plan_fingerprint(plans[i]));
        tide_plan_destroy(alone);
        tide_plan_destroy(plans[i]);
    }
    o.policy = "no such policy";
    assert_status(tide_plan_frontier(p, &m, &o, budgets, 2, NULL, plans), TIDE_E_ARGUMENT);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rungs),      cmocka_unit_test(random_programs), cmocka_unit_test(a_network),
        cmocka_unit_test(by_default), cmocka_unit_test(other_policies),  cmocka_unit_test(together),
        cmocka_unit_test(one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
