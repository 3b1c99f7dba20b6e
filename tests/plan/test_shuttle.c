/* The shuttle: it works in as few bytes as are proved to be needed, and what it makes is proved and runs on symbolic
 * values, whatever the program, the alignment and the tiers. */
#include <tidemark/tidemark.h>

#include "plan/decide/bounds/least.h"
#include "plan/decide/hybrid/shuttle.h"
#include "support/hand_made.h"
#include "support/interpreter.h"
#include "support/random_program.h"
#include "support/test.h"
#include "support/try_policies.h"

typedef struct subject {
    tide_plan_options options;
    tide__policy_input in;
} subject;

static void begin(subject *s, const tide_program *p, const tide_machine *m) {
    tide_plan_options_init(&s->options);
    s->in = (tide__policy_input){.program = p, .machine = m, .options = &s->options, .argument = ""};
}

static tide__least least_of(const subject *s) {
    tide__policy_input whole = s->in;
    tide__least least;
    whole.target_bytes = 0;
    assert_ok(tide__policy_least(tide__policy_find("hybrid"), &whole, &least));
    return least;
}

/* True: there is one. */
static bool check_shuttle(subject *s, uint64_t budget, uint64_t seed) {
    tide_plan *plan = NULL;
    tide_verdict verdict;
    s->options.budgets.arena_bytes = s->in.target_bytes = budget;
    assert_ok(tide__shuttle(&s->in, &plan));
    if (!plan) return false;
    assert_true(plan->arena_bytes <= budget);
    if (tide_plan_verify(plan, s->in.program, s->in.machine, &s->options.budgets, &verdict) != TIDE_OK)
        fail_msg("seed %llu: rule %s: %s", (unsigned long long)seed, verdict.rule, verdict.message);
    check_by_running(plan, s->in.program, s->in.machine, seed);
    tide_plan_destroy(plan);
    return true;
}

static void it_works_at_the_bound(void **state) {
    (void)state;
    tide_machine plain;
    tide_machine_init_default(&plain);
    for (uint64_t seed = 0; seed < 250; seed++) {
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        subject s;
        begin(&s, p, &plain);
        plain.align_bytes = 1u << (seed % 9);
        uint64_t bound = least_of(&s).bytes, align = plain.align_bytes;
        if (!check_shuttle(&s, (bound + align - 1) & ~(align - 1), seed))
            fail_msg("seed %llu: nothing in %llu bytes", (unsigned long long)seed, (unsigned long long)bound);
        if (bound > 0) assert_false(check_shuttle(&s, bound - 1, seed));
        tide_program_destroy(p);
    }
}

static void tiers_are_kept(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    uint32_t made = 0, refused = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        uint64_t rng = seed * 77 + 5;
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        subject s;
        begin(&s, p, &m);
        tide_liveness *l;
        assert_ok(tide_liveness_create(p, &l));
        uint64_t most = l->peak_bytes + 1;
        tide_liveness_destroy(l);
        s.options.budgets.tier_bytes[RAM] = random_below(&rng, 2 * most);
        s.options.budgets.tier_bytes[DISK] = random_below(&rng, 2 * most);
        bool works = check_shuttle(&s, most / 4 + random_below(&rng, most), seed);
        made += works;
        refused += !works;
        tide_program_destroy(p);
    }
    print_message("%u made, %u refused\n", made, refused);
    assert_true(made > 80 && refused > 30);
}

/* Arena and tiers together hold what no plan can do without. */
static void no_plan_is_below_the_bound(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    uint32_t whole = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        uint64_t rng = seed * 13 + 1;
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        subject s;
        begin(&s, p, &m);
        tide_liveness *l;
        assert_ok(tide_liveness_create(p, &l));
        s.options.budgets.tier_bytes[RAM] = random_below(&rng, l->resident_bytes + 1);
        s.options.budgets.tier_bytes[DISK] = 0;
        tide__least least = least_of(&s);
        whole += least.is_whole;
        for (uint64_t budget = least.bytes / 2; budget < least.bytes; budget += least.bytes / 6 + 1)
            assert_false(check_shuttle(&s, budget, seed));
        tide_plan *plan = NULL;
        s.options.effort = TIDE_EFFORT_LOW;
        static const char *const names[] = {"delta", "cache", "superneurons", "capuchin"};
        s.options.policy = names[seed % 4];
        s.options.budgets.arena_bytes = l->peak_bytes;
        if (tide_plan_create(p, &m, &s.options, NULL, &plan) == TIDE_OK)
            assert_true(tide_plan_arena_bytes(plan) >= least.bytes);
        tide_plan_destroy(plan);
        tide_liveness_destroy(l);
        tide_program_destroy(p);
    }
    assert_true(whole > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_works_at_the_bound), cmocka_unit_test(tiers_are_kept),
                                       cmocka_unit_test(no_plan_is_below_the_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
