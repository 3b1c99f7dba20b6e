/* The figures: step times against the unconstrained step, and processor time of planning. */
#include "plan_graphs/graphs.h"

static void print_shape(const random_graph_options *o) {
    char name[32], shape[64];
    snprintf(name, sizeof name, "graph-%llu-%u", (unsigned long long)o->seed, o->n_ops);
    snprintf(shape, sizeof shape, "%s w%u s%u r%u o%u%s%s%s%s", o->training ? "train" : "graph", o->width,
             o->skip_layers, o->reads, o->octaves, o->correlated ? " cor" : "", o->weight_percent ? " wts" : "",
             o->fixed_percent ? " fix" : "", o->workspace_percent ? " wsp" : "");
    printf("%-14s %-36s", name, shape);
}

/* The ratios of all efforts at one budget: "1.034/1.020/1.020"; "-": refused, "x": proved to be impossible. */
static void print_entry(const graph *g, const question *q, uint32_t variant, uint32_t budget) {
    char text[48] = "";
    int at = 0;
    for (uint32_t e = 0; e < N_EFFORTS; e++) {
        const cell *c = &g->cells[variant][e][budget];
        if (!q->effort[e]) continue;
        const char *slash = at ? "/" : "";
        if (c->fits)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%.3f", slash, time_ratio(g, c));
        else
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", slash, c->impossible ? "x" : "-");
    }
    printf(" %18s", text);
}

static void print_head(const question *q, int indent) {
    printf("%*s", indent, "");
    for (uint32_t b = 0; b < q->n_budgets; b++) printf(" %16u %%", q->percents[b]);
    printf("\n");
}

void print_ratios_head(const question *q) {
    printf("step time against unconstrained, by effort:");
    for (uint32_t e = 0; e < N_EFFORTS; e++)
        if (q->effort[e]) printf(" %s", effort_names[e]);
    printf("; '-': refused, 'x': and that is proved\n");
    print_head(q, 66);
}

void print_ratios(const graph *g, const question *q) {
    for (uint32_t v = 0; v < N_VARIANTS; v++) {
        if (!q->variant[v]) continue;
        print_shape(&g->options);
        printf("%-15s", variant_names[v]);
        for (uint32_t b = 0; b < q->n_budgets; b++) print_entry(g, q, v, b);
        printf("\n");
    }
    fflush(stdout);
}

/* Of the graphs where all efforts that were asked fit, so that efforts can be compared. */
static bool all_fit(const graph *g, const question *q, uint32_t variant, uint32_t budget) {
    for (uint32_t e = 0; e < N_EFFORTS; e++)
        if (q->effort[e] && !g->cells[variant][e][budget].fits) return false;
    return true;
}

static void print_mean(const graph *graphs, uint32_t n, const question *q, uint32_t variant, uint32_t effort,
                       uint32_t budget) {
    double sum = 0, worst = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!all_fit(&graphs[i], q, variant, budget)) continue;
        double ratio = time_ratio(&graphs[i], &graphs[i].cells[variant][effort][budget]);
        sum += ratio;
        worst = ratio > worst ? ratio : worst;
        count++;
    }
    char text[48] = "-";
    if (count) snprintf(text, sizeof text, "%.4f %.3f %u", sum / count, worst, count);
    printf(" %18s", text);
}

void print_means(const graph *graphs, uint32_t n, const question *q) {
    printf("\nmean and worst of these, and of how many graphs: those that every effort has a plan for\n");
    print_head(q, 23);
    for (uint32_t v = 0; v < N_VARIANTS; v++)
        for (uint32_t e = 0; e < N_EFFORTS; e++) {
            if (!q->variant[v] || !q->effort[e]) continue;
            printf("%-15s %-7s", variant_names[v], effort_names[e]);
            for (uint32_t b = 0; b < q->n_budgets; b++) print_mean(graphs, n, q, v, e, b);
            printf("\n");
        }
}

/* Mean and maximum over the graphs of one size, all variants and budgets. */
static uint32_t print_seconds_of(const graph *graphs, uint32_t n, const question *q, uint32_t n_ops, uint32_t effort) {
    static const double bars[N_EFFORTS] = {0, 10, 30}; /* for 1000 ops */
    double sum = 0, most = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t v = 0; v < N_VARIANTS; v++)
            for (uint32_t b = 0; b < q->n_budgets; b++) {
                const cell *c = &graphs[i].cells[v][effort][b];
                if (graphs[i].options.n_ops != n_ops || !c->asked) continue;
                sum += c->seconds;
                most = c->seconds > most ? c->seconds : most;
                count++;
            }
    if (!count) return 0;
    bool has_bar = n_ops == 1000 && bars[effort] > 0 && !q->frontier, missed = has_bar && most > bars[effort];
    printf("  %-6s %5u ops, %-6s: %8.3f on average, at most %8.3f, of %u plans",
           missed    ? "MISS"
           : has_bar ? "PASS"
                     : "",
           n_ops, effort_names[effort], sum / count, most, count);
    if (has_bar) printf(" (bar %.0f)", bars[effort]);
    printf("\n");
    return missed;
}

uint32_t print_seconds(const graph *graphs, uint32_t n, const question *q) {
    uint32_t missed = 0;
    printf("\nplanning, seconds of processor time for one plan%s\n", q->frontier ? " of those made together" : "");
    for (uint32_t n_ops = 0, next; n_ops != UINT32_MAX; n_ops = next) {
        next = UINT32_MAX;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t size = graphs[i].options.n_ops;
            if (size > n_ops && size < next) next = size;
        }
        for (uint32_t e = 0; e < N_EFFORTS; e++) missed += print_seconds_of(graphs, n, q, n_ops, e);
    }
    return missed;
}
