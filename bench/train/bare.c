/* The kernels of a step called one after the other, at the offsets of a plan that keeps everything, with no runtime
 * around them: what a hand-written training loop would take. And the opposite: a runtime around nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "train/train.h"

struct bare {
    const ours *o;
    tide_step *step;
    const tide_program *program;
    tide_plan *plan;
    tide_arena *arena;
    tide_queue *queue;
    tide_event *from, *to;
    tide_kernel **kernels; /* per op; equal ops share one */
    uint64_t *offsets;     /* of the uses of all actions, one after the other */
};

/* ---- opening ---- */

static const tide_op_desc *desc_of(const bare *b, tide_id op) { return tide_step_op_desc(b->step, op); }

/* Equal ops have one descriptor; programs of some hundred ops do not mind the search. */
static void create_kernels(bare *b) {
    uint32_t n = tide_program_op_count(b->program);
    b->kernels = calloc(n + 1, sizeof *b->kernels);
    if (!b->kernels) exit(1);
    for (tide_id i = 0; i < n; i++) {
        for (tide_id k = 0; k < i && !b->kernels[i]; k++)
            if (desc_of(b, k) == desc_of(b, i)) b->kernels[i] = b->kernels[k];
        if (!b->kernels[i]) require(tide_kernel_create(b->o->device, desc_of(b, i), &b->kernels[i]));
    }
}

static void fill_offsets(bare *b) {
    size_t uses = 0, at = 0;
    for (uint32_t i = 0; i < tide_plan_action_count(b->plan); i++) uses += tide_plan_action(b->plan, i).n_uses;
    b->offsets = calloc(uses + 1, sizeof *b->offsets);
    if (!b->offsets) exit(1);
    for (uint32_t i = 0; i < tide_plan_action_count(b->plan); i++) {
        tide_action a = tide_plan_action(b->plan, i);
        for (uint32_t k = 0; k < a.n_uses; k++)
            b->offsets[at++] = tide_plan_residency(b->plan, a.uses[k])->offset_bytes;
    }
}

static char *start_of(const bare *b, tide_id tensor) {
    for (tide_id i = 0; i < tide_plan_residency_count(b->plan); i++) {
        const tide_residency *r = tide_plan_residency(b->plan, i);
        if (r->tensor == tensor && r->at_start) return (char *)tide_arena_host(b->arena) + r->offset_bytes;
    }
    fprintf(stderr, "the plan does not keep tensor %u\n", tensor);
    exit(1);
}

/* About as a trainer would: numbers of the right size, so that nothing overflows or becomes denormal. */
static void fill_state(const bare *b, const tide_state *s) {
    size_t n = (size_t)(s->shape.n * s->shape.c * s->shape.h * s->shape.w);
    float *plain = malloc(n * sizeof *plain);
    if (!plain) exit(1);
    for (size_t i = 0; i < n; i++)
        plain[i] = s->init == TIDE_INIT_ZERO  ? 0
                   : s->init == TIDE_INIT_ONE ? 1
                                              : s->init_scale * 1.7f * (2 * tide__random_unit(1, s->op, i) - 1);
    require(tide_operand_pack(b->kernels[s->op], s->operand, plain, start_of(b, s->at_start)));
    free(plain);
}

bare *bare_open(const ours *o) {
    bare *b = calloc(1, sizeof *b);
    tide_plan_options options;
    if (!b) exit(1);
    b->o = o;
    tide_plan_options_init(&options);
    require(tide_step_create(o->model, &o->step, &b->step));
    b->program = tide_step_program(b->step);
    require(tide_plan_create(b->program, &o->machine, &options, NULL, &b->plan));
    require(tide_arena_create(o->device, tide_plan_arena_bytes(b->plan), &b->arena));
    require(tide_queue_create(o->device, TIDE_QUEUE_COMPUTE, &b->queue));
    require(tide_event_create(o->device, &b->from));
    require(tide_event_create(o->device, &b->to));
    create_kernels(b);
    fill_offsets(b);
    memset(tide_arena_host(b->arena), 0, tide_plan_arena_bytes(b->plan));
    for (uint32_t i = 0; i < tide_step_state_count(b->step); i++) fill_state(b, tide_step_state(b->step, i));
    bare_step(b);
    return b;
}

