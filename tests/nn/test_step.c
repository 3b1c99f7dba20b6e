/* Steps of small networks, written out by hand: ops in order, what each reads and writes, in-place pairs. */
#include "support/program_text.h"
#include "support/test.h"

#include <tidemark/nn.h>

#include <math.h>

#include "nn/model.h"

static tide_step *make_step(const char *spec, uint32_t batch, const tide_step_options *options) {
    tide_model_options mo;
    tide_model_options_init(&mo);
    mo.batch = batch;
    tide_model *model;
    tide_step *step;
    assert_ok(tide_model_create(spec, &mo, &model));
    assert_ok(tide_step_create(model, options, &step));
    tide_model_destroy(model); /* a step does not need it any more */
    return step;
}

static void assert_ops(const tide_step *step, const char *expected) {
    char *text = program_text(tide_step_program(step));
    assert_string_equal(text, expected);
    free(text);
}

static tide_id find_tensor(const tide_program *p, const char *name) {
    for (tide_id i = 0; i < tide_program_tensor_count(p); i++)
        if (strcmp(tide_program_tensor(p, i)->name, name) == 0) return i;
    fail_msg("no tensor %s", name);
    return TIDE_NONE;
}

static uint64_t size_of(const tide_step *step, const char *name) {
    const tide_program *p = tide_step_program(step);
    return tide_program_tensor(p, find_tensor(p, name))->size_bytes;
}

#define MLP_FORWARD                           \
    "fc1: input fc1.weight fc1.bias -> fc1\n" \
    "relu1: fc1 -> relu1 (0>0)\n"             \
    "fc2: relu1 fc2.weight fc2.bias -> fc2\n" \
    "loss: fc2 label -> loss.prob loss\n"

static void mlp_with_sgd(void **state) {
    (void)state;
    tide_step *step = make_step("mlp:6,4,3", 2, NULL);
    assert_ops(step, MLP_FORWARD "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
                                 "fc2.bwd-weights: relu1 loss.dx -> fc2.weight.grad fc2.bias.grad\n"
                                 "fc2.bwd-data: fc2.weight loss.dx -> fc2.dx\n"
                                 "relu1.bwd: relu1 fc2.dx -> relu1.dx (1>0)\n"
                                 "fc1.bwd-weights: input relu1.dx -> fc1.weight.grad fc1.bias.grad\n"
                                 "fc1.weight.sgd: fc1.weight fc1.weight.grad -> fc1.weight' (0=0) once\n"
                                 "fc1.bias.sgd: fc1.bias fc1.bias.grad -> fc1.bias' (0=0) once\n"
                                 "fc2.weight.sgd: fc2.weight fc2.weight.grad -> fc2.weight' (0=0) once\n"
                                 "fc2.bias.sgd: fc2.bias fc2.bias.grad -> fc2.bias' (0=0) once\n");
    assert_int_equal(size_of(step, "input"), 2 * 6 * 4);
    assert_int_equal(size_of(step, "label"), 2 * 4);
    assert_int_equal(size_of(step, "fc1.weight"), 6 * 4 * 4);
    assert_int_equal(size_of(step, "fc1.bias.grad"), 4 * 4);
    assert_int_equal(size_of(step, "loss"), 4);
    tide_step_destroy(step);
}

