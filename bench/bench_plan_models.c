/* Policies on real networks: step time against memory on two machines, hybrid against the best other policy, and how planning
 * grows with the program.
 *
 *   bench_plan_models                      resnet50 on v100-16gb-pcie only
 *   bench_plan_models all                  every network on every machine, as many at a time as there are processors, and
 *                                          growth; some minutes
 *   bench_plan_models vgg16 rtx3090        these networks (all, if none is named) on these machines
 *   bench_plan_models low ...              with effort low instead of normal
 *   bench_plan_models rows ...             the tables alone: no plan by itself, no larger batch
 *   bench_plan_models batch ...            the larger batches alone
 *   bench_plan_models growth               the growth table only
 *
 * The batch is the largest that policy liveness fits into the machine. A row is a budget in percent of that arena, down
 * to the smallest that hybrid works in; an entry is the step time relative to liveness, '-' where the policy does not
 * fit. Every plan was proved by the verifier. Times of planning are CPU seconds. Exit code 1 if a bar is missed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tidemark/tidemark.h>

#include "common.h"

static const char *const models[] = {"resnet50",    "resnet101", "vgg16",      "inception-v4",
                                     "densenet121", "unet",      "gpt2:medium"};
static const char *const machines[] = {"v100-16gb-pcie", "rtx3090"};
enum {
    N_MODELS = sizeof models / sizeof *models,
    N_MACHINES = sizeof machines / sizeof *machines,
    MAX_POLICIES = 32,
    MAX_ROWS = 16
};

typedef struct tally {
    int passed, missed;    /* rows where hybrid is at least as fast as the best other, or not */
    int faster;            /* of those passed: strictly faster */
    int bars, bars_missed; /* the other targets */
    int n_single;
    double plan_seconds, worst_seconds; /* of the n_single plans that were made alone */
} tally;

static void add_tally(tally *t, const tally *more) {
    t->passed += more->passed;
    t->missed += more->missed;
    t->faster += more->faster;
    t->bars += more->bars;
    t->bars_missed += more->bars_missed;
    t->n_single += more->n_single;
    t->plan_seconds += more->plan_seconds;
    if (more->worst_seconds > t->worst_seconds) t->worst_seconds = more->worst_seconds;
}

/* What is to be done with each network. */
typedef struct task {
    tide_effort effort;
    bool rows, alone, batch; /* the table; a plan by itself, for its time; four times the batch */
} task;

/* One network on one machine at one batch. */
typedef struct subject {
    tide_machine machine;
    tide_model *model;
    tide_step *step;
    const tide_program *program;
    uint64_t room_bytes, arena_bytes, step_ns; /* of the machine; of liveness */
    uint64_t largest_op_bytes;                 /* no budget is smaller */
    uint32_t batch;
} subject;

/* ---- subjects ---- */

static void close_subject(subject *s) {
    tide_step_destroy(s->step);
    tide_model_destroy(s->model);
    s->step = NULL;
    s->model = NULL;
}

static void open_subject(subject *s, const char *spec, uint32_t batch) {
    tide_model_options m;
    tide_step_options o;
    tide_plan_options p;
    tide_plan *plan;
    tide_model_options_init(&m);
    m.batch = s->batch = batch;
    tide_step_options_init(&o);
    o.machine = &s->machine;
    require(tide_model_create(spec, &m, &s->model));
    require(tide_step_create(s->model, &o, &s->step));
    s->program = tide_step_program(s->step);
    tide_plan_options_init(&p);
    require(tide_plan_create(s->program, &s->machine, &p, NULL, &plan));
    s->arena_bytes = tide_plan_arena_bytes(plan);
    s->step_ns = tide_plan_prediction(plan)->step_ns;
    tide_plan_destroy(plan);
    tide_liveness *l;
    require(tide_liveness_create(s->program, &l));
    s->largest_op_bytes = l->largest_op_bytes;
    tide_liveness_destroy(l);
}

static bool batch_fits(subject *s, const char *spec, uint32_t batch) {
    open_subject(s, spec, batch);
    bool fits = s->arena_bytes <= s->room_bytes;
    close_subject(s);
    return fits;
}

