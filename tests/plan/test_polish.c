/* Polish: whatever edit can be scheduled is a plan that is proved and runs on symbolic values, one edit or two; and the
 * polished plans of small programs are, too, and no slower than moves alone or re-runs alone. */
#include <tidemark/tidemark.h>

#include "plan/evaluate.h"
#include "plan/decide/hybrid/polish_edits.h"
#include "support/network.h"
#include "support/random_program.h"
#include "support/test.h"
#include "support/try_policies.h"

static void check_plan(const tide_plan *plan, const tide__policy_input *in, uint64_t seed) {
    tide_verdict verdict;
    if (tide_plan_verify(plan, in->program, in->machine, &in->options->budgets, &verdict) != TIDE_OK)
        fail_msg("seed %llu: rule %s: %s", (unsigned long long)seed, verdict.rule, verdict.message);
    check_by_running(plan, in->program, in->machine, seed);
}

static bool check_edits(const tide__policy_input *in, const tide__decisions *from, const tide__edit *a,
                        const tide__edit *b, uint64_t seed) {
    tide__decisions d = {0};
    tide_plan *plan;
    assert_ok(tide__decisions_copy(from, &d));
    assert_ok(tide__edit_apply(a, &d));
    if (!tide__edits_clash(a, b)) assert_ok(tide__edit_apply(b, &d));
    tide__edits_clean(&d);
    tide_status status = tide__evaluate(
        in, &d,
        &(tide__evaluate_options){.capacity_bytes = in->options->budgets.arena_bytes, .place_work = 0, .worth_ns = 0},
        &plan);
    if (status == TIDE_OK) {
        check_plan(plan, in, seed);
        tide_plan_destroy(plan);
    } else {
        assert_status(status, TIDE_E_ARGUMENT);
    }
    tide__decisions_free(&d);
    return status == TIDE_OK;
}

static tide_program *small_program(uint64_t seed) {
    random_program_options o = random_program_varied(seed);
    o.n_ops = 4 + (uint32_t)(seed % 9);
    return random_program(&o);
}

static void every_edit_is_a_plan(void **state) {
    (void)state;
    tide_machine m;
    uint32_t n_plans = 0;
    tide_machine_init_default(&m);
    for (uint64_t seed = 0; seed < rounds(16); seed++) {
        tide_program *p = small_program(seed);
        tide_plan_options o;
        tide_plan_options_init(&o);
        tide__policy_input in = {
            .program = p, .machine = &m, .options = &o, .argument = "", .target_bytes = UINT64_MAX};
        tide__decisions from = {0};
        tide__edits e = {0};
        for (tide_id i = 0; i < tide_program_op_count(p); i++) assert_ok(tide__vec_push(&from.variants, 0));
        assert_ok(tide__edits_list(&in, &from, true, true, &e));
        for (size_t i = 0; i < e.count; i++)
            n_plans += check_edits(&in, &from, &e.data[i], &e.data[(i * 7 + 3) % e.count], seed);
        tide__vec_free(&e);
        tide__decisions_free(&from);
        tide_program_destroy(p);
    }
    assert_true(n_plans > rounds(60));
}

/* 0: it has none. */
static uint64_t time_of(const tide_program *p, const tide_machine *m, const char *policy, uint64_t budget,
                        uint64_t seed) {
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.budgets.arena_bytes = budget;
    if (tide_plan_create(p, m, &o, NULL, &plan) != TIDE_OK) return 0;
    uint64_t ns = tide_plan_prediction(plan)->step_ns;
    check_by_running(plan, p, m, seed);
    tide_plan_destroy(plan);
    return ns;
}

static void both_are_no_slower_than_one(void **state) {
    (void)state;
    tide_machine m;
    tide_machine_init_default(&m);
    m.channel[0].bytes_per_s = m.channel[1].bytes_per_s = 1000 * 1000 * 1000;
    for (uint64_t seed = 100; seed < 100 + rounds(5); seed++) {
        tide_program *p = small_program(seed);
        tide_liveness *l;
        assert_ok(tide_liveness_create(p, &l));
        uint64_t budget = l->largest_op_bytes + (l->peak_bytes - l->largest_op_bytes) / 2;
        uint64_t both = time_of(p, &m, "hybrid", budget, seed);
        uint64_t moves = time_of(p, &m, "hybrid:norerun", budget, seed);
        uint64_t reruns = time_of(p, &m, "hybrid:nomove", budget, seed);
        if (moves) assert_true(both > 0 && both <= moves);
        if (reruns) assert_true(both > 0 && both <= reruns);
        tide_liveness_destroy(l);
        tide_program_destroy(p);
    }
}

/* Weights are carried to the next step in their own place: re-running what reads the old ones after their update is no plan, and
 * no reason to give up. */
static void carried_values(void **state) {
    (void)state;
    network n = network_make("mlp:784,48,32,10", 16, "default");
    tide_plan *whole, *plan;
    assert_ok(try_policy(n.program, &n.machine, "liveness", TIDE_EFFORT_NORMAL, UINT64_MAX, &whole));
    for (uint64_t percent = 94; percent > 40; percent -= 7) {
        uint64_t budget = tide_plan_arena_bytes(whole) / 100 * percent;
        tide_status status = try_policy(n.program, &n.machine, "hybrid", TIDE_EFFORT_NORMAL, budget, &plan);
        if (status != TIDE_OK) assert_status(status, TIDE_E_FIT);
        if (status == TIDE_OK) tide_plan_destroy(plan);
    }
    tide_plan_destroy(whole);
    network_free(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_edit_is_a_plan),
                                       cmocka_unit_test(both_are_no_slower_than_one), cmocka_unit_test(carried_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
