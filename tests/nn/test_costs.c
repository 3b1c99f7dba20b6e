/* Flops, bytes, workspace variants and the roofline, against numbers worked out by hand from docs/costs.md. */
#include "support/test.h"

#include <tidemark/nn.h>

#include "nn/model.h"

/* input 2 x 3 x 8 x 8 -> conv 4@3x3 pad 1 -> bn -> maxpool 2 -> fc 5 -> loss */
static tide_step *make_step_of(const tide_machine *machine, tide_dtype dtype) {
    tide_model model = {.name = (char *)(uintptr_t) "costs"};
    tide__graph *g = &model.graph;
    uint32_t x = tide__graph_input(g, (tide_shape){2, 3, 8, 8});
    x = tide__graph_conv(g, "conv", x, (tide__conv){.channels = 4, .kernel = 3, .stride = 1, .pad = 1, .bias = true});
    x = tide__graph_maxpool(g, "pool", tide__graph_bn(g, "bn", x), (tide__pool){.kernel = 2, .stride = 2});
    tide__graph_softmax_loss(g, "loss", tide__graph_fc(g, "fc", x, 5));
    assert_ok(tide__graph_finish(g));
    tide_step_options o;
    tide_step_options_init(&o);
    o.machine = machine;
    o.dtype = dtype;
    tide_step *step;
    assert_ok(tide_step_create(&model, &o, &step));
    tide__graph_deinit(g);
    return step;
}

static tide_step *make_step(const tide_machine *machine) { return make_step_of(machine, TIDE_F32); }

static tide_id find_op(const tide_step *step, const char *name) {
    const tide_program *p = tide_step_program(step);
    for (tide_id i = 0; i < tide_program_op_count(p); i++)
        if (strcmp(tide_program_op(p, i)->name, name) == 0) return i;
    fail_msg("no op %s", name);
    return TIDE_NONE;
}

static void assert_work(const tide_step *step, const char *name, uint64_t flops, uint64_t bytes) {
    tide_id op = find_op(step, name);
    assert_int_equal(tide_step_op_flops(step, op), flops);
    assert_int_equal(tide_step_op_bytes(step, op), bytes);
}

#define X (2 * 3 * 64)
#define Y (2 * 4 * 64)
#define POOLED (2 * 4 * 16)
#define W (4 * 27)
#define FC (5 * 64)

static void flops_and_bytes(void **state) {
    (void)state;
    tide_step *step = make_step(NULL);
    assert_work(step, "conv", 2 * Y * 27 + Y, 4 * (X + W + 4 + Y));
    assert_work(step, "conv.bwd-weights", 2 * Y * 27 + Y, 4 * (X + Y + W + 4));
    assert_work(step, "bn", 8 * Y, 4 * (2 * Y + 16));
    assert_work(step, "bn.stats", 0, 4 * 6 * 4);
    assert_work(step, "bn.bwd", 11 * Y, 4 * (3 * Y + 20));
    assert_work(step, "pool", 4 * POOLED, 4 * (Y + POOLED) + POOLED);
    assert_work(step, "pool.bwd", POOLED, 4 * (Y + POOLED) + POOLED);
    assert_work(step, "fc", 2 * 2 * FC + 10, 4 * (POOLED + FC + 5 + 10));
    assert_work(step, "fc.bwd-data", 2 * 2 * FC + 10, 4 * (FC + 10 + POOLED));
    assert_work(step, "fc.weight.sgd", 4 * FC, 4 * 3 * FC);
    assert_int_equal(tide_program_cost_ns(tide_step_program(step)), 0);
    assert_int_equal(tide_step_op_flops(step, TIDE_NONE), 0);
    tide_step_destroy(step);
}

static tide_machine round_machine(void) {
    tide_machine m;
    tide_machine_init_default(&m);
    m.flops_per_s = 1e9;
    m.bytes_per_s = 1e9;
    m.matrix_efficiency = 0.5;
    m.vector_efficiency = 0.25;
    m.launch_ns = 1000;
    return m;
}