/* At the largest batch that liveness fits; false if not even one sample does. */
static bool open_largest(subject *s, const char *spec, const char *machine) {
    uint32_t low = 0, high = 1;
    require(tide_machine_load(machine, &s->machine));
    s->room_bytes = s->machine.memory_bytes - s->machine.reserve_bytes;
    for (; high < 1u << 16 && batch_fits(s, spec, high); high *= 2) low = high;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(batch_fits(s, spec, middle) ? &low : &high) = middle;
    }
    if (low) open_subject(s, spec, low);
    return low > 0;
}

/* ---- plans ---- */

typedef struct outcome {
    bool fits;
    double ratio, seconds;
} outcome;

static outcome plan_in(const subject *s, const char *policy, uint64_t budget, tide_effort effort) {
    tide_plan_options o;
    tide_plan *plan;
    outcome r = {0};
    tide_plan_options_init(&o);
    o.policy = policy;
    o.budgets.arena_bytes = budget;
    o.effort = effort;
    double since = cpu_seconds();
    tide_status status = tide_plan_create(s->program, &s->machine, &o, NULL, &plan);
    r.seconds = cpu_seconds() - since;
    if (tide_status_is_misfit(status)) return r;
    require(status);
    r.fits = true;
    r.ratio = (double)tide_plan_prediction(plan)->step_ns / (double)s->step_ns;
    tide_plan_destroy(plan);
    return r;
}

static uint64_t smallest_budget(const subject *s) {
    tide_plan_options o;
    tide_smallest smallest;
    tide_plan_options_init(&o);
    o.policy = "hybrid";
    o.effort = TIDE_EFFORT_LOW;
    require(tide_plan_smallest(s->program, &s->machine, &o, 0.01, &smallest));
    return smallest.works_bytes;
}

/* ---- one network ---- */

static uint32_t hybrid_index(void) {
    uint32_t i = 0;
    while (strcmp(tide_policy_name(i, NULL), "hybrid") != 0) i++;
    return i;
}

static bool is_compared(const char *policy) { return strcmp(policy, "manual") != 0 && strcmp(policy, "none") != 0; }

static void bar(tally *t, bool reached, const char *text, double figure) {
    t->bars++;
    t->bars_missed += !reached;
    printf("  %-6s %s: %.3f\n", reached ? "PASS" : "MISS", text, figure);
}

/* hybrid's plans for all budgets at once; the ratios of those that fit. Returns the seconds. */
static double plan_hybrid(const subject *s, const uint64_t *budgets, size_t n, tide_effort effort, outcome *out) {
    tide_plan_options o;
    tide_plan *plans[MAX_ROWS];
    tide_plan_options_init(&o);
    o.policy = "hybrid";
    o.effort = effort;
    double since = cpu_seconds();
    require(tide_plan_frontier(s->program, &s->machine, &o, budgets, n, NULL, plans));
    double seconds = cpu_seconds() - since;
    for (size_t i = 0; i < n; i++) {
        out[i] = (outcome){.fits = plans[i] != NULL};
        if (plans[i]) out[i].ratio = (double)tide_plan_prediction(plans[i])->step_ns / (double)s->step_ns;
        tide_plan_destroy(plans[i]);
    }
    return seconds;
}

/* A row of the table: the other policies beside hybrid. */
static void run_row(const subject *s, uint64_t budget, tide_effort effort, outcome hybrid, double *seconds, tally *t) {
    double best = 0;
    const char *name, *best_name = "none";
    printf("%6.1f%%", 100 * (double)budget / (double)s->arena_bytes);
    for (uint32_t i = 0; (name = tide_policy_name(i, NULL)) != NULL; i++) {
        if (!is_compared(name)) continue;
        bool is_hybrid = strcmp(name, "hybrid") == 0;
        outcome r = is_hybrid ? hybrid : plan_in(s, name, budget, effort);
        seconds[i] += r.seconds;
        if (r.fits)
            printf(" %12.4f", r.ratio);
        else
            printf(" %12s", "-");
        fflush(stdout);
        if (!is_hybrid && r.fits && (best <= 0 || r.ratio < best)) best = r.ratio, best_name = name;
    }
    bool passed = best <= 0 || (hybrid.fits && hybrid.ratio <= best);
    t->passed += passed;
    t->missed += !passed;
    t->faster += passed && (best <= 0 || hybrid.ratio < best);
    printf("  %s, best other %s\n", passed ? "PASS" : "MISS", best_name);
}

