/* Families that need more than a chain of convolutions: small instances written out by hand, and plans of whole ones
 * (tide_plan_create verifies what it returns). */
#include "support/program_text.h"
#include "support/test.h"

#include <tidemark/nn.h>
#include <tidemark/plan.h>

#include "nn/model.h"

static void assert_text(const tide_step *step, const char *expected) {
    char *text = program_text(tide_step_program(step));
    assert_string_equal(text, expected);
    free(text);
}

/* A graph without a spec; the model is only borrowed. */
static tide_step *step_of(tide__graph *g, const tide_step_options *o) {
    tide_model model = {.graph = *g, .name = (char *)(uintptr_t) "small"};
    tide_step *step;
    assert_ok(tide__graph_finish(g));
    assert_ok(tide_step_create(&model, o, &step));
    return step;
}

static uint64_t size_of(const tide_step *step, const char *name) {
    const tide_program *p = tide_step_program(step);
    for (tide_id i = 0; i < tide_program_tensor_count(p); i++)
        if (strcmp(tide_program_tensor(p, i)->name, name) == 0) return tide_program_tensor(p, i)->size_bytes;
    fail_msg("no tensor %s", name);
    return 0;
}

/* Two layers a and b; every layer sees all that came before. Each part's gradient is a sum over its readers. */
static void dense_block(void **state) {
    (void)state;
    tide__graph g = {0};
    const tide__conv conv = {.channels = 4, .kernel = 3, .stride = 1, .pad = 1};
    uint32_t x = tide__graph_conv(&g, "x", tide__graph_input(&g, (tide_shape){2, 3, 8, 8}), conv), parts[3] = {x};
    parts[1] = tide__graph_conv(&g, "a", x, conv);
    parts[2] = tide__graph_conv(&g, "b", tide__graph_concat(&g, "xa", parts, 2), conv);
    x = tide__graph_global_avgpool(&g, "p", tide__graph_concat(&g, "xab", parts, 3));
    tide__graph_softmax_loss(&g, "loss", tide__graph_fc(&g, "f", x, 5));
    tide_step *step = step_of(&g, NULL);
    assert_text(step, "x: input x.weight -> x\n"
                      "a: x a.weight -> a\n"
                      "xa: x a -> xa\n"
                      "b: xa b.weight -> b\n"
                      "xab: x a b -> xab\n"
                      "p: xab -> p\n"
                      "f: p f.weight f.bias -> f\n"
                      "loss: f label -> loss.prob loss\n"
                      "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
                      "f.bwd-weights: p loss.dx -> f.weight.grad f.bias.grad\n"
                      "f.bwd-data: f.weight loss.dx -> f.dx\n"
                      "p.bwd: f.dx -> p.dx\n"
                      "xab.bwd: p.dx -> xab.dx0 xab.dx1 xab.dx2\n"
                      "b.bwd-weights: xa xab.dx2 -> b.weight.grad\n"
                      "b.bwd-data: b.weight xab.dx2 -> b.dx\n"
                      "xa.bwd: b.dx -> xa.dx0 xa.dx1\n"
                      "x.sum-dy: xab.dx0 xa.dx0 -> x.dy (1>0)\n"
                      "a.sum-dy: xab.dx1 xa.dx1 -> a.dy (1>0)\n"
                      "a.bwd-weights: x a.dy -> a.weight.grad\n"
                      "a.bwd-data: a.weight a.dy -> a.dx\n"
                      "x.sum-dy1: x.dy a.dx -> x.dy1 (1>0)\n"
                      "x.bwd-weights: input x.dy1 -> x.weight.grad\n"
                      "x.weight.sgd: x.weight x.weight.grad -> x.weight' (0=0) once\n"
                      "a.weight.sgd: a.weight a.weight.grad -> a.weight' (0=0) once\n"
                      "b.weight.sgd: b.weight b.weight.grad -> b.weight' (0=0) once\n"
                      "f.weight.sgd: f.weight f.weight.grad -> f.weight' (0=0) once\n"
                      "f.bias.sgd: f.bias f.bias.grad -> f.bias' (0=0) once\n");
    assert_int_equal(size_of(step, "xa"), 2 * 8 * 64 * 4);
    assert_int_equal(size_of(step, "xab"), 2 * 12 * 64 * 4);
    assert_int_equal(size_of(step, "xab.dx1"), 2 * 4 * 64 * 4);
    assert_int_equal(tide_step_op_bytes(step, 4), 2 * 2 * 12 * 64 * 4);
    assert_int_equal(tide_step_op_flops(step, 4), 0);
    assert_int_equal(tide_step_op_desc(step, 4)->part_channels[2], 4);
    tide_step_destroy(step);
    tide__graph_deinit(&g);
}