/* The old weights are still read by bwd-data, so the fused update comes after it. */
static void mlp_with_fused_momentum(void **state) {
    (void)state;
    tide_step_options o;
    tide_step_options_init(&o);
    o.optimizer = TIDE_MOMENTUM;
    o.fused_update = true;
    tide_step *step = make_step("mlp:6,4,3", 2, &o);
    assert_ops(
        step, MLP_FORWARD
        "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
        "fc2.bwd-weights: relu1 loss.dx -> fc2.weight.grad fc2.bias.grad\n"
        "fc2.bwd-data: fc2.weight loss.dx -> fc2.dx\n"
        "fc2.weight.momentum: fc2.weight fc2.weight.momentum fc2.weight.grad -> fc2.weight' fc2.weight.momentum' "
        "(0=0) (1=1) once\n"
        "fc2.bias.momentum: fc2.bias fc2.bias.momentum fc2.bias.grad -> fc2.bias' fc2.bias.momentum' (0=0) (1=1) "
        "once\n"
        "relu1.bwd: relu1 fc2.dx -> relu1.dx (1>0)\n"
        "fc1.bwd-weights: input relu1.dx -> fc1.weight.grad fc1.bias.grad\n"
        "fc1.weight.momentum: fc1.weight fc1.weight.momentum fc1.weight.grad -> fc1.weight' fc1.weight.momentum' "
        "(0=0) (1=1) once\n"
        "fc1.bias.momentum: fc1.bias fc1.bias.momentum fc1.bias.grad -> fc1.bias' fc1.bias.momentum' (0=0) (1=1) "
        "once\n");
    tide_step_destroy(step);
}

static void mlp_with_two_micro_batches_clipping_and_adam(void **state) {
    (void)state;
    tide_step_options o;
    tide_step_options_init(&o);
    o.optimizer = TIDE_ADAM;
    o.accumulate = 2;
    o.clip_norm = 1.0f;
    tide_step *step = make_step("mlp:6,3", 2, &o);
    assert_ops(step, "fc1: input fc1.weight fc1.bias -> fc1\n"
                     "loss: fc1 label -> loss.prob loss\n"
                     "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
                     "fc1.bwd-weights: input loss.dx -> fc1.weight.grad fc1.bias.grad\n"
                     "fc1@1: input@1 fc1.weight fc1.bias -> fc1@1\n"
                     "loss@1: fc1@1 label@1 -> loss.prob@1 loss@1\n"
                     "loss.accumulate1@1: loss loss@1 -> loss.sum1@1 (0>0)\n"
                     "loss.bwd@1: loss.prob@1 label@1 -> loss.dx@1 (0>0)\n"
                     "fc1.bwd-weights@1: input@1 loss.dx@1 -> fc1.weight.grad@1 fc1.bias.grad@1\n"
                     "fc1.weight.accumulate1@1: fc1.weight.grad fc1.weight.grad@1 -> fc1.weight.grad-sum1@1 (0>0)\n"
                     "fc1.bias.accumulate1@1: fc1.bias.grad fc1.bias.grad@1 -> fc1.bias.grad-sum1@1 (0>0)\n"
                     "grad-norm: fc1.weight.grad-sum1@1 fc1.bias.grad-sum1@1 -> grad-norm.scale\n"
                     "fc1.weight.adam: fc1.weight fc1.weight.m fc1.weight.v fc1.weight.grad-sum1@1 grad-norm.scale -> "
                     "fc1.weight' fc1.weight.m' fc1.weight.v' (0=0) (1=1) (2=2) once\n"
                     "fc1.bias.adam: fc1.bias fc1.bias.m fc1.bias.v fc1.bias.grad-sum1@1 grad-norm.scale -> fc1.bias' "
                     "fc1.bias.m' fc1.bias.v' (0=0) (1=1) (2=2) once\n");
    const tide_program *p = tide_step_program(step);
    for (uint32_t micro = 0; micro < 2; micro++) {
        assert_int_equal(tide_program_tensor(p, tide_step_input(step, micro))->start, TIDE_START_CLIENT);
        assert_int_equal(tide_program_tensor(p, tide_step_label(step, micro))->dtype, TIDE_I32);
        assert_false(tide_program_tensor(p, tide_step_probabilities(step, micro))->keep);
    }
    assert_true(tide_program_tensor(p, tide_step_loss(step))->keep);
    assert_int_equal(tide_step_input(step, 2), TIDE_NONE);
    assert_true(tide_step_op_desc(step, 2)->loss_scale == 0.5f);
    const tide_op_desc *norm = tide_step_op_desc(step, 11);
    assert_int_equal(norm->n_grads, 2);
    assert_int_equal(norm->grad_elements[0], 18);
    assert_int_equal(norm->grad_elements[1], 3);
    assert_int_equal(norm->elements, 21);
    tide_step_destroy(step);
}

