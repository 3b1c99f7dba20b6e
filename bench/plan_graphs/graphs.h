/* Plans of random layered graphs (tests/support/random_graph.h) and what is asked of them. A graph is plain data, so that
 * processes can share it: one fills in the cells, another reads them. */
#ifndef TIDE_BENCH_PLAN_GRAPHS_H
#define TIDE_BENCH_PLAN_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include <tidemark/tidemark.h>

#include "common.h"
#include "support/random_graph.h"

enum { MAX_BUDGETS = 16, N_EFFORTS = 3, N_VARIANTS = 3, NOMOVE = 1, BY_LOAD_OPS = 250 };
extern const char *const variant_names[N_VARIANTS]; /* the first may do what each of the others may */
extern const char *const effort_names[N_EFFORTS];   /* of tide_effort */

/* What is asked for: budgets in percent of the unconstrained arena, descending. */
typedef struct question {
    bool variant[N_VARIANTS], effort[N_EFFORTS];
    uint32_t n_budgets, percents[MAX_BUDGETS];
    bool frontier; /* all budgets by one call */
} question;

typedef struct cell {
    bool asked, fits;
    bool impossible; /* does not fit, and that is proved */
    uint64_t step_ns, arena_bytes;
    double seconds; /* of processor time for this plan; with `frontier` its share */
} cell;

typedef struct graph {
    random_graph_options options;
    bool filled;                   /* all below is there */
    uint64_t arena_bytes, step_ns; /* unconstrained: policy liveness */
    cell cells[N_VARIANTS][N_EFFORTS][MAX_BUDGETS];
    uint64_t load_ns[MAX_BUDGETS]; /* by_load.c, from BY_LOAD_OPS ops up; 0: none found */
} graph;

uint64_t budget_bytes(const graph *g, const question *q, uint32_t budget);
double time_ratio(const graph *g, const cell *c);

/* ---- fill.c ---- */
void graph_open(graph *g, tide_program **program);
/* Asks for every plan, each of which is checked against its budget by the verifier. */
void graph_fill(graph *g, const question *q);
/* DIR/NAME.jsonl and DIR/NAME.machine.json for each graph, and DIR/index.jsonl, which says which budgets are meant. */
void graphs_write(graph *graphs, uint32_t n, const question *q, const char *dir);

/* ---- promises.c: each broken promise in a line; how many were broken ---- */
uint32_t promises_check(const graph *graphs, uint32_t n, const question *q);

/* ---- tables.c: the number of bars missed ---- */
void print_ratios_head(const question *q);
void print_ratios(const graph *g, const question *q);
void print_means(const graph *graphs, uint32_t n, const question *q);
uint32_t print_seconds(const graph *graphs, uint32_t n, const question *q);

/* ---- by_load.c: the search for re-runs where no addresses count; 0: it found none. What addresses cost; the number of bars
 * missed ---- */
uint64_t fastest_by_load(const tide_program *p, const tide_machine *m, uint64_t budget);
uint32_t print_losses(const graph *graphs, uint32_t n, const question *q);

/* ---- optima.c: hybrid:nomove at normal effort against proved optima; the number of bars missed ---- */
uint32_t optima_compare(const graph *graphs, uint32_t n, const question *q, const char *path);

#endif
