/* The OpenCL device beside the CPU device: matrix products, a step of ResNet-50, transfers under a budget, losses and bits
 * of all families, accuracy.
 *
 *      bench_opencl [products | step | budget | families | digits]        all of them; a few minutes
 *
 * Speeds are per second of processor time, all threads together, which other programs on the machine disturb little;
 * so they compare devices that both compute on the processor (PoCL), and mean nothing for a GPU. Exits with 1 if a bar
 * is missed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidemark/tidemark.h>

#include "common.h"
#include "device/opencl/opencl.h"
#include "opencl/families.h"

enum { STEPS = 2, BATCH = 8 };

static int missed;

static void judge(bool good, const char *bar) {
    printf("   %s: %s\n", good ? "ok" : "MISSED", bar);
    missed += !good;
}

static tide_device *open_device(const char *name) {
    tide_device *device;
    require(tide_device_open(name, NULL, &device));
    return device;
}

/* ---- products ---- */

typedef struct product {
    int64_t m, n, k;
} product;

/* Processor seconds of one run of an op on operands of small numbers. */
static double time_op(const char *name, const tide_op_desc *d) {
    tide_device *device = open_device(name);
    tide_kernel *kernel;
    tide_kernel_info info;
    tide_queue *queue;
    tide_arena *arena;
    uint64_t offsets[8], end = 0;
    require(tide_kernel_create(device, d, &kernel));
    require(tide_kernel_get_info(kernel, &info));
    uint32_t n = info.n_reads + info.n_writes, with = info.variant[0].workspace_bytes > 0;
    for (uint32_t i = 0; i < n + with; i++) {
        offsets[i] = end;
        end += i < info.n_reads ? info.read[i].size_bytes
               : i < n          ? info.write[i - info.n_reads].size_bytes
                                : info.variant[0].workspace_bytes;
        end = (end + 4095) & ~UINT64_C(4095);
    }
    require(tide_arena_create(device, end, &arena));
    float *host = tide_arena_host(arena);
    for (uint64_t i = 0; i < end / 4; i++) host[i] = (float)(i % 97) * 0.01f;
    require(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    double best = 1e9;
    for (int i = 0; i < 6; i++) { /* the first builds what is built late */
        double begin = cpu_seconds();
        require(tide_kernel_enqueue(kernel, 0, queue, arena, offsets, n + with, NULL));
        require(tide_queue_sync(queue));
        double took = cpu_seconds() - begin;
        if (i && took < best) best = took;
    }
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    tide_kernel_destroy(kernel);
    tide_device_close(device);
    return best;
}

static void bench_products(void) {
    static const product products[] = {
        {1024, 1024, 1024}, {2048, 2048, 512}, {512, 4096, 1024}, {4096, 768, 768}, {256, 1000, 2048}};
    double worst = 1e9, sum = 0;
    size_t n = sizeof products / sizeof *products;
    printf("matrix products, GF per second of processor time\n");
    printf("   %-20s %8s %8s %8s\n", "m x n x depth", "cpu", "opencl", "share");
    for (size_t i = 0; i < n; i++) {
        const product *p = &products[i];
        tide_op_desc d = {.kind = TIDE_OP_FC_FWD, .x = {p->m, p->k, 1, 1}, .y = {p->m, p->n, 1, 1}};
        double flops = 2e-9 * (double)p->m * (double)p->n * (double)p->k, cpu = time_op("cpu", &d),
               opencl = time_op("opencl", &d);
        char label[64];
        snprintf(label, sizeof label, "%lld x %lld x %lld", (long long)p->m, (long long)p->n, (long long)p->k);
        printf("   %-20s %8.1f %8.1f %7.0f %%\n", label, flops / cpu, flops / opencl, 100 * cpu / opencl);
        worst = fmin(worst, cpu / opencl);
        sum += cpu / opencl;
    }
    printf("   mean share %.0f %%, smallest %.0f %%\n", 100 * sum / (double)n, 100 * worst);
    judge(worst >= 0.6, "every product at 60 % of oneDNN's speed or more");
}

/* ---- training ---- */

typedef struct net {
    tide_device *device;
    tide_machine machine;
    tide_model *model;
    tide_digits digits;
    tide_data data;
    tide_trainer_options options;
} net;

static void net_open(net *t, const char *device, const char *spec, uint32_t batch, uint32_t channels, uint32_t size) {
    tide_model_options m;
    tide_model_options_init(&m);
    m.batch = batch;
    m.channels = channels;
    m.height = m.width = size;
    m.classes = size > 100 ? 1000 : 10;
    t->device = open_device(device);
    require(tide_machine_load("cpu", &t->machine));
    require(tide_model_create(spec, &m, &t->model));
    t->digits = (tide_digits){.seed = 3, .channels = channels, .height = size, .width = size};
    require(tide_data_digits(&t->digits, 8192, &t->data));
    tide_trainer_options_init(&t->options);
    t->options.model = t->model;
    t->options.device = t->device;
    t->options.machine = &t->machine;
    t->options.data = &t->data;
    t->options.step.optimizer = TIDE_MOMENTUM;
    t->options.learning_rate = 0.01f;
    t->options.plan.policy = "liveness";
}

static void net_close(net *t) {
    tide_model_destroy(t->model);
    tide_device_close(t->device);
}

/* Processor seconds of a step, the best of STEPS after one that builds what is built late; the first loss. A ResNet-50
 * at its random start magnifies rounding so much that later losses compare nothing. */
static double time_step(const char *device, float *loss, uint64_t *arena_bytes) {
    net t;
    tide_trainer *trainer;
    tide_step_report report;
    double best = 1e9;
    net_open(&t, device, "resnet50", BATCH, 3, 224);
    require(tide_trainer_create(&t.options, NULL, &trainer));
    for (int i = 0; i <= STEPS; i++) {
        float later;
        double begin = cpu_seconds();
        require(tide_trainer_step(trainer, i ? &later : loss, &report));
        double took = cpu_seconds() - begin;
        if (i && took < best) best = took;
    }
    *arena_bytes = report.arena_bytes;
    tide_trainer_destroy(trainer);
    net_close(&t);
    return best;
}

static void bench_step(void) {
    float cpu_loss, opencl_loss;
    uint64_t arena;
    double cpu = time_step("cpu", &cpu_loss, &arena), opencl = time_step("opencl", &opencl_loss, &arena);
    printf("a step of ResNet-50, batch %d, in seconds of processor time\n", BATCH);
    printf("   cpu %.2f, opencl %.2f: %.0f %% of its speed; first losses %.6f and %.6f\n", cpu, opencl,
           100 * cpu / opencl, (double)cpu_loss, (double)opencl_loss);
    judge(cpu / opencl >= 0.3, "a step at 30 % of the CPU device's speed or more");
    judge(fabsf(cpu_loss - opencl_loss) <= 1e-4f * fabsf(cpu_loss), "first losses within 1e-4 of each other");
}

static uint64_t overlap(uint64_t a, uint64_t b, uint64_t begin, uint64_t end) {
    uint64_t low = a > begin ? a : begin, high = b < end ? b : end;
    return low < high ? high - low : 0;
}

/* One more step, traced: how long transfers took, and how much of that the compute queue was idle. */
static void add_times(tide_trainer *trainer, double *exposed, double *moved) {
    const tide_plan *plan = tide_trainer_plan(trainer);
    tide_step_report report;
    tide_timeline *line;
    float loss;
    require(tide_trainer_step_traced(trainer, &loss, &report, &line));
    for (uint32_t t = 0; t < line->n_actions; t++) {
        if (tide_plan_action(plan, t).queue == 0) continue;
        *moved += (double)(line->end_ns[t] - line->start_ns[t]);
        uint64_t last = 0;
        for (uint32_t i = 0; i < line->n_actions; i++) {
            if (tide_plan_action(plan, i).kind != TIDE_RUN) continue;
            *exposed += (double)overlap(last, line->start_ns[i], line->start_ns[t], line->end_ns[t]);
            last = line->end_ns[i];
        }
    }
    tide_timeline_destroy(line);
}

/* At 60 % of what it takes without a budget: what of the transfers is not hidden, and how often the host waits. */
static void bench_budget(void) {
    net t;
    tide_trainer *trainer;
    tide_step_report report;
    float loss;
    net_open(&t, "opencl", "resnet-cifar:3", 32, 3, 32);
    require(tide_trainer_create(&t.options, NULL, &trainer));
    require(tide_trainer_step(trainer, &loss, &report));
    uint64_t whole = report.arena_bytes;
    tide_trainer_destroy(trainer);
    t.options.plan.policy = "hybrid";
    t.options.plan.budgets.arena_bytes = whole / 100 * 60;
    t.options.mode = TIDE_MODE_AUTO; /* plans with the costs that the first step measures */
    require(tide_trainer_create(&t.options, NULL, &trainer));
    double exposed = 0, moved = 0;
    uint64_t waits = 0;
    enum { WARM = 3, COUNTED = 5 };
    for (int i = 0; i < WARM + COUNTED; i++) {
        tide__opencl *opencl = (tide__opencl *)t.device;
        uint64_t before = atomic_load(&opencl->gpu.host_waits);
        require(tide_trainer_step(trainer, &loss, &report));
        if (i < WARM) continue;
        waits = atomic_load(&opencl->gpu.host_waits) - before;
        add_times(trainer, &exposed, &moved);
    }
    printf("resnet-cifar:3, batch 32, in 60 %% of %.1f MiB\n", (double)whole / 0x1p20);
    printf(
        "   %.2f MiB out per step, %u re-runs, transfers %.2f ms per step, exposed %.2f ms (%.0f %%), host waits %d\n",
        (double)report.saved_bytes / 0x1p20, report.n_reruns, moved / COUNTED / 1e6, exposed / COUNTED / 1e6,
        moved > 0 ? 100 * exposed / moved : 0, (int)waits);
    judge(exposed <= 0.2 * moved, "less than 20 % of the transfers' time is exposed");
    judge(waits == 1, "the host waits once, at the end of a step");
    tide_trainer_destroy(trainer);
    net_close(&t);
}

/* ---- families ---- */

static void bench_families(void) {
    printf("small networks, 5 steps; bits under 8 policies and 3 budgets where they have a plan\n");
    const families_result r = compare_families();
    printf("   losses differ by %.1e at most; %u of %u trainings have the bits of the unconstrained one\n", r.farthest,
           r.the_same, r.trainings);
    judge(r.farthest <= 1e-4, "losses within 1e-4 of the CPU device's");
    judge(r.trainings > 0 && r.the_same == r.trainings, "the same bits under every policy and budget");
}

/* ---- accuracy ---- */

static double accuracy(const char *device) {
    net t;
    tide_trainer *trainer;
    float loss;
    double share;
    net_open(&t, device, "lenet", 32, 1, 28);
    require(tide_trainer_create(&t.options, NULL, &trainer));
    for (int i = 0; i < 200; i++) require(tide_trainer_step(trainer, &loss, NULL));
    require(tide_trainer_evaluate(trainer, &t.data, 1024, &share));
    tide_trainer_destroy(trainer);
    net_close(&t);
    return share;
}

static void bench_digits(void) {
    double cpu = accuracy("cpu"), opencl = accuracy("opencl");
    printf("lenet on drawn digits, 200 steps: accuracy %.2f %% on cpu, %.2f %% on opencl\n", 100 * cpu, 100 * opencl);
    judge(fabs(cpu - opencl) <= 0.01, "accuracies within a percent of each other");
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : "";
    tide_device *device = NULL;
    if (!getenv("OMP_WAIT_POLICY")) { /* read when the program is loaded; threads that spin would count as work */
        setenv("OMP_WAIT_POLICY", "passive", 1);
        execv("/proc/self/exe", argv);
    }
    if (tide_device_open("opencl", NULL, &device) != TIDE_OK) {
        printf("skipped: %s\n", tide_last_error());
        return 0;
    }
    tide_device_close(device);
    if (!*only || strcmp(only, "products") == 0) bench_products();
    if (!*only || strcmp(only, "step") == 0) bench_step();
    if (!*only || strcmp(only, "budget") == 0) bench_budget();
    if (!*only || strcmp(only, "families") == 0) bench_families();
    if (!*only || strcmp(only, "digits") == 0) bench_digits();
    return missed > 0;
}