static void lenet(void **state) {
    (void)state;
    tide_step *step = make_step("lenet", 2, NULL);
    assert_ops(step, "conv1: input conv1.weight conv1.bias -> conv1\n"
                     "relu1: conv1 -> relu1 relu1.signs (0>0)\n"
                     "pool1: relu1 -> pool1 pool1.index\n"
                     "conv2: pool1 conv2.weight conv2.bias -> conv2\n"
                     "relu2: conv2 -> relu2 relu2.signs (0>0)\n"
                     "pool2: relu2 -> pool2 pool2.index\n"
                     "fc1: pool2 fc1.weight fc1.bias -> fc1\n"
                     "relu3: fc1 -> relu3 (0>0)\n"
                     "fc2: relu3 fc2.weight fc2.bias -> fc2\n"
                     "relu4: fc2 -> relu4 (0>0)\n"
                     "fc3: relu4 fc3.weight fc3.bias -> fc3\n"
                     "loss: fc3 label -> loss.prob loss\n"
                     "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
                     "fc3.bwd-weights: relu4 loss.dx -> fc3.weight.grad fc3.bias.grad\n"
                     "fc3.bwd-data: fc3.weight loss.dx -> fc3.dx\n"
                     "relu4.bwd: relu4 fc3.dx -> relu4.dx (1>0)\n"
                     "fc2.bwd-weights: relu3 relu4.dx -> fc2.weight.grad fc2.bias.grad\n"
                     "fc2.bwd-data: fc2.weight relu4.dx -> fc2.dx\n"
                     "relu3.bwd: relu3 fc2.dx -> relu3.dx (1>0)\n"
                     "fc1.bwd-weights: pool2 relu3.dx -> fc1.weight.grad fc1.bias.grad\n"
                     "fc1.bwd-data: fc1.weight relu3.dx -> fc1.dx\n"
                     "pool2.bwd: pool2.index fc1.dx -> pool2.dx\n"
                     "relu2.bwd: relu2.signs pool2.dx -> relu2.dx (1>0)\n"
                     "conv2.bwd-weights: pool1 relu2.dx -> conv2.weight.grad conv2.bias.grad\n"
                     "conv2.bwd-data: conv2.weight relu2.dx -> conv2.dx\n"
                     "pool1.bwd: pool1.index conv2.dx -> pool1.dx\n"
                     "relu1.bwd: relu1.signs pool1.dx -> relu1.dx (1>0)\n"
                     "conv1.bwd-weights: input relu1.dx -> conv1.weight.grad conv1.bias.grad\n"
                     "conv1.weight.sgd: conv1.weight conv1.weight.grad -> conv1.weight' (0=0) once\n"
                     "conv1.bias.sgd: conv1.bias conv1.bias.grad -> conv1.bias' (0=0) once\n"
                     "conv2.weight.sgd: conv2.weight conv2.weight.grad -> conv2.weight' (0=0) once\n"
                     "conv2.bias.sgd: conv2.bias conv2.bias.grad -> conv2.bias' (0=0) once\n"
                     "fc1.weight.sgd: fc1.weight fc1.weight.grad -> fc1.weight' (0=0) once\n"
                     "fc1.bias.sgd: fc1.bias fc1.bias.grad -> fc1.bias' (0=0) once\n"
                     "fc2.weight.sgd: fc2.weight fc2.weight.grad -> fc2.weight' (0=0) once\n"
                     "fc2.bias.sgd: fc2.bias fc2.bias.grad -> fc2.bias' (0=0) once\n"
                     "fc3.weight.sgd: fc3.weight fc3.weight.grad -> fc3.weight' (0=0) once\n"
                     "fc3.bias.sgd: fc3.bias fc3.bias.grad -> fc3.bias' (0=0) once\n");
    assert_int_equal(size_of(step, "conv1"), 2 * 6 * 28 * 28 * 4);
    assert_int_equal(size_of(step, "pool1.index"), 2 * 6 * 14 * 14);
    assert_int_equal(size_of(step, "conv2"), 2 * 16 * 10 * 10 * 4);
    assert_int_equal(size_of(step, "fc1.weight"), 120 * 16 * 25 * 4);
    tide_step_destroy(step);
}

