/* Policy `hybrid`: every plan is proved and runs on symbolic values, or honestly does not fit; the sketch it searches on
 * says what the schedule says; and it is not slower than the policies it is made from. */
#include "support/test.h"

#include <stdlib.h>

#include <tidemark/tidemark.h>

#include "plan/evaluate.h"
#include "plan/decide/hybrid/search.h"
#include "plan/decide/policies/workspaces.h"
#include "support/hand_made.h"
#include "support/network.h"
#include "support/random_program.h"
#include "support/try_policies.h"

static void random_programs(void **state) {
    (void)state;
    static const char *const settings[] = {"hybrid", "hybrid:nomove", "hybrid:norerun"};
    policy_tally t = try_policies(settings, 3, TIDE_EFFORT_LOW, rounds(200));
    assert_true(t.made > rounds(80) && t.with_moves > rounds(20) && t.with_reruns >= rounds(8) &&
                t.refused > rounds(20));
}

/* Re-runs whose operands no op has overwritten, at random. */
static void add_random_reruns(tide__sketch *s, uint64_t *rng) {
    const tide__model *m = s->model;
    for (uint32_t i = 0; i < 1 + m->n_ops / 4; i++) {
        uint32_t slot = 1 + (uint32_t)random_below(rng, m->n_ops), op = (uint32_t)random_below(rng, slot);
        bool usable = m->rerunnable[op];
        for (uint32_t k = m->read_at[op]; k < m->read_at[op + 1]; k++)
            usable = usable && m->destroyer[m->reads[k]] == TIDE_NONE;
        if (usable) assert_ok(tide__sketch_add(s, tide__event_key(slot, TIDE__EVENT_RUN, op)));
    }
}

static void list_reruns(const tide__sketch *s, tide__decisions *d) {
    for (size_t i = 0; i < s->extra.count; i++)
        if (tide__event_kind_of(s->extra.data[i]) == TIDE__EVENT_RUN)
            assert_ok(tide__vec_push(&d->reruns, ((tide__rerun){.slot = tide__event_slot(s->extra.data[i]),
                                                                .op = tide__event_id(s->extra.data[i])})));
}

/* Loads of random re-runs: the sketch against the schedule. */
static void sketch_loads(void **state) {
    (void)state;
    tide_machine m;
    tide_machine_init_default(&m);
    uint32_t compared = 0;
    for (uint64_t seed = 0; seed < rounds(200); seed++) {
        uint64_t rng = seed * 41 + 5;
        random_program_options ro = random_program_defaults(seed);
        tide_program *p = random_program(&ro);
        tide_plan_options o;
        tide_plan_options_init(&o);
        tide__policy_input in = {.program = p, .machine = &m, .options = &o, .argument = "", .target_bytes = 1};
        tide__model *model;
        tide__sketch *s;
        tide__decisions d = {0};
        assert_ok(tide__model_create(&in, &model));
        assert_ok(tide__sketch_create(model, 1, &s));
        add_random_reruns(s, &rng);
        list_reruns(s, &d);
        assert_ok(tide__sketch_build(s));
        uint64_t *loads = calloc(model->n_ops + 1, sizeof *loads);
        bool simple = true; /* alternatives in workspace and inputs of the next step are not the sketch's matter */
        for (tide_id t = 0; t < model->n_tensors; t++) simple = simple && !(model->client[t] && model->keep[t]);
        assert_ok(tide__workspaces_shrink(&in, &d)); /* as the sketch counts them */
        if (simple && tide__evaluate_loads(&in, &d, loads) == TIDE_OK) {
            for (uint32_t k = 0; k < model->n_ops; k++) {
                uint64_t most = 0;
                for (uint32_t e = s->slot_at[k]; e < s->slot_at[k + 1]; e++)
                    most = s->load[e] > most ? s->load[e] : most;
                assert_true(most <= loads[k]); /* a `may` pair that placement cannot join costs more there */
                compared += most == loads[k];
            }
        }
        free(loads);
        tide__decisions_free(&d);
        tide__sketch_destroy(s);
        tide__model_destroy(model);
        tide_program_destroy(p);
    }
    print_message("%u slots compared\n", compared);
    assert_true(compared > rounds(500));
}

/* Any choice of moves beside any re-runs is a plan that can be proved, once synced; and syncing again changes nothing. */
static void moves_beside_reruns(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    uint32_t with_both = 0;
    for (uint64_t seed = 0; seed < rounds(60); seed++) {
        uint64_t rng = seed * 53 + 7;
        random_program_options ro = random_program_varied(seed);
        tide_program *p = random_program(&ro);
        tide_plan_options o;
        tide_plan_options_init(&o);
        tide__policy_input in = {.program = p, .machine = &m, .options = &o, .argument = "", .target_bytes = 512};
        tide__model *model;
        tide__sketch *s;
        tide__transfers t;
        tide__decisions d = {0};
        tide_plan *plan;
        assert_ok(tide__model_create(&in, &model));
        assert_ok(tide__sketch_create(model, in.target_bytes, &s));
        assert_ok(tide__transfers_init(&in, model, &t));
        add_random_reruns(s, &rng);
        for (size_t i = 0; i < t.swaps.gaps.count; i++) t.chosen[i] = t.chosen[i] || random_below(&rng, 3) == 0;
        assert_ok(tide__transfers_sync(&t, s));
        uint64_t events = s->n_events;
        double excess = s->excess;
        assert_ok(tide__transfers_sync(&t, s));
        assert_int_equal(s->n_events, events);
        assert_true(s->excess == excess);
        assert_ok(tide__swaps_decide(&t.swaps, t.chosen, &d));
        list_reruns(s, &d);
        assert_ok(tide__evaluate(
            &in, &d, &(tide__evaluate_options){.capacity_bytes = o.budgets.arena_bytes, .place_work = 0, .worth_ns = 0},
            &plan));
        assert_ok(tide_plan_verify(plan, p, &m, NULL, NULL));
        with_both += d.swaps.count > 0 && d.reruns.count > 0;
        tide_plan_destroy(plan);
        tide__decisions_free(&d);
        tide__transfers_deinit(&t);
        tide__sketch_destroy(s);
        tide__model_destroy(model);
        tide_program_destroy(p);
    }
    print_message("%u with moves and re-runs\n", with_both);
    assert_true(with_both > rounds(20));
}

