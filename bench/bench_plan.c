/* How planning grows: ResNets from 10^3 to 10^5 basic layers through build, liveness, plan (which proves itself),
 * simulate and verify. Each depth runs in a process of its own, so that its memory peak is its own.
 *
 *   bench_plan            the table, and whether the bars are reached (exit code 1 if not) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidemark/tidemark.h>

#include "common.h"

/* CPU time of this process: other processes' noise does not count. */
static double lap(double *since) {
    double now = cpu_seconds(), spent = now - *since;
    *since = now;
    return spent;
}

typedef struct figures {
    uint32_t layers, ops, tensors, actions;
    double build, liveness, plan, simulate, verify;
    double rss_mib;
    double arena_gib, peak_gib;
} figures;

static double total(const figures *f) { return f->build + f->liveness + f->plan + f->simulate + f->verify; }

/* ns per n log2 n, n in layers. */
static double per_n_log_n(const figures *f) { return total(f) * 1e9 / (f->layers * log2(f->layers)); }

static figures measure(const char *spec) {
    figures f;
    tide_machine machine;
    tide_model_options model_options;
    tide_step_options step_options;
    tide_plan_options plan_options;
    tide_model *model;
    tide_step *step;
    tide_liveness *liveness;
    tide_plan *plan;
    tide_timeline *timeline;
    tide_verdict verdict;
    require(tide_machine_load("k40c", &machine));
    tide_model_options_init(&model_options);
    model_options.batch = 16;
    tide_step_options_init(&step_options);
    step_options.machine = &machine;
    tide_plan_options_init(&plan_options);
    double t = cpu_seconds();
    require(tide_model_create(spec, &model_options, &model));
    require(tide_step_create(model, &step_options, &step));
    const tide_program *program = tide_step_program(step);
    f.build = lap(&t);
    require(tide_liveness_create(program, &liveness));
    f.liveness = lap(&t);
    require(tide_plan_create(program, &machine, &plan_options, NULL, &plan));
    f.plan = lap(&t);
    require(tide_plan_simulate(plan, program, &machine, &timeline));
    f.simulate = lap(&t);
    require(tide_plan_verify(plan, program, &machine, NULL, &verdict));
    f.verify = lap(&t);
    f.layers = tide_model_layer_count(model);
    f.ops = tide_program_op_count(program);
    f.tensors = tide_program_tensor_count(program);
    f.actions = tide_plan_action_count(plan);
    f.arena_gib = (double)tide_plan_arena_bytes(plan) / 0x1p30;
    f.peak_gib = (double)liveness->peak_bytes / 0x1p30;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    f.rss_mib = (double)usage.ru_maxrss / 1024;
    tide_timeline_destroy(timeline);
    tide_plan_destroy(plan);
    tide_liveness_destroy(liveness);
    tide_step_destroy(step);
    tide_model_destroy(model);
    return f;
}

/* In a child process; its figures come back through a pipe. */
static figures measure_apart(const char *spec) {
    figures f;
    int ends[2];
    if (pipe(ends) != 0) exit(1);
    pid_t child = fork();
    if (child == 0) {
        f = measure(spec);
        _exit(write(ends[1], &f, sizeof f) == (ssize_t)sizeof f ? 0 : 1);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], &f, sizeof f);
    int status;
    waitpid(child, &status, 0);
    close(ends[0]);
    if (n != (ssize_t)sizeof f || status != 0) exit(1);
    return f;
}

/* The bars: 10^4 layers in a second and 300 MiB; from there on no worse than n log n, with room for noise. */
static int judge(const figures *rows, size_t n, size_t middle) {
    int failed = 0;
    if (total(&rows[middle]) > 1 || rows[middle].rss_mib > 300) failed = 1;
    if (per_n_log_n(&rows[n - 1]) > 1.5 * per_n_log_n(&rows[middle])) failed = 1;
    printf("%s: %u layers in %.2f s and %.0f MiB (bar 1 s, 300 MiB); %u layers at %.2f of n log n growth (bar 1.5)\n",
           failed ? "MISSED" : "reached", rows[middle].layers, total(&rows[middle]), rows[middle].rss_mib,
           rows[n - 1].layers, per_n_log_n(&rows[n - 1]) / per_n_log_n(&rows[middle]));
    return failed;
}

int main(void) {
    static const char *const specs[] = {"resnet:6,32,55,6", "resnet:6,32,270,6", "resnet:6,32,950,6",
                                        "resnet:6,32,3000,6", "resnet:6,32,9950,6"};
    enum { ROWS = sizeof specs / sizeof *specs, MIDDLE = 2 };
    figures rows[ROWS];
    printf("ResNets at batch 16, 224 x 224, policy liveness; CPU seconds on one core\n");
    printf("%7s %7s %8s | %7s %7s %7s %7s %7s | %7s %9s %8s %12s\n", "layers", "ops", "tensors", "build", "live",
           "plan", "simul.", "verify", "total", "RSS MiB", "arena/LB", "ns/(n log n)");
    for (size_t i = 0; i < ROWS; i++) {
        figures f = rows[i] = measure_apart(specs[i]);
        printf("%7u %7u %8u | %7.3f %7.3f %7.3f %7.3f %7.3f | %7.3f %9.1f %8.4f %12.1f\n", f.layers, f.ops, f.tensors,
               f.build, f.liveness, f.plan, f.simulate, f.verify, total(&f), f.rss_mib, f.arena_gib / f.peak_gib,
               per_n_log_n(&f));
        fflush(stdout);
    }
    return judge(rows, ROWS, MIDDLE);
}