/* Forks, joins, batch norm: a graph of its own. The gradient of `a` is a sum; the join itself has no backward op. */
static void residual_block(void **state) {
    (void)state;
    tide_model model = {.name = (char *)(uintptr_t) "block"};
    tide__graph *g = &model.graph;
    uint32_t x = tide__graph_input(g, (tide_shape){2, 3, 8, 8});
    uint32_t a = tide__graph_conv(g, "a", x, (tide__conv){.channels = 4, .kernel = 3, .stride = 1, .pad = 1});
    uint32_t b = tide__graph_bn(g, "b", tide__graph_relu(g, "r", a));
    uint32_t pool = tide__graph_global_avgpool(g, "p", tide__graph_add(g, "j", b, a));
    tide__graph_softmax_loss(g, "loss", tide__graph_fc(g, "f", pool, 5));
    assert_ok(tide__graph_finish(g));
    tide_step *step;
    assert_ok(tide_step_create(&model, NULL, &step));
    assert_ops(step, "a: input a.weight -> a\n"
                     "r: a -> r (0>0)\n"
                     "b: r b.weight b.bias -> b b.mean b.inv_std\n"
                     "b.stats: b.mean b.inv_std b.running_mean b.running_var -> b.running_mean' b.running_var' (2=0) "
                     "(3=1) once\n"
                     "j: b a -> j (0>0)\n"
                     "p: j -> p\n"
                     "f: p f.weight f.bias -> f\n"
                     "loss: f label -> loss.prob loss\n"
                     "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
                     "f.bwd-weights: p loss.dx -> f.weight.grad f.bias.grad\n"
                     "f.bwd-data: f.weight loss.dx -> f.dx\n"
                     "p.bwd: f.dx -> p.dx\n"
                     "b.bwd: r p.dx b.weight b.mean b.inv_std -> b.dx b.weight.grad b.bias.grad (1>0)\n"
                     "r.bwd: r b.dx -> r.dx (1>0)\n"
                     "a.sum-dy: p.dx r.dx -> a.dy (1>0)\n"
                     "a.bwd-weights: input a.dy -> a.weight.grad\n"
                     "a.weight.sgd: a.weight a.weight.grad -> a.weight' (0=0) once\n"
                     "b.weight.sgd: b.weight b.weight.grad -> b.weight' (0=0) once\n"
                     "b.bias.sgd: b.bias b.bias.grad -> b.bias' (0=0) once\n"
                     "f.weight.sgd: f.weight f.weight.grad -> f.weight' (0=0) once\n"
                     "f.bias.sgd: f.bias f.bias.grad -> f.bias' (0=0) once\n");
    tide_step_destroy(step);
    tide__graph_deinit(g);
}

