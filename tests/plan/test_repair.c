/* Repair of large programs by batches, and the search's looks at sketches that are about as fast as its best. */
#include "support/test.h"

#include <stdlib.h>

#include <tidemark/program.h>

#include "plan/decide/hybrid/search.h"
#include "support/plain_op.h"

enum { BYTES = 4096 };

/* n equal layers forward, and n backward, each of which reads its layer's input. */
static tide_program *chain(uint32_t n) {
    tide_program_builder *b;
    tide_program *p;
    tide_id *x = malloc((n + (size_t)1) * sizeof *x);
    assert_non_null(x);
    assert_ok(tide_program_builder_create("chain", false, &b));
    x[0] = add_op(b, BYTES, 0, NULL);
    for (uint32_t i = 0; i < n; i++) x[i + 1] = add_op(b, BYTES, 1, &x[i]);
    tide_id gradient = x[n];
    for (uint32_t i = n; i-- > 0;) gradient = add_op(b, BYTES, 2, (const tide_id[]){gradient, x[i]});
    assert_ok(tide_program_builder_keep(b, gradient));
    assert_ok(tide_program_builder_finish(b, &p));
    free(x);
    return p;
}

typedef struct subject {
    tide_program *program;
    tide_machine machine;
    tide__model *model;
    tide__sketch *sketch;
} subject;

/* The chain, to be held within a part of the bytes of its layers. */
static void begin(subject *s, uint32_t n, double part) {
    tide_plan_options options;
    tide_plan_options_init(&options);
    tide_machine_init_default(&s->machine);
    s->program = chain(n);
    tide__policy_input in = {.program = s->program, .machine = &s->machine, .options = &options, .argument = ""};
    assert_ok(tide__model_create(&in, &s->model));
    assert_ok(tide__sketch_create(s->model, (uint64_t)(part * n * BYTES), &s->sketch));
}

static void end(subject *s) {
    tide__sketch_destroy(s->sketch);
    tide__model_destroy(s->model);
    tide_program_destroy(s->program);
}

/* Neighbours score alike; a batch that drops both, each to be made from the other, would drop neither. */
static void batches_drop_no_neighbours(void **state) {
    (void)state;
    enum { LAYERS = 4000 };
    subject s;
    tide__repair r;
    begin(&s, LAYERS, 0.5);
    assert_ok(tide__repair_init(s.sketch, &r));
    assert_ok(tide__sketch_build(s.sketch));
    assert_true(tide__repair_is_batched(&r));
    r.mask = 1u << TIDE__HOLD_ALL;
    assert_ok(tide__repair_run(&r));
    assert_true(tide__sketch_fits(s.sketch));
    assert_true(s.sketch->run_ns < 2 * LAYERS / 100 * 135); /* 125 is the least */
    tide__repair_deinit(&r);
    end(&s);
}

/* Warm: on from what the sketch has, for a smaller target, and no worse than from nothing by much. */
static void goes_on_from_what_there_is(void **state) {
    (void)state;
    subject s;
    uint64_t spent = 0;
    tide__search_options cold = {.work = 4 * 1000 * 1000, .most = 4 * 1000 * 1000}, warm = cold;
    begin(&s, 60, 0.35);
    assert_ok(tide__search(s.sketch, NULL, &cold, &spent));
    assert_true(tide__sketch_fits(s.sketch) && spent > 0);
    uint64_t cold_ns = s.sketch->run_ns;
    tide__sketch_clear(s.sketch);
    warm.warm = true;
    for (int percent = 90; percent >= 35; percent -= 5) {
        s.sketch->target_bytes = (uint64_t)percent * 60 * BYTES / 100;
        assert_ok(tide__search(s.sketch, NULL, &warm, &spent));
        assert_true(tide__sketch_fits(s.sketch));
    }
    assert_true(100 * s.sketch->run_ns <= 103 * cold_ns);
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_drop_no_neighbours),
        cmocka_unit_test(goes_on_from_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