/* At 1 GFLOP/s and 1 GB/s an op takes max(2 f, b) ns if it is a matrix op, else max(f, 4 b), and the launch. */
static void roofline(void **state) {
    (void)state;
    tide_machine m = round_machine();
    tide_step *step = make_step(&m);
    const tide_program *p = tide_step_program(step);
    assert_int_equal(tide_program_op(p, find_op(step, "conv"))->variants[0].cost_ns, 1000 + 2 * (2 * Y * 27 + Y));
    assert_int_equal(tide_program_op(p, find_op(step, "fc"))->variants[0].cost_ns, 1000 + 2 * (2 * 2 * FC + 10));
    assert_int_equal(tide_program_op(p, find_op(step, "bn"))->variants[0].cost_ns, 1000 + 4 * 4 * (2 * Y + 16));
    tide_step_destroy(step);

    m.bytes_per_s = 1e6;
    step = make_step(&m);
    p = tide_step_program(step);
    assert_int_equal(tide_program_op(p, find_op(step, "conv"))->variants[0].cost_ns, 1000 + 4000 * (X + W + 4 + Y));
    tide_step_destroy(step);
}

static void conv_variants(void **state) {
    (void)state;
    tide_machine m = round_machine();
    tide_step *step = make_step(&m);
    const tide_op *conv = tide_program_op(tide_step_program(step), find_op(step, "conv"));
    assert_int_equal(conv->n_variants, 4);
    const tide_variant *v = conv->variants;
    assert_int_equal(v[0].workspace_bytes, 0);
    assert_int_equal(v[1].workspace_bytes, 4 * 27 * 64);
    assert_int_equal(v[2].workspace_bytes, 2 * 4 * 27 * 64);
    assert_int_equal(v[3].workspace_bytes, 64 * (3 * 4 + 2 * 16 * (3 + 4)));
    for (int i = 0; i < 3; i++) assert_int_equal(v[i].bits_class, 0);
    assert_int_equal(v[3].bits_class, 1);
    for (int i = 0; i < 3; i++) assert_true(v[i + 1].cost_ns < v[i].cost_ns);
    const tide_op *fc = tide_program_op(tide_step_program(step), find_op(step, "fc"));
    assert_int_equal(fc->n_variants, 1);
    tide_step_destroy(step);
}

static const tide_tensor *first_write(const tide_step *step, const char *op) {
    const tide_program *p = tide_step_program(step);
    return tide_program_tensor(p, tide_program_op(p, find_op(step, op))->writes[0]);
}

/* Activations of 2 bytes, parameters and what a loss divides of 4; products have a rate of their own and a short copy of the
 * weight they read in their workspace. */
