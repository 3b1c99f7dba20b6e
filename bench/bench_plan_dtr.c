/* DTR's logs: our `dtr` beside what DTR's own simulator prints for the same log, heuristic and budget.
 *
 *   bench_plan_dtr [high] FILE...   nothing without files; `make bench-plan DTR_DIR=DIR` takes every log in DIR
 *
 * load   our engine under the rules of that simulator: only the load counts; memory is freed where the log releases it
 *        and constants never; nothing is shared in place; what re-runs make on the way stays until it is chosen
 * plan   tide_plan_create: memory is freed at the last use, offsets are found, the arena obeys the budget, proved
 * paper  as published; O = out of memory, T = thrash
 *
 * Then hybrid: re-runs alone beside an offline prototype that counts loads only (bar: within 2 points at normal effort,
 * within 0.5 at high) and the lower bound; and with moves at 12 GB/s each way. All of these are plans: placed, proved.
 *
 * Times are relative to the log without a limit; budgets are fractions of its peak under its own RELEASEs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidemark/tidemark.h>

#include "common.h"
#include "base/file.h"
#include "plan/decide/online/online_sim.h"
#include "program/import/import.h"

enum { BUDGETS = 6 };
static const double fractions[BUDGETS] = {.9, .7, .5, .4, .3, .2};

typedef struct published {
    const char *log, *score; /* log: how its file's name begins */
    const char *ratio[BUDGETS];
} published;
static const published known[] = {
    {"resnet32", "eq", {"1.013", "1.046", "1.107", "1.140", "1.179", "1.332"}},
    {"resnet32", "delta", {"1.032", "1.095", "1.196", "T", "T", "T"}},
    {"unet", "eq", {"1.033", "1.085", "1.159", "O", "O", "O"}},
    {"unet", "msps", {"1.016", "1.049", "1.132", "1.241", "1.585", "O"}},
    {"transformer", "eq", {"1.009", "1.031", "1.058", "1.091", "1.124", "1.545"}},
};

/* hybrid:nomove, as a prototype of ours did it; 0: below its floor. */
static const struct prototype {
    const char *log;
    double ratio[BUDGETS];
} prototypes[] = {{"resnet32", {1.012, 1.037, 1.090, 1.129, 1.167, 1.210}},
                  {"unet", {1.010, 1.044, 1.096, 1.141, 1.288, 0}},
                  {"transformer", {1.005, 1.023, 1.047, 1.059, 1.076, 1.127}}};

/* hybrid with moves: a part of the peak, and the time that it may take there. */
static const struct joint_bar {
    const char *log;
    double fraction, ratio;
} joint_bars[] = {{"resnet32", .5, 1.05},
                  {"unet", .5, 1.05},
                  {"transformer", .5, 1.05},
                  {"resnet32", .38, 1.10},
                  {"transformer", .2, 1.10}};

typedef struct dtr_log {
    const char *name;
    tide_program *program;
    tide_import_stats stats;
    uint32_t *releases;
    tide_machine machine;
} dtr_log;

static dtr_log open_log(const char *path) {
    const char *slash = strrchr(path, '/');
    dtr_log log = {.name = slash ? slash + 1 : path};
    tide__file file;
    require(tide__file_open(path, &file));
    tide__import in = {.text = file.text, .size = file.size, .name = path, .releases = &log.releases};
    require(tide__import_dtr.read(&in, &log.program, &log.stats));
    tide__file_close(&file);
    for (tide_id id = 0; id < tide_program_tensor_count(log.program); id++)
        if (tide_program_tensor(log.program, id)->start == TIDE_START_PRESENT) log.releases[id] = TIDE_NONE;
    tide_machine_init_default(&log.machine);
    return log;
}

static void close_log(dtr_log *log) {
    tide_program_destroy(log->program);
    free(log->releases);
}

static double ratio(const dtr_log *log, uint64_t ns) { return (double)ns / (double)tide_program_cost_ns(log->program); }

