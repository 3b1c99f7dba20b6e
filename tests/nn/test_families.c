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

/* One block of GPT-2: 2 samples of 3 tokens, width 4, 2 heads, 7 words. The token table is read at both ends and its
 * gradient is the sum of two; with a fused update it comes last, after both. */
#define GPT2_FORWARD                                                                                    \
    "wte: input wte.weight wte.positions -> wte\n"                                                      \
    "h.0.ln_1: wte h.0.ln_1.weight h.0.ln_1.bias -> h.0.ln_1 h.0.ln_1.mean h.0.ln_1.inv_std\n"          \
    "h.0.attn.c_attn: h.0.ln_1 h.0.attn.c_attn.weight h.0.attn.c_attn.bias -> h.0.attn.c_attn\n"        \
    "h.0.attn: h.0.attn.c_attn -> h.0.attn h.0.attn.lse\n"                                              \
    "h.0.attn.c_proj: h.0.attn h.0.attn.c_proj.weight h.0.attn.c_proj.bias -> h.0.attn.c_proj\n"        \
    "h.0.attn.add: h.0.attn.c_proj wte -> h.0.attn.add (0>0)\n"                                         \
    "h.0.ln_2: h.0.attn.add h.0.ln_2.weight h.0.ln_2.bias -> h.0.ln_2 h.0.ln_2.mean h.0.ln_2.inv_std\n" \
    "h.0.mlp.c_fc: h.0.ln_2 h.0.mlp.c_fc.weight h.0.mlp.c_fc.bias -> h.0.mlp.c_fc\n"                    \
    "h.0.mlp.gelu: h.0.mlp.c_fc -> h.0.mlp.gelu (0>0)\n"                                                \
    "h.0.mlp.c_proj: h.0.mlp.gelu h.0.mlp.c_proj.weight h.0.mlp.c_proj.bias -> h.0.mlp.c_proj\n"        \
    "h.0.mlp.add: h.0.mlp.c_proj h.0.attn.add -> h.0.mlp.add (0>0)\n"                                   \
    "ln_f: h.0.mlp.add ln_f.weight ln_f.bias -> ln_f ln_f.mean ln_f.inv_std\n"                          \
    "loss: ln_f wte.weight label -> loss.dx loss.weight.grad loss\n"

#define GPT2_BACKWARD                                                                                              \
    "ln_f.bwd: h.0.mlp.add loss.dx ln_f.weight ln_f.mean ln_f.inv_std -> ln_f.dx ln_f.weight.grad ln_f.bias.grad " \
    "(1>0)\n"                                                                                                      \
    "h.0.mlp.c_proj.bwd-weights: h.0.mlp.gelu ln_f.dx -> h.0.mlp.c_proj.weight.grad h.0.mlp.c_proj.bias.grad\n"    \
    "h.0.mlp.c_proj.bwd-data: h.0.mlp.c_proj.weight ln_f.dx -> h.0.mlp.c_proj.dx\n"                                \
    "h.0.mlp.gelu.bwd: h.0.mlp.c_fc h.0.mlp.c_proj.dx -> h.0.mlp.gelu.dx (1>0)\n"                                  \
    "h.0.mlp.c_fc.bwd-weights: h.0.ln_2 h.0.mlp.gelu.dx -> h.0.mlp.c_fc.weight.grad h.0.mlp.c_fc.bias.grad\n"      \
    "h.0.mlp.c_fc.bwd-data: h.0.mlp.c_fc.weight h.0.mlp.gelu.dx -> h.0.mlp.c_fc.dx\n"                              \
    "h.0.ln_2.bwd: h.0.attn.add h.0.mlp.c_fc.dx h.0.ln_2.weight h.0.ln_2.mean h.0.ln_2.inv_std -> h.0.ln_2.dx "    \
    "h.0.ln_2.weight.grad h.0.ln_2.bias.grad (1>0)\n"                                                              \
    "h.0.attn.add.sum-dy: ln_f.dx h.0.ln_2.dx -> h.0.attn.add.dy (1>0)\n"                                          \
    "h.0.attn.c_proj.bwd-weights: h.0.attn h.0.attn.add.dy -> h.0.attn.c_proj.weight.grad "                        \
    "h.0.attn.c_proj.bias.grad\n"                                                                                  \
    "h.0.attn.c_proj.bwd-data: h.0.attn.c_proj.weight h.0.attn.add.dy -> h.0.attn.c_proj.dx\n"                     \
    "h.0.attn.bwd: h.0.attn.c_attn h.0.attn h.0.attn.lse h.0.attn.c_proj.dx -> h.0.attn.dx\n"                      \
    "h.0.attn.c_attn.bwd-weights: h.0.ln_1 h.0.attn.dx -> h.0.attn.c_attn.weight.grad "                            \
    "h.0.attn.c_attn.bias.grad\n"                                                                                  \
    "h.0.attn.c_attn.bwd-data: h.0.attn.c_attn.weight h.0.attn.dx -> h.0.attn.c_attn.dx\n"                         \
    "h.0.ln_1.bwd: wte h.0.attn.c_attn.dx h.0.ln_1.weight h.0.ln_1.mean h.0.ln_1.inv_std -> h.0.ln_1.dx "          \
    "h.0.ln_1.weight.grad h.0.ln_1.bias.grad (1>0)\n"                                                              \
    "wte.sum-dy: h.0.attn.add.dy h.0.ln_1.dx -> wte.dy (1>0)\n"                                                    \
    "wte.bwd: input wte.dy -> wte.weight.grad wte.positions.grad\n"                                                \
    "wte.weight.accumulate: loss.weight.grad wte.weight.grad -> wte.weight.grad-sum (0>0)\n"

