/* Policies `superneurons` and `checkpoint` on random programs and random budgets: every plan is proved and runs on
 * symbolic values, or the answer is an honest "does not fit". And what they promise, one by one. */
#include "support/test.h"

#include <tidemark/nn.h>

#include "support/hand_made.h"
#include "support/network.h"
#include "support/random_program.h"
#include "support/try_policies.h"

static const char *const settings[] = {
    "superneurons",      "superneurons:speed",       "superneurons:eager", "superneurons:memory,noworkspace",
    "superneurons:cost", "superneurons:norecompute", "checkpoint",         "checkpoint:sqrt",
    "checkpoint:block",
};

static void random_programs(void **state) {
    (void)state;
    policy_tally t = try_policies(settings, sizeof settings / sizeof *settings, TIDE_EFFORT_NORMAL, rounds(1500));
    assert_true(t.made > rounds(500) && t.with_moves > rounds(100) && t.with_reruns > rounds(100) &&
                t.refused > rounds(50));
}

static void arguments(void **state) {
    (void)state;
    static const char *const wrong[] = {"superneurons:quick", "superneurons:speed,memory", "superneurons:speed,,noswap",
                                        "checkpoint:sqrt,block", "checkpoint:7"};
    tide_machine m = machine_with_disk();
    random_program_options o = random_program_defaults(1);
    tide_program *p = random_program(&o);
    tide_plan *plan;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(try_policy(p, &m, wrong[i], TIDE_EFFORT_NORMAL, UINT64_MAX, &plan), TIDE_E_ARGUMENT);
        assert_error_has(i < 3 ? "superneurons" : "checkpoint");
    }
    tide_program_destroy(p);
}

/* ---- a network ---- */

static tide_plan *plan_network(const network *n, const char *policy, uint64_t arena_bytes) {
    tide_plan *plan = NULL;
    assert_ok(try_policy(n->program, &n->machine, policy, TIDE_EFFORT_NORMAL, arena_bytes, &plan));
    return plan;
}

/* Arena and prediction of one plan. */
typedef struct outcome {
    uint64_t arena_bytes;
    tide_prediction prediction;
} outcome;

static outcome outcome_of(const network *n, const char *policy, uint64_t arena_bytes) {
    tide_plan *plan = plan_network(n, policy, arena_bytes);
    outcome o = {.arena_bytes = tide_plan_arena_bytes(plan), .prediction = *tide_plan_prediction(plan)};
    tide_plan_destroy(plan);
    return o;
}

/* Without an argument: nothing when all fits, less than everything when some of it is enough. */
static void checkpoint_as_much_as_needed(void **state) {
    (void)state;
    network n = network_make("resnet-cifar:9", 32, "k40c");
    outcome live = outcome_of(&n, "liveness", UINT64_MAX), block = outcome_of(&n, "checkpoint:block", UINT64_MAX);
    outcome root = outcome_of(&n, "checkpoint:sqrt", UINT64_MAX), free = outcome_of(&n, "checkpoint", UINT64_MAX);
    uint64_t between = (live.arena_bytes + block.arena_bytes) / 2;
    outcome half = outcome_of(&n, "checkpoint", between);
    assert_true(block.arena_bytes < live.arena_bytes / 2 && root.arena_bytes < live.arena_bytes / 2);
    assert_int_equal(free.prediction.recomputed_ns, 0);
    assert_int_equal(free.arena_bytes, live.arena_bytes);
    assert_true(half.prediction.recomputed_ns > 0);
    assert_true(half.prediction.recomputed_ns < block.prediction.recomputed_ns * 3 / 4);
    network_free(&n);
}

/* The cache moves nothing until memory is short; each part can be left out. */
static void superneurons_parts(void **state) {
    (void)state;
    network n = network_make("resnet-cifar:9", 32, "k40c");
    outcome live = outcome_of(&n, "liveness", UINT64_MAX), all = outcome_of(&n, "superneurons", UINT64_MAX);
    assert_int_equal(all.prediction.moved_bytes, 0);
    assert_true(all.prediction.recomputed_ns > 0 && all.arena_bytes < live.arena_bytes);
    assert_true(all.prediction.compute_ns - all.prediction.recomputed_ns < live.prediction.compute_ns); /* workspaces */
    outcome less = outcome_of(&n, "superneurons", live.arena_bytes / 2);
    assert_true(less.prediction.moved_bytes > 0);
    outcome swaps = outcome_of(&n, "superneurons:norecompute,noworkspace", live.arena_bytes / 2);
    assert_int_equal(swaps.prediction.compute_ns, live.prediction.compute_ns);
    assert_true(swaps.prediction.moved_bytes > less.prediction.moved_bytes);
    outcome eager = outcome_of(&n, "superneurons:eager", UINT64_MAX);
    assert_true(eager.prediction.moved_bytes > less.prediction.moved_bytes);
    outcome nothing = outcome_of(&n, "superneurons:norecompute,noworkspace,noswap", UINT64_MAX);
    assert_int_equal(nothing.arena_bytes, live.arena_bytes);
    assert_int_equal(nothing.prediction.step_ns, live.prediction.step_ns);
    tide_plan *plan;
    assert_status(try_policy(n.program, &n.machine, "superneurons:norecompute,noswap", TIDE_EFFORT_NORMAL,
                             live.arena_bytes / 2, &plan),
                  TIDE_E_FIT);
    network_free(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs), cmocka_unit_test(arguments),
                                       cmocka_unit_test(checkpoint_as_much_as_needed),
                                       cmocka_unit_test(superneurons_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
