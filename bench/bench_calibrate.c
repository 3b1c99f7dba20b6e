/* Calibration: is a simulated step as long as a measured one? Trains a small ResNet on the CPU under plans that keep,
 * move and re-run, and compares each with the simulator, fed with the machine's roofline and with measured op times.
 *
 *      bench_calibrate [MODEL [BATCH [STEPS]]]        resnet-cifar:3, 32, 30
 *
 * The machine is measured first. Times are of the real clock, medians of STEPS steps, of ops and of whole steps alike
 * (the fastest of each op would add up to a step that never was): run it on an idle machine. The op times come from timed steps under `liveness` alone; the other plans are predicted from them. RAM copies use cores
 * and memory bandwidth that the kernels want, too: that is the CPU's doing as a stand-in, not the simulator's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tidemark/train.h>

#include "base/size.h"
#include "common.h"

enum { MAX_OPS = 20000, MAX_STEPS = 1000 };

/* One plan and what it took. */
typedef struct entry {
    const char *label;
    tide_trainer *trainer;
    uint64_t step_ns[MAX_STEPS], exposed_ns[MAX_STEPS];
} entry;

typedef struct bench {
    tide_device *device;
    tide_machine machine;
    tide_model *model;
    tide_digits digits;
    tide_data data;
    entry entries[8];
    size_t n_entries;
    uint32_t n_ops, n_steps;
    uint64_t once[MAX_OPS]; /* scratch */
    uint64_t *op_ns;        /* of the first entry: n_ops rows of n_steps */
} bench;

static bench b;

static const tide_program *program_of(const entry *e) {
    return tide_step_program(tide_trainer_step_program(e->trainer));
}

/* ---- hand-made plans ---- */

/* Every second large activation that backward needs leaves for `tier` in between; every other one is computed again, if
 * the op before it can be: what a person would write. */
static void write_decisions(const char *path, const tide_program *p, const char *tier, bool reruns) {
    FILE *f = fopen(path, "w");
    tide_gap *gaps;
    size_t n, turn = 0;
    if (!f) exit(1);
    require(tide_liveness_gaps(p, &gaps, &n));
    fprintf(f, "{\"tidemark\":\"decisions\",\"version\":1}\n");
    for (size_t i = 0; i < n; i++) {
        tide_id t = gaps[i].tensor, producer = tide_program_producer(p, t);
        const tide_op *before = tide_program_op(p, gaps[i].before_op);
        bool large = tide_program_tensor(p, t)->size_bytes >= 256 * 1024 && producer != TIDE_NONE;
        if (!large || tide_program_op(p, gaps[i].after_op)->phase != TIDE_FORWARD || before->phase == TIDE_FORWARD)
            continue;
        turn++;
        if (tier && turn % 2)
            fprintf(f, "{\"swap\":%u,\"tier\":\"%s\",\"after\":%u,\"before\":%u}\n", t, tier, gaps[i].after_op,
                    gaps[i].before_op > gaps[i].after_op + 6 ? gaps[i].before_op - 4 : gaps[i].before_op);
        else if (reruns && turn % 2 == 0 && tide_program_op(p, producer)->rerunnable)
            fprintf(f, "{\"rerun\":%u,\"before\":%u}\n", producer, gaps[i].before_op);
    }
    free(gaps);
    fclose(f);
}

/* ---- plans ---- */

static void add(const char *label, const char *policy, const char *decisions, uint64_t arena_bytes) {
    tide_trainer_options o;
    entry *e = &b.entries[b.n_entries++];
    tide_trainer_options_init(&o);
    o.model = b.model;
    o.device = b.device;
    o.machine = &b.machine;
    o.data = &b.data;
    o.plan.policy = policy;
    o.plan.decisions = decisions;
    o.plan.budgets.arena_bytes = arena_bytes;
    e->label = label;
    require(tide_trainer_create(&o, NULL, &e->trainer));
}

static void add_by_hand(const char *label, const char *tier, bool reruns) {
    char path[] = "/tmp/tidemark-calibrate-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) exit(1);
    close(fd);
    write_decisions(path, program_of(&b.entries[0]), tier, reruns);
    add(label, "manual", path, UINT64_MAX);
    unlink(path);
}

/* ---- measuring ---- */

/* Step i on the clock, and one timed op by op: what of it was not computing is exposed. */
static void measure(entry *e, uint32_t i) {
    tide_step_report r;
    float loss;
    require(tide_trainer_step(e->trainer, &loss, &r));
    e->step_ns[i] = r.step_ns;
    require(tide_trainer_step_timed(e->trainer, &loss, &r, b.once));
    e->exposed_ns[i] = r.step_ns - tide__min_u64(r.compute_ns, r.step_ns);
    for (uint32_t k = 0; e == b.entries && k < b.n_ops; k++) b.op_ns[(size_t)k * b.n_steps + i] = b.once[k];
}

/* Round by round, so that what else the machine does hits all plans alike. */
static void measure_all(uint32_t n_steps) {
    float loss;
    b.n_steps = n_steps;
    b.op_ns = calloc((size_t)b.n_ops * n_steps, sizeof *b.op_ns);
    if (!b.op_ns) exit(1);
    for (size_t k = 0; k < b.n_entries; k++) require(tide_trainer_step(b.entries[k].trainer, &loss, NULL));
    for (uint32_t i = 0; i < n_steps; i++)
        for (size_t k = 0; k < b.n_entries; k++) measure(&b.entries[k], i);
}

