/* How fast real training is on the CPU, with its bars: against PyTorch, against ourselves under a budget, and what the
 * runtime costs by itself.
 *
 *      bench_train [--python PROGRAM] [--rounds N] [--threads N]     everything; PyTorch only if PROGRAM has it
 *      bench_train ... --part overhead|torch|budgets|checkpoint      one part of it
 *      bench_train [--threads N] --kinds SPEC BATCH [STEPS]          where the time of a step of SPEC goes
 *
 * All that is compared takes turns, a step each, and a ratio is the median over the rounds (own costs: the ratio of the
 * lower quartiles). The figures count on an idle machine only: it looks before and after, and says so. Exits with 1 if
 * a bar is missed or the machine was not idle. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/train.h"

#define MOST_BUSY 0.05    /* share of the cores that others may use */
#define OVERHEAD_ROUNDS 3 /* times as many where a percent counts */
#define NO_TORCH "no PyTorch; `make bench-train` installs it"

typedef struct bench {
    const char *python;
    const char *part; /* NULL: all */
    int rounds;
    uint32_t threads;
} bench;

/* ---- quiet ---- */

/* The one busy second of a neighbour is no reason to give up: the quietest of three counts. */
static bool is_idle(const char *when) {
    double least = 1;
    for (int i = 0; i < 3 && least > MOST_BUSY; i++) {
        double share = busy_share();
        least = share < least ? share : least;
    }
    if (least <= MOST_BUSY) return true;
    printf("NOT VALID: the machine was %.0f %% busy %s; what the clock says is only a hint\n", 100 * least, when);
    return false;
}

/* ---- against PyTorch ---- */

static const torch *faster(const torch *a, const torch *b) {
    return !b->pid || sample_median(&a->seconds) <= sample_median(&b->seconds) ? a : b;
}

/* Less wrong than the clock where others are busy. */
static void print_core_ratio(const samples *theirs, const samples *we) {
    printf("      by time of cores %.2f x\n", sample_ratio(theirs, we));
}

static void print_times(const char *who, const samples *seconds, const samples *cpu) {
    printf("      %-52s %7.3f s a step (fastest %.3f), %.3f s of cores\n", who, sample_median(seconds),
           sample_smallest(seconds), sample_median(cpu));
}

static void print_torch(const char *how, const torch *t) {
    char who[128];
    if (!t->pid) return;
    snprintf(who, sizeof who, "PyTorch %s, %s, peak %.0f MiB", t->version, how, t->peak_bytes / 1048576);
    print_times(who, &t->seconds, &t->cpu);
}

static void compare_with_torch(const bench *b, const ours *o, const char *name, const char *label) {
    char arguments[128], what[128];
    torch plain, last = {.pid = 0};
    entry we;
    bool images = strcmp(name, "resnet50") == 0;
    snprintf(what, sizeof what, "%s: as fast as PyTorch, its best layout (stretch 1.50)", label);
    snprintf(arguments, sizeof arguments, "%s %u %u", name, o->batch, b->threads);
    if (!torch_open(b->python, arguments, false, &plain)) {
        bar_not_run(what, NO_TORCH);
        return;
    }
    snprintf(arguments, sizeof arguments, "%s %u %u channels_last", name, o->batch, b->threads);
    if (images) torch_open(b->python, arguments, false, &last);
    entry_open(o, "liveness", TIDE_MODE_PLANNED, UINT64_MAX, &we);
    for (int i = 0; i < b->rounds; i++) {
        torch_step(&plain);
        torch_step(&last);
        entry_step(&we);
    }
    print_torch("default layout", &plain);
    print_torch("channels_last", &last);
    print_times("we, unconstrained", &we.seconds, &we.cpu);
    const torch *best = faster(&plain, &last);
    print_core_ratio(&best->cpu, &we.cpu);
    bar(what, sample_ratio(&best->seconds, &we.seconds), AT_LEAST, 1.2, "x");
    torch_close(&plain);
    torch_close(&last);
    entry_close(&we);
}