static void mixed_precision(void **state) {
    (void)state;
    tide_machine m = round_machine();
    m.half_flops_per_s = 4e9;
    tide_step *step = make_step_of(&m, TIDE_BF16);
    const tide_program *p = tide_step_program(step);
    assert_work(step, "conv", 2 * Y * 27 + Y, 2 * X + 4 * (W + 4) + 2 * Y);
    assert_work(step, "conv.bwd-weights", 2 * Y * 27 + Y, 2 * (X + Y) + 4 * (W + 4));
    assert_work(step, "bn", 8 * Y, 2 * 2 * Y + 4 * 16);
    assert_work(step, "pool", 4 * POOLED, 2 * (Y + POOLED) + POOLED);
    assert_work(step, "loss", 5 * 10, 2 * 10 + 4 * 2 + 4 * 10 + 4);
    assert_work(step, "fc.weight.sgd", 4 * FC, 4 * 3 * FC);
    assert_int_equal(first_write(step, "conv")->dtype, TIDE_BF16);
    assert_int_equal(first_write(step, "conv")->size_bytes, 2 * Y);
    assert_int_equal(first_write(step, "fc.bwd-data")->dtype, TIDE_BF16);
    assert_int_equal(first_write(step, "fc.bwd-weights")->dtype, TIDE_F32);
    assert_int_equal(first_write(step, "fc.bwd-weights")->size_bytes, 4 * FC);
    assert_int_equal(first_write(step, "loss")->dtype, TIDE_F32);
    const tide_variant *v = tide_program_op(p, find_op(step, "conv"))->variants;
    assert_int_equal(v[0].workspace_bytes, 2 * W);
    assert_int_equal(v[0].cost_ns, 1000 + (2 * Y * 27 + Y) / 2);
    assert_int_equal(v[1].workspace_bytes, 2 * W + 2 * 27 * 64);
    assert_int_equal(v[2].workspace_bytes, 2 * W + 2 * 2 * 27 * 64);
    assert_int_equal(v[3].workspace_bytes, 2 * W + 32 * (3 * 4 + 2 * 16 * (3 + 4)));
    assert_int_equal(tide_program_op(p, find_op(step, "conv.bwd-weights"))->variants[0].workspace_bytes, 0);
    tide_step_destroy(step);

    m.half_flops_per_s = 0; /* no such units: the rate of float32 */
    step = make_step_of(&m, TIDE_F16);
    v = tide_program_op(tide_step_program(step), find_op(step, "conv"))->variants;
    assert_int_equal(v[0].cost_ns, 1000 + 2 * (2 * Y * 27 + Y));
    assert_int_equal(first_write(step, "conv")->dtype, TIDE_F16);
    tide_step_destroy(step);
}

/* Every family: no value changes its type on the way, and the step is smaller. */
static void mixed_precision_of_families(void **state) {
    (void)state;
    static const char *const specs[] = {"alexnet", "densenet121",        "inception-v4",
                                        "unet:8",  "gpt2:2,64,2,32,100", "lstm:2,32,8,50"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        uint64_t bytes[2];
        tide_model_options mo;
        tide_model_options_init(&mo);
        mo.batch = 8;
        tide_model *model;
        assert_ok(tide_model_create(specs[i], &mo, &model));
        for (int half = 0; half < 2; half++) {
            tide_step_options o;
            tide_step_options_init(&o);
            o.dtype = half ? TIDE_BF16 : TIDE_F32;
            tide_step *step;
            assert_ok(tide_step_create(model, &o, &step));
            tide_liveness *live;
            assert_ok(tide_liveness_create(tide_step_program(step), &live));
            bytes[half] = live->total_bytes;
            tide_liveness_destroy(live);
            tide_step_destroy(step);
        }
        tide_model_destroy(model);
        assert_true(bytes[1] < bytes[0]);
        assert_true(2 * bytes[1] > bytes[0]);
    }
}

/* Numbers that cannot be: work beyond 64 bits, or costs beyond any clock. */
static void overflow(void **state) {
    (void)state;
    tide_model_options mo;
    tide_model_options_init(&mo);
    mo.batch = 1 << 24;
    tide_model *model;
    tide_step *step = NULL;
    assert_ok(tide_model_create("mlp:2147483647,67108000,2", &mo, &model));
    assert_status(tide_step_create(model, NULL, &step), TIDE_E_OVERFLOW);
    tide_model_destroy(model);

    assert_ok(tide_model_create("vgg16", NULL, &model));
    tide_machine m = round_machine();
    m.flops_per_s = 1e-3;
    tide_step_options o;
    tide_step_options_init(&o);
    o.machine = &m;
    assert_status(tide_step_create(model, &o, &step), TIDE_E_OVERFLOW);
    assert_error_has("13 days");
    assert_null(step);
    tide_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flops_and_bytes),
        cmocka_unit_test(roofline),
        cmocka_unit_test(conv_variants),
        cmocka_unit_test(mixed_precision),
        cmocka_unit_test(mixed_precision_of_families),
        cmocka_unit_test(overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