static void print_head(const subject *s, const char *spec) {
    const char *name;
    printf("\n%s on %s, batch %u: liveness %.0f MiB, %.1f ms, %u ops\n%7s", spec, s->machine.name, s->batch,
           (double)s->arena_bytes / 0x1p20, (double)s->step_ns / 1e6, tide_program_op_count(s->program), "budget");
    for (uint32_t i = 0; (name = tide_policy_name(i, NULL)) != NULL; i++)
        if (is_compared(name)) printf(" %12s", name);
    printf("\n");
}

/* Four times the batch of liveness at 80 % of its samples per second. */
static void check_batch(const subject *s, const char *spec, tide_effort effort, tally *t) {
    subject large = *s;
    double rate = (double)s->batch / (double)s->step_ns;
    open_subject(&large, spec, 4 * s->batch);
    outcome r = plan_in(&large, "hybrid", s->room_bytes, effort);
    double large_rate = r.fits ? large.batch / (r.ratio * (double)large.step_ns) : 0;
    bar(t, large_rate >= 0.8 * rate, "samples per second at 4 x the batch of liveness (bar 0.8)", large_rate / rate);
    close_subject(&large);
}

/* At 70 % less memory, where that is possible at all, less than 10 % more time; and how little memory takes that. */
static void check_memory(const subject *s, double at_30, double least_percent, tally *t) {
    double alone = 100 * (double)s->largest_op_bytes / (double)s->arena_bytes;
    if (alone <= 30)
        bar(t, at_30 > 0 && at_30 < 1.1, "time at 70 % less memory (bar 1.1; 0: does not fit)", at_30);
    else
        printf("         70 %% less memory is impossible: one op alone needs %.1f %%\n", alone);
    if (least_percent > 0)
        printf("         least memory of the rows above with under 10 %% more time: %.1f %%\n", least_percent);
}

/* The budgets of a table, descending, the smallest that works last. */
static size_t list_budgets(const subject *s, uint64_t *out) {
    static const uint64_t percents[] = {90, 70, 50, 40, 30, 20, 10};
    uint64_t least = smallest_budget(s);
    size_t n = 0;
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++)
        if (s->arena_bytes / 100 * percents[i] > least) out[n++] = s->arena_bytes / 100 * percents[i];
    out[n++] = least;
    return n;
}

static void print_seconds(const subject *s, const double *seconds, size_t n_rows, task what, tally *t) {
    const char *name;
    printf("%7s", "CPU s");
    for (uint32_t i = 0; (name = tide_policy_name(i, NULL)) != NULL; i++)
        if (is_compared(name)) printf(" %12.3f", seconds[i] / (double)n_rows);
    printf("  per row; hybrid's are planned together\n");
    if (!what.alone) return;
    outcome half = plan_in(s, "hybrid", s->arena_bytes / 2, what.effort);
    printf("         hybrid alone, at 50 %%: %.2f s\n", half.seconds);
    t->plan_seconds += half.seconds;
    t->n_single++;
    if (half.seconds > t->worst_seconds) t->worst_seconds = half.seconds;
}

static void run_rows(const subject *s, task what, tally *t) {
    uint64_t budgets[MAX_ROWS];
    outcome hybrid[MAX_ROWS];
    double seconds[MAX_POLICIES] = {0}, last = 0, at_30 = 0, least_percent = 0;
    bool monotone = true;
    size_t n = list_budgets(s, budgets);
    seconds[hybrid_index()] = plan_hybrid(s, budgets, n, what.effort, hybrid);
    for (size_t i = 0; i < n; i++) {
        double ratio = hybrid[i].fits ? hybrid[i].ratio : 0;
        run_row(s, budgets[i], what.effort, hybrid[i], seconds, t);
        monotone = monotone && ratio >= last;
        last = ratio;
        if (budgets[i] == s->arena_bytes / 100 * 30) at_30 = ratio;
        if (ratio > 0 && ratio < 1.1) least_percent = 100 * (double)budgets[i] / (double)s->arena_bytes;
    }
    print_seconds(s, seconds, n, what, t);
    bar(t, monotone, "a larger budget is never slower; time at the smallest", last);
    check_memory(s, at_30, least_percent, t);
}

