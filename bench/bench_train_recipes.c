/* Every family of models, trained by its own recipe on small inputs, beside PyTorch with the same recipe, the same first
 * weights and the same batches: both are to learn, along the same curve.
 *
 *      bench_train_recipes [--python PYTHON] [--steps N] [FAMILY...]     200 steps; all families; minutes each
 *
 * PyTorch gets the network as this library has it: the forward ops of the step, one line each, and interprets them
 * (train_recipes/torch_learn.py). So the two share the graph, and nothing that computes.
 *
 * Bars: the mean of the last tenth of the losses is at most 0.8 of the first loss; the first losses differ by at most
 * 1e-4; the means of the last tenths differ by at most a tenth of the first loss. Exits with 1 if a bar is missed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/tidemark.h>
#include <unistd.h>

#include "common.h"

typedef struct family {
    const char *spec;
    uint32_t batch, channels, size; /* images of size x size; 0: tokens */
    uint32_t classes;
} family;

static const family families[] = {
    {"mlp:784,128,10", 32, 1, 28, 10},   {"lenet", 32, 1, 28, 10},
    {"alexnet", 16, 3, 67, 10},          {"vgg16", 16, 3, 32, 10},
    {"resnet18", 16, 3, 64, 10},         {"resnet50", 16, 3, 64, 10},
    {"resnet-cifar:1", 32, 3, 32, 10},   {"densenet121", 16, 3, 32, 10},
    {"inception-v4", 8, 3, 107, 10},     {"unet:8", 8, 1, 32, 2},
    {"gpt2:2,64,4,64,256", 16, 0, 0, 0}, {"lstm:1,128,32,256", 16, 0, 0, 0},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static int missed;

static void bar(bool met, const char *what, double value) {
    printf("%-7s %s: %.4g\n", met ? "ok" : "MISSED", what, value);
    missed += !met;
}

/* ---- the network and the batches, for PyTorch ---- */

static FILE *create(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (f) return f;
    perror(path);
    exit(1);
}

/* Samples go to a file in the order in which the trainer asks for them: that of its batches. */
typedef struct recorder {
    tide_data inner;
    FILE *file;
} recorder;

static tide_status record(void *context, uint64_t index, float *pixels, int32_t *labels) {
    recorder *r = context;
    tide_status status = r->inner.sample(r->inner.context, index, pixels, labels);
    fwrite(pixels, sizeof *pixels, (size_t)r->inner.channels * r->inner.height * r->inner.width, r->file);
    fwrite(labels, sizeof *labels, r->inner.labels ? r->inner.labels : 1, r->file);
    return status;
}

static void write_ids(FILE *f, const char *key, const tide_id *ids, uint32_t n) {
    fprintf(f, ",\"%s\":[", key);
    for (uint32_t i = 0; i < n; i++) fprintf(f, "%s%u", i ? "," : "", ids[i]);
    fputc(']', f);
}

static void write_op(FILE *f, const tide_op *op, const tide_op_desc *d) {
    const tide_shape *s[] = {&d->x, &d->y};
    fprintf(f, "{\"op\":\"%s\",\"counter\":%llu", tide_op_kind_name(d->kind), (unsigned long long)op->counter);
    for (int i = 0; i < 2; i++)
        fprintf(f, ",\"%c\":[%lld,%lld,%lld,%lld]", "xy"[i], (long long)s[i] -> n, (long long)s[i] -> c,
                (long long)s[i] -> h, (long long)s[i] -> w);
    fprintf(f, ",\"kernel\":[%d,%d],\"stride\":%d,\"pad\":[%d,%d]", d->kernel_h, d->kernel_w, d->stride, d->pad_h,
            d->pad_w);
    fprintf(
        f,
        ",\"bias\":%d,\"eps\":%.9g,\"drop_rate\":%.9g,\"lrn\":[%d,%.9g,%.9g,%.9g],\"steps\":%d,\"step\":%d,\"prev\":%d,"
        "\"heads\":%d,\"context\":%d",
        d->bias, (double)d->eps, (double)d->drop_rate, d->lrn_size, (double)d->lrn_alpha, (double)d->lrn_beta,
        (double)d->lrn_k, d->steps, d->step, d->has_prev, d->heads, d->context);
    write_ids(f, "reads", op->reads, op->n_reads);
    write_ids(f, "writes", op->writes, op->n_writes);
    fputs("}\n", f);
}

static void write_network(const char *folder, const tide_trainer_options *o, const tide_step *step, int steps) {
    const tide_program *p = tide_step_program(step);
    FILE *f = create(folder, "network.jsonl");
    fprintf(f,
            "{\"optimizer\":%d,\"rate\":%.9g,\"warmup\":%llu,\"decay\":%.9g,\"clip\":%.9g,\"seed\":%llu,\"steps\":%d",
            (int)o->step.optimizer, (double)o->learning_rate, (unsigned long long)o->schedule.warmup_steps,
            (double)o->step.weight_decay, (double)o->step.clip_norm, (unsigned long long)o->seed, steps);
    fprintf(f, ",\"input\":%u,\"label\":%u,\"loss\":%u,\"values\":%llu,\"labels\":%llu,\"batch\":%lld}\n",
            tide_step_input(step, 0), tide_step_label(step, 0), tide_step_loss(step),
            (unsigned long long)o->data->channels * o->data->height * o->data->width,
            (unsigned long long)tide_model_labels(o->model), (long long)tide_model_input(o->model).n);
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) {
        const tide_state *s = tide_step_state(step, i);
        if (s->trainable) fprintf(f, "{\"state\":\"%s\",\"tensor\":%u}\n", s->name, s->at_start);
    }
    for (tide_id i = 0; i < tide_program_op_count(p); i++)
        if (tide_program_op(p, i)->phase == TIDE_FORWARD)
            write_op(f, tide_program_op(p, i), tide_step_op_desc(step, i));
    fclose(f);
}

