/* Budgets as people give them: bytes, a share of the unconstrained arena, the smallest; each becomes the same bytes
 * whichever call it goes through, and the tighter one holds. */
#include <math.h>

#include "plan/budget.h"
#include "support/test.h"
#include "support/training.h"

typedef struct fixture {
    tide_machine machine;
    tide_model *model;
    tide_step *step;
    const tide_program *program;
    uint64_t whole; /* the unconstrained arena */
} fixture;

static uint64_t arena_of(const fixture *f, const tide_plan_options *options) {
    tide_plan *plan;
    assert_ok(tide_plan_create(f->program, &f->machine, options, NULL, &plan));
    uint64_t bytes = tide_plan_arena_bytes(plan);
    tide_plan_destroy(plan);
    return bytes;
}

static tide_plan_options hybrid(void) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.policy = "hybrid";
    o.effort = TIDE_EFFORT_LOW;
    return o;
}

static int open_fixture(void **state) {
    static fixture f;
    tide_model_options m;
    tide_step_options s;
    tide_plan_options plain;
    tide_model_options_init(&m);
    m.batch = 16;
    tide_step_options_init(&s);
    s.machine = &f.machine;
    tide_plan_options_init(&plain);
    assert_ok(tide_machine_load("v100-16gb-pcie", &f.machine));
    assert_ok(tide_model_create("lenet", &m, &f.model));
    assert_ok(tide_step_create(f.model, &s, &f.step));
    f.program = tide_step_program(f.step);
    f.whole = arena_of(&f, &plain);
    *state = &f;
    return 0;
}

static int close_fixture(void **state) {
    fixture *f = *state;
    tide_step_destroy(f->step);
    tide_model_destroy(f->model);
    return 0;
}

static tide_budgets settle(const fixture *f, tide_plan_options o) {
    assert_ok(tide_plan_settle_budgets(f->program, &f->machine, &o));
    assert_int_equal(o.arena_budget.kind, TIDE_BUDGET_BYTES); /* nothing is left to settle */
    assert_true(o.arena_budget.bytes == UINT64_MAX);
    return o.budgets;
}

static void a_share_is_of_the_unconstrained_arena(void **state) {
    const fixture *f = *state;
    tide_plan_options o = hybrid();
    uint32_t ram = tide_machine_find_tier(&f->machine, TIDE_TIER_RAM);
    o.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = 0.75};
    o.host_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = 2};
    tide_budgets b = settle(f, o);
    assert_true(b.arena_bytes == f->whole * 3 / 4);
    assert_true(b.tier_bytes[ram] == 2 * f->whole);
    assert_true(arena_of(f, &o) <= f->whole * 3 / 4);
    assert_true(tide_budget_bytes(&o.arena_budget, 1000) == 750);
}

static void the_tighter_one_holds(void **state) {
    const fixture *f = *state;
    tide_plan_options o = hybrid();
    o.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = 0.5};
    o.budgets.arena_bytes = f->whole / 2 - 256;
    assert_true(settle(f, o).arena_bytes == f->whole / 2 - 256);
    o.arena_budget = (tide_budget){.bytes = f->whole / 2 - 512};
    assert_true(settle(f, o).arena_bytes == f->whole / 2 - 512);
}

static void the_smallest_is_found(void **state) {
    const fixture *f = *state;
    tide_plan_options o = hybrid();
    tide_smallest smallest;
    assert_ok(tide_plan_smallest(f->program, &f->machine, &o, 0, &smallest));
    o.arena_budget.kind = TIDE_BUDGET_SMALLEST;
    assert_true(settle(f, o).arena_bytes == smallest.works_bytes);
    assert_true(arena_of(f, &o) <= smallest.works_bytes);
}

/* Looking for it makes its plan, which need not be looked for again. */
static void the_smallest_has_its_plan(void **state) {
    const fixture *f = *state;
    const char *const policies[] = {"hybrid", "hybrid:norerun", "hybrid:nomove", "capuchin"};
    uint32_t made = 0;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        tide_plan_options o = hybrid(), settled;
        tide_plan *plan, *again;
        o.policy = policies[i];
        o.arena_budget.kind = TIDE_BUDGET_SMALLEST;
        assert_ok(tide__budget_settle(f->program, &f->machine, &o, &settled, &plan));
        if (!plan) continue; /* found without a pool of plans */
        made++;
        assert_ok(tide_plan_create(f->program, &f->machine, &settled, NULL, &again));
        assert_int_equal(tide_plan_fingerprint(plan), tide_plan_fingerprint(again));
        assert_true(tide_plan_prediction(plan)->step_ns == tide_plan_prediction(again)->step_ns);
        assert_true(tide_plan_prediction(plan)->peak_bytes == tide_plan_prediction(again)->peak_bytes);
        tide_plan_destroy(plan);
        tide_plan_destroy(again);
    }
    assert_true(made > 0);
}

static void what_makes_no_sense_is_refused(void **state) {
    const fixture *f = *state;
    const tide_budget bad[] = {{.kind = TIDE_BUDGET_SHARE, .share = -0.5},
                               {.kind = TIDE_BUDGET_SHARE, .share = NAN},
                               {.kind = (tide_budget_kind)7}};
    tide_plan *plan = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tide_plan_options o = hybrid();
        o.arena_budget = bad[i];
        assert_int_equal(tide_plan_create(f->program, &f->machine, &o, NULL, &plan), TIDE_E_ARGUMENT);
    }
    tide_plan_options o = hybrid();
    o.disk_budget.kind = TIDE_BUDGET_SMALLEST;
    assert_int_equal(tide_plan_create(f->program, &f->machine, &o, NULL, &plan), TIDE_E_ARGUMENT);
    o = hybrid();
    o.effort = (tide_effort)9;
    assert_int_equal(tide_plan_create(f->program, &f->machine, &o, NULL, &plan), TIDE_E_ARGUMENT);
    assert_null(plan);
}

/* A trainer resolves them for the step that it trains, and tells. */
static void a_trainer_settles_its_budget(void **state) {
    (void)state;
    if (HAS_SANITIZER(memory_sanitizer)) skip(); /* it does not see what libomp writes */
    training t;
    training_open(&t, "lenet", 4);
    tide_trainer *plain = training_start(&t);
    uint64_t whole = tide_plan_arena_bytes(tide_trainer_plan(plain));
    tide_trainer_destroy(plain);
    t.options.plan.policy = "hybrid";
    t.options.plan.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = 0.75};
    tide_trainer *trainer = training_start(&t);
    assert_true(tide_trainer_budgets(trainer)->arena_bytes == whole * 3 / 4);
    assert_true(tide_plan_arena_bytes(tide_trainer_plan(trainer)) <= whole * 3 / 4);
    assert_true(tide_trainer_machine(trainer)->align_bytes >= t.machine.align_bytes);
    tide_trainer_destroy(trainer);
    training_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_is_of_the_unconstrained_arena),
        cmocka_unit_test(the_tighter_one_holds),
        cmocka_unit_test(the_smallest_is_found),
        cmocka_unit_test(the_smallest_has_its_plan),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(a_trainer_settles_its_budget),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
