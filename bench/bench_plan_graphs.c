/* Policy hybrid on random layered graphs: whether it keeps its promises, how fast its steps are, how long it plans.
 *
 *   bench_plan_graphs                      4 graphs of 50 and 100 ops at 80 and 60 %, low and normal effort: half a minute
 *   bench_plan_graphs --all                40 graphs of 50 to 1000 ops, 90 to 50 %, all efforts: hours of a processor
 *   bench_plan_graphs --all --seeds 1-10 --efforts low    the same but for what the options behind it say:
 *
 *   --seeds A-B        which graphs; a seed says everything but the number of ops
 *   --ops N,...        the first seed has the first of these sizes, and so on, and round again
 *   --budgets P,...    percent of the unconstrained arena, descending
 *   --efforts NAME,... --variants NAME,...
 *   --frontier         the budgets of a graph by one call instead of one by one
 *   --jobs N           processes at a time; as many as there are processors, if not said
 *   --optima FILE      compares with the proved optima in FILE, by bench/plan_graphs/optimum.py
 *   --write DIR        writes programs, machines and the list of budgets there instead (docs/formats.md)
 *
 * The promises: with more memory or more effort no plan is slower or refused, and no smaller budget has the larger arena. The bars: 1000 ops are planned in 10 s of
 * processor time at normal effort and 30 s at high; from 250 ops up, an arena of 60 to 80 % makes hybrid:nomove at normal
 * effort by 2 % slower, at most, than the same search by loads alone; with --optima, plans of hybrid:nomove at normal effort are 1 % above
 * the optimum on average, and 5 % at worst. Exit code 1 if a promise is broken or a bar missed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan_graphs/graphs.h"

enum { MAX_SIZES = 16, MAX_GRAPHS = 10000, MOST_OPS = 100000, FEWEST_OPS = 8 };

typedef struct request {
    question question;
    uint32_t first_seed, last_seed, n_sizes, sizes[MAX_SIZES], jobs;
    const char *write_dir, *optima_path; /* NULL: not asked for */
} request;

/* ---- the command line ---- */

static void refuse(const char *option, const char *text) {
    fprintf(stderr, "bench_plan_graphs: %s \"%s\": see the head of bench/bench_plan_graphs.c\n", option, text);
    exit(2);
}

/* The number at the beginning of `text`, which goes on with one of `ends`; *end: behind it. */
static uint32_t take_number(const char *option, const char *text, const char *ends, uint32_t least, uint32_t most,
                            const char **end) {
    char *behind;
    unsigned long long n = strtoull(text, &behind, 10);
    if (behind == text || *text == '-' || n < least || n > most || (*behind && !strchr(ends, *behind)))
        refuse(option, text);
    *end = *behind ? behind + 1 : behind;
    return (uint32_t)n;
}

static uint32_t take_list(const char *option, const char *text, uint32_t least, uint32_t most, uint32_t capacity,
                          uint32_t *out) {
    uint32_t n = 0;
    for (const char *at = text; *at; n++) {
        if (n == capacity) refuse(option, text);
        out[n] = take_number(option, at, ",", least, most, &at);
    }
    if (n == 0) refuse(option, text);
    return n;
}

static void take_budgets(question *q, const char *text) {
    q->n_budgets = take_list("--budgets", text, 1, 100, MAX_BUDGETS, q->percents);
    for (uint32_t i = 1; i < q->n_budgets; i++)
        if (q->percents[i] >= q->percents[i - 1]) refuse("--budgets", text);
}

/* Marks those of n names that the comma-separated text lists. */
static void take_names(const char *option, const char *text, const char *const *names, uint32_t n, bool *marks) {
    memset(marks, 0, n * sizeof *marks);
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        uint32_t i = 0;
        while (i < n && (strlen(names[i]) != length || strncmp(names[i], at, length) != 0)) i++;
        if (i == n) refuse(option, text);
        marks[i] = true;
        at += length + (at[length] == ',');
    }
}

static void take_seeds(request *r, const char *text) {
    const char *at;
    r->first_seed = r->last_seed = take_number("--seeds", text, "-", 1, UINT32_MAX - MAX_GRAPHS, &at);
    if (*at) r->last_seed = take_number("--seeds", at, "", r->first_seed, r->first_seed + MAX_GRAPHS - 1, &at);
}

