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

typedef struct witness {
    uint32_t looks;
    uint64_t least_ns, most_ns;
} witness;

static tide_status refuse(void *self, const tide__sketch *s, bool *placed) {
    witness *w = self;
    assert_true(tide__sketch_fits(s));
    w->looks++;
    if (s->run_ns < w->least_ns) w->least_ns = s->run_ns;
    if (s->run_ns > w->most_ns) w->most_ns = s->run_ns;
    *placed = false;
    return TIDE_OK;
}

static tide_status accept(void *self, const tide__sketch *s, bool *placed) {
    (void)s;
    ++*(uint32_t *)self;
    *placed = true;
    return TIDE_OK;
}

/* Those that have no places are passed over, for others that take hardly longer; one that has ends it. */
static void looks_at_others_of_the_same_load(void **state) {
    (void)state;
    subject s;
    uint64_t spent, work = 4 * 1000 * 1000;
    uint32_t accepted = 0;
    witness w = {.least_ns = UINT64_MAX};
    begin(&s, 60, 0.35);
    assert_ok(tide__search(s.sketch, NULL, NULL, work, work, &spent));
    assert_true(tide__sketch_fits(s.sketch));
    uint64_t best_ns = s.sketch->run_ns;
    tide__placer refusing = {.place = refuse, .self = &w, .work = 1000};
    assert_ok(tide__search(s.sketch, NULL, &refusing, work, work, &spent));
    assert_true(w.looks > 1 && w.least_ns <= best_ns && w.most_ns > w.least_ns);
    assert_true(100 * w.most_ns <= 103 * best_ns);
    assert_true(s.sketch->run_ns <= best_ns);
    tide__placer accepting = {.place = accept, .self = &accepted, .work = 1000};
    assert_ok(tide__search(s.sketch, NULL, &accepting, work, work, &spent));
    assert_in_range(accepted, 1, w.looks);
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_drop_no_neighbours),
        cmocka_unit_test(looks_at_others_of_the_same_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