/* The bytes PyTorch's tensors need, which only an allocator that keeps nothing back shows; it pays for that with time. */
static bool checkpointed_peak(const bench *b, const char *arguments, double *bytes) {
    torch trimmed;
    if (!torch_open(b->python, arguments, true, &trimmed)) return false;
    torch_step(&trimmed);
    *bytes = trimmed.peak_bytes;
    torch_close(&trimmed);
    return true;
}

static void compare_checkpointed(const bench *b, const ours *o, const char *name, const char *label) {
    char arguments[128], what[128];
    double peak_bytes;
    torch theirs;
    entry we;
    snprintf(what, sizeof what, "%s: as fast as PyTorch checkpointing each block, same peak", label);
    snprintf(arguments, sizeof arguments, "%s %u %u checkpoint %s", name, o->batch, b->threads,
             strcmp(name, "resnet50") == 0 ? "channels_last" : "");
    if (!checkpointed_peak(b, arguments, &peak_bytes) || !torch_open(b->python, arguments, false, &theirs)) {
        bar_not_run(what, NO_TORCH);
        return;
    }
    torch_step(&theirs);
    entry_open(o, "hybrid", TIDE_MODE_AUTO, (uint64_t)peak_bytes, &we);
    for (int i = 0; i < b->rounds; i++) {
        torch_step(&theirs);
        entry_step(&we);
    }
    theirs.peak_bytes = peak_bytes;
    print_torch("checkpointed", &theirs);
    print_times("we, in as many bytes", &we.seconds, &we.cpu);
    print_core_ratio(&theirs.cpu, &we.cpu);
    bar(what, sample_ratio(&theirs.seconds, &we.seconds), AT_LEAST, 1.5, "x");
    torch_close(&theirs);
    entry_close(&we);
}

/* ---- against ourselves ---- */

static void compare_prediction(const char *label, const entry *e) {
    char what[256];
    if (!tide_trainer_plan(e->trainer)) {
        bar_not_run(label, "no plan fits, so it trains online");
        return;
    }
    const tide_prediction *p = tide_plan_prediction(tide_trainer_plan(e->trainer));
    double measured = sample_median(&e->seconds), simulated = (double)p->step_ns * 1e-9;
    double exposed = (double)p->exposed_ns * 1e-9 - sample_median(&e->exposed);
    snprintf(what, sizeof what, "%s: simulated and measured step differ by", label);
    bar(what, 100 * (simulated > measured ? simulated - measured : measured - simulated) / measured, AT_MOST, 10, "%");
    snprintf(what, sizeof what, "%s: simulated and measured exposed transfer differ by", label);
    bar(what, 100 * (exposed < 0 ? -exposed : exposed) / measured, AT_MOST, 5, "% of the step");
}

static void compare_budgets(const bench *b, const ours *o, const char *label) {
    enum { N = 2 };
    static const int percent[N] = {50, 30};
    static const double slower[N] = {10, 25};
    entry whole, part[N];
    char what[128];
    entry_open(o, "liveness", TIDE_MODE_PLANNED, UINT64_MAX, &whole);
    for (int k = 0; k < N; k++)
        entry_open(o, "hybrid", TIDE_MODE_AUTO, entry_arena(&whole) / 100 * (uint64_t)percent[k], &part[k]);
    for (int i = 0; i < b->rounds; i++) {
        entry_step(&whole);
        for (int k = 0; k < N; k++) entry_step(&part[k]);
        for (int k = 0; k < N; k++) entry_step_timed(o, &part[k]);
    }
    print_times("we, unconstrained", &whole.seconds, &whole.cpu);
    for (int k = 0; k < N; k++) {
        snprintf(what, sizeof what, "we, %d %% of %.0f MiB, disk tier", percent[k],
                 (double)entry_arena(&whole) / 1048576);
        print_times(what, &part[k].seconds, &part[k].cpu);
        snprintf(what, sizeof what, "%s: slower with %d %% of the arena", label, percent[k]);
        bar(what, 100 * (sample_ratio(&part[k].seconds, &whole.seconds) - 1), AT_MOST, slower[k], "%");
        snprintf(what, sizeof what, "%s, %d %%", label, percent[k]);
        compare_prediction(what, &part[k]);
        entry_close(&part[k]);
    }
    entry_close(&whole);
}

