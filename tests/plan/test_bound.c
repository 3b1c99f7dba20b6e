/* The lower bound on the step time: no plan of any policy, and no random plan, is faster; and where the best plan is
 * known, the bound says what it costs. */
#include "support/test.h"

#include "plan/plan_data.h"
#include "support/hand_made.h"
#include "support/random_plan.h"
#include "support/random_program.h"

static const char *const policies[] = {"none",         "liveness", "cache",         "delta",
                                       "dtr",          "autoswap", "capuchin",      "checkpoint:sqrt",
                                       "superneurons", "hybrid",   "hybrid:nomove", "hybrid:norerun"};
enum { N_POLICIES = sizeof policies / sizeof *policies };

static tide_plan_options options_for(const char *policy, uint64_t arena_bytes) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.policy = policy;
    o.effort = TIDE_EFFORT_LOW;
    o.budgets.arena_bytes = arena_bytes;
    return o;
}

static uint64_t bound_of(const tide_program *p, const tide_machine *m, const tide_plan_options *o) {
    uint64_t bound;
    assert_ok(tide_plan_bound(p, m, o, &bound));
    return bound;
}

typedef struct tally {
    uint32_t compared, above_base;
} tally;

static void compare(const tide_program *p, const tide_machine *m, tide_plan_options *o, uint64_t seed, tally *sum) {
    tide_plan *plan;
    if (tide_plan_create(p, m, o, NULL, &plan) != TIDE_OK) return;
    uint64_t ns = tide_plan_prediction(plan)->step_ns, arena = tide_plan_arena_bytes(plan);
    o->budgets.arena_bytes = arena; /* the tightest budget that this plan is for */
    uint64_t bound = bound_of(p, m, o);
    if (bound > ns)
        fail_msg("seed %llu, %s in %llu bytes: bound %llu, plan %llu", (unsigned long long)seed, o->policy,
                 (unsigned long long)arena, (unsigned long long)bound, (unsigned long long)ns);
    o->budgets.arena_bytes = UINT64_MAX;
    sum->compared++;
    sum->above_base += bound > bound_of(p, m, o);
    tide_plan_destroy(plan);
}

static void policies_are_above(void **state) {
    (void)state;
    tally sum = {0};
    for (uint64_t seed = 0; seed < rounds(60); seed++) {
        uint64_t rng = seed * 53 + 7;
        tide_machine m = machine_with_disk();
        if (seed % 3 == 0) tide_machine_init_default(&m);
        if (seed % 2 == 0) m.channel[0].bytes_per_s = m.channel[1].bytes_per_s = 50 * 1000 * 1000;
        random_program_options ro = random_program_varied(seed);
        tide_program *p = random_program(&ro);
        tide_liveness *l;
        assert_ok(tide_liveness_create(p, &l));
        for (uint32_t i = 0; i < N_POLICIES; i++) {
            tide_plan_options o = options_for(policies[i], l->peak_bytes / 4 + random_below(&rng, l->peak_bytes + 1));
            o.bits_any = seed % 5 == 0;
            compare(p, &m, &o, seed, &sum);
        }
        tide_liveness_destroy(l);
        tide_program_destroy(p);
    }
    print_message("%u plans, the bound is above the ops' own time for %u\n", sum.compared, sum.above_base);
    assert_true(sum.compared > rounds(300) && sum.above_base > rounds(12));
}

/* Plans that no part of the planner made. */
static void random_plans_are_above(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < rounds(200); seed++) {
        random_case c = random_case_make(seed, 40);
        tide_timeline *timeline;
        assert_ok(tide_plan_simulate(c.plan, c.program, &c.machine, &timeline));
        tide_plan_options o = options_for("hybrid", tide_plan_arena_bytes(c.plan));
        o.bits_any = tide_plan_bits_any(c.plan);
        uint64_t bound = bound_of(c.program, &c.machine, &o);
        if (bound > timeline->prediction.step_ns && !tide_plan_is_reordered(c.plan))
            fail_msg("seed %llu", (unsigned long long)seed);
        tide_timeline_destroy(timeline);
        random_case_free(&c);
    }
}

/* x is written, unused for one op that needs all the room, and read again: it is run again for 70 ns, or moved at 1 byte
 * per ns in 100 + 100 ns.
 *
 *   op      0 (70)   1 (500)   2 (30)
 *   x       w         .        r          100 bytes
 *   y                 w        r          1000 bytes */
static tide_program *three_ops(void) {
    tide_program_builder *b;
    tide_program *p;
    tide_id x, y, z;
    assert_ok(tide_program_builder_create("three", false, &b));
    assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.size_bytes = 100}, &x));
    assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.size_bytes = 1000}, &y));
    assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.size_bytes = 4, .keep = true}, &z));
    tide_variant cost[] = {{.cost_ns = 70}, {.cost_ns = 500}, {.cost_ns = 30}};
    tide_op ops[] = {{.rerunnable = true, .n_writes = 1, .writes = &x, .n_variants = 1, .variants = &cost[0]},
                     {.rerunnable = true, .n_writes = 1, .writes = &y, .n_variants = 1, .variants = &cost[1]},
                     {.rerunnable = true,
                      .n_reads = 1,
                      .reads = &x,
                      .n_writes = 1,
                      .writes = &z,
                      .n_variants = 1,
                      .variants = &cost[2]}};
    for (int i = 0; i < 3; i++) assert_ok(tide_program_builder_op(b, &ops[i], NULL));
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

static void known_costs(void **state) {
    (void)state;
    tide_program *p = three_ops();
    tide_machine m;
    tide_machine_init_default(&m);
    for (uint32_t c = 0; c < m.n_channels; c++) m.channel[c].bytes_per_s = UINT64_C(1000000000);
    tide_plan_options roomy = options_for("hybrid:nomove", 1100), tight = options_for("hybrid:nomove", 1000);
    tide_plan_options half = options_for("hybrid:nomove", 1050), moves = options_for("hybrid", 1000);
    assert_int_equal(bound_of(p, &m, &roomy), 600);
    assert_int_equal(bound_of(p, &m, &tight), 600); /* op 1 may run first */
    tight.order = half.order = moves.order = TIDE_ORDER_PROGRAM;
    assert_in_range(bound_of(p, &m, &tight), 668, 670);
    assert_in_range(bound_of(p, &m, &half), 634, 635); /* half of x may leave: the relaxation */
    assert_int_equal(bound_of(p, &m, &moves), 600);
    tide_plan_options unknown = options_for("hybird", 1000);
    uint64_t bound;
    assert_status(tide_plan_bound(p, &m, &unknown, &bound), TIDE_E_ARGUMENT);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_costs),
        cmocka_unit_test(policies_are_above),
        cmocka_unit_test(random_plans_are_above),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