static tide_step *small_step(const char *spec, const tide_step_options *o) {
    tide_model_options mo;
    tide_model_options_init(&mo);
    mo.batch = 2;
    tide_model *model;
    tide_step *step;
    assert_ok(tide_model_create(spec, &mo, &model));
    assert_ok(tide_step_create(model, o, &step));
    tide_model_destroy(model);
    return step;
}

static void gpt2_block(void **state) {
    (void)state;
    tide_step *step = small_step("gpt2:1,4,2,3,7", NULL);
    char *text = program_text(tide_step_program(step)), *updates = strstr(text, "wte.weight.sgd");
    assert_non_null(updates);
    const char *first = "wte.weight.sgd: wte.weight wte.weight.grad-sum -> wte.weight' (0=0) once\n";
    assert_memory_equal(updates, first, strlen(first));
    *updates = '\0';
    assert_string_equal(text, GPT2_FORWARD GPT2_BACKWARD);
    free(text);
    const tide_program *p = tide_step_program(step);
    assert_int_equal(tide_program_tensor(p, tide_step_input(step, 0))->dtype, TIDE_I32);
    assert_int_equal(size_of(step, "input"), 2 * 3 * 4);
    assert_int_equal(size_of(step, "label"), 2 * 3 * 4);
    assert_int_equal(size_of(step, "wte"), 2 * 3 * 4 * 4);
    assert_int_equal(size_of(step, "wte.weight"), 7 * 4 * 4);
    assert_int_equal(size_of(step, "wte.positions"), 3 * 4 * 4);
    assert_int_equal(size_of(step, "h.0.ln_1.mean"), 2 * 3 * 4);
    assert_int_equal(size_of(step, "h.0.attn.c_attn"), 2 * 3 * 12 * 4);
    assert_int_equal(size_of(step, "h.0.attn"), 2 * 3 * 4 * 4);
    assert_int_equal(size_of(step, "h.0.attn.lse"), 2 * 2 * 3 * 4);
    assert_int_equal(size_of(step, "h.0.attn.dx"), 2 * 3 * 12 * 4);
    assert_int_equal(size_of(step, "loss.weight.grad"), 7 * 4 * 4);
    assert_int_equal(tide_step_probabilities(step, 0), TIDE_NONE);
    assert_int_equal(tide_step_op_bytes(step, 0),
                     2 * 3 * 4 + 2 * (2 * 3 * 4 * 4) + 3 * 4 * 4); /* rows, not the table */
    assert_int_equal(tide_step_op_flops(step, 3), 2 * (2 * 2 * 3 * 3) * 2);
    assert_int_equal(tide_step_op_flops(step, 23), 5 * (2 * 2 * 3 * 3) * 2);
    assert_string_equal(tide_program_op(p, 23)->name, "h.0.attn.bwd");
    tide_step_destroy(step);
}

/* Two micro-batches: four gradients of the shared table become one; the fused update is the last op but one. */
static void tied_weights(void **state) {
    (void)state;
    tide_step_options o;
    tide_step_options_init(&o);
    o.accumulate = 2;
    o.fused_update = true;
    tide_step *step = small_step("gpt2:1,4,2,3,7", &o);
    char *text = program_text(tide_step_program(step));
    static const char *const lines[] = {
        "\nwte.weight.accumulate: loss.weight.grad wte.weight.grad -> wte.weight.grad-sum (0>0)\n",
        "\nwte.weight.accumulate@1: loss.weight.grad@1 wte.weight.grad@1 -> wte.weight.grad-sum@1 (0>0)\n",
        "\nwte.weight.accumulate1@1: wte.weight.grad-sum wte.weight.grad-sum@1 -> wte.weight.grad-sum1@1 (0>0)\n",
        "\nwte.weight.sgd: wte.weight wte.weight.grad-sum1@1 -> wte.weight' (0=0) once\n",
        "\nwte.positions.sgd: ",
    };
    const char *at = text;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        at = strstr(at, lines[i]);
        assert_non_null(at);
    }
    assert_null(strchr(strchr(at + 1, '\n') + 1, '\n')); /* nothing after it */
    free(text);
    uint32_t tables = 0;
    for (uint32_t i = 0; i < tide_step_state_count(step); i++)
        tables += strstr(tide_step_state(step, i)->name, "wte.weight") != NULL ||
                  strstr(tide_step_state(step, i)->name, "lm_head") != NULL;
    assert_int_equal(tables, 1);
    tide_step_destroy(step);
}