static void measure_overhead(const bench *b, const ours *o, const char *label) {
    entry planned, online;
    samples loop = {.n = 0};
    char what[128];
    entry_open(o, "liveness", TIDE_MODE_PLANNED, UINT64_MAX, &planned);
    entry_open(o, "delta", TIDE_MODE_ONLINE, entry_arena(&planned), &online);
    bare *kernels = bare_open(o);
    for (int i = 0; i < OVERHEAD_ROUNDS * b->rounds; i++) {
        sample_add(&loop, bare_step(kernels));
        entry_step(&planned);
        entry_step(&online);
    }
    bare_close(kernels);
    printf("      %-52s %7.3f s a step (fastest %.3f)\n", "the same kernels in a bare loop", sample_median(&loop),
           sample_smallest(&loop));
    print_times("planned, budget 100 %", &planned.seconds, &planned.cpu);
    print_times("online, budget 100 %", &online.seconds, &online.cpu);
    snprintf(what, sizeof what, "%s: planned mode's own cost", label);
    bar(what, 100 * (sample_quiet_ratio(&planned.seconds, &loop) - 1), AT_MOST, 1, "%");
    snprintf(what, sizeof what, "%s: online mode's own cost", label);
    bar(what, 100 * (sample_quiet_ratio(&online.seconds, &loop) - 1), AT_MOST, 5, "%");
    snprintf(what, sizeof what, "%s: planned mode's cost of an action", label);
    bar(what, empty_action_us(o), AT_MOST, 2, "us");
    entry_close(&planned);
    entry_close(&online);
}

/* ---- the whole ---- */

static int run_kinds(const bench *b, int argc, char **argv) {
    ours o;
    entry e;
    bool gpt2 = strncmp(argv[0], "gpt2", 4) == 0;
    ours_open(argv[0], (uint32_t)atoi(argv[1]), b->threads, gpt2 ? TIDE_ADAMW : TIDE_MOMENTUM, &o);
    entry_open(&o, "liveness", TIDE_MODE_PLANNED, UINT64_MAX, &e);
    print_kinds(&o, &e, argc > 2 ? atoi(argv[2]) : 5);
    entry_close(&e);
    ours_close(&o);
    return 0;
}

static bool has_part(const bench *b, const char *name) { return !b->part || strcmp(b->part, name) == 0; }

static void run_resnet(const bench *b) {
    ours o;
    ours_open("resnet50", 16, b->threads, TIDE_MOMENTUM, &o);
    if (has_part(b, "overhead")) measure_overhead(b, &o, "resnet50");
    if (has_part(b, "torch")) compare_with_torch(b, &o, "resnet50", "resnet50, batch 16");
    if (has_part(b, "budgets")) compare_budgets(b, &o, "resnet50");
    if (has_part(b, "checkpoint")) compare_checkpointed(b, &o, "resnet50", "resnet50, batch 16");
    ours_close(&o);
}

static void run_gpt2(const bench *b) {
    ours o;
    ours_open("gpt2:12,768,12,256", 4, b->threads, TIDE_ADAMW, &o);
    if (has_part(b, "torch")) compare_with_torch(b, &o, "gpt2", "gpt2 small, batch 4 x 256");
    if (has_part(b, "checkpoint")) compare_checkpointed(b, &o, "gpt2", "gpt2 small, batch 4 x 256");
    ours_close(&o);
}

static int run_all(const bench *b) {
    bool idle = is_idle("before");
    run_resnet(b);
    run_gpt2(b);
    idle = is_idle("afterwards") && idle;
    printf("%d of the bars missed%s\n", bars_missed(), idle ? "" : "; the machine was not idle: no valid figures");
    return bars_missed() > 0 || !idle;
}

int main(int argc, char **argv) {
    bench b = {.python = NULL, .rounds = 5, .threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--kinds") == 0 && i + 2 < argc) return run_kinds(&b, argc - i - 1, argv + i + 1);
        if (strcmp(argv[i], "--python") == 0) b.python = argv[i + 1];
        if (strcmp(argv[i], "--part") == 0) b.part = argv[i + 1];
        if (strcmp(argv[i], "--rounds") == 0) b.rounds = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--threads") == 0) b.threads = (uint32_t)atoi(argv[i + 1]);
    }
    return run_all(&b);
}