/* ---- one family ---- */

static tide_model *open_model(const family *f) {
    tide_model_options m;
    tide_model *model;
    tide_model_options_init(&m);
    m.batch = f->batch;
    m.channels = f->channels;
    m.height = m.width = f->size;
    m.classes = f->classes;
    require(tide_model_create(f->spec, &m, &model));
    return model;
}

static void follow_recipe(const tide_model *model, const family *f, int steps, tide_trainer_options *o) {
    const tide_training_recipe *r = tide_model_recipe(model);
    o->step.optimizer = r->optimizer;
    o->step.weight_decay = r->weight_decay;
    o->step.clip_norm = r->clip_norm;
    o->learning_rate = tide_recipe_rate(r, f->batch);
    o->schedule.warmup_steps = r->warmup_steps < (uint64_t)steps / 10 ? r->warmup_steps : (uint64_t)steps / 10;
}

/* The losses, and in the folder all that PyTorch needs. */
static void train(const family *f, int steps, const char *folder, float *losses) {
    tide_model *model = open_model(f);
    tide_digits digits = {1, f->channels, f->size, f->size, tide_model_labels(model) > 1};
    tide_text text = {.seed = 1, .context = (uint32_t)tide_model_input(model).c};
    recorder r = {.file = create(folder, "batches")};
    tide_machine machine;
    tide_device *device;
    tide_trainer_options o;
    tide_trainer *trainer;
    char path[512];
    require(f->size ? tide_data_digits(&digits, 8192, &r.inner) : tide_data_text(&text, 8192, &r.inner));
    tide_data data = r.inner;
    data.sample = record;
    data.context = &r;
    require(tide_machine_load("cpu", &machine));
    require(tide_device_open("cpu", NULL, &device));
    tide_trainer_options_init(&o);
    o.model = model;
    o.device = device;
    o.machine = &machine;
    o.data = &data;
    o.plan.policy = "liveness";
    follow_recipe(model, f, steps, &o);
    require(tide_trainer_create(&o, NULL, &trainer));
    snprintf(path, sizeof path, "%s/weights", folder);
    require(tide_trainer_save(trainer, path));
    write_network(folder, &o, tide_trainer_step_program(trainer), steps);
    for (int i = 0; i < steps; i++) require(tide_trainer_step(trainer, &losses[i], NULL));
    tide_trainer_destroy(trainer); /* and its loader: no more samples come */
    fclose(r.file);
    tide_device_close(device);
    tide_model_destroy(model);
}

