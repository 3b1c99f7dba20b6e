/* DTR's logs: our `dtr` beside what DTR's own simulator prints for the same log, heuristic and budget.
 *
 *   bench_plan_dtr FILE...        nothing without files; `make bench-plan DTR_DIR=DIR` takes every log in DIR
 *
 * load   our engine under the rules of that simulator: only the load counts; memory is freed where the log releases it
 *        and constants never; nothing is shared in place; what re-runs make on the way stays until it is chosen
 * plan   tide_plan_create: memory is freed at the last use, offsets are found, the arena obeys the budget, proved
 * paper  as published; O = out of memory, T = thrash
 *
 * Times are relative to the log without a limit; budgets are fractions of its peak under its own RELEASEs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidemark/tidemark.h>

#include "base/file.h"
#include "plan/decide/online_sim.h"
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

typedef struct dtr_log {
    const char *name;
    tide_program *program;
    tide_import_stats stats;
    uint32_t *releases;
    tide_machine machine;
} dtr_log;

static void check(tide_status status) {
    if (status == TIDE_OK) return;
    fprintf(stderr, "%s: %s\n", tide_status_name(status), tide_last_error());
    exit(1);
}

static dtr_log open_log(const char *path) {
    const char *slash = strrchr(path, '/');
    dtr_log log = {.name = slash ? slash + 1 : path};
    tide__file file;
    check(tide__file_open(path, &file));
    tide__import in = {.text = file.text, .size = file.size, .name = path, .releases = &log.releases};
    check(tide__import_dtr.read(&in, &log.program, &log.stats));
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
    if (status != TIDE_E_FIT) check(status);
    return strstr(tide_last_error(), "thrash") ? -1 : 0;
}

static double by_plan(const dtr_log *log, const char *score, uint64_t budget) {
    char policy[32];
    tide_plan_options options;
    tide_plan *plan = NULL;
    snprintf(policy, sizeof policy, "dtr:%s", score);
    tide_plan_options_init(&options);
    options.policy = policy;
    options.budgets.arena_bytes = budget;
    tide_status status = tide_plan_create(log->program, &log->machine, &options, NULL, &plan);
    if (status == TIDE_E_FIT) return 0;
    check(status);
    double result = ratio(log, tide_plan_prediction(plan)->step_ns);
    tide_plan_destroy(plan);
    return result;
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

static void measure(const char *path) {
    static const char *const scores[] = {"eq", "full", "msps", "delta"};
    dtr_log log = open_log(path);
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        const published *paper = NULL;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(known[k].score, scores[i]) == 0 && strncmp(log.name, known[k].log, strlen(known[k].log)) == 0)
                paper = &known[k];
        print_rows(&log, scores[i], paper);
    }
    close_log(&log);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        printf("no logs given; `make bench-plan DTR_DIR=DIR` takes those in DIR\n");
        return 0;
    }
    printf("%-18s %-6s      ", "log", "score");
    for (int i = 0; i < BUDGETS; i++) printf("  %6.1f", fractions[i]);
    printf("\n");
    for (int i = 1; i < argc; i++) measure(argv[i]);
    return 0;
}
