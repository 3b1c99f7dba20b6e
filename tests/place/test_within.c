/* The question of a capacity: against brute force on small problems, and for whole plans. */
#include "support/test.h"

#include "plan/place_plan.h"
#include "plan/schedule/schedule.h"
#include "support/brute_placement.h"
#include "support/check_placement.h"
#include "support/draw_placement.h"
#include "support/random_program.h"

enum { FEW = 7, MOST = MOST_BRUTE_ITEMS, AMPLE = 1000000 };

typedef struct asked {
    uint64_t offsets[MOST];
    tide__place_result result;
    tide__place_answer answer;
} asked;

static asked ask(const tide__place_item *items, size_t n, uint64_t capacity, uint64_t work) {
    asked a;
    memset(&a, 0xff, sizeof a);
    assert_ok(tide__place_within(items, n, capacity, work, a.offsets, &a.result, &a.answer));
    if (a.answer == TIDE__PLACE_TOO_SMALL) {
        assert_true(a.result.lower_bound > capacity);
        assert_true(a.offsets[0] == UINT64_MAX);
        return a;
    }
    assert_placement(items, n, a.offsets, &a.result);
    assert_int_equal(a.answer, a.result.height <= capacity ? TIDE__PLACE_FITS : TIDE__PLACE_TOO_HIGH);
    return a;
}

static uint64_t load_of(const tide__place_item *items, size_t n) {
    return ask(items, n, UINT64_MAX, 0).result.lower_bound;
}

/* With enough work the answer is yes at the least height, and no below it. */
static void check_around_least(uint64_t seed, size_t n, bool above_load) {
    tide__place_item items[MOST];
    draw_few(seed, n, items);
    uint64_t least = least_height(items, n);
    assert_int_equal(least > load_of(items, n), above_load);
    assert_int_equal(ask(items, n, least, AMPLE).answer, TIDE__PLACE_FITS);
    assert_int_equal(ask(items, n, least - 1, AMPLE).answer, above_load ? TIDE__PLACE_TOO_HIGH : TIDE__PLACE_TOO_SMALL);
}

static void test_agrees_with_brute_force(void **state) {
    static const uint32_t above_load[] = {690, 8746, 16253, 23475, 29797, 30446, 31758, 44822};
    for (uint64_t seed = 0; seed < rounds(300); seed++) check_around_least(seed, FEW, false);
    for (size_t k = 0; k < sizeof above_load / sizeof *above_load; k++) check_around_least(above_load[k], MOST, true);
}

/* Whatever the work, "fits" is true and nothing lower than the least height is claimed. */
static void test_little_work_gives_true_answers(void **state) {
    for (uint64_t k = 0; k < rounds(600); k++) {
        tide__place_item items[FEW];
        draw_featured(k, 1 + (int)(k % ALL_FEATURES), FEW, items);
        uint64_t least = least_height(items, FEW);
        for (uint64_t work = 0; work < 200; work += 20)
            assert_true(ask(items, FEW, least + k % 5, work).result.height >= least);
        assert_int_not_equal(ask(items, FEW, least ? least - 1 : 0, AMPLE).answer, TIDE__PLACE_FITS);
    }
}

/* More work never makes an answer worse, and the same work gives the same offsets. */
static void test_counts_its_work(void **state) {
    for (uint64_t seed = 0; seed < rounds(200); seed++) {
        tide__place_item items[FEW];
        draw_few(seed, FEW, items);
        uint64_t least = least_height(items, FEW), height = UINT64_MAX;
        for (uint64_t work = 1; work < AMPLE; work *= 8) {
            asked a = ask(items, FEW, least, work), again = ask(items, FEW, least, work);
            assert_true(a.result.height <= height);
            assert_memory_equal(a.offsets, again.offsets, sizeof a.offsets);
            height = a.result.height;
        }
    }
}

/* ---- plans ---- */

typedef struct draft {
    tide_program *program;
    tide_machine machine;
    tide_budgets budgets;
    tide_plan *plan;
} draft;

static draft new_draft(uint64_t seed) {
    static const tide__decisions nothing;
    draft d;
    random_program_options o = random_program_varied(seed);
    d.program = random_program(&o);
    tide_machine_init_default(&d.machine);
    tide_budgets_init(&d.budgets);
    assert_ok(tide__plan_new(&d.plan));
    d.plan->signature = tide_program_signature(d.program);
    d.plan->n_queues = 1 + d.machine.n_channels;
    d.plan->n_tiers = d.machine.n_tiers;
    assert_ok(tide__schedule(d.program, &d.machine, &nothing, d.plan));
    return d;
}

static tide__place_answer ask_draft(draft *d, uint64_t arena_bytes) {
    tide__place_answer answer;
    d->budgets.arena_bytes = arena_bytes;
    assert_ok(tide__place_plan_within(d->program, &d->machine, false, &d->budgets, AMPLE, d->plan, &answer));
    return answer;
}

static uint64_t most_load(draft *d) {
    size_t n = d->plan->actions.count;
    uint64_t *loads = calloc(n + 1, sizeof *loads), most = 0;
    assert_non_null(loads);
    assert_ok(tide__plan_load(d->program, &d->machine, d->plan, loads));
    for (size_t i = 0; i < n; i++) most = loads[i] > most ? loads[i] : most;
    free(loads);
    return most;
}

static void test_plans_go_into_what_they_fit(void **state) {
    for (uint64_t seed = 0; seed < rounds(100); seed++) {
        draft d = new_draft(seed);
        assert_ok(tide__place_plan(d.program, &d.machine, false, NULL, d.plan));
        uint64_t arena_bytes = d.plan->arena_bytes, load = most_load(&d);
        assert_int_equal(ask_draft(&d, arena_bytes), TIDE__PLACE_FITS);
        assert_true(d.plan->arena_bytes <= arena_bytes && d.plan->arena_bytes >= load);
        assert_ok(tide__sync(d.plan));
        assert_ok(tide_plan_verify(d.plan, d.program, &d.machine, &d.budgets, NULL));
        if (load > 1) {
            assert_int_equal(ask_draft(&d, load / 2), TIDE__PLACE_TOO_SMALL);
            assert_true(d.plan->arena_bytes > load / 2 && d.plan->arena_bytes <= arena_bytes);
        }
        tide_plan_destroy(d.plan);
        tide_program_destroy(d.program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_brute_force),
        cmocka_unit_test(test_little_work_gives_true_answers),
        cmocka_unit_test(test_counts_its_work),
        cmocka_unit_test(test_plans_go_into_what_they_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
