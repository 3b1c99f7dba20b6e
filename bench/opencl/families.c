/* See families.h. */
#include "opencl/families.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <tidemark/tidemark.h>

#include "common.h"

enum { STEPS = 5 };

typedef struct family {
    const char *spec;
    uint32_t batch, size, classes; /* images are size x size; 0: tokens */
    tide_optimizer optimizer;
} family;

static const family families[] = {
    {"mlp:784,48,32,10", 8, 28, 10, TIDE_SGD},    {"lenet", 8, 28, 10, TIDE_MOMENTUM},
    {"resnet-cifar:1", 4, 28, 10, TIDE_MOMENTUM}, {"unet:4", 2, 32, 2, TIDE_ADAM},
    {"gpt2:2,32,4,12,256", 3, 0, 0, TIDE_ADAMW},  {"lstm:2,24,6,256", 4, 0, 0, TIDE_ADAM},
};

static const char *const policies[] = {"checkpoint", "superneurons", "autoswap", "capuchin",
                                       "cache",      "delta",        "dtr",      "hybrid"};
static const uint32_t percents[] = {90, 75, 60};

typedef struct setting {
    tide_device *device;
    tide_machine machine;
    tide_model *model;
    tide_digits digits;
    tide_text text;
    tide_data data;
    tide_trainer_options options;
} setting;

static void open_samples(setting *s) {
    tide_shape in = tide_model_input(s->model);
    s->text = (tide_text){.seed = 3, .context = (uint32_t)in.c};
    s->digits = (tide_digits){3, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w, tide_model_labels(s->model) > 1};
    require(tide_model_takes_tokens(s->model) ? tide_data_text(&s->text, 13, &s->data)
                                              : tide_data_digits(&s->digits, 13, &s->data));
}

static void open_setting(setting *s, const char *device, const family *f) {
    tide_model_options m;
    tide_model_options_init(&m);
    m.batch = f->batch;
    m.channels = f->size ? 1 : 0;
    m.height = m.width = f->size;
    m.classes = f->classes;
    require(tide_device_open(device, NULL, &s->device));
    require(tide_machine_load("cpu", &s->machine));
    require(tide_model_create(f->spec, &m, &s->model));
    open_samples(s);
    tide_trainer_options_init(&s->options);
    s->options.model = s->model;
    s->options.device = s->device;
    s->options.machine = &s->machine;
    s->options.data = &s->data;
    s->options.step.optimizer = f->optimizer;
    s->options.learning_rate = 0.01f;
    s->options.plan.policy = "liveness";
    s->options.plan.effort = TIDE_EFFORT_LOW;
}

static void close_setting(setting *s) {
    tide_model_destroy(s->model);
    tide_device_close(s->device);
}

typedef struct outcome {
    float loss[STEPS];
    uint64_t hash, arena_bytes;
} outcome;

/* False: the policy has no plan for this budget. */
static bool train(const setting *s, outcome *o) {
    tide_trainer *trainer;
    tide_step_report report;
    tide_status status = tide_trainer_create(&s->options, NULL, &trainer);
    if (tide_status_is_misfit(status)) return false;
    require(status);
    for (int i = 0; i < STEPS; i++) require(tide_trainer_step(trainer, &o->loss[i], &report));
    require(tide_trainer_hash(trainer, &o->hash));
    o->arena_bytes = report.arena_bytes;
    tide_trainer_destroy(trainer);
    return true;
}

static bool same_losses(const outcome *a, const outcome *b) {
    bool same = true;
    for (size_t i = 0; i < sizeof a->loss / sizeof *a->loss; i++) same = same && a->loss[i] == b->loss[i];
    return same;
}

/* All policies, all budgets. */
static void compare_bits(setting *s, const outcome *whole, families_result *sum) {
    outcome o;
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++)
        for (size_t b = 0; b < sizeof percents / sizeof *percents; b++) {
            s->options.plan.policy = policies[p];
            s->options.plan.budgets.arena_bytes = whole->arena_bytes / 100 * percents[b];
            if (!train(s, &o)) continue;
            sum->trainings++;
            sum->the_same += o.hash == whole->hash && same_losses(&o, whole);
        }
}

static void compare_family(const family *f, families_result *sum) {
    setting s;
    outcome cpu, opencl;
    families_result own = {0};
    open_setting(&s, "cpu", f);
    train(&s, &cpu);
    close_setting(&s);
    open_setting(&s, "opencl", f);
    train(&s, &opencl);
    compare_bits(&s, &opencl, &own);
    close_setting(&s);
    for (int i = 0; i < STEPS; i++)
        own.farthest =
            fmax(own.farthest, fabs((double)cpu.loss[i] - (double)opencl.loss[i]) / fabs((double)cpu.loss[i]));
    printf("   %-20s %10.6f %10.6f %10.1e %8u of %u\n", f->spec, (double)cpu.loss[STEPS - 1],
           (double)opencl.loss[STEPS - 1], own.farthest, own.the_same, own.trainings);
    fflush(stdout);
    sum->farthest = fmax(sum->farthest, own.farthest);
    sum->trainings += own.trainings;
    sum->the_same += own.the_same;
}

families_result compare_families(void) {
    families_result sum = {0};
    printf("   %-20s %10s %10s %10s %14s\n", "loss after 5 steps", "cpu", "opencl", "differ by", "same bits");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) compare_family(&families[i], &sum);
    return sum;
}
