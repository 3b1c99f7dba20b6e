/* Policies that swap, on random programs and budgets: what they plan is proved by the verifier and by the symbolic
 * interpreter, or honestly does not fit. And the local search under them: never worse than its start, never below the
 * bound, the same twice. */
#include "support/test.h"

#include <tidemark/nn.h>

#include "plan/decide/swaps/swap_search.h"
#include "plan/plan_data.h"
#include "plan_swap/bound.h"
#include "support/hand_made.h"
#include "support/interpreter.h"
#include "support/random_program.h"

static const char *const policies[] = {"autoswap",       "autoswap:doa",    "autoswap:aoa", "autoswap:wdoa",
                                       "autoswap:swdoa", "autoswap:search", "capuchin"};
enum { N_POLICIES = sizeof policies / sizeof *policies };

typedef struct tally {
    uint32_t fitted, moved, below; /* plans, those that move bytes, those under liveness' arena */
} tally;

static void check_plan(const tide_plan *plan, const tide_program *p, const tide_machine *m, const tide_budgets *budgets,
                       uint64_t seed) {
    tide_verdict verdict;
    if (tide_plan_verify(plan, p, m, budgets, &verdict) != TIDE_OK)
        fail_msg("seed %llu: %s at %u: %s", (unsigned long long)seed, verdict.rule, verdict.action, verdict.message);
    for (uint64_t timing = 0; plan->arena_bytes <= 4096 && timing < 2; timing++) {
        interpretation result = interpret(plan, p, m, budgets, seed + timing);
        if (!result.ok) fail_msg("seed %llu: action %u %s", (unsigned long long)seed, result.action, result.why);
    }
}

static void try_budget(const tide_program *p, const tide_machine *m, const char *policy, uint64_t unconstrained,
                       uint64_t budget, uint64_t seed, tally *sum) {
    tide_plan_options o;
    tide_plan *plan = NULL;
    tide_fit_report fit = {0};
    tide_plan_options_init(&o);
    o.policy = policy;
    o.budgets.arena_bytes = budget;
    tide_status status = tide_plan_create(p, m, &o, &fit, &plan);
    if (status == TIDE_E_FIT) {
        assert_true(fit.needed_bytes > budget);
        return;
    }
    if (status == TIDE_E_UNSUPPORTED) return; /* the next batch's place is taken by a kept value */
    if (status != TIDE_OK) fail_msg("seed %llu, %s: %s", (unsigned long long)seed, policy, tide_last_error());
    check_plan(plan, p, m, &o.budgets, seed);
    sum->fitted++;
    sum->moved += tide_plan_prediction(plan)->moved_bytes > 0;
    sum->below += tide_plan_arena_bytes(plan) < unconstrained;
    tide_plan_destroy(plan);
}

static void test_random_budgets(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tally sum = {0};
    for (uint64_t seed = 0; seed < rounds(240); seed++) {
        uint64_t rng = seed * 31 + 7;
        random_program_options o = random_program_varied(seed);
        if (seed % 2) o.max_bytes = 64, o.min_bytes = 4; /* small enough for the interpreter */
        tide_program *p = random_program(&o);
        tide_liveness *l;
        assert_ok(tide_liveness_create(p, &l));
        const char *policy = policies[seed / 2 % N_POLICIES];
        for (int i = 0; i < 3; i++) {
            uint64_t budget = l->peak_bytes / 4 + random_below(&rng, l->peak_bytes + 1);
            try_budget(p, &m, policy, l->peak_bytes, budget, seed, &sum);
        }
        tide_liveness_destroy(l);
        tide_program_destroy(p);
    }
    assert_true(sum.fitted > rounds(200) && sum.moved > rounds(50) && sum.below > rounds(50));
}

static tide__swaps_outcome search(tide__swaps *s, uint64_t wait_ns, bool *chosen) {
    tide__swap_search_options o = {.work = 200 * (s->n_ops + s->gaps.count), .wait_ns = wait_ns, .seed = 3};
    tide__swaps_outcome out;
    for (size_t i = 0; i < s->gaps.count; i++) chosen[i] = s->gaps.data[i].forced;
    assert_ok(tide__swap_search(s, &o, chosen, &out));
    return out;
}

/* Waiting helps, within its own bound, and stretches the clock by no more than it may. */
static void check_waits(tide__swaps *s, bool *chosen) {
    uint64_t step_ns = s->slot_ns[s->n_ops], wait_ns = step_ns / 4, bound, waited = 0;
    assert_ok(swap_bound(s, wait_ns, &bound));
    tide__swaps_outcome o = search(s, wait_ns, chosen);
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        waited += s->wait_ns[k];
        assert_true(k == 0 || s->slot_ns[k] >= s->slot_ns[k - 1] + s->wait_ns[k]);
    }
    assert_true(bound <= o.peak_bytes && o.n_idle == 0);
    assert_true(waited <= wait_ns && s->slot_ns[s->n_ops] == step_ns + waited);
    tide__swaps_reset_times(s);
    assert_int_equal(s->slot_ns[s->n_ops], step_ns);
}

static void test_search(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_plan_options options;
    tide_plan_options_init(&options);
    uint32_t improved = 0;
    for (uint64_t seed = 0; seed < rounds(60); seed++) {
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        tide__policy_input in = {.program = p, .machine = &m, .options = &options, .argument = ""};
        tide__swaps s;
        tide__swaps_options all = {0};
        assert_ok(tide__swaps_init(&s, &in, &all));
        bool *chosen = test_calloc(s.gaps.count + 1, sizeof *chosen);
        for (size_t i = 0; i < s.gaps.count; i++) chosen[i] = s.gaps.data[i].forced;
        uint64_t start = tide__swaps_settle(&s, chosen, 0).peak_bytes, bound;
        assert_ok(swap_bound(&s, 0, &bound));
        tide__swaps_outcome first = search(&s, 0, chosen), again = search(&s, 0, chosen);
        assert_true(bound <= first.peak_bytes && first.peak_bytes <= start);
        assert_true(first.peak_bytes == again.peak_bytes && first.n_idle == 0);
        improved += first.peak_bytes < start;
        check_waits(&s, chosen);
        test_free(chosen);
        tide__swaps_deinit(&s);
        tide_program_destroy(p);
    }
    assert_true(improved > rounds(10));
}

static uint64_t least_bytes(const char *spec, uint64_t target_bytes) {
    tide_model_options model_options;
    tide_step_options step_options;
    tide_model *model;
    tide_step *step;
    uint64_t least;
    tide_model_options_init(&model_options);
    tide_step_options_init(&step_options);
    step_options.fused_update = true;
    assert_ok(tide_model_create(spec, &model_options, &model));
    assert_ok(tide_step_create(model, &step_options, &step));
    tide__policy_input in = {.program = tide_step_program(step), .target_bytes = target_bytes};
    assert_ok(tide__swap_least_bytes(&in, &least));
    tide_step_destroy(step);
    tide_model_destroy(model);
    return least;
}

/* A part of the target where few values are small; a weight's size where weights alone are more than the target. */
static void test_least_bytes(void **state) {
    (void)state;
    assert_int_equal(least_bytes("resnet50", UINT64_C(12) << 30), 1 + ((UINT64_C(12) << 30) / 4096));
    assert_int_equal(least_bytes("resnet:6,32,400,6", UINT64_C(12) << 30), 1 << 20); /* 1024 x 256 floats */
    assert_int_equal(least_bytes("mlp:4,4,4", 0), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_bytes),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_random_budgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