/* How many losses PyTorch printed. */
static int ask_torch(const char *python, const char *folder, int steps, float *losses) {
    char command[1536];
    int n = 0;
    snprintf(command, sizeof command, "'%s' '%s/bench/train_recipes/torch_learn.py' '%s'", python, TIDE_SOURCE_DIR,
             folder);
    FILE *f = popen(command, "r"); /* a benchmark, with paths of its own */
    while (f && n < steps && fscanf(f, "%f", &losses[n]) == 1) n++;
    if (f) pclose(f);
    return n;
}

static double end_of(const float *losses, int steps) {
    double sum = 0;
    int n = steps / 10;
    for (int i = steps - n; i < steps; i++) sum += (double)losses[i] / n;
    return sum;
}

static void compare(const float *ours, const float *theirs, int steps) {
    double first = (double)ours[0], gap = end_of(ours, steps) - end_of(theirs, steps);
    for (int k = 0; k < 6; k++) {
        int i = (steps - 1) * k / 5;
        printf("        step %4d   %.6f   PyTorch %.6f\n", i + 1, (double)ours[i], (double)theirs[i]);
    }
    bar(fabs(first - (double)theirs[0]) <= 1e-4, "first loss, away from PyTorch's", fabs(first - (double)theirs[0]));
    bar(fabs(gap) <= 0.1 * first, "last tenth, away from PyTorch's", fabs(gap));
}

static void run(const family *f, int steps, const char *python) {
    char folder[] = "/tmp/tidemark-recipes-XXXXXX", command[64];
    float *ours = calloc((size_t)steps, sizeof *ours), *theirs = calloc((size_t)steps, sizeof *theirs);
    if (!ours || !theirs || !mkdtemp(folder)) exit(1);
    printf("%s, batch %u\n", f->spec, f->batch);
    train(f, steps, folder, ours);
    double last = end_of(ours, steps);
    printf("        from %.4f to %.4f\n", (double)ours[0], last);
    bar(last <= 0.8 * (double)ours[0], "share of the first loss that is left", last / (double)ours[0]);
    int answered = python ? ask_torch(python, folder, steps, theirs) : 0;
    if (!python)
        printf("        no PyTorch to compare with: --python\n");
    else if (answered == steps)
        compare(ours, theirs, steps);
    else
        bar(false, "steps that PyTorch took", answered);
    fflush(stdout);
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) missed++;
    free(ours);
    free(theirs);
}

static bool is_wanted(const char *spec, int argc, char **argv, int first) {
    if (first == argc) return true;
    for (int i = first; i < argc; i++)
        if (strcmp(argv[i], spec) == 0) return true;
    return false;
}

int main(int argc, char **argv) {
    const char *python = NULL;
    int steps = 200, at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (strcmp(argv[at], "--python") == 0) python = argv[at + 1];
        if (strcmp(argv[at], "--steps") == 0) steps = atoi(argv[at + 1]);
    }
    if (steps < 10) {
        fprintf(stderr, "usage: bench_train_recipes [--python PYTHON] [--steps N] [FAMILY...]\n");
        return 2;
    }
    for (int i = 0; i < N_FAMILIES; i++)
        if (is_wanted(families[i].spec, argc, argv, at)) run(&families[i], steps, python);
    return missed > 0;
}