static int by_value(const void *a, const void *c) {
    const uint64_t *x = a, *y = c;
    return (*x > *y) - (*x < *y);
}

/* Sorts them. */
static uint64_t median(uint64_t *samples) {
    qsort(samples, b.n_steps, sizeof *samples, by_value);
    return samples[b.n_steps / 2];
}

static tide_prediction simulate(const tide_plan *plan, const tide_program *program) {
    tide_timeline *timeline;
    require(tide_plan_simulate(plan, program, &b.machine, &timeline));
    tide_prediction p = timeline->prediction;
    tide_timeline_destroy(timeline);
    return p;
}

static double ms(uint64_t ns) { return (double)ns * 1e-6; }

static void print(entry *e, const tide_program *measured) {
    const tide_plan *plan = tide_trainer_plan(e->trainer);
    uint64_t step_ns = median(e->step_ns), exposed_ns = median(e->exposed_ns);
    tide_prediction roofline = *tide_plan_prediction(plan), by_ops = simulate(plan, measured);
    printf("%-26s %8.1f %9.1f %9.1f %9.1f %7.2f %7.2f %9.1f %9.1f %9.1f\n", e->label,
           (double)tide_plan_arena_bytes(plan) / 1048576, (double)roofline.moved_bytes / 1048576, ms(step_ns),
           ms(by_ops.step_ns), (double)by_ops.step_ns / (double)step_ns, (double)roofline.step_ns / (double)step_ns,
           ms(exposed_ns), ms(by_ops.exposed_ns), ms(by_ops.recomputed_ns));
}

static void print_all(void) {
    const tide_program *p = program_of(&b.entries[0]);
    tide_program *measured;
    for (uint32_t k = 0; k < b.n_ops; k++) b.once[k] = median(&b.op_ns[(size_t)k * b.n_steps]);
    require(tide_program_with_costs(p, b.once, &measured));
    printf("op times: sum %.1f ms measured, %.1f ms by the roofline\n", ms(tide_program_cost_ns(measured)),
           ms(tide_program_cost_ns(p)));
    printf("%-26s %8s %9s %9s %9s %7s %7s %9s %9s %9s\n", "", "arena", "moved", "measured", "simulated", "ratio",
           "ratio", "exposed", "exposed", "re-run");
    printf("%-26s %8s %9s %9s %9s %7s %7s %9s %9s %9s\n", "plan", "MiB", "MiB", "ms", "ms, ops", "ops", "roofl.",
           "meas. ms", "sim. ms", "sim. ms");
    for (size_t i = 0; i < b.n_entries; i++) print(&b.entries[i], measured);
    tide_program_destroy(measured);
}

/* ---- the whole ---- */

static void open_all(const char *model, uint32_t batch) {
    tide_measure_options mo;
    tide_model_options o;
    require(tide_device_open("cpu", NULL, &b.device));
    tide_measure_options_init(&mo);
    require(tide_machine_measure(b.device, &mo, &b.machine));
    tide_device_info info;
    require(tide_device_get_info(b.device, &info));
    b.machine.align_bytes = info.align_bytes;
    tide_model_options_init(&o);
    o.batch = batch;
    require(tide_model_create(model, &o, &b.model));
    tide_shape in = tide_model_input(b.model);
    b.digits = (tide_digits){.seed = 1, .channels = (uint32_t)in.c, .height = (uint32_t)in.h, .width = (uint32_t)in.w};
    require(tide_data_digits(&b.digits, 10000, &b.data));
}

static void close_all(void) {
    for (size_t i = 0; i < b.n_entries; i++) tide_trainer_destroy(b.entries[i].trainer);
    free(b.op_ns);
    tide_model_destroy(b.model);
    tide_device_close(b.device);
}

int main(int argc, char **argv) {
    const char *model = argc > 1 ? argv[1] : "resnet-cifar:3";
    uint32_t batch = argc > 2 ? (uint32_t)atoi(argv[2]) : 32;
    int steps = argc > 3 ? atoi(argv[3]) : 30;
    if (steps < 1 || steps > MAX_STEPS) {
        fprintf(stderr, "STEPS is 1 to %d\n", MAX_STEPS);
        return 2;
    }
    open_all(model, batch);
    printf("%s, batch %u, machine %s: %.1f GFLOP/s x %.2f, %.1f GB/s x %.2f\n", model, batch, b.machine.name,
           b.machine.flops_per_s * 1e-9, b.machine.matrix_efficiency, b.machine.bytes_per_s * 1e-9,
           b.machine.vector_efficiency);
    add("liveness", "liveness", NULL, UINT64_MAX);
    b.n_ops = tide_program_op_count(program_of(b.entries));
    if (b.n_ops > MAX_OPS) exit(1);
    add("none", "none", NULL, UINT64_MAX);
    add_by_hand("by hand: RAM", "ram", false);
    add_by_hand("by hand: disk", "disk", false);
    add_by_hand("by hand: re-runs", NULL, true);
    add_by_hand("by hand: RAM and re-runs", "ram", true);
    add("checkpoint:block", "checkpoint:block", NULL, UINT64_MAX);
    add("superneurons at 60 %", "superneurons", NULL,
        tide_plan_arena_bytes(tide_trainer_plan(b.entries[0].trainer)) / 10 * 6);
    measure_all((uint32_t)steps);
    print_all();
    close_all();
    return 0;
}