/* One layer, two steps: 2 samples, width 3, 5 words. The first step has no state before it, the last none after it. */
static void lstm_steps(void **state) {
    (void)state;
    tide_step *step = small_step("lstm:1,3,2,5", NULL);
    assert_text(step,
                "embedding: input embedding.weight -> embedding\n"
                "step0: embedding -> step0\n"
                "step1: embedding -> step1\n"
                "layer1.t0: step0 layer1.t0.weight layer1.t0.bias -> layer1.t0 layer1.t0.c layer1.t0.gates\n"
                "layer1.t1: step1 layer1.t0 layer1.t0.c layer1.t0.weight layer1.t0.bias -> layer1.t1 layer1.t1.c "
                "layer1.t1.gates\n"
                "stack: layer1.t0 layer1.t1 -> stack\n"
                "decoder: stack decoder.weight decoder.bias -> decoder\n"
                "loss: decoder label -> loss.prob loss\n"
                "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
                "decoder.bwd-weights: stack loss.dx -> decoder.weight.grad decoder.bias.grad\n"
                "decoder.bwd-data: decoder.weight loss.dx -> decoder.dx\n"
                "stack.bwd: decoder.dx -> stack.dx\n"
                "stack.bwd1: decoder.dx -> stack.dx1\n"
                "layer1.t1.bwd-gates: layer1.t1.gates layer1.t1.c layer1.t0.c stack.dx1 -> layer1.t1.dgates "
                "layer1.t1.dc (0>0)\n"
                "layer1.t1.bwd-weights: step1 layer1.t0 layer1.t1.dgates -> layer1.t1.weight.grad "
                "layer1.t1.bias.grad\n"
                "layer1.t1.bwd-data: layer1.t0.weight layer1.t1.dgates -> layer1.t1.dx layer1.t1.dh\n"
                "layer1.t0.sum-dy: stack.dx layer1.t1.dh -> layer1.t0.dy (1>0)\n"
                "layer1.t0.bwd-gates: layer1.t0.gates layer1.t0.c layer1.t0.dy layer1.t1.dc -> layer1.t0.dgates "
                "(0>0)\n"
                "layer1.t0.bwd-weights: step0 layer1.t0.dgates -> layer1.t0.weight.grad layer1.t0.bias.grad\n"
                "layer1.t0.weight.accumulate: layer1.t1.weight.grad layer1.t0.weight.grad -> "
                "layer1.t0.weight.grad-sum (0>0)\n"
                "layer1.t0.bias.accumulate: layer1.t1.bias.grad layer1.t0.bias.grad -> layer1.t0.bias.grad-sum "
                "(0>0)\n"
                "layer1.t0.bwd-data: layer1.t0.weight layer1.t0.dgates -> layer1.t0.dx\n"
                "step0.bwd: layer1.t0.dx layer1.t1.dx -> step0.dx\n"
                "embedding.bwd: input step0.dx -> embedding.weight.grad\n"
                "embedding.weight.sgd: embedding.weight embedding.weight.grad -> embedding.weight' (0=0) once\n"
                "layer1.t0.weight.sgd: layer1.t0.weight layer1.t0.weight.grad-sum -> layer1.t0.weight' (0=0) once\n"
                "layer1.t0.bias.sgd: layer1.t0.bias layer1.t0.bias.grad-sum -> layer1.t0.bias' (0=0) once\n"
                "decoder.weight.sgd: decoder.weight decoder.weight.grad -> decoder.weight' (0=0) once\n"
                "decoder.bias.sgd: decoder.bias decoder.bias.grad -> decoder.bias' (0=0) once\n");
    assert_int_equal(size_of(step, "embedding"), 2 * 2 * 3 * 4);
    assert_int_equal(size_of(step, "step1"), 2 * 3 * 4);
    assert_int_equal(size_of(step, "layer1.t1.c"), 2 * 3 * 4);
    assert_int_equal(size_of(step, "layer1.t1.gates"), 2 * 4 * 3 * 4);
    assert_int_equal(size_of(step, "layer1.t0.weight"), 4 * 3 * (3 + 3) * 4);
    assert_int_equal(tide_step_op_bytes(step, 1), 2 * (2 * 3 * 4)); /* the rows of its step */
    assert_int_equal(tide_step_op_bytes(step, 5), 2 * (2 * 2 * 3 * 4));
    assert_int_equal(tide_step_op_flops(step, 3), 2 * 2 * (4 * 3) * 3);
    assert_int_equal(tide_step_op_flops(step, 4), 2 * 2 * (4 * 3) * (3 + 3));
    tide_step_destroy(step);
}

/* ---- whole families ---- */

static const char *const specs[] = {
    "densenet121", "inception-v4", "unet", "gpt2:nano", "lstm:2,64,100",
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
        cmocka_unit_test(dense_block),  cmocka_unit_test(up_convolution), cmocka_unit_test(gpt2_block),
        cmocka_unit_test(tied_weights), cmocka_unit_test(lstm_steps),     cmocka_unit_test(plans_are_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