/* Dropout draws by a running counter; LRN needs x and y; layers before the first parameter have no gradient. */
static void dropout_and_lrn(void **state) {
    (void)state;
    tide_model model = {.name = (char *)(uintptr_t) "drops"};
    tide__graph *g = &model.graph;
    uint32_t x = tide__graph_relu(g, "r", tide__graph_input(g, (tide_shape){2, 3, 8, 8}));
    x = tide__graph_fc(g, "f", tide__graph_lrn(g, "n", x, 5), 5);
    x = tide__graph_dropout(g, "d2", tide__graph_dropout(g, "d1", x, 0.5f), 0.25f);
    x = tide__graph_lrn(g, "m", x, 3);
    tide__graph_softmax_loss(g, "loss", x);
    assert_ok(tide__graph_finish(g));
    tide_step *step;
    assert_ok(tide_step_create(&model, NULL, &step));
    assert_ops(step, "r: input -> r (0>0)\n"
                     "n: r -> n\n"
                     "f: n f.weight f.bias -> f\n"
                     "d1: f -> d1 (0>0) random 0\n"
                     "d2: d1 -> d2 (0>0) random 1\n"
                     "m: d2 -> m\n"
                     "loss: m label -> loss.prob loss\n"
                     "loss.bwd: loss.prob label -> loss.dx (0>0)\n"
                     "m.bwd: d2 m loss.dx -> m.dx\n"
                     "d2.bwd: m.dx -> d2.dx (0>0) random 1\n"
                     "d1.bwd: d2.dx -> d1.dx (0>0) random 0\n"
                     "f.bwd-weights: n d1.dx -> f.weight.grad f.bias.grad\n"
                     "f.weight.sgd: f.weight f.weight.grad -> f.weight' (0=0) once\n"
                     "f.bias.sgd: f.bias f.bias.grad -> f.bias' (0=0) once\n");
    tide_step_destroy(step);

    tide_step_options o;
    tide_step_options_init(&o);
    o.inference = true;
    assert_ok(tide_step_create(&model, &o, &step));
    assert_ops(step, "r: input -> r (0>0)\n"
                     "n: r -> n\n"
                     "f: n f.weight f.bias -> f\n"
                     "m: f -> m\n"
                     "loss: m label -> loss.prob loss\n");
    assert_true(tide_program_tensor(tide_step_program(step), tide_step_probabilities(step, 0))->keep);
    tide_step_destroy(step);
    tide__graph_deinit(g);
}

static void inference_uses_running_statistics(void **state) {
    (void)state;
    tide_step_options o;
    tide_step_options_init(&o);
    o.inference = true;
    tide_step *step = make_step("resnet-cifar:1", 2, &o);
    const tide_program *p = tide_step_program(step);
    assert_string_equal(tide_program_op(p, 1)->name, "bn1");
    assert_int_equal(tide_step_op_desc(step, 1)->kind, TIDE_OP_BN_INFER);
    assert_int_equal(tide_program_op(p, 1)->n_reads, 5);
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) {
        const tide_state *s = tide_step_state(step, i);
        assert_int_equal(s->at_start, s->at_end);
        assert_true(tide_program_tensor(p, s->at_start)->keep);
    }
    assert_true(tide_program_is_repeating(p));
    tide_step_destroy(step);
}

/* Every state: carried, named, with an op that reads it at the operand it says; an optimizer state is stored like its
 * parameter. */
static void states(void **state) {
    (void)state;
    tide_step_options o;
    tide_step_options_init(&o);
    o.optimizer = TIDE_ADAMW;
    tide_step *step = make_step("resnet-cifar:1", 2, &o);
    const tide_program *p = tide_step_program(step);
    uint32_t n_weights = 0, n_optimizer = 0, n_other = 0;
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) {
        const tide_state *s = tide_step_state(step, i);
        n_weights += s->cls == TIDE_CLASS_WEIGHT;
        n_optimizer += s->cls == TIDE_CLASS_OPTIMIZER;
        n_other += s->cls == TIDE_CLASS_OTHER;
        assert_int_equal(s->trainable, s->cls == TIDE_CLASS_WEIGHT);
        const tide_tensor *stored_like = tide_program_tensor(p, tide_program_op(p, s->op)->reads[s->operand]);
        if (s->cls == TIDE_CLASS_OPTIMIZER)
            assert_memory_equal(s->name, stored_like->name, strlen(stored_like->name));
        else
            assert_string_equal(s->name, stored_like->name);
        assert_int_equal(tide_program_tensor(p, s->at_start)->start, TIDE_START_PRESENT);
        assert_true(tide_program_tensor(p, s->at_end)->keep);
        assert_int_not_equal(s->at_start, s->at_end);
        assert_int_equal(tide_program_tensor(p, s->at_start)->size_bytes,
                         4 * s->shape.n * s->shape.c * s->shape.h * s->shape.w);
    }
    assert_int_equal(tide_program_carry_count(p), tide_step_state_count(step));
    /* conv + bn (scale, shift) eight times around three blocks with two projections, one fc */
    assert_int_equal(n_weights, 9 * 3 + 2);
    assert_int_equal(n_optimizer, 2 * n_weights);
    assert_int_equal(n_other, 9 * 2);
    const tide_state *first = tide_step_state(step, 0);
    assert_string_equal(first->name, "conv1.weight");
    assert_int_equal(first->init, TIDE_INIT_NORMAL);
    assert_float_equal(first->init_scale, 0.272166, 1e-5); /* sqrt(2 / 27) */
    assert_null(tide_step_state(step, tide_step_state_count(step)));
    tide_step_destroy(step);
}