void bare_close(bare *b) {
    for (tide_id i = 0; i < tide_program_op_count(b->program); i++) {
        bool shared = false;
        for (tide_id k = 0; k < i && !shared; k++) shared = b->kernels[k] == b->kernels[i];
        if (!shared) tide_kernel_destroy(b->kernels[i]);
        if (shared) b->kernels[i] = NULL;
    }
    tide_event_destroy(b->from);
    tide_event_destroy(b->to);
    tide_queue_destroy(b->queue);
    tide_arena_destroy(b->arena);
    tide_plan_destroy(b->plan);
    tide_step_destroy(b->step);
    free(b->kernels);
    free(b->offsets);
    free(b);
}

/* ---- stepping ---- */

/* A batch of zeros: pixels, tokens and labels may all be that. */
typedef struct input {
    char *to;
    uint64_t size_bytes;
} input;

static tide_status clear(void *context) {
    const input *in = context;
    memset(in->to, 0, in->size_bytes);
    return TIDE_OK;
}

double bare_step(bare *b) {
    const tide_step_args args = {.seed = 1, .learning_rate = 1e-6f};
    input inputs[8];
    size_t n_inputs = 0, at = 0;
    uint64_t ns;
    require(tide_event_record(b->from, b->queue));
    for (uint32_t i = 0; i < tide_plan_action_count(b->plan); i++) {
        tide_action a = tide_plan_action(b->plan, i);
        if (a.kind == TIDE_RUN) {
            require(
                tide_kernel_enqueue(b->kernels[a.op], a.variant, b->queue, b->arena, b->offsets + at, a.n_uses, &args));
        } else if (a.kind == TIDE_LOAD && n_inputs < 8) {
            const tide_residency *r = tide_plan_residency(b->plan, a.uses[0]);
            inputs[n_inputs] = (input){(char *)tide_arena_host(b->arena) + r->offset_bytes, r->size_bytes};
            require(tide_queue_launch(b->queue, clear, &inputs[n_inputs++], 0));
        }
        at += a.n_uses;
    }
    require(tide_event_record(b->to, b->queue));
    require(tide_queue_sync(b->queue));
    require(tide_event_elapsed(b->from, b->to, &ns));
    return (double)ns * 1e-9;
}

/* ---- a runtime around nothing ---- */

static tide_status nothing(void *context) {
    (void)context;
    return TIDE_OK;
}

static tide_status enqueue_nothing(void *context, const tide_call *call) {
    return tide_queue_launch(call->queue, nothing, context, 0);
}

static tide_status no_input(void *context, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes) {
    (void)context, (void)tensor, (void)position, (void)data, (void)size_bytes;
    return TIDE_OK;
}

double empty_action_us(const ours *o) {
    enum { STEPS = 200 };
    tide_step *step;
    tide_plan *plan;
    tide_plan_options options;
    tide_run_options run_options;
    tide_run *run;
    tide_plan_options_init(&options);
    require(tide_step_create(o->model, &o->step, &step));
    require(tide_plan_create(tide_step_program(step), &o->machine, &options, NULL, &plan));
    tide_run_options_init(&run_options);
    run_options.device = o->device;
    run_options.program = tide_step_program(step);
    run_options.machine = &o->machine;
    run_options.plan = plan;
    run_options.op = enqueue_nothing;
    run_options.input = no_input;
    require(tide_run_create(&run_options, &run));
    const tide_step_args args = {.seed = 1};
    double before = cpu_seconds();
    for (int i = 0; i < STEPS; i++) require(tide_run_step(run, &args, NULL));
    double us = (cpu_seconds() - before) * 1e6 / STEPS / tide_plan_action_count(plan);
    tide_run_destroy(run);
    tide_plan_destroy(plan);
    tide_step_destroy(step);
    return us;
}
