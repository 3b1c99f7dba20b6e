/* Makes the graphs' plans, and writes the graphs to files. */
#include "plan_graphs/graphs.h"

const char *const variant_names[N_VARIANTS] = {"hybrid", "hybrid:nomove", "hybrid:norerun"};
const char *const effort_names[N_EFFORTS] = {"low", "normal", "high"};

uint64_t budget_bytes(const graph *g, const question *q, uint32_t budget) {
    return g->arena_bytes * q->percents[budget] / 100;
}

double time_ratio(const graph *g, const cell *c) { return (double)c->step_ns / (double)g->step_ns; }

void graph_open(graph *g, tide_program **program) {
    tide_machine machine;
    tide_plan_options o;
    tide_plan *plan;
    require(random_graph(&g->options, program));
    random_graph_machine(&g->options, &machine);
    tide_plan_options_init(&o);
    require(tide_plan_create(*program, &machine, &o, NULL, &plan));
    g->arena_bytes = tide_plan_arena_bytes(plan);
    g->step_ns = tide_plan_prediction(plan)->step_ns;
    tide_plan_destroy(plan);
}

/* plan: NULL where it does not fit. Destroys it. */
static void fill_cell(cell *c, uint64_t budget, const tide_fit_report *fit, tide_plan *plan) {
    c->asked = true;
    c->fits = plan != NULL;
    c->impossible = !plan && fit->bound_bytes > budget;
    if (!plan) return;
    c->step_ns = tide_plan_prediction(plan)->step_ns;
    c->arena_bytes = tide_plan_arena_bytes(plan);
    tide_plan_destroy(plan);
}

static void fill_one(const tide_program *p, const tide_machine *m, tide_plan_options *o, uint64_t budget, cell *c) {
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_plan *plan = NULL;
    o->budgets.arena_bytes = budget;
    double since = cpu_seconds();
    tide_status status = tide_plan_create(p, m, o, &fit, &plan);
    c->seconds = cpu_seconds() - since;
    if (!tide_status_is_misfit(status)) require(status);
    fill_cell(c, budget, &fit, plan);
}

static void fill_together(const tide_program *p, const tide_machine *m, const tide_plan_options *o,
                          const uint64_t *budgets, uint32_t n, cell *cells) {
    tide_fit_report fits[MAX_BUDGETS];
    tide_plan *plans[MAX_BUDGETS];
    double since = cpu_seconds();
    require(tide_plan_frontier(p, m, o, budgets, n, fits, plans));
    double seconds = cpu_seconds() - since;
    for (uint32_t i = 0; i < n; i++) {
        cells[i].seconds = seconds / n;
        fill_cell(&cells[i], budgets[i], &fits[i], plans[i]);
    }
}

void graph_fill(graph *g, const question *q) {
    tide_program *program;
    tide_machine machine;
    tide_plan_options o;
    uint64_t budgets[MAX_BUDGETS];
    graph_open(g, &program);
    random_graph_machine(&g->options, &machine);
    tide_plan_options_init(&o);
    for (uint32_t b = 0; b < q->n_budgets; b++) budgets[b] = budget_bytes(g, q, b);
    for (uint32_t v = 0; v < N_VARIANTS; v++)
        for (uint32_t e = 0; e < N_EFFORTS; e++) {
            if (!q->variant[v] || !q->effort[e]) continue;
            cell *cells = g->cells[v][e];
            o.policy = variant_names[v];
            o.effort = (tide_effort)e;
            if (q->frontier)
                fill_together(program, &machine, &o, budgets, q->n_budgets, cells);
            else
                for (uint32_t b = 0; b < q->n_budgets; b++) fill_one(program, &machine, &o, budgets[b], &cells[b]);
        }
    bool by_load = q->variant[NOMOVE] && q->effort[TIDE_EFFORT_NORMAL] && g->options.n_ops >= BY_LOAD_OPS;
    for (uint32_t b = 0; by_load && b < q->n_budgets; b++)
        g->load_ns[b] = fastest_by_load(program, &machine, budgets[b]);
    tide_program_destroy(program);
}

/* ---- files ---- */

static FILE *create_file(const char *path) {
    FILE *f = fopen(path, "w");
    if (f) return f;
    perror(path);
    exit(1);
}

static void write_index_line(FILE *index, const graph *g, const question *q, const char *name) {
    fprintf(index, "{\"program\":\"%s\",\"arena_bytes\":%llu,\"step_ns\":%llu,\"budgets\":[", name,
            (unsigned long long)g->arena_bytes, (unsigned long long)g->step_ns);
    for (uint32_t b = 0; b < q->n_budgets; b++)
        fprintf(index, "%s%llu", b ? "," : "", (unsigned long long)budget_bytes(g, q, b));
    fprintf(index, "]}\n");
}

void graphs_write(graph *graphs, uint32_t n, const question *q, const char *dir) {
    char path[4096];
    snprintf(path, sizeof path, "%s/index.jsonl", dir);
    FILE *index = create_file(path);
    for (uint32_t i = 0; i < n; i++) {
        tide_program *program;
        tide_machine machine;
        graph_open(&graphs[i], &program);
        const char *name = tide_program_name(program);
        snprintf(path, sizeof path, "%s/%s.jsonl", dir, name);
        require(tide_program_write(program, path));
        random_graph_machine(&graphs[i].options, &machine);
        snprintf(path, sizeof path, "%s/%s.machine.json", dir, name);
        require(tide_machine_write(&machine, path));
        write_index_line(index, &graphs[i], q, name);
        tide_program_destroy(program);
    }
    if (fclose(index) != 0) {
        perror(dir);
        exit(1);
    }
}