/* The most values with `part` in their names that are alive at once. */
static uint32_t most_alive(const tide_program *p, const char *part) {
    tide_liveness *live;
    uint32_t most = 0;
    assert_ok(tide_liveness_create(p, &live));
    for (uint32_t op = 0; op < live->n_ops; op++) {
        uint32_t alive = 0;
        for (tide_id t = 0; t < live->n_tensors; t++)
            alive += strstr(tide_program_tensor(p, t)->name, part) && live->first[t] <= op && live->last[t] >= op;
        if (alive > most) most = alive;
    }
    tide_liveness_destroy(live);
    return most;
}

/* Six micro-batches: ((0 1) (2 3)) (4 5). What is alive are partial sums, the newest gradient and a sum being made. */
static void sums_are_a_tree(void **state) {
    (void)state;
    tide_step_options o;
    tide_step_options_init(&o);
    o.accumulate = 6;
    tide_step *step = make_step("mlp:6,3", 2, &o);
    char *text = program_text(tide_step_program(step));
    static const char *const lines[] = {
        "\nfc1.weight.accumulate1@1: fc1.weight.grad fc1.weight.grad@1 -> fc1.weight.grad-sum1@1 (0>0)\n",
        "\nfc1.weight.accumulate1@3: fc1.weight.grad@2 fc1.weight.grad@3 -> fc1.weight.grad-sum1@3 (0>0)\n",
        "\nfc1.weight.accumulate2@3: fc1.weight.grad-sum1@1 fc1.weight.grad-sum1@3 -> fc1.weight.grad-sum2@3 (0>0)\n",
        "\nloss.accumulate1@5: loss@4 loss@5 -> loss.sum1@5 (0>0)\n",
        "\nloss.accumulate3@5: loss.sum2@3 loss.sum1@5 -> loss.sum3@5 (0>0)\n",
        "\nfc1.weight.accumulate1@5: fc1.weight.grad@4 fc1.weight.grad@5 -> fc1.weight.grad-sum1@5 (0>0)\n",
        "\nfc1.weight.accumulate3@5: fc1.weight.grad-sum2@3 fc1.weight.grad-sum1@5 -> fc1.weight.grad-sum3@5 (0>0)\n",
        "\nfc1.weight.sgd: fc1.weight fc1.weight.grad-sum3@5 -> fc1.weight' (0=0) once\n",
    };
    const char *at = text;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        at = strstr(at, lines[i]);
        assert_non_null(at);
    }
    assert_true(tide_step_op_desc(step, 2)->loss_scale == 1.0f / 6);
    free(text);
    tide_step_destroy(step);
    for (uint32_t levels = 1; levels < 6; levels++) {
        o.accumulate = UINT32_C(1) << levels;
        step = make_step("mlp:6,3", 2, &o);
        assert_int_equal(most_alive(tide_step_program(step), "weight.grad"), levels + 2);
        tide_step_destroy(step);
    }
}