static void run_subject(const char *spec, const char *machine, task what, tally *t) {
    subject s = {0};
    double since = cpu_seconds();
    if (!open_largest(&s, spec, machine)) {
        printf("\n%s does not fit %s with one sample\n", spec, machine);
        return;
    }
    print_head(&s, spec);
    if (what.rows) run_rows(&s, what, t);
    if (what.batch && strncmp(spec, "resnet", 6) == 0) check_batch(&s, spec, what.effort, t);
    printf("         %.0f s of processor time\n", cpu_seconds() - since);
    close_subject(&s);
}

/* ---- growth ---- */

typedef struct growth_row {
    const char *spec;
    uint32_t batch;
    double bar_seconds; /* 0: none */
} growth_row;

static void run_growth(tally *t) {
    static const growth_row rows[] = {
        {"resnet152", 16, 0.5},       {"gpt2:medium", 4, 0.5},      {"resnet:3,4,23,3", 16, 0},
        {"resnet:6,32,250,6", 16, 0}, {"resnet:6,32,950,6", 16, 5}, {"resnet:6,32,2800,6", 16, 0},
    };
    printf("\nplanning, policy hybrid, effort low, 50 %% of liveness on v100-16gb-pcie; CPU seconds\n");
    printf("%-20s %8s %8s %9s %9s %11s\n", "network", "layers", "ops", "seconds", "time", "us per op");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        subject s = {0};
        require(tide_machine_load("v100-16gb-pcie", &s.machine));
        open_subject(&s, rows[i].spec, rows[i].batch);
        outcome r = plan_in(&s, "hybrid", s.arena_bytes / 2, TIDE_EFFORT_LOW);
        uint32_t n_ops = tide_program_op_count(s.program);
        printf("%-20s %8u %8u %9.3f %9.4f %11.2f\n", rows[i].spec, tide_model_layer_count(s.model), n_ops, r.seconds,
               r.ratio, r.seconds * 1e6 / n_ops);
        if (rows[i].bar_seconds > 0)
            bar(t, r.fits && r.seconds < rows[i].bar_seconds, "below its bar, in seconds", rows[i].bar_seconds);
        fflush(stdout);
        close_subject(&s);
    }
}

/* ---- what to run ---- */

/* What was named on the command line; an empty list of one kind means all of it. */
typedef struct choice {
    bool model[N_MODELS], machine[N_MACHINES], any_model, any_machine, growth;
    task task;
} choice;

static bool mark(const char *const *names, size_t n, const char *argument, bool *marks) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], argument) == 0) return marks[i] = true;
    return false;
}

static void take(choice *c, const char *argument) {
    if (mark(models, N_MODELS, argument, c->model))
        c->any_model = true;
    else if (mark(machines, N_MACHINES, argument, c->machine))
        c->any_machine = true;
    else if (strcmp(argument, "low") == 0)
        c->task.effort = TIDE_EFFORT_LOW;
    else if (strcmp(argument, "high") == 0)
        c->task.effort = TIDE_EFFORT_HIGH;
    else if (strcmp(argument, "rows") == 0)
        c->task.alone = c->task.batch = false;
    else if (strcmp(argument, "batch") == 0)
        c->task.rows = false;
    else if (strcmp(argument, "growth") == 0 || strcmp(argument, "all") == 0)
        c->growth = true;
    else {
        fprintf(stderr,
                "bench_plan_models: \"%s\" is not a network, a machine, all, growth, rows, batch, low or high\n",
                argument);
        exit(2);
    }
}

