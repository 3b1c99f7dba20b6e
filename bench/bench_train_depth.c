/* How deep a network trains in one budget: residual networks of 6 n + 2 layers, batch 32, on the CPU with a disk tier.
 *
 *      bench_train_depth [BUDGET_MIB [STEPS]]        256 MiB, 3 steps; a few minutes
 *      bench_train_depth one N BUDGET_MIB STEPS      trains one network, for the program itself; BUDGET_MIB 0: unconstrained
 *
 * Finds the deepest network that fits the budget with policy liveness, then trains one more than ten times as deep, and
 * of more than a thousand layers, with the default policy, in a process of its own, whose peak of memory is judged; and
 * once more without a budget, to compare the bits. Exits with 1 if a bar is missed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark/tidemark.h>

#include "common.h"

#define MIB (UINT64_C(1) << 20)
enum { BATCH = 32, SAMPLES = 256, OUTSIDE_MIB = 150, MOST_STEPS = 100, LAYERS = 1000, TIMES = 10 };

typedef struct net {
    tide_device *device;
    tide_machine machine; /* without a RAM tier: where the arena is RAM it saves nothing */
    tide_model *model;
} net;

static void net_open(uint32_t n, net *out) {
    tide_machine all;
    tide_model_options m;
    char spec[32];
    snprintf(spec, sizeof spec, "resnet-cifar:%u", n);
    tide_model_options_init(&m);
    m.batch = BATCH;
    m.channels = 3;
    m.height = m.width = 32;
    m.classes = 10;
    require(tide_machine_load("cpu", &all));
    tide_machine_without(&all, TIDE_TIER_RAM, &out->machine);
    require(tide_device_open("cpu", NULL, &out->device));
    require(tide_model_create(spec, &m, &out->model));
}

static void net_close(net *t) {
    tide_model_destroy(t->model);
    tide_device_close(t->device);
}

/* ---- how deep with liveness ---- */

static bool fits(uint32_t n, uint64_t budget_bytes) {
    net t;
    tide_step_options so;
    tide_plan_options po;
    tide_step *step;
    tide_plan *plan = NULL;
    net_open(n, &t);
    tide_step_options_init(&so);
    so.optimizer = TIDE_MOMENTUM;
    so.machine = &t.machine;
    so.device = t.device;
    require(tide_step_create(t.model, &so, &step));
    tide_plan_options_init(&po);
    po.policy = "liveness";
    po.budgets.arena_bytes = budget_bytes;
    tide_status status = tide_plan_create(tide_step_program(step), &t.machine, &po, NULL, &plan);
    if (status != TIDE_E_FIT) require(status);
    tide_plan_destroy(plan);
    tide_step_destroy(step);
    net_close(&t);
    return status == TIDE_OK;
}

static uint32_t deepest(uint64_t budget_bytes) {
    uint32_t works = 0, fails = 1;
    while (fits(fails, budget_bytes)) works = fails, fails *= 2;
    while (fails - works > 1) {
        uint32_t middle = works + (fails - works) / 2;
        if (fits(middle, budget_bytes))
            works = middle;
        else
            fails = middle;
    }
    return works;
}

/* ---- one training ---- */

typedef struct outcome {
    double first_loss, last_loss, peak_mib, arena_mib, tier_mib, step_s, cpu_s;
    uint64_t hash;
} outcome;

static double peak_mib(void) {
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtod(line + 6, NULL);
    if (f) fclose(f);
    return kib / 1024;
}

static int train_one(uint32_t n, uint64_t budget_mib, int steps) {
    net t;
    tide_digits digits = {.seed = 1, .channels = 3, .height = 32, .width = 32};
    tide_data data;
    tide_trainer_options o;
    tide_trainer *trainer;
    tide_step_report report = {0};
    uint64_t hash, tiers = 0, ns = 0;
    float first = 0, loss = 0;
    net_open(n, &t);
    require(tide_data_digits(&digits, SAMPLES, &data));
    tide_trainer_options_init(&o);
    o.model = t.model;
    o.device = t.device;
    o.machine = &t.machine;
    o.data = &data;
    o.learning_rate = 1e-4f;
    o.plan.policy = budget_mib ? "hybrid" : "liveness";
    if (budget_mib) o.plan.budgets.arena_bytes = budget_mib * MIB;
    require(tide_trainer_create(&o, NULL, &trainer));
    for (int i = 0; i < steps; i++) {
        require(tide_trainer_step(trainer, &loss, &report));
        if (i == 0) first = loss;
        ns += report.step_ns;
    }
    require(tide_trainer_hash(trainer, &hash));
    for (uint32_t i = 0; i < t.machine.n_tiers; i++) tiers += report.tier_bytes[i];
    printf("%.9g %.9g %.1f %.1f %.1f %.3f %.3f %" PRIu64 "\n", (double)first, (double)loss, peak_mib(),
           (double)report.arena_bytes / (double)MIB, (double)tiers / (double)MIB, (double)ns / 1e9 / steps,
           cpu_seconds(), hash);
    tide_trainer_destroy(trainer);
    net_close(&t);
    return 0;
}

