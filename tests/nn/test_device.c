/* Steps for the CPU device, against the device's own answers: sizes as stored, layouts that agree along every edge,
 * reorders once per value and layout. */
#include "support/test.h"

#include <tidemark/nn.h>

static int open_device(void **state) {
    tide_device *device;
    if (tide_device_open("cpu", NULL, &device) != TIDE_OK) return -1;
    *state = device;
    return 0;
}

static int close_device(void **state) {
    tide_device_close(*state);
    return 0;
}

static tide_step *make_step(tide_device *device, const char *spec, tide_step_options o) {
    tide_model_options mo;
    tide_model_options_init(&mo);
    mo.batch = 4;
    tide_model *model;
    tide_step *step;
    o.device = device;
    assert_ok(tide_model_create(spec, &mo, &model));
    assert_ok(tide_step_create(model, &o, &step));
    tide_model_destroy(model);
    return step;
}

/* Ops that work on stored floats whatever their layout. */
static bool is_flat(tide_op_kind kind) {
    return (kind >= TIDE_OP_SGD && kind <= TIDE_OP_ACCUMULATE) || kind == TIDE_OP_ZERO || kind == TIDE_OP_CUT ||
           kind == TIDE_OP_PASTE;
}

/* Size and layout of each tensor as the ops that touch it see it; 0 = nobody has said yet. */
typedef struct seen {
    uint64_t layout;
    const char *by;
} seen;

static void meet(const tide_program *p, seen *tensors, const tide_op *op, tide_id id, const tide_operand_info *info) {
    assert_int_equal(tide_program_tensor(p, id)->size_bytes, info->size_bytes);
    if (tensors[id].by && tensors[id].layout != info->layout)
        fail_msg("%s: %s and %s see different layouts", tide_program_tensor(p, id)->name, tensors[id].by, op->name);
    tensors[id] = (seen){info->layout, op->name};
}

static void check_op(tide_device *device, const tide_step *step, tide_id id, seen *tensors) {
    const tide_program *p = tide_step_program(step);
    const tide_op *op = tide_program_op(p, id);
    const tide_op_desc *desc = tide_step_op_desc(step, id);
    tide_kernel *kernel;
    tide_kernel_info info;
    assert_ok(tide_kernel_create(device, desc, &kernel));
    assert_ok(tide_kernel_get_info(kernel, &info));
    tide_kernel_destroy(kernel);
    assert_int_equal(op->n_reads, info.n_reads);
    assert_int_equal(op->n_writes, info.n_writes);
    assert_int_equal(op->n_variants, info.n_variants);
    for (uint32_t i = 0; i < info.n_variants; i++)
        assert_int_equal(op->variants[i].workspace_bytes, info.variant[i].workspace_bytes);
    if (is_flat(desc->kind)) return;
    for (uint32_t i = 0; i < op->n_reads; i++) meet(p, tensors, op, op->reads[i], &info.read[i]);
    for (uint32_t i = 0; i < op->n_writes; i++) meet(p, tensors, op, op->writes[i], &info.write[i]);
}

/* A flat op reads and writes tensors that lie alike. */
static void check_flat(const tide_step *step, tide_id id, const seen *tensors) {
    const tide_op *op = tide_program_op(tide_step_program(step), id);
    tide_op_kind kind = tide_step_op_desc(step, id)->kind;
    if (!is_flat(kind) || kind == TIDE_OP_GRAD_NORM) return;
    uint32_t gradient = op->n_writes; /* weight and states come first */
    const seen *weight = &tensors[op->reads[0]], *grad = &tensors[op->reads[gradient]];
    if (weight->by && grad->by) assert_true(weight->layout == grad->layout);
}

static void check_step(tide_device *device, const char *spec, const tide_step_options *o) {
    tide_step *step = make_step(device, spec, *o);
    const tide_program *p = tide_step_program(step);
    seen *tensors = calloc(tide_program_tensor_count(p), sizeof *tensors);
    assert_non_null(tensors);
    for (tide_id i = 0; i < tide_program_op_count(p); i++) check_op(device, step, i, tensors);
    for (tide_id i = 0; i < tide_program_op_count(p); i++) check_flat(step, i, tensors);
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) {
        const tide_state *s = tide_step_state(step, i);
        if (s->cls != TIDE_CLASS_OPTIMIZER) /* these are stored like their parameter */
            assert_int_equal(tide_program_op(p, s->op)->reads[s->operand], s->at_start);
        assert_int_equal(tide_program_tensor(p, s->at_start)->size_bytes,
                         tide_program_tensor(p, s->at_end)->size_bytes);
    }
    free(tensors);
    tide_step_destroy(step);
}

static void layouts_agree(void **state) {
    static const char *const specs[] = {"mlp:784,512,10", "lenet", "resnet-cifar:2", "alexnet", "resnet18"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        for (int k = 0; k < 8; k++) {
            tide_step_options o;
            tide_step_options_init(&o);
            o.optimizer = (tide_optimizer)(k % 4);
            o.fused_update = k % 2;
            o.clip_norm = k % 2 ? 0.0f : 1.0f;
            o.accumulate = k < 4 ? 1 : 2;
            o.inference = k == 7;
            check_step(*state, specs[i], &o);
        }
    }
}

/* Two micro-batches read the same weights, so they share the reordered copies, too. */
static void reorders_are_shared(void **state) {
    uint32_t n[2];
    for (uint32_t i = 0; i < 2; i++) {
        tide_step_options o;
        tide_step_options_init(&o);
        o.accumulate = i + 1;
        tide_step *step = make_step(*state, "resnet-cifar:1", o);
        const tide_program *p = tide_step_program(step);
        n[i] = 0;
        for (tide_id op = 0; op < tide_program_op_count(p); op++) {
            bool reorder = tide_step_op_desc(step, op)->kind == TIDE_OP_REORDER;
            n[i] += reorder && tide_program_tensor(p, tide_program_op(p, op)->reads[0])->cls == TIDE_CLASS_WEIGHT;
        }
        tide_step_destroy(step);
    }
    print_message("%u reorders of weights\n", n[0]);
    assert_int_equal(n[0], n[1]);
}

/* The device gives sizes, the machine costs. */
static void costs_come_from_the_machine(void **state) {
    tide_machine machine;
    tide_machine_init_default(&machine);
    machine.launch_ns = 7;
    tide_step_options o;
    tide_step_options_init(&o);
    o.machine = &machine;
    tide_step *step = make_step(*state, "lenet", o);
    const tide_program *p = tide_step_program(step);
    for (tide_id op = 0; op < tide_program_op_count(p); op++)
        for (uint32_t i = 0; i < tide_program_op(p, op)->n_variants; i++)
            assert_true(tide_program_op(p, op)->variants[i].cost_ns >= 7);
    tide_step_destroy(step);
}

/* Every family is complete on this device. */
static void families_have_kernels(void **state) {
    static const char *const specs[] = {"densenet121", "inception-v4", "unet", "gpt2:2,32,4,16,50", "lstm:2,8,4,30"};
    tide_step_options o;
    tide_step_options_init(&o);
    o.device = *state;
    o.optimizer = TIDE_ADAMW;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        tide_model_options m;
        tide_model *model;
        tide_step *step = NULL;
        tide_model_options_init(&m);
        m.batch = 1;
        assert_ok(tide_model_create(specs[i], &m, &model));
        assert_ok(tide_step_create(model, &o, &step));
        tide_step_destroy(step);
        tide_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_agree),
        cmocka_unit_test(reorders_are_shared),
        cmocka_unit_test(costs_come_from_the_machine),
        cmocka_unit_test(families_have_kernels),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
