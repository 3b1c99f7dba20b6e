/* Training for real in little memory: drawn digits and sentences by a small grammar, each in 40 % of the unconstrained
 * arena with a disk tier, against the same training without a budget.
 *
 *      bench_train_learn [DIGIT_STEPS TEXT_STEPS]       300 and 400; a few minutes on two cores
 *
 * Bars: at least 97 % of the digits to test with are read, the text is predicted better than its bigram entropy, and the
 * losses of both trainings are the same numbers, step by step. Exits with 1 if a bar is missed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tidemark/tidemark.h>

#include "common.h"

enum { PERCENT = 40, BYTES = 256, LINES = 10 };

static int missed;

static void bar(bool met, const char *what, double value) {
    printf("%-7s %s: %.4g\n", met ? "ok" : "MISSED", what, value);
    missed += !met;
}

/* ---- one training ---- */

typedef struct task {
    const char *spec;
    uint32_t batch, test_samples;
    int steps;
    tide_data train, test;
    tide_optimizer optimizer;
    float rate, clip_norm;
} task;

typedef struct curve {
    float *loss;
    tide_evaluation test;
    uint64_t hash, arena_bytes;
    double cpu_s;
} curve;

static tide_model *open_model(const task *t) {
    tide_model_options m;
    tide_model *model;
    tide_model_options_init(&m);
    m.batch = t->batch;
    if (t->train.width > 1) {
        m.channels = t->train.channels;
        m.height = t->train.height;
        m.width = t->train.width;
        m.classes = t->train.classes;
    }
    require(tide_model_create(t->spec, &m, &model));
    return model;
}

/* budget_bytes UINT64_MAX: unconstrained. */
static curve run(const task *t, const tide_model *model, tide_device *device, uint64_t budget_bytes) {
    tide_machine all, machine;
    tide_trainer_options o;
    tide_trainer *trainer;
    curve c = {.loss = calloc((size_t)t->steps, sizeof *c.loss)};
    double before = cpu_seconds();
    if (!c.loss) exit(1);
    require(tide_machine_load("cpu", &all));
    tide_machine_without(&all, TIDE_TIER_RAM, &machine);
    tide_trainer_options_init(&o);
    o.model = model;
    o.device = device;
    o.machine = &machine;
    o.data = &t->train;
    o.learning_rate = t->rate;
    o.schedule = (tide_schedule){TIDE_CURVE_COSINE, 20, 0, 0, (uint64_t)t->steps, 0};
    o.step.optimizer = t->optimizer;
    o.step.clip_norm = t->clip_norm;
    o.plan.policy = budget_bytes == UINT64_MAX ? "liveness" : "hybrid";
    o.plan.budgets.arena_bytes = budget_bytes;
    require(tide_trainer_create(&o, NULL, &trainer));
    for (int i = 0; i < t->steps; i++) require(tide_trainer_step(trainer, &c.loss[i], NULL));
    require(tide_trainer_test(trainer, &t->test, t->test_samples, &c.test));
    require(tide_trainer_hash(trainer, &c.hash));
    c.arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer));
    tide_trainer_destroy(trainer);
    c.cpu_s = cpu_seconds() - before;
    return c;
}

static void print_curve(const task *t, const curve *whole, const curve *small) {
    for (int k = 0; k < LINES; k++) {
        int i = (t->steps - 1) * k / (LINES - 1);
        printf("        step %4d   unconstrained %.6f   in %d %% %.6f\n", i + 1, (double)whole->loss[i], PERCENT,
               (double)small->loss[i]);
    }
}

static tide_evaluation learn(const task *t) {
    tide_device *device;
    require(tide_device_open("cpu", NULL, &device));
    tide_model *model = open_model(t);
    curve whole = run(t, model, device, UINT64_MAX);
    curve small = run(t, model, device, whole.arena_bytes * PERCENT / 100);
    printf("%s, batch %u: arena %.2f MiB unconstrained, %.2f MiB in %d %%; %.0f and %.0f s of cores\n", t->spec,
           t->batch, (double)whole.arena_bytes / 0x1p20, (double)small.arena_bytes / 0x1p20, PERCENT, whole.cpu_s,
           small.cpu_s);
    print_curve(t, &whole, &small);
    int same = 0;
    while (same < t->steps && whole.loss[same] == small.loss[same]) same++;
    bar(same == t->steps && whole.hash == small.hash, "steps along the same line, to the bit", same);
    free(whole.loss);
    free(small.loss);
    tide_model_destroy(model);
    tide_device_close(device);
    return small.test;
}

/* ---- the tasks ---- */

static void learn_digits(int steps) {
    tide_digits train = {.seed = 1, .channels = 1, .height = 28, .width = 28}, test = train;
    task t = {"resnet-cifar:1", 32, 1000, steps, {0}, {0}, TIDE_MOMENTUM, 0.1f, 0};
    test.seed = 2;
    require(tide_data_digits(&train, 8192, &t.train));
    require(tide_data_digits(&test, 1000, &t.test));
    double accuracy = learn(&t).accuracy;
    bar(accuracy >= 0.97, "share of 1000 other digits read (at least 0.97)", accuracy);
}

/* The entropy of a byte when the one before is known, in nats, counted over the text to test with. */
static double bigram_entropy(const tide_data *text, uint64_t n) {
    static double pairs[BYTES][BYTES], firsts[BYTES];
    double all = 0, entropy = 0;
    float *tokens = malloc(text->channels * sizeof *tokens);
    int32_t *labels = malloc(text->labels * sizeof *labels);
    if (!tokens || !labels) exit(1);
    for (uint64_t i = 0; i < n; i++) {
        require(text->sample(text->context, i, tokens, labels));
        for (uint64_t k = 0; k < text->labels; k++) {
            int first = (int)tokens[k];
            pairs[first][labels[k]]++;
            firsts[first]++;
            all++;
        }
    }
    for (int a = 0; a < BYTES; a++)
        for (int b = 0; b < BYTES; b++)
            if (pairs[a][b] > 0) entropy -= pairs[a][b] / all * log(pairs[a][b] / firsts[a]);
    free(tokens);
    free(labels);
    return entropy;
}

static void learn_text(int steps) {
    enum { CONTEXT = 64 };
    tide_text train = {.seed = 1, .context = CONTEXT}, test = {.seed = 2, .context = CONTEXT};
    task t = {"gpt2:2,64,4,64,256", 16, 512, steps, {0}, {0}, TIDE_ADAMW, 3e-3f, 1};
    char text[96];
    require(tide_data_text(&train, 65536, &t.train));
    require(tide_data_text(&test, 512, &t.test));
    double entropy = bigram_entropy(&t.test, 512), loss = learn(&t).loss;
    snprintf(text, sizeof text, "loss on other sentences, in nats (below the bigram entropy %.4f)", entropy);
    bar(loss < entropy, text, loss);
}

int main(int argc, char **argv) {
    int digit_steps = argc == 3 ? atoi(argv[1]) : 300, text_steps = argc == 3 ? atoi(argv[2]) : 400;
    if ((argc != 1 && argc != 3) || digit_steps < 30 || text_steps < 30) {
        fprintf(stderr, "usage: bench_train_learn [DIGIT_STEPS TEXT_STEPS]\n");
        return 2;
    }
    learn_digits(digit_steps);
    learn_text(text_steps);
    return missed > 0;
}