/* In a process of its own, so that its peak of memory is its own. */
static bool train(const char *self, uint32_t n, uint64_t budget_mib, int steps, outcome *out) {
    char command[4096];
    snprintf(command, sizeof command, "'%s' one %u %" PRIu64 " %d", self, n, budget_mib, steps);
    FILE *f = popen(command, "r");
    if (!f) return false;
    int read = fscanf(f, "%lf %lf %lf %lf %lf %lf %lf %" SCNu64, &out->first_loss, &out->last_loss, &out->peak_mib,
                      &out->arena_mib, &out->tier_mib, &out->step_s, &out->cpu_s, &out->hash);
    return pclose(f) == 0 && read == 8;
}

/* ---- the bars ---- */

static int missed;

static void bar(bool met, const char *what) {
    printf("%-7s %s\n", met ? "ok" : "MISSED", what);
    missed += !met;
}

static void print_outcome(const char *who, const outcome *r) {
    printf(
        "        %-14s arena %.0f MiB, disk %.0f MiB, peak of the process %.0f MiB, %.1f s a step, %.0f s of cores in "
        "all, loss %.4f -> %.4f\n",
        who, r->arena_mib, r->tier_mib, r->peak_mib, r->step_s, r->cpu_s, r->first_loss, r->last_loss);
}

static void judge(const char *self, uint64_t budget_mib, int steps) {
    outcome deep, whole;
    char text[160];
    uint32_t live = deepest(budget_mib * MIB), n = TIMES * live + 3; /* 6 n + 2 >= 10 (6 live + 2) */
    if (6 * n + 2 <= LAYERS) n = (LAYERS - 2) / 6 + 1;
    printf("resnet-cifar, batch %d, 3 x 32 x 32, %" PRIu64
           " MiB: with liveness at most %u layers (n = %u); training %u "
           "(n = %u)\n",
           BATCH, budget_mib, 6 * live + 2, live, 6 * n + 2, n);
    fflush(stdout);
    bool trained = train(self, n, budget_mib, steps, &deep);
    if (trained) print_outcome("in the budget", &deep);
    snprintf(text, sizeof text, "%u layers train in %" PRIu64 " MiB, %.1f times as many as with liveness (at least %d)",
             6 * n + 2, budget_mib, (6.0 * n + 2) / (6.0 * live + 2), TIMES);
    bar(trained && 6 * n + 2 >= TIMES * (6 * live + 2), text);
    if (!trained) return;
    snprintf(text, sizeof text, "the process stays within %d MiB + budget + 2 %%", OUTSIDE_MIB);
    bar(deep.peak_mib <= OUTSIDE_MIB + 1.02 * (double)budget_mib, text);
    bar(deep.last_loss < deep.first_loss, "the loss falls");
    if (!train(self, n, 0, steps, &whole)) {
        bar(false, "the same without a budget");
        return;
    }
    print_outcome("unconstrained", &whole);
    bar(whole.hash == deep.hash && whole.last_loss == deep.last_loss, "the same bits as without a budget");
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "one") == 0)
        return train_one((uint32_t)strtoul(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), atoi(argv[4]));
    uint64_t budget_mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 256;
    int steps = argc > 2 ? atoi(argv[2]) : 3;
    if (budget_mib == 0 || steps < 2 || steps > MOST_STEPS || argc > 3) {
        fprintf(stderr, "usage: bench_train_depth [BUDGET_MIB [STEPS]]\n");
        return 2;
    }
    judge(argv[0], budget_mib, steps);
    return missed > 0;
}