/* 0: does not fit; -1: thrashes. */
static double by_load(const dtr_log *log, const char *score, uint64_t budget) {
    tide_budgets budgets;
    tide_budgets_init(&budgets);
    tide__online_run run = {.program = log->program,
                            .machine = &log->machine,
                            .budgets = &budgets,
                            .policy = &tide__online_dtr,
                            .argument = score,
                            .budget_bytes = budget,
                            .release_after = log->releases,
                            .as_dtr = true};
    tide__online_figures figures;
    tide_status status = tide__online_simulate(&run, NULL, &figures);
    if (status == TIDE_OK) return ratio(log, figures.compute_ns);
    if (status != TIDE_E_FIT) require(status);
    return strstr(tide_last_error(), "thrash") ? -1 : 0;
}

static double by_policy(const dtr_log *log, const char *policy, tide_effort effort, uint64_t budget) {
    tide_plan_options options;
    tide_plan *plan = NULL;
    tide_plan_options_init(&options);
    options.policy = policy;
    options.effort = effort;
    options.budgets.arena_bytes = budget;
    tide_status status = tide_plan_create(log->program, &log->machine, &options, NULL, &plan);
    if (status == TIDE_E_FIT) return 0;
    require(status);
    double result = ratio(log, tide_plan_prediction(plan)->step_ns);
    tide_plan_destroy(plan);
    return result;
}

static double by_plan(const dtr_log *log, const char *score, uint64_t budget) {
    char policy[32];
    snprintf(policy, sizeof policy, "dtr:%s", score);
    return by_policy(log, policy, TIDE_EFFORT_NORMAL, budget);
}

static void print_ratio(double r) {
    if (r > 0)
        printf("  %6.3f", r);
    else
        printf("  %6s", r < 0 ? "T" : "O");
}

static void print_rows(const dtr_log *log, const char *score, const published *paper) {
    uint64_t peak = log->stats.release_peak_bytes;
    printf("%-18.18s %-6s load ", log->name, score);
    for (int i = 0; i < BUDGETS; i++) print_ratio(by_load(log, score, (uint64_t)(fractions[i] * (double)peak)));
    if (paper) {
        printf("\n%-18s %-6s paper", "", "");
        for (int i = 0; i < BUDGETS; i++) printf("  %6s", paper->ratio[i]);
    }
    printf("\n%-18s %-6s plan ", "", "");
    for (int i = 0; i < BUDGETS; i++) print_ratio(by_plan(log, score, (uint64_t)(fractions[i] * (double)peak)));
    printf("\n");
    fflush(stdout);
}

/* ---- hybrid ---- */

static uint64_t part_of_peak(const dtr_log *log, double fraction) {
    return (uint64_t)(fraction * (double)log->stats.release_peak_bytes);
}

static bool is_log(const dtr_log *log, const char *name) { return strncmp(log->name, name, strlen(name)) == 0; }

static void print_bounds(const dtr_log *log) {
    printf("%-18s %-6s bound", "", "");
    for (int i = 0; i < BUDGETS; i++) {
        tide_plan_options options;
        uint64_t bound_ns;
        tide_plan_options_init(&options);
        options.policy = "hybrid:nomove";
        options.budgets.arena_bytes = part_of_peak(log, fractions[i]);
        require(tide_plan_bound(log->program, &log->machine, &options, &bound_ns));
        double bound = ratio(log, bound_ns);
        print_ratio(bound > 1000 ? 0 : bound); /* no plan works there */
    }
    printf("\n");
}

/* The number of cells that miss the bar. */
static int print_reruns(const dtr_log *log, tide_effort effort) {
    const struct prototype *known_as = NULL;
    double most = 0, bar = effort == TIDE_EFFORT_HIGH ? 0.005 : 0.02;
    int missed = 0;
    for (size_t i = 0; i < sizeof prototypes / sizeof *prototypes; i++)
        if (is_log(log, prototypes[i].log)) known_as = &prototypes[i];
    printf("%-18.18s nomove plan ", log->name);
    for (int i = 0; i < BUDGETS; i++) {
        double start = cpu_seconds(), r = by_policy(log, "hybrid:nomove", effort, part_of_peak(log, fractions[i]));
        double taken = cpu_seconds() - start, wanted = known_as ? known_as->ratio[i] : 0;
        most = taken > most ? taken : most;
        missed += wanted > 0 && (r <= 0 || r > wanted + bar);
        print_ratio(r);
    }
    printf("   at most %.1f s", most);
    if (known_as) {
        printf("\n%-18s %-6s proto", "", "");
        for (int i = 0; i < BUDGETS; i++) print_ratio(known_as->ratio[i]);
        printf("   %d missed by more than %.3f", missed, bar);
    }
    printf("\n");
    print_bounds(log);
    fflush(stdout);
    return missed;
}

