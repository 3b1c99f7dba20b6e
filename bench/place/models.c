/* Training steps of every family under policy liveness: the placement, and what others would hold for the step. */
#include <stdio.h>
#include <stdlib.h>

#include <tidemark/tidemark.h>

#include "place/bench.h"
#include "plan/place_plan.h"
#include "pool/online/requests.h"

enum { FEW_OPS = 10000, STEPS = 3 };

typedef struct step_items {
    tide__place_item *items;
    size_t n;
    uint32_t n_ops;
    uint64_t alignment;
} step_items;

static step_items load(const char *spec, uint32_t batch) {
    step_items s;
    tide_machine machine;
    tide_model_options model_options;
    tide_step_options step_options;
    tide_model *model;
    tide_step *step;
    tide_id *tensors;
    tide_machine_init_default(&machine);
    tide_model_options_init(&model_options);
    model_options.batch = batch;
    tide_step_options_init(&step_options);
    step_options.machine = &machine;
    require(tide_model_create(spec, &model_options, &model));
    require(tide_step_create(model, &step_options, &step));
    require(tide__place_items(tide_step_program(step), &machine, &s.items, &tensors, &s.n));
    s.n_ops = tide_program_op_count(tide_step_program(step));
    s.alignment = machine.align_bytes;
    free(tensors);
    tide_step_destroy(step);
    tide_model_destroy(model);
    return s;
}

/* What an online allocator holds over a few steps, against the load. */
static double online_ratio(const tide__online_kind *kind, const tide__requests *requests, uint64_t alignment) {
    tide__online_result r;
    require(tide__online_run(kind, requests, alignment, 0, &r));
    return ratio(r.peak_held_bytes, r.peak_live_bytes);
}

static timed measure(const char *spec, uint32_t batch, uint32_t *n_ops) {
    step_items s = load(spec, batch);
    tide__requests requests;
    timed ours = time_place(s.items, s.n, &(tide__place_options){.time_limit_s = 0.1});
    timed smartpool = time_place(s.items, s.n, &(tide__place_options){.algorithm = "smartpool"});
    printf("%-22s %5u %7u %7zu %10.1f %8.4f %8.4f", spec, batch, s.n_ops, s.n, (double)ours.result.lower_bound / 0x1p20,
           ratio(ours.result.height, ours.result.lower_bound), ours.seconds);
    if (smartpool.able)
        printf(" %9.4f", ratio(smartpool.result.height, smartpool.result.lower_bound));
    else
        printf(" %9s", "-");
    require(tide__requests_of_items(s.items, s.n, STEPS, &requests));
    for (int k = 0; k < TIDE__N_ONLINE; k++)
        printf(" %9.4f", online_ratio(tide__online_kinds[k], &requests, s.alignment));
    printf("\n");
    fflush(stdout);
    tide__requests_deinit(&requests);
    free(s.items);
    *n_ops = s.n_ops;
    return ours;
}

static void print_header(void) {
    printf("%-22s %5s %7s %7s %10s %8s %8s %9s", "model", "batch", "ops", "items", "bound MiB", "ours", "cpu s",
           "smartpool");
    for (int k = 0; k < TIDE__N_ONLINE; k++) printf(" %9s", tide__online_kinds[k]->name);
    printf("\n");
}

static void measure_families(void) {
    static const char *const specs[] = {"mlp:784,512,512,10", "lenet",     "alexnet",        "vgg16",
                                        "resnet50",           "resnet101", "resnet-cifar:9", "densenet121",
                                        "inception-v4",       "unet",      "gpt2:small",     "lstm:2,512,32"};
    static const uint32_t batches[] = {8, 32, 128};
    double worst = 1, slowest = 0;
    size_t n_steps = 0;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
            uint32_t n_ops;
            timed t = measure(specs[i], batches[k], &n_ops);
            double over = ratio(t.result.height, t.result.lower_bound);
            if (over > worst) worst = over;
            if (n_ops <= FEW_OPS && t.seconds > slowest) slowest = t.seconds;
            n_steps++;
        }
    bar(worst < 1.0005, "%zu steps of models: at most %.4f of the bound (bar 1.000)", n_steps, worst);
    bar(slowest < 0.2, "%zu steps of models: placed in at most %.3f s (bar 0.2 s)", n_steps, slowest);
}

static void measure_deep(void) {
    static const char *const specs[] = {"resnet:6,32,270,6", "resnet:6,32,950,6", "gpt2:1000,64,4"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        uint32_t n_ops;
        timed t = measure(specs[i], 16, &n_ops);
        double over = ratio(t.result.height, t.result.lower_bound);
        bar(over <= 1.002 && t.seconds < 1.2, "%s: %u ops at %.4f of the bound in %.3f s (bar 1.0020, about 1 s)",
            specs[i], n_ops, over, t.seconds);
    }
}

void bench_models(void) {
    printf("\n== training steps, policy liveness: heights / bound; online allocators over %d steps, held / load\n",
           STEPS);
    print_header();
    measure_families();
    measure_deep();
}
