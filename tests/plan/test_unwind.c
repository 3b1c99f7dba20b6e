/* What plans without moves need: the bound by unwinding is exact where it can be worked out by hand and below every
 * plan, and passes after the step's end get near to it where what is kept is in the way. */
#include <tidemark/tidemark.h>

#include "plan/ask.h"
#include "plan/decide/bounds/unwind.h"
#include "support/plain_op.h"
#include "support/random_program.h"
#include "support/test.h"

typedef struct subject {
    tide_machine machine;
    tide_plan_options options;
    tide__policy_input in;
} subject;

static void begin(subject *s, const tide_program *p) {
    tide_machine_init_default(&s->machine);
    tide_plan_options_init(&s->options);
    s->options.effort = TIDE_EFFORT_LOW;
    s->in = (tide__policy_input){.program = p, .machine = &s->machine, .options = &s->options, .argument = ""};
}

static uint64_t bound_of(const subject *s, tide_id *op) {
    tide__model *model;
    uint64_t bytes;
    assert_ok(tide__model_create(&s->in, &model));
    assert_ok(tide__unwind(model, 0, &bytes, op));
    tide__model_destroy(model);
    return bytes;
}

enum { KIB = 1024 };

/* p -> x, q -> y, (x, y) -> z: q of 2 KiB, the others of 1 KiB but p. */
static tide_program *two_branches(subject *s, uint64_t p_bytes) {
    tide_program_builder *b;
    tide_program *p;
    assert_ok(tide_program_builder_create("two", false, &b));
    tide_id from_p = add_op(b, p_bytes, 0, NULL), x = add_op(b, KIB, 1, &from_p);
    tide_id from_q = add_op(b, 2 * KIB, 0, NULL), y = add_op(b, KIB, 1, &from_q);
    add_op(b, KIB, 2, (tide_id[]){x, y});
    assert_ok(tide_program_builder_finish(b, &p));
    begin(s, p);
    return p;
}

/* 3 KiB to run any op, but the second of x and y is made beside the first. */
static void the_last_of_two_is_made_beside_the_other(void **state) {
    (void)state;
    subject s;
    tide_id op;
    tide_liveness *l;
    tide_program *p = two_branches(&s, KIB);
    assert_int_equal(bound_of(&s, &op), 3 * KIB);
    assert_ok(tide_liveness_create(p, &l));
    assert_int_equal(l->largest_op_bytes, 3 * KIB);
    assert_int_equal(l->peak_bytes, 4 * KIB); /* y, the larger, could be made first, and x beside it */
    tide_liveness_destroy(l);
    tide_program_destroy(p);
}

/* Both need 2 KiB to be made beside the other: there is no way below 4. */
static void where_both_are_large_no_order_helps(void **state) {
    (void)state;
    subject s;
    tide_id op;
    tide_fit_report fit = {0};
    tide_plan *plan;
    tide_program *p = two_branches(&s, 2 * KIB);
    assert_int_equal(bound_of(&s, &op), 4 * KIB);
    assert_int_equal(op, 4);
    s.options.policy = "hybrid:nomove";
    s.options.budgets.arena_bytes = 4 * KIB - 256;
    assert_status(tide_plan_create(p, &s.machine, &s.options, &fit, &plan), TIDE_E_FIT);
    assert_true(fit.is_bound);
    assert_int_equal(fit.op, 4);
    s.options.budgets.arena_bytes = 4 * KIB;
    assert_ok(tide_plan_create(p, &s.machine, &s.options, &fit, &plan));
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* Every policy that does not move, asked for as little as it can. */
static void no_plan_without_moves_is_below(void **state) {
    (void)state;
    static const char *const names[] = {"liveness", "dtr", "checkpoint", "hybrid:nomove"};
    for (uint64_t seed = 0; seed < rounds(60); seed++) {
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        subject s;
        tide_id op;
        begin(&s, p);
        uint64_t bound = bound_of(&s, &op);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            tide__plans plans;
            const tide__policy *policy = tide__policy_find(names[i]);
            s.in.argument = policy->generate ? "nomove" : "";
            s.options.effort = TIDE_EFFORT_LOW;
            s.options.budgets.arena_bytes = bound - bound / 8;
            tide__plans_init(&s.in, 0, &plans);
            assert_ok(policy->generate ? policy->generate(&s.in, &plans) : tide__ask(policy, &s.in, &plans));
            assert_true(tide__plans_smallest(&plans) > bound - s.machine.align_bytes);
            tide__plans_deinit(&plans);
        }
        tide_program_destroy(p);
    }
}

/* Backward through 8 layers; the last two need 1 MiB each, when the 6 gradients before theirs, 256 KiB each, are kept:
 * 2.5 MiB and more. A second pass makes those 6 again, after the last two: 2 MiB of gradients, and little else. */
static void what_is_kept_can_be_made_after_the_end(void **state) {
    (void)state;
    enum { LAYERS = 8 };
    tide_program_builder *b;
    tide_program *p;
    subject s;
    tide_fit_report fit = {0};
    tide_plan *plan;
    tide_id value[LAYERS + 1];
    assert_ok(tide_program_builder_create("kept", false, &b));
    value[0] = add_op(b, 16 * KIB, 0, NULL);
    for (int i = 0; i < LAYERS; i++) value[i + 1] = add_op(b, 16 * KIB, 1, &value[i]);
    tide_id back = value[LAYERS];
    for (int i = LAYERS; i-- > 0;) {
        tide_id work = add_op(b, i < 2 ? 1024 * KIB : 16 * KIB, 2, (tide_id[]){back, value[i]});
        assert_ok(tide_program_builder_keep(b, add_op(b, 256 * KIB, 1, &work)));
        back = add_op(b, 16 * KIB, 1, &work);
    }
    assert_ok(tide_program_builder_finish(b, &p));
    begin(&s, p);
    s.options.policy = "hybrid:nomove";
    s.options.order = TIDE_ORDER_PROGRAM; /* else those gradients are made at the end in the first place */
    s.options.budgets.arena_bytes = 2304 * KIB;
    assert_ok(tide_plan_create(p, &s.machine, &s.options, &fit, &plan));
    assert_true(tide_plan_prediction(plan)->step_ns > tide_program_cost_ns(p));
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_of_two_is_made_beside_the_other),
        cmocka_unit_test(where_both_are_large_no_order_helps),
        cmocka_unit_test(no_plan_without_moves_is_below),
        cmocka_unit_test(what_is_kept_can_be_made_after_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
