/* Thousands of random valid plans: the verifier accepts each, and the reference interpreter agrees. Also: swaps,
 * re-runs and the rest do occur in them. */
#include <inttypes.h>

#include "plan/plan_data.h"
#include "support/interpreter.h"
#include "support/random_plan.h"
#include "support/test.h"

enum { N_PLANS = 3000, N_TIMINGS = 4, MAX_OPS = 24 };

typedef struct statistics {
    uint32_t in_parts, reordered;
    size_t actions, saves, loads, reruns, hand_overs, relocations, slides, waits, start_copies, end_copies;
    uint64_t arena_bytes, residency_bytes;
} statistics;

static size_t count_hand_overs(const random_case *c, uint32_t i) {
    tide_action a = tide_plan_action(c->plan, i);
    const tide_op *op = tide_program_op(c->program, a.op);
    size_t n = 0;
    for (uint32_t k = 0; k < op->n_inplace; k++) {
        const tide_residency *read = tide_plan_residency(c->plan, a.uses[op->inplace[k].read]);
        const tide_residency *write = tide_plan_residency(c->plan, a.uses[op->n_reads + op->inplace[k].write]);
        n += read->offset_bytes == write->offset_bytes && read->size_bytes > 0;
    }
    return n;
}

/* Does it move over bytes of its own? */
static bool is_slide(const random_case *c, uint32_t i) {
    tide_action a = tide_plan_action(c->plan, i);
    const tide_residency *from = tide_plan_residency(c->plan, a.uses[0]), *to = tide_plan_residency(c->plan, a.uses[1]);
    return from->offset_bytes < to->offset_bytes + to->size_bytes &&
           to->offset_bytes < from->offset_bytes + from->size_bytes;
}

static bool is_in_parts(const tide_program *p) {
    for (tide_id o = 0; o < tide_program_op_count(p); o++)
        if (strchr(tide_program_op(p, o)->name, '@')) return true;
    return false;
}

static void add_statistics(statistics *s, const random_case *c) {
    uint32_t first_runs = tide_program_op_count(c->program), runs = 0;
    s->in_parts += is_in_parts(c->program);
    s->reordered += c->plan->reordered;
    for (uint32_t i = 0; i < tide_plan_action_count(c->plan); i++) {
        tide_action a = tide_plan_action(c->plan, i);
        s->actions++;
        s->waits += a.n_waits;
        s->saves += a.kind == TIDE_SAVE;
        s->loads += a.kind == TIDE_LOAD;
        s->relocations += a.kind == TIDE_RELOCATE;
        s->slides += a.kind == TIDE_RELOCATE && is_slide(c, i);
        runs += a.kind == TIDE_RUN;
        if (a.kind == TIDE_RUN) s->hand_overs += count_hand_overs(c, i);
    }
    s->reruns += runs - first_runs;
    s->arena_bytes += tide_plan_arena_bytes(c->plan);
    for (uint32_t i = 0; i < tide_plan_residency_count(c->plan); i++)
        s->residency_bytes += tide_plan_residency(c->plan, i)->size_bytes;
    for (uint32_t i = 0; i < tide_plan_copy_count(c->plan); i++) {
        const tide_copy *copy = tide_plan_copy(c->plan, i);
        s->start_copies += copy->at_start && c->machine.tier[copy->tier].kind != TIDE_TIER_CLIENT;
        s->end_copies += copy->at_end;
    }
}

static void check_plan(const random_case *c, uint64_t seed) {
    tide_verdict verdict;
    if (tide_plan_verify(c->plan, c->program, &c->machine, &c->budgets, &verdict) != TIDE_OK)
        fail_msg("plan %" PRIu64 ": %s", seed, tide_last_error());
    for (uint64_t timing = 0; timing < N_TIMINGS; timing++) {
        interpretation result = interpret(c->plan, c->program, &c->machine, &c->budgets, seed * N_TIMINGS + timing);
        if (!result.ok)
            fail_msg("plan %" PRIu64 ", timing %" PRIu64 ", step %u, action %d: %s", seed, timing, result.step,
                     (int)result.action, result.why);
    }
}

static void test_valid_plans_are_accepted(void **state) {
    (void)state;
    statistics s = {0};
    const uint32_t n_plans = rounds(N_PLANS);
    for (uint64_t seed = 0; seed < n_plans; seed++) {
        random_case c = random_case_make(seed, MAX_OPS);
        check_plan(&c, seed);
        add_statistics(&s, &c);
        random_case_free(&c);
    }
    print_message(
        "%u plans, %u of programs in parts, %u in another order: %zu actions, %zu saves, %zu loads, %zu re-runs, %zu "
        "in place, %zu relocations (%zu over "
        "themselves), %zu waits; %zu copies at the start, %zu at the end; %.1f residency bytes per arena byte\n",
        n_plans, s.in_parts, s.reordered, s.actions, s.saves, s.loads, s.reruns, s.hand_overs, s.relocations, s.slides,
        s.waits, s.start_copies, s.end_copies, (double)s.residency_bytes / (double)s.arena_bytes);
    assert_true(s.in_parts > n_plans / 10 && s.reordered > n_plans / 4);
    assert_true(s.saves > n_plans && s.loads > 2 * n_plans && s.reruns > n_plans && s.hand_overs > n_plans);
    assert_true(s.relocations > n_plans / 2 && s.slides > n_plans / 5);
    assert_true(s.waits > 4 * n_plans && s.start_copies > n_plans / 2 && s.end_copies > n_plans / 2);
    assert_true(s.residency_bytes > 2 * s.arena_bytes);
}

static void test_larger_plans_are_accepted(void **state) {
    (void)state;
    for (uint64_t seed = N_PLANS; seed < N_PLANS + rounds(200); seed++) {
        random_case c = random_case_make(seed, 80);
        check_plan(&c, seed);
        random_case_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_plans_are_accepted),
        cmocka_unit_test(test_larger_plans_are_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
