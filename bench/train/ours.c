/* Our own trainers, and where the time of a step goes. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "train/train.h"

/* ---- the model and its data ---- */

static void measure_machine(ours *o) {
    tide_measure_options options;
    tide_device_info info;
    tide_measure_options_init(&options);
    require(tide_machine_measure(o->device, &options, &o->machine));
    require(tide_device_get_info(o->device, &info));
    o->machine.align_bytes = info.align_bytes;
    tide_machine_without(&o->machine, TIDE_TIER_RAM, &o->machine);
}

/* ---- images drawn once ---- */

enum { DRAWN = 64 };

static size_t pixels_of(const tide_data *d) { return (size_t)d->channels * d->height * d->width; }

static tide_status copy_sample(void *context, uint64_t index, float *pixels, int32_t *label) {
    const ours *o = context;
    size_t n = pixels_of(&o->drawn);
    memcpy(pixels, o->pixels + index % DRAWN * n, n * sizeof *pixels);
    *label = o->labels[index % DRAWN];
    return TIDE_OK;
}

static void draw_images(ours *o) {
    size_t n = pixels_of(&o->drawn);
    o->pixels = malloc(DRAWN * n * sizeof *o->pixels);
    o->labels = malloc(DRAWN * sizeof *o->labels);
    if (!o->pixels || !o->labels) exit(1);
    for (uint64_t i = 0; i < DRAWN; i++)
        require(o->drawn.sample(o->drawn.context, i, o->pixels + i * n, o->labels + i));
    o->data.sample = copy_sample;
    o->data.context = o;
}

/* ---- opening ---- */

void ours_open(const char *spec, uint32_t batch, uint32_t threads, tide_optimizer optimizer, ours *o) {
    tide_device_options device;
    tide_model_options model;
    *o = (ours){.spec = spec, .batch = batch};
    tide_device_options_init(&device);
    device.threads = threads;
    require(tide_device_open("cpu", &device, &o->device));
    measure_machine(o);
    tide_model_options_init(&model);
    model.batch = batch;
    require(tide_model_create(spec, &model, &o->model));
    tide_step_options_init(&o->step);
    o->step.optimizer = optimizer;
    o->step.device = o->device;
    o->step.machine = &o->machine;
    tide_shape in = tide_model_input(o->model);
    o->digits = (tide_digits){1, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w, false};
    o->text = (tide_text){.seed = 1, .context = (uint32_t)in.c};
    bool tokens = tide_model_takes_tokens(o->model);
    require(tokens ? tide_data_text(&o->text, 10000, &o->drawn) : tide_data_digits(&o->digits, 10000, &o->drawn));
    o->data = o->drawn;
    if (!tokens) draw_images(o);
}

void ours_close(ours *o) {
    tide_model_destroy(o->model);
    tide_device_close(o->device);
    free(o->pixels);
    free(o->labels);
}

/* ---- one trainer ---- */

void entry_open(const ours *o, const char *policy, tide_train_mode mode, uint64_t arena_bytes, entry *e) {
    tide_trainer_options t;
    float loss;
    *e = (entry){.trainer = NULL};
    tide_trainer_options_init(&t);
    t.model = o->model;
    t.device = o->device;
    t.machine = &o->machine;
    t.data = &o->data;
    t.step = o->step;
    t.plan.policy = policy;
    t.plan.budgets.arena_bytes = arena_bytes;
    t.learning_rate = 1e-3f;
    t.mode = mode;
    require(tide_trainer_create(&t, NULL, &e->trainer));
    for (int i = 0; i < 2; i++) require(tide_trainer_step(e->trainer, &loss, NULL));
}

void entry_step(entry *e) {
    tide_step_report r;
    float loss;
    double cpu = cpu_seconds();
    require(tide_trainer_step(e->trainer, &loss, &r));
    sample_add(&e->seconds, (double)r.step_ns * 1e-9);
    sample_add(&e->cpu, cpu_seconds() - cpu);
}

static const tide_program *program_of(const entry *e) {
    return tide_step_program(tide_trainer_step_program(e->trainer));
}

static uint64_t *timed_step(entry *e, tide_step_report *r) {
    uint64_t *ns = calloc(tide_program_op_count(program_of(e)) + 1, sizeof *ns);
    float loss;
    if (!ns) exit(1);
    require(tide_trainer_step_timed(e->trainer, &loss, r, ns));
    return ns;
}

void entry_step_timed(const ours *o, entry *e) {
    tide_step_report r;
    free(timed_step(e, &r));
    sample_add(&e->exposed, (double)(r.step_ns - tide__min_u64(r.compute_ns, r.step_ns)) * 1e-9);
}

uint64_t entry_arena(const entry *e) { return tide_plan_arena_bytes(tide_trainer_plan(e->trainer)); }

void entry_close(entry *e) {
    tide_trainer_destroy(e->trainer);
    e->trainer = NULL;
}

/* ---- per kind of op ---- */

void print_kinds(const ours *o, entry *e, int steps) {
    const tide_step *step = tide_trainer_step_program(e->trainer);
    uint32_t n = tide_program_op_count(program_of(e));
    uint64_t *least = NULL, sum[TIDE_OP_KIND_COUNT] = {0}, flops[TIDE_OP_KIND_COUNT] = {0},
             bytes[TIDE_OP_KIND_COUNT] = {0}, all = 0;
    tide_step_report r;
    samples cpu = {.n = 0};
    for (int i = 0; i < steps; i++) {
        double before = cpu_seconds();
        uint64_t *ns = timed_step(e, &r);
        sample_add(&cpu, cpu_seconds() - before);
        for (uint32_t k = 0; least && k < n; k++) ns[k] = tide__min_u64(ns[k], least[k]);
        free(least);
        least = ns;
    }
    for (uint32_t k = 0; least && k < n; k++) {
        tide_op_kind kind = tide_step_op_desc(step, k)->kind;
        sum[kind] += least[k];
        all += least[k];
        flops[kind] += tide_step_op_flops(step, k);
        bytes[kind] += tide_step_op_bytes(step, k);
    }
    free(least);
    printf("%-20s %9s %6s %9s %8s   (fastest of %d steps, per op)\n", "op kind", "ms", "%", "GFLOP/s", "GB/s", steps);
    for (int kind = 0; kind < TIDE_OP_KIND_COUNT; kind++)
        if (sum[kind])
            printf("%-20s %9.1f %6.1f %9.1f %8.1f\n", tide_op_kind_name((tide_op_kind)kind), (double)sum[kind] * 1e-6,
                   100 * (double)sum[kind] / (double)all, (double)flops[kind] / (double)sum[kind],
                   (double)bytes[kind] / (double)sum[kind]);
    printf("%-20s %9.1f   and %.3f s of cores a step\n", "all", (double)all * 1e-6, sample_smallest(&cpu));
}
