/* hybrid:nomove at normal effort against what bench/plan_graphs/optimum.py proved. Its file has a line for each program and
 * budget:
 *
 *   {"program":"graph-1-50","budget_bytes":123,"best_ns":456,"bound_ns":456}
 *
 * best_ns: the fastest set of re-runs whose load is within the budget, of those found; null: none was found. bound_ns: none is
 * faster; null: there is none at all. Where both agree the optimum is known. It counts loads; a plan has places as well,
 * so a plan may be above the optimum because no arena of that size exists. */
#include "plan_graphs/graphs.h"

#include "base/file.h"
#include "base/json.h"

typedef struct optimum {
    uint64_t budget_bytes, best_ns, bound_ns; /* UINT64_MAX: null */
} optimum;

typedef struct comparison {
    uint32_t lines, compared, optimal; /* compared: the optimum is known */
    uint32_t open, open_above;         /* only a best and a bound are; the plan is slower than that best */
    double bound_sum, bound_worst;     /* of those: how far the plan is above the bound */
    uint32_t refused;                  /* re-runs within the budget are known, but no plan */
    uint32_t wrong;                    /* a plan that is faster than proved */
    double sum, worst;
} comparison;

static tide_status read_time(const tide__json *doc, const char *key, uint64_t *out) {
    uint32_t node = tide__json_get(doc, 0, key);
    *out = UINT64_MAX;
    if (node && doc->nodes.data[node].type == TIDE__JSON_NULL) return TIDE_OK;
    return tide__json_u64(doc, node, key, UINT64_MAX - 1, out);
}

static tide_status read_optimum(const tide__json *doc, optimum *out) {
    static const char *const keys[] = {"program", "budget_bytes", "best_ns", "bound_ns", NULL};
    TIDE_TRY(tide__json_only(doc, 0, keys));
    TIDE_TRY(
        tide__json_u64(doc, tide__json_get(doc, 0, "budget_bytes"), "budget_bytes", UINT64_MAX, &out->budget_bytes));
    TIDE_TRY(read_time(doc, "best_ns", &out->best_ns));
    return read_time(doc, "bound_ns", &out->bound_ns);
}

/* The cell that a line is about; NULL: it was not asked for. */
static const cell *find_cell(const graph *graphs, uint32_t n, const question *q, const tide__json *doc,
                             const optimum *x) {
    uint32_t name = tide__json_get(doc, 0, "program");
    for (uint32_t i = 0; i < n; i++) {
        char text[48];
        snprintf(text, sizeof text, "graph-%llu-%u", (unsigned long long)graphs[i].options.seed,
                 graphs[i].options.n_ops);
        for (uint32_t b = 0; tide__json_is(doc, name, text) && b < q->n_budgets; b++) {
            const cell *c = &graphs[i].cells[NOMOVE][TIDE_EFFORT_NORMAL][b];
            if (c->asked && budget_bytes(&graphs[i], q, b) == x->budget_bytes) return c;
        }
    }
    return NULL;
}

static double above(uint64_t ns, uint64_t least_ns) { return (double)ns / (double)least_ns - 1; }

static void add_gap(double gap, double *sum, double *worst) {
    *sum += gap;
    if (gap > *worst) *worst = gap;
}

static void show(const tide__json *doc, const optimum *x, const cell *c) {
    const tide__json_node *name = &doc->nodes.data[tide__json_get(doc, 0, "program")];
    printf("  %.*s in %llu bytes: ", (int)name->length, name->text, (unsigned long long)x->budget_bytes);
    if (c->fits)
        printf("%.2f %% above the best known\n", 100 * above(c->step_ns, x->best_ns));
    else
        printf("refused\n");
}

static void compare(const tide__json *doc, const cell *c, const optimum *x, comparison *sum) {
    bool has_best = x->best_ns != UINT64_MAX;
    sum->lines++;
    if (has_best && (!c->fits || above(c->step_ns, x->best_ns) > .01)) show(doc, x, c);
    if (!c->fits) {
        sum->refused += has_best;
    } else if (c->step_ns < x->bound_ns) {
        sum->wrong++;
    } else if (x->best_ns == x->bound_ns) {
        sum->compared++;
        sum->optimal += c->step_ns == x->best_ns;
        add_gap(above(c->step_ns, x->best_ns), &sum->sum, &sum->worst);
    } else {
        sum->open++;
        sum->open_above += has_best && c->step_ns > x->best_ns;
        add_gap(above(c->step_ns, x->bound_ns), &sum->bound_sum, &sum->bound_worst);
    }
}

static tide_status compare_lines(const graph *graphs, uint32_t n, const question *q, tide__lines *lines,
                                 comparison *sum) {
    for (bool more;;) {
        optimum x;
        TIDE_TRY(tide__lines_next(lines, &more));
        if (!more) return TIDE_OK;
        TIDE_TRY(tide__lines_check(lines, read_optimum(&lines->doc, &x)));
        const cell *c = find_cell(graphs, n, q, &lines->doc, &x);
        if (c) compare(&lines->doc, c, &x, sum);
    }
}

/* The bars: 1 % above the optimum on average, 5 % at worst, nothing refused that has a plan by load. */
static uint32_t report(const comparison *sum) {
    double mean = sum->sum / (sum->compared ? sum->compared : 1),
           bound_mean = sum->bound_sum / (sum->open ? sum->open : 1);
    bool far = mean > .01 || sum->worst > .05;
    printf("  %-6s %u optima known: %u reached, %.2f %% above on average (bar 1 %%), worst %.2f %% (bar 5 %%)\n",
           far ? "MISS" : "PASS", sum->compared, sum->optimal, 100 * mean, 100 * sum->worst);
    printf("         %u not known: %u plans slower than the best known; above the bound %.2f %% on average, worst %.2f "
           "%%\n",
           sum->open, sum->open_above, 100 * bound_mean, 100 * sum->bound_worst);
    printf("  %-6s %u refused although re-runs within the budget are known\n", sum->refused ? "MISS" : "PASS",
           sum->refused);
    if (sum->wrong) printf("  MISS   %u plans are faster than what was proved\n", sum->wrong);
    return (uint32_t)far + (sum->refused > 0) + (sum->wrong > 0);
}

uint32_t optima_compare(const graph *graphs, uint32_t n, const question *q, const char *path) {
    tide__file file;
    tide__lines lines;
    comparison sum = {0};
    require(tide__file_open(path, &file));
    tide__lines_init(&lines, file.text, file.size, path);
    printf("\nhybrid:nomove, normal effort, against proved optima; plans more than 1 %% above:\n");
    require(compare_lines(graphs, n, q, &lines, &sum));
    tide__lines_free(&lines);
    tide__file_close(&file);
    if (sum.lines) return report(&sum);
    printf("  MISS   %s has no line about these graphs and budgets\n", path);
    return 1;
}