/* Down, up, and across: labels and losses are per pixel. */
static void up_convolution(void **state) {
    (void)state;
    tide__graph g = {0};
    uint32_t skip = tide__graph_conv(&g, "c", tide__graph_input(&g, (tide_shape){2, 3, 8, 6}),
                                     (tide__conv){.channels = 4, .kernel = 1, .stride = 1});
    uint32_t x = tide__graph_maxpool(&g, "p", skip, (tide__pool){.kernel = 2, .stride = 2});
    x = tide__graph_upconv(&g, "u", x, 5, 2);
    tide__graph_pixel_loss(&g, "loss", tide__graph_concat(&g, "j", (uint32_t[]){skip, x}, 2));
    tide_step *step = step_of(&g, NULL);
    assert_text(step, "c: input c.weight -> c\n"
                      "p: c -> p p.index\n"
                      "u: p u.weight u.bias -> u\n"
                      "j: c u -> j\n"
                      "loss: j label -> loss.prob loss\n"
                      "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
                      "j.bwd: loss.dx -> j.dx0 j.dx1\n"
                      "u.bwd-weights: p j.dx1 -> u.weight.grad u.bias.grad\n"
                      "u.bwd-data: u.weight j.dx1 -> u.dx\n"
                      "p.bwd: p.index u.dx -> p.dx\n"
                      "c.sum-dy: j.dx0 p.dx -> c.dy (1>0)\n"
                      "c.bwd-weights: input c.dy -> c.weight.grad\n"
                      "c.weight.sgd: c.weight c.weight.grad -> c.weight' (0=0) once\n"
                      "u.weight.sgd: u.weight u.weight.grad -> u.weight' (0=0) once\n"
                      "u.bias.sgd: u.bias u.bias.grad -> u.bias' (0=0) once\n");
    assert_int_equal(size_of(step, "u"), 2 * 5 * 8 * 6 * 4);
    assert_int_equal(size_of(step, "u.weight"), 5 * 4 * 2 * 2 * 4);
    assert_int_equal(size_of(step, "label"), 2 * 8 * 6 * 4);
    assert_int_equal(tide_step_op_flops(step, 2), 2 * (2 * 4 * 3) * 4 * (5 * 4) + 2 * 5 * 8 * 6); /* pixels, in, out */
    assert_int_equal(tide_step_op_desc(step, 2)->kind, TIDE_OP_UPCONV_FWD);
    tide_step_destroy(step);
    tide__graph_deinit(&g);
}

/* ---- whole families ---- */

static const char *const specs[] = {
    "densenet121",
    "inception-v4",
    "unet",
};

static void plan(const tide_program *p, const tide_machine *machine) {
    tide_liveness *live;
    tide_plan *made;
    tide_plan_options options;
    tide_plan_options_init(&options);
    assert_ok(tide_liveness_create(p, &live));
    assert_ok(tide_plan_create(p, machine, &options, NULL, &made));
    assert_true(tide_plan_arena_bytes(made) >= live->peak_bytes);
    assert_true(tide_plan_arena_bytes(made) < live->total_bytes);
    tide_plan_destroy(made);
    tide_liveness_destroy(live);
}

static void plans_are_valid(void **state) {
    (void)state;
    tide_machine machine;
    assert_ok(tide_machine_load("v100-16gb-pcie", &machine));
    tide_model_options mo;
    tide_model_options_init(&mo);
    mo.batch = 2;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        tide_model *model;
        assert_ok(tide_model_create(specs[i], &mo, &model));
        for (int k = 0; k < 3; k++) {
            tide_step_options o;
            tide_step *step;
            tide_step_options_init(&o);
            o.optimizer = k == 0 ? TIDE_SGD : TIDE_ADAMW;
            o.fused_update = k == 1;
            o.accumulate = k == 2 ? 2 : 1;
            o.machine = &machine;
            assert_ok(tide_step_create(model, &o, &step));
            plan(tide_step_program(step), &machine);
            tide_step_destroy(step);
        }
        tide_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_block),
        cmocka_unit_test(up_convolution),
        cmocka_unit_test(plans_are_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