static void arguments(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    random_program_options o = random_program_defaults(1);
    tide_program *p = random_program(&o);
    tide_plan *plan;
    assert_status(try_policy(p, &m, "hybrid:fast", TIDE_EFFORT_LOW, UINT64_MAX, &plan), TIDE_E_ARGUMENT);
    assert_error_has("nomove");
    tide_program_destroy(p);
}

/* AlexNet's fastest convolutions want workspaces as large as its activations: what is searched without them leaves no room for
 * them, and was slower by a fifth. */
static void workspaces_count(void **state) {
    (void)state;
    network n = network_make("alexnet", 128, "v100-16gb-pcie");
    tide_plan *free_plan, *plan;
    assert_ok(try_policy(n.program, &n.machine, "liveness", TIDE_EFFORT_NORMAL, UINT64_MAX, &free_plan));
    uint64_t budget = tide_plan_arena_bytes(free_plan) / 100 * 60;
    assert_ok(try_policy(n.program, &n.machine, "hybrid", TIDE_EFFORT_NORMAL, budget, &plan));
    assert_true(tide_plan_prediction(plan)->step_ns < tide_plan_prediction(free_plan)->step_ns / 100 * 112);
    tide_plan_destroy(plan);
    tide_plan_destroy(free_plan);
    network_free(&n);
}

/* A step whose costs nobody has said is planned by bytes alone. */
static void nothing_costs(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_model_options mo;
    tide_step_options so;
    tide_model *model;
    tide_step *step;
    tide_plan *plan;
    tide_model_options_init(&mo);
    mo.batch = 8;
    tide_step_options_init(&so);
    assert_ok(tide_model_create("lenet", &mo, &model));
    assert_ok(tide_step_create(model, &so, &step));
    assert_int_equal(tide_program_op(tide_step_program(step), 0)->variants[0].cost_ns, 0);
    assert_ok(try_policy(tide_step_program(step), &m, "hybrid", TIDE_EFFORT_LOW, UINT64_MAX, &plan));
    tide_plan_destroy(plan);
    tide_step_destroy(step);
    tide_model_destroy(model);
}

/* An input that is used twice, on a machine that moves nothing but inputs: it may leave, as the client still has it. */
static void inputs_come_twice(void **state) {
    (void)state;
    static const char text[] =
        "{\"tidemark\":\"program\",\"version\":1,\"kind\":\"one-shot\"}\n"
        "{\"tensor\":0,\"bytes\":1000,\"class\":\"input\",\"start\":\"client\"}\n"
        "{\"tensor\":1,\"bytes\":10}\n{\"tensor\":2,\"bytes\":1000}\n{\"tensor\":3,\"bytes\":10}\n"
        "{\"tensor\":4,\"bytes\":10,\"keep\":true}\n"
        "{\"op\":0,\"phase\":\"forward\",\"reads\":[0],\"writes\":[1],\"cost\":9}\n"
        "{\"op\":1,\"phase\":\"forward\",\"reads\":[1],\"writes\":[2],\"cost\":9}\n"
        "{\"op\":2,\"phase\":\"forward\",\"reads\":[2],\"writes\":[3],\"cost\":9}\n"
        "{\"op\":3,\"phase\":\"forward\",\"reads\":[0,3],\"writes\":[4],\"cost\":9}\n"
        "{\"end\":{\"tensors\":5,\"ops\":4,\"carries\":0}}\n";
    tide_machine m;
    tide_program *p;
    tide_plan *plan;
    tide_machine_init_default(&m);
    tide_machine_without(&m, TIDE_TIER_RAM, &m);
    assert_ok(tide_program_read_memory(text, sizeof text - 1, "text", &p));
    assert_ok(try_policy(p, &m, "hybrid", TIDE_EFFORT_LOW, 1020, &plan));
    tide_plan_destroy(plan);
    assert_status(try_policy(p, &m, "hybrid:nomove", TIDE_EFFORT_LOW, 1020, &plan), TIDE_E_FIT);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),   cmocka_unit_test(sketch_loads), cmocka_unit_test(moves_beside_reruns),
        cmocka_unit_test(workspaces_count),  cmocka_unit_test(arguments),    cmocka_unit_test(nothing_costs),
        cmocka_unit_test(inputs_come_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