/* 40 x 128 floats are 20 KiB: five parts of 4 KiB. The bias is whole. */
static void states_in_parts(void **state) {
    (void)state;
    tide_step_options o;
    tide_step_options_init(&o);
    o.optimizer = TIDE_MOMENTUM;
    o.state_part_bytes = 4096;
    tide_step *step = make_step("mlp:40,128", 2, &o);
    const tide_program *p = tide_step_program(step);
    char *text = program_text(p);
    static const char *const lines[] = {
        "fc1.weight.momentum: fc1.weight fc1.weight.momentum fc1.weight.grad -> fc1.weight' fc1.weight.momentum' "
        "(0=0) (1=1) once\n",
        "fc1.weight.momentum1: fc1.weight' fc1.weight.momentum.1 fc1.weight.grad -> fc1.weight'1 "
        "fc1.weight.momentum'1 (0=0) (1=1) once\n",
        "fc1.weight.momentum4: fc1.weight'3 fc1.weight.momentum.4 fc1.weight.grad -> fc1.weight'4 "
        "fc1.weight.momentum'4 (0=0) (1=1) once\n",
        "fc1.bias.momentum: fc1.bias fc1.bias.momentum fc1.bias.grad -> fc1.bias' fc1.bias.momentum' (0=0) (1=1) "
        "once\n",
    };
    const char *at = text;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) assert_non_null(at = strstr(at, lines[i]));
    uint32_t in_parts = 0;
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) {
        const tide_state *s = tide_step_state(step, i);
        in_parts += s->n_parts > 0;
        if (s->n_parts == 0) continue;
        assert_string_equal(s->name, "fc1.weight.momentum");
        assert_int_equal(s->n_parts, 5);
        for (uint32_t k = 0; k < 5; k++) {
            assert_int_equal(tide_program_tensor(p, s->parts[k].to)->size_bytes, 4096);
            assert_true(tide_program_tensor(p, s->parts[k].from)->keep);
        }
        assert_true(s->at_start == s->parts[0].to && s->at_end == s->parts[0].from);
        assert_int_equal(s->shape.n * s->shape.c, 40 * 128);
    }
    assert_int_equal(in_parts, 1);
    free(text);
    tide_step_destroy(step);
}

static void refused_options(void **state) {
    (void)state;
    tide_model *model;
    tide_step *step = NULL;
    assert_ok(tide_model_create("lenet", NULL, &model));
    tide_step_options o;
    tide_step_options_init(&o);
    o.fused_update = true;
    o.clip_norm = 1.0f;
    assert_status(tide_step_create(model, &o, &step), TIDE_E_ARGUMENT);
    assert_error_has("clipping");
    tide_step_options_init(&o);
    o.accumulate = UINT32_MAX;
    assert_status(tide_step_create(model, &o, &step), TIDE_E_ARGUMENT);
    assert_error_has("micro-batches");
    tide_step_options_init(&o);
    o.weight_decay = -1.0f;
    assert_status(tide_step_create(model, &o, &step), TIDE_E_ARGUMENT);
    tide_step_options_init(&o);
    o.clip_norm = (float)NAN;
    assert_status(tide_step_create(model, &o, &step), TIDE_E_ARGUMENT);
    tide_step_options_init(&o);
    o.state_part_bytes = 100;
    assert_status(tide_step_create(model, &o, &step), TIDE_E_ARGUMENT);
    tide_step_options_init(&o);
    o.optimizer = (tide_optimizer)17;
    assert_status(tide_step_create(model, &o, &step), TIDE_E_ARGUMENT);
    o.size = 3;
    assert_status(tide_step_create(model, &o, &step), TIDE_E_ARGUMENT);
    assert_null(step);
    tide_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mlp_with_sgd),
        cmocka_unit_test(mlp_with_fused_momentum),
        cmocka_unit_test(mlp_with_two_micro_batches_clipping_and_adam),
        cmocka_unit_test(lenet),
        cmocka_unit_test(residual_block),
        cmocka_unit_test(dropout_and_lrn),
        cmocka_unit_test(inference_uses_running_statistics),
        cmocka_unit_test(states),
        cmocka_unit_test(sums_are_a_tree),
        cmocka_unit_test(states_in_parts),
        cmocka_unit_test(refused_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
