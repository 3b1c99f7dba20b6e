/* What holds between plans of one graph by one variant: each cell is compared with every cell of less memory or less effort. */
#include "plan_graphs/graphs.h"

typedef struct position {
    uint32_t variant, effort, budget;
} position;

/* What `than` has less of. */
typedef enum lack { LESS_MEMORY, LESS_EFFORT, N_LACKS } lack;
static const char *const lack_names[N_LACKS] = {"a smaller budget", "less effort"};

typedef struct broken {
    uint32_t slower[N_LACKS], refused[N_LACKS], arena, asked, refusals, impossible;
} broken;

static void show(const graph *g, const question *q, position at, position than, const char *what, double figure) {
    printf("  BROKEN graph-%llu-%u %s %s %u %%: %s %s %s %u %%: %.4f\n", (unsigned long long)g->options.seed,
           g->options.n_ops, variant_names[at.variant], effort_names[at.effort], q->percents[at.budget], what,
           variant_names[than.variant], effort_names[than.effort], q->percents[than.budget], figure);
}

/* The fastest cell of those that differ from `at` by this lack alone; false: none of them fits. */
static bool find_best(const graph *g, const question *q, position at, lack lacks, position *out) {
    uint64_t best = UINT64_MAX;
    for (uint32_t e = 0; e < N_EFFORTS; e++)
        for (uint32_t b = 0; b < q->n_budgets; b++) {
            bool lacking[N_LACKS] = {q->percents[b] < q->percents[at.budget], e < at.effort};
            bool same[N_LACKS] = {b == at.budget, e == at.effort};
            bool differs = lacking[lacks] && same[1 - lacks];
            const cell *c = &g->cells[at.variant][e][b];
            if (!differs || !c->fits || c->step_ns >= best) continue;
            best = c->step_ns;
            *out = (position){at.variant, e, b};
        }
    return best != UINT64_MAX;
}

static void check_time(const graph *g, const question *q, position at, broken *sum) {
    const cell *c = &g->cells[at.variant][at.effort][at.budget];
    for (lack k = 0; k < N_LACKS; k++) {
        position than;
        if (!find_best(g, q, at, k, &than)) continue;
        const cell *other = &g->cells[than.variant][than.effort][than.budget];
        if (!c->fits) {
            sum->refused[k]++;
            show(g, q, at, than, "refused, but not", time_ratio(g, other));
        } else if (c->step_ns > other->step_ns) {
            sum->slower[k]++;
            show(g, q, at, than, "slower than", (double)c->step_ns / (double)other->step_ns);
        }
    }
}

/* Neighbours suffice: what grows from budget to budget grows altogether. */
static void check_arena(const graph *g, const question *q, position at, broken *sum) {
    position than = {at.variant, at.effort, at.budget + 1};
    if (than.budget >= q->n_budgets) return;
    const cell *c = &g->cells[at.variant][at.effort][at.budget];
    const cell *smaller = &g->cells[than.variant][than.effort][than.budget];
    if (!c->fits || !smaller->fits || smaller->arena_bytes <= c->arena_bytes) return;
    sum->arena++;
    show(g, q, at, than, "has a smaller arena than", (double)c->arena_bytes / (double)smaller->arena_bytes);
}

static void check_graph(const graph *g, const question *q, broken *sum) {
    for (uint32_t v = 0; v < N_VARIANTS; v++)
        for (uint32_t e = 0; e < N_EFFORTS; e++)
            for (uint32_t b = 0; b < q->n_budgets; b++) {
                const cell *c = &g->cells[v][e][b];
                if (!c->asked) continue;
                sum->asked++;
                sum->refusals += !c->fits;
                sum->impossible += c->impossible;
                check_time(g, q, (position){v, e, b}, sum);
                check_arena(g, q, (position){v, e, b}, sum);
            }
}

uint32_t promises_check(const graph *graphs, uint32_t n, const question *q) {
    broken sum = {0};
    printf("\npromises\n");
    for (uint32_t i = 0; i < n; i++) check_graph(&graphs[i], q, &sum);
    uint32_t all = sum.arena;
    for (uint32_t k = 0; k < N_LACKS; k++) {
        all += sum.slower[k] + sum.refused[k];
        printf("  %-6s than with %s: %u slower, %u refused\n", sum.slower[k] + sum.refused[k] ? "BROKEN" : "kept",
               lack_names[k], sum.slower[k], sum.refused[k]);
    }
    printf("  %-6s %u smaller budgets have a larger arena\n", sum.arena ? "BROKEN" : "kept", sum.arena);
    printf("         %u plans asked for, %u refused, %u of them proved to be impossible\n", sum.asked, sum.refusals,
           sum.impossible);
    return all;
}
