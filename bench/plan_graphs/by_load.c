/* What placement costs: hybrid:nomove at normal effort against its own search when only loads count, as if every set of
 * re-runs within the budget had an arena of that size. */
#include "plan_graphs/graphs.h"

#include "plan/decide/hybrid/effort.h"

/* The fastest that the same descent comes by with such a load. */
uint64_t fastest_by_load(const tide_program *p, const tide_machine *m, uint64_t budget) {
    tide_plan_options o;
    tide__plans plans;
    tide__generation g;
    tide_plan_options_init(&o);
    o.effort = TIDE_EFFORT_NORMAL;
    tide__policy_input in = {.program = p, .machine = m, .options = &o, .argument = "nomove"};
    tide__plans_init(&in, 0, &plans);
    require(tide__generation_init(&in, &plans, &g));
    tide__descent_options options = tide__effort_descent(&g, o.effort, 1);
    tide__descent d;
    tide__descent_init(&options, &d);
    require(tide__descent_go(&g, 0, UINT64_MAX, &d));
    const tide__state *fastest = tide__states_find(&d.states, budget);
    uint64_t ns = fastest ? fastest->run_ns : 0;
    tide__descent_deinit(&d);
    tide__generation_deinit(&g);
    tide__plans_deinit(&plans);
    return ns;
}

typedef struct losses {
    uint32_t compared, missed, refused, nothing; /* missed: above the bar; nothing: not even the loads */
    double sum, worst;
} losses;

/* The bar of 2 % is for 60 to 80 %. */
static void add_budget(const graph *g, const question *q, uint32_t b, losses *sum) {
    const cell *c = &g->cells[NOMOVE][TIDE_EFFORT_NORMAL][b];
    if (!c->fits || !g->load_ns[b]) {
        sum->nothing += !g->load_ns[b];
        sum->refused += g->load_ns[b] != 0;
        if (g->load_ns[b])
            printf("  graph-%llu-%u %u %%: refused\n", (unsigned long long)g->options.seed, g->options.n_ops,
                   q->percents[b]);
        return;
    }
    double loss = (double)c->step_ns / (double)g->load_ns[b] - 1;
    bool missed = loss > .02 && q->percents[b] >= 60 && q->percents[b] <= 80;
    sum->compared++;
    sum->missed += missed;
    sum->sum += loss;
    sum->worst = loss > sum->worst ? loss : sum->worst;
    if (missed)
        printf("  graph-%llu-%u %u %%: %.2f %% slower, %.4f instead of %.4f\n", (unsigned long long)g->options.seed,
               g->options.n_ops, q->percents[b], 100 * loss, time_ratio(g, c),
               (double)g->load_ns[b] / (double)g->step_ns);
}

uint32_t print_losses(const graph *graphs, uint32_t n, const question *q) {
    losses sum = {0};
    uint32_t most_ops = 0;
    for (uint32_t i = 0; i < n; i++) most_ops = graphs[i].options.n_ops > most_ops ? graphs[i].options.n_ops : most_ops;
    if (!q->variant[NOMOVE] || !q->effort[TIDE_EFFORT_NORMAL] || most_ops < BY_LOAD_OPS) return 0;
    printf("\nhybrid:nomove, normal effort, from %u ops: an arena against loads alone\n", (unsigned)BY_LOAD_OPS);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t b = 0; graphs[i].options.n_ops >= BY_LOAD_OPS && b < q->n_budgets; b++)
            add_budget(&graphs[i], q, b, &sum);
    printf("  %-6s %u above the bar of 2 %% at 60 to 80 %%; %.2f %% slower on average over %u budgets, worst %.2f %%\n",
           sum.missed ? "MISS" : "PASS", sum.missed, sum.compared ? 100 * sum.sum / sum.compared : 0, sum.compared,
           100 * sum.worst);
    printf("         %u more refused although loads are within the budget; %u without such loads\n", sum.refused,
           sum.nothing);
    return sum.missed;
}
