/* Below the largest op: real networks whose batch is computed in micro-batches, and whose optimizer state lies in parts.
 *
 *   bench_plan_parts                  every network below; some minutes
 *   bench_plan_parts vgg16 unet       these
 *   bench_plan_parts vgg16=62         in micro-batches of so many samples
 *   bench_plan_parts normal ...       with effort normal instead of low
 *   bench_plan_parts recipe ...       with the optimizer and the clipping of the network's recipe instead of plain SGD
 *
 * A share is of the arena of policy liveness for the *whole* batch, and a time is against its step: what one has without
 * micro-batches and without a budget. On v100-16gb-pcie; the batch is about the largest that liveness fits there (194 of ResNet-50 and
 * 131 of DenseNet-121 have no parts). Every plan was proved by the verifier. Exit code 1 if a bar is missed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidemark/tidemark.h>

#include "common.h"

typedef struct row {
    const char *spec;
    uint32_t batch, micro;
    double smallest; /* bars: share of the smallest budget; 0: none */
    double at[3];    /* and time at 30, 20 and 10 % */
} row;

static row rows[] = {
    {"resnet50", 192, 48, 0.04, {0, 1.15, 1.5}},  {"resnet101", 130, 65, 0, {0, 1.15, 0}},
    {"vgg16", 248, 31, 0.12, {1.1, 1.15, 0}},     {"inception-v4", 98, 14, 0, {0, 1.15, 0}},
    {"densenet121", 130, 65, 0, {1.06, 1.15, 0}}, {"unet", 18, 3, 0.10, {1.1, 1.15, 0}},
    {"gpt2:medium", 4, 4, 0.05, {0, 1.15, 0}},    {"alexnet", 200, 50, 0, {0, 0, 0}},
};
enum { N_ROWS = sizeof rows / sizeof *rows, N_BUDGETS = 4 };

typedef struct step {
    tide_model *model;
    tide_step *step;
    const tide_program *program;
} step;

static bool by_recipe;

static step open_step(const row *r, uint32_t batch, const tide_machine *machine) {
    tide_model_options m;
    tide_step_options o;
    step s;
    tide_model_options_init(&m);
    tide_step_options_init(&o);
    m.batch = batch;
    o.accumulate = r->batch / batch;
    o.machine = machine;
    require(tide_model_create(r->spec, &m, &s.model));
    const tide_training_recipe *recipe = tide_model_recipe(s.model);
    if (by_recipe)
        o.optimizer = recipe->optimizer, o.weight_decay = recipe->weight_decay, o.clip_norm = recipe->clip_norm;
    require(tide_step_create(s.model, &o, &s.step));
    s.program = tide_step_program(s.step);
    return s;
}

static void close_step(step *s) {
    tide_step_destroy(s->step);
    tide_model_destroy(s->model);
}

static void find_whole(const row *r, const tide_machine *machine, uint64_t *arena_bytes, uint64_t *step_ns) {
    step s = open_step(r, r->batch, machine);
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    require(tide_plan_create(s.program, machine, &o, NULL, &plan));
    *arena_bytes = tide_plan_arena_bytes(plan);
    *step_ns = tide_plan_prediction(plan)->step_ns;
    tide_plan_destroy(plan);
    close_step(&s);
}

static int print_figure(double figure, double bar) {
    const bool missed = bar > 0 && !(figure > 0 && figure <= bar);
    if (figure > 0)
        printf(" %8.3f%c", figure, missed ? '!' : ' ');
    else
        printf(" %8s%c", "-", missed ? '!' : ' ');
    return missed;
}

static int run_row(const row *r, const tide_machine *machine, tide_effort effort) {
    uint64_t whole_bytes, whole_ns;
    tide_plan *plans[N_BUDGETS];
    tide_plan_options o;
    tide_smallest smallest;
    int missed = 0;
    find_whole(r, machine, &whole_bytes, &whole_ns);
    step s = open_step(r, r->micro, machine);
    tide_plan_options_init(&o);
    o.policy = "hybrid";
    o.effort = effort;
    const double since = cpu_seconds();
    require(tide_plan_smallest(s.program, machine, &o, 0.01, &smallest));
    const uint64_t hundredth = whole_bytes / 100;
    const uint64_t budgets[N_BUDGETS] = {30 * hundredth, 20 * hundredth, 10 * hundredth, smallest.works_bytes};
    require(tide_plan_frontier(s.program, machine, &o, budgets, N_BUDGETS, NULL, plans));
    printf("%-13s %5u %5u %6u %9.0f %9.0f", r->spec, r->batch, r->micro, tide_program_op_count(s.program),
           (double)whole_bytes / 0x1p20, (double)smallest.works_bytes / 0x1p20);
    const double share = (double)smallest.works_bytes / (double)whole_bytes;
    missed += print_figure(share, r->smallest);
    for (int i = 0; i < N_BUDGETS; i++) {
        const double time = plans[i] ? (double)tide_plan_prediction(plans[i])->step_ns / (double)whole_ns : 0;
        missed += print_figure(time, i < 3 ? r->at[i] : 0);
        tide_plan_destroy(plans[i]);
    }
    printf(" %7.1f\n", cpu_seconds() - since);
    fflush(stdout);
    close_step(&s);
    return missed;
}

/* "vgg16" or "vgg16=62"; NULL: no such network. */
static row *find_row(const char *argument) {
    const size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strlen(rows[i].spec) != length || strncmp(rows[i].spec, argument, length) != 0) continue;
        if (argument[length]) rows[i].micro = (uint32_t)strtoul(argument + length + 1, NULL, 10);
        return rows[i].micro > 0 && rows[i].batch % rows[i].micro == 0 ? &rows[i] : NULL;
    }
    return NULL;
}

int main(int argc, char **argv) {
    tide_machine machine;
    tide_effort effort = TIDE_EFFORT_LOW;
    bool wanted[N_ROWS] = {false}, any = false;
    int missed = 0;
    for (int i = 1; i < argc; i++) {
        row *r = find_row(argv[i]);
        if (r) {
            wanted[r - rows] = any = true;
        } else if (strcmp(argv[i], "normal") == 0) {
            effort = TIDE_EFFORT_NORMAL;
        } else if (strcmp(argv[i], "recipe") == 0) {
            by_recipe = true;
        } else {
            fprintf(stderr, "bench_plan_parts: \"%s\" is no network of its list, in parts of its batch\n", argv[i]);
            return 2;
        }
    }
    require(tide_machine_load("v100-16gb-pcie", &machine));
    printf("%-13s %5s %5s %6s %9s %9s %9s %9s %9s %9s %9s %7s\n", "network", "batch", "micro", "ops", "whole MiB",
           "least MiB", "share ", "30 % ", "20 % ", "10 % ", "at least ", "CPU s");
    for (size_t i = 0; i < N_ROWS; i++)
        if (wanted[i] || !any) missed += run_row(&rows[i], &machine, effort);
    printf("%d bars missed (!)\n", missed);
    return missed > 0;
}