/* 5 % above what is proved to be needed without moves: constants and the largest op, or what it takes to have an op's
 * operands together, if that is more. */
static int print_floor(const dtr_log *log, tide_effort effort) {
    tide_plan_options options;
    tide_fit_report least = {0};
    tide_plan *plan = NULL;
    tide_liveness *l;
    tide_plan_options_init(&options);
    options.policy = "hybrid:nomove";
    options.budgets.arena_bytes = 1;
    if (tide_plan_create(log->program, &log->machine, &options, &least, &plan) != TIDE_E_FIT) return 0;
    require(tide_liveness_create(log->program, &l));
    double peak = (double)log->stats.release_peak_bytes, floor = (double)l->floor_bytes;
    double needed = (double)(least.needed_bytes > l->floor_bytes ? least.needed_bytes : l->floor_bytes);
    tide_liveness_destroy(l);
    double start = cpu_seconds(), r = by_policy(log, "hybrid:nomove", effort, (uint64_t)(1.05 * needed));
    printf(
        "%-18.18s nomove %s at 1.05 x the floor: %.3f of the peak; constants and largest op are %.3f, %.3f is proved "
        "(op %s); time",
        log->name, r > 0 ? "PASS" : "MISS", 1.05 * needed / peak, floor / peak, needed / peak,
        least.op == TIDE_NONE ? "none" : tide_program_op(log->program, least.op)->name);
    print_ratio(r);
    printf(", %.1f s\n", cpu_seconds() - start);
    return r <= 0;
}

static int print_joint(dtr_log *log, tide_effort effort) {
    tide_machine before = log->machine;
    int missed = 0;
    for (uint32_t i = 0; i < log->machine.n_channels; i++) {
        log->machine.channel[i].bytes_per_s = UINT64_C(12000000000);
        log->machine.channel[i].latency_ns = 0;
        log->machine.channel[i].share = 0;
    }
    for (size_t i = 0; i < sizeof joint_bars / sizeof *joint_bars; i++) {
        if (!is_log(log, joint_bars[i].log)) continue;
        double start = cpu_seconds();
        double r = by_policy(log, "hybrid", effort, part_of_peak(log, joint_bars[i].fraction));
        bool reached = r > 0 && r <= joint_bars[i].ratio;
        missed += !reached;
        printf("%-18.18s moves at 12 GB/s and re-runs, %.0f %% of the peak: %.3f (bar %.3f: %s), %.1f s\n", log->name,
               100 * joint_bars[i].fraction, r, joint_bars[i].ratio, reached ? "reached" : "MISSED",
               cpu_seconds() - start);
        fflush(stdout);
    }
    log->machine = before;
    return missed;
}

static int measure(const char *path, tide_effort effort) {
    static const char *const scores[] = {"eq", "full", "msps", "delta"};
    dtr_log log = open_log(path);
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        const published *paper = NULL;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(known[k].score, scores[i]) == 0 && is_log(&log, known[k].log)) paper = &known[k];
        print_rows(&log, scores[i], paper);
    }
    int missed = print_reruns(&log, effort) + print_floor(&log, effort) + print_joint(&log, effort);
    close_log(&log);
    return missed;
}

int main(int argc, char **argv) {
    bool high = argc > 1 && strcmp(argv[1], "high") == 0;
    int missed = 0;
    if (argc < 2 + high) {
        printf("no logs given; `make bench-plan DTR_DIR=DIR` takes those in DIR\n");
        return 0;
    }
    printf("%-18s %-6s      ", "log", "score");
    for (int i = 0; i < BUDGETS; i++) printf("  %6.1f", fractions[i]);
    printf("\n");
    for (int i = 1 + high; i < argc; i++) missed += measure(argv[i], high ? TIDE_EFFORT_HIGH : TIDE_EFFORT_NORMAL);
    printf("%d bars missed\n", missed);
    return missed > 0;
}