static choice choose(int argc, char **argv) {
    choice c = {.task = {TIDE_EFFORT_NORMAL, .rows = true, .alone = true, .batch = true}};
    bool all = false;
    for (int i = 1; i < argc; i++) {
        take(&c, argv[i]);
        all = all || strcmp(argv[i], "all") == 0;
    }
    bool none = !c.any_model && !c.any_machine && !c.growth;
    for (size_t i = 0; i < N_MODELS; i++)
        c.model[i] = c.model[i] || all || (c.any_machine && !c.any_model) || (none && i == 0);
    for (size_t i = 0; i < N_MACHINES; i++)
        c.machine[i] = c.machine[i] || all || (c.any_model && !c.any_machine) || (none && i == 0);
    return c;
}

/* ---- several at a time ---- */

enum { MAX_JOBS = N_MODELS * N_MACHINES };

/* A network on a machine, in a process of its own; its text waits in a file until those before it are out. */
typedef struct job {
    const char *spec, *machine;
    FILE *text;
    pid_t process;
} job;

static void start_job(job *j, task what, tally *t) {
    fflush(stdout);
    j->text = tmpfile();
    j->process = j->text ? fork() : -1;
    if (j->process < 0) {
        perror("bench_plan_models");
        exit(1);
    }
    if (j->process > 0) return;
    dup2(fileno(j->text), STDOUT_FILENO);
    run_subject(j->spec, j->machine, what, t);
    fflush(stdout);
    _exit(0);
}

static void show_job(job *j) {
    char buffer[4096];
    size_t n;
    rewind(j->text);
    while ((n = fread(buffer, 1, sizeof buffer, j->text)) > 0) fwrite(buffer, 1, n, stdout);
    fflush(stdout);
    fclose(j->text);
}

/* Tallies lie in memory that the processes share. */
static void run_jobs(job *jobs, size_t n, task what, tally *sum) {
    size_t at_a_time = (size_t)sysconf(_SC_NPROCESSORS_ONLN), started = 0;
    tally *tallies = mmap(NULL, MAX_JOBS * sizeof *tallies, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tallies == MAP_FAILED) exit(1);
    for (size_t done = 0; done < n; done++) {
        for (; started < n && started < done + at_a_time; started++) start_job(&jobs[started], what, &tallies[started]);
        int status;
        if (waitpid(jobs[done].process, &status, 0) < 0 || status != 0) exit(1);
        show_job(&jobs[done]);
        add_tally(sum, &tallies[done]);
    }
    munmap(tallies, MAX_JOBS * sizeof *tallies);
}

static size_t list_jobs(const choice *c, job *jobs) {
    size_t n = 0;
    for (size_t m = 0; m < N_MACHINES; m++)
        for (size_t i = 0; i < N_MODELS; i++)
            if (c->machine[m] && c->model[i]) jobs[n++] = (job){.spec = models[i], .machine = machines[m]};
    return n;
}

int main(int argc, char **argv) {
    choice c = choose(argc, argv);
    tally t = {0};
    job jobs[MAX_JOBS];
    size_t n = list_jobs(&c, jobs);
    if (n == 1) /* as it goes */
        run_subject(jobs[0].spec, jobs[0].machine, c.task, &t);
    else
        run_jobs(jobs, n, c.task, &t);
    if (c.growth) run_growth(&t);
    int rows = t.passed + t.missed;
    if (rows) {
        printf("\n  %-6s hybrid at least as fast as the best other policy in %d of %d rows\n",
               t.missed ? "MISS" : "PASS", t.passed, rows);
        printf("  %-6s strictly faster in %d (bar: most)\n", 2 * t.faster > rows ? "PASS" : "MISS", t.faster);
        if (t.n_single)
            printf("         planning alone, at 50 %%: %.2f s on average, at most %.2f s\n",
                   t.plan_seconds / t.n_single, t.worst_seconds);
    }
    printf("  %-6s %d of %d other bars missed\n", t.bars_missed ? "MISS" : "PASS", t.bars_missed, t.bars);
    return t.missed > 0 || t.bars_missed > 0 || 2 * t.faster < rows;
}
