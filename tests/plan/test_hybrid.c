/* Policy `hybrid`: every plan is proved and runs on symbolic values, or honestly does not fit; the sketch it searches on
 * says what the schedule says; and it is not slower than the policies it is made from. */
#include "support/test.h"

#include <stdlib.h>

#include "plan/decide/draft.h"
#include "plan/decide/hybrid/search.h"
#include "plan/decide/workspaces.h"
#include "support/hand_made.h"
#include "support/random_program.h"
#include "support/try_policies.h"

static void random_programs(void **state) {
    (void)state;
    static const char *const settings[] = {"hybrid", "hybrid:nomove", "hybrid:norerun"};
    policy_tally t = try_policies(settings, 3, TIDE_EFFORT_LOW, 200);
    assert_true(t.made > 80 && t.with_moves > 20 && t.with_reruns > 8 && t.refused > 20);
}

/* Loads of random re-runs: the sketch against the schedule. */
static void sketch_loads(void **state) {
    (void)state;
    tide_machine m;
    tide_machine_init_default(&m);
    uint32_t compared = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
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
        for (uint32_t i = 0; i < 1 + model->n_ops / 4; i++) {
            uint32_t slot = 1 + (uint32_t)random_below(&rng, model->n_ops), op = (uint32_t)random_below(&rng, slot);
            bool usable = model->rerunnable[op];
            for (uint32_t k = model->read_at[op]; k < model->read_at[op + 1]; k++)
                usable = usable && model->destroyer[model->reads[k]] == TIDE_NONE;
            uint64_t key = tide__event_key(slot, TIDE__EVENT_RUN, op);
            if (!usable || tide__sketch_has(s, key)) continue;
            assert_ok(tide__sketch_add(s, key));
            assert_ok(tide__vec_push(&d.reruns, ((tide__rerun){.slot = slot, .op = op})));
        }
        assert_ok(tide__sketch_build(s));
        uint64_t *loads = calloc(model->n_ops + 1, sizeof *loads);
        bool simple = true; /* alternatives in workspace and inputs of the next step are not the sketch's matter */
        for (tide_id t = 0; t < model->n_tensors; t++) simple = simple && !(model->client[t] && model->keep[t]);
        assert_ok(tide__workspaces_shrink(&in, &d)); /* as the sketch counts them */
        if (simple && tide__draft_loads(&in, &d, loads) == TIDE_OK) {
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
    assert_true(compared > 500);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
        cmocka_unit_test(sketch_loads),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