static void take_option(request *r, const char *option, const char *text) {
    const char *end;
    if (strcmp(option, "--seeds") == 0)
        take_seeds(r, text);
    else if (strcmp(option, "--ops") == 0)
        r->n_sizes = take_list(option, text, FEWEST_OPS, MOST_OPS, MAX_SIZES, r->sizes);
    else if (strcmp(option, "--budgets") == 0)
        take_budgets(&r->question, text);
    else if (strcmp(option, "--efforts") == 0)
        take_names(option, text, effort_names, N_EFFORTS, r->question.effort);
    else if (strcmp(option, "--variants") == 0)
        take_names(option, text, variant_names, N_VARIANTS, r->question.variant);
    else if (strcmp(option, "--jobs") == 0)
        r->jobs = take_number(option, text, "", 1, 1024, &end);
    else if (strcmp(option, "--optima") == 0)
        r->optima_path = text;
    else if (strcmp(option, "--write") == 0)
        r->write_dir = text;
    else
        refuse(option, text);
}

static const request the_short_one = {
    .question = {.variant = {true, true, true}, .effort = {true, true, false}, .n_budgets = 2, .percents = {80, 60}},
    .first_seed = 1,
    .last_seed = 4,
    .n_sizes = 2,
    .sizes = {50, 100}};
static const request the_whole = {.question = {.variant = {true, true, true},
                                               .effort = {true, true, true},
                                               .n_budgets = 5,
                                               .percents = {90, 80, 70, 60, 50}},
                                  .first_seed = 1,
                                  .last_seed = 40,
                                  .n_sizes = 5,
                                  .sizes = {50, 100, 250, 500, 1000}};

static request take_arguments(int argc, char **argv) {
    int i = argc > 1 && strcmp(argv[1], "--all") == 0 ? 2 : 1;
    request r = i == 2 ? the_whole : the_short_one;
    r.jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    while (i < argc) {
        bool alone = strcmp(argv[i], "--frontier") == 0;
        if (!alone && i + 1 == argc) refuse(argv[i], "");
        if (alone)
            r.question.frontier = true;
        else
            take_option(&r, argv[i], argv[i + 1]);
        i += alone ? 1 : 2;
    }
    return r;
}

/* ---- several at a time ---- */

static void start(graph *g, const question *q) {
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        perror("bench_plan_graphs");
        exit(1);
    }
    if (child > 0) return;
    graph_fill(g, q);
    g->filled = true;
    _exit(0);
}

static void wait_for_one(void) {
    int status = 0;
    if (wait(&status) >= 0 && status == 0) return;
    fprintf(stderr, "bench_plan_graphs: a process that planned a graph failed (wait status %d)\n", status);
    exit(1);
}

/* The graphs lie in memory that the processes share. Each is shown once those before it are. */
static void fill_graphs(graph *graphs, uint32_t n, const question *q, uint32_t jobs) {
    uint32_t shown = 0;
    print_ratios_head(q);
    for (uint32_t i = 0; i < n + jobs; i++) {
        if (i >= jobs && i - jobs < n) wait_for_one();
        if (i < n) start(&graphs[i], q);
        for (; shown < n && graphs[shown].filled; shown++) print_ratios(&graphs[shown], q);
    }
}

static graph *draw_graphs(const request *r, uint32_t n) {
    graph *graphs = mmap(NULL, n * sizeof *graphs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (graphs == MAP_FAILED) {
        perror("bench_plan_graphs");
        exit(1);
    }
    for (uint32_t i = 0; i < n; i++)
        graphs[i].options = random_graph_varied(r->first_seed + i, r->sizes[i % r->n_sizes]);
    return graphs;
}

int main(int argc, char **argv) {
    request r = take_arguments(argc, argv);
    uint32_t n = r.last_seed - r.first_seed + 1, missed = 0;
    graph *graphs = draw_graphs(&r, n);
    if (r.optima_path && access(r.optima_path, R_OK) != 0) { /* better now than after the plans */
        perror(r.optima_path);
        return 2;
    }
    if (r.write_dir) {
        graphs_write(graphs, n, &r.question, r.write_dir);
        return 0;
    }
    fill_graphs(graphs, n, &r.question, r.jobs);
    print_means(graphs, n, &r.question);
    missed += print_seconds(graphs, n, &r.question);
    missed += print_losses(graphs, n, &r.question);
    missed += promises_check(graphs, n, &r.question);
    if (r.optima_path) missed += optima_compare(graphs, n, &r.question, r.optima_path);
    return missed > 0;
}
