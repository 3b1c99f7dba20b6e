/* Re-runs on small training steps: policy hybrid:nomove against the exact optimum.
 *
 *   bench_plan_exact [PROGRAMS]
 *
 * The optimum is a shortest path: a state is how many ops have run for the first time and which values are in memory; an
 * edge runs an op whose reads are there, at its cost, if the load stays within the budget, or drops a value for nothing.
 * That counts loads only, while hybrid's plans are placed and verified as well: where no plan of that arena exists the
 * optimum here is too low. The bar: no more than 2 % above the optimum on average; the lower bound is never above it. */
#include <stdio.h>
#include <stdlib.h>

#include <tidemark/tidemark.h>

#include "base/vec.h"

enum { MAX_LAYERS = 7, MAX_OPS = 2 * MAX_LAYERS + 1, MAX_NS = 8192, UNIT_BYTES = 64, UNIT_NS = 1000 };

static void check(tide_status status) {
    if (status == TIDE_OK) return;
    fprintf(stderr, "%s: %s\n", tide_status_name(status), tide_last_error());
    exit(1);
}

static uint64_t rng_state;
static uint32_t draw(uint32_t n) {
    rng_state = rng_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((rng_state >> 33) % n);
}

/* Op i writes value i; the input is no value: it always stays. */
typedef struct example {
    uint32_t n_ops, input_units;
    uint32_t reads[MAX_OPS]; /* as a set */
    uint32_t units[MAX_OPS], cost[MAX_OPS];
} example;

/* Layers forward, then back: the gradient of a layer reads its output, often its input, and the gradient above. */
static example draw_example(void) {
    uint32_t layers = 3 + draw(MAX_LAYERS - 2);
    example x = {.n_ops = 2 * layers + 1, .input_units = 1 + draw(4)};
    for (uint32_t i = 0; i < x.n_ops; i++) {
        uint32_t mirror = 2 * layers - i;
        x.reads[i] = i ? 1u << (i - 1) : 0;
        if (i > layers) x.reads[i] |= 1u << mirror | (mirror && draw(3) ? 1u << (mirror - 1) : 0);
        if (i > 2 && i <= layers && draw(4) == 0) x.reads[i] |= 1u << draw(i - 1);
        x.units[i] = i > layers ? x.units[mirror] : 1 + draw(8);
        x.cost[i] = 1 + draw(20);
    }
    return x;
}

static tide_program *make_program(const example *x) {
    tide_program_builder *b;
    tide_program *p;
    tide_id input;
    check(tide_program_builder_create("small", false, &b));
    for (uint32_t i = 0; i < x->n_ops; i++)
        check(tide_program_builder_tensor(
            b, &(tide_tensor){.size_bytes = x->units[i] * UNIT_BYTES, .keep = i + 1 == x->n_ops}, NULL));
    check(tide_program_builder_tensor(
        b, &(tide_tensor){.size_bytes = x->input_units * UNIT_BYTES, .start = TIDE_START_PRESENT, .keep = true},
        &input));
    for (tide_id i = 0; i < x->n_ops; i++) {
        tide_id reads[MAX_OPS + 1];
        uint32_t n = 0;
        for (tide_id t = 0; t < i; t++)
            if (x->reads[i] >> t & 1) reads[n++] = t;
        if (i == 0) reads[n++] = input;
        tide_variant cost = {.cost_ns = x->cost[i] * (uint64_t)UNIT_NS};
        tide_op op = {.rerunnable = true,
                      .n_reads = n,
                      .reads = reads,
                      .n_writes = 1,
                      .writes = &i,
                      .n_variants = 1,
                      .variants = &cost};
        check(tide_program_builder_op(b, &op, NULL));
    }
    check(tide_program_builder_finish(b, &p));
    return p;
}

/* ---- the optimum ---- */

typedef TIDE_VEC(uint32_t) states;
typedef struct search {
    const example *x;
    uint32_t room; /* units for values */
    uint32_t *best;
    states *at; /* per cost */
} search;

static uint32_t units_of(const example *x, uint32_t set) {
    uint32_t units = 0;
    for (uint32_t i = 0; i < x->n_ops; i++) units += set >> i & 1 ? x->units[i] : 0;
    return units;
}

static void reach(search *s, uint32_t done, uint32_t set, uint32_t cost) {
    uint32_t state = done << s->x->n_ops | set;
    if (cost >= MAX_NS || cost >= s->best[state]) return;
    s->best[state] = cost;
    check(tide__vec_push(&s->at[cost], state));
}

static void expand(search *s, uint32_t done, uint32_t set, uint32_t cost) {
    for (uint32_t i = 0; i < s->x->n_ops; i++) {
        uint32_t more = set | 1u << i;
        if (set >> i & 1)
            reach(s, done, set & ~(1u << i), cost);
        else if (i <= done && (s->x->reads[i] & ~set) == 0 && units_of(s->x, more) <= s->room)
            reach(s, done + (i == done), more, cost + s->x->cost[i]);
    }
}

/* In units; 0: nothing fits. */
static uint32_t optimum(const example *x, uint32_t budget_units) {
    size_t n = (size_t)(x->n_ops + 1) << x->n_ops;
    search s = {.x = x, .room = budget_units - x->input_units};
    uint32_t found = 0;
    s.best = malloc(n * sizeof *s.best);
    s.at = calloc(MAX_NS, sizeof *s.at);
    if (!s.best || !s.at) exit(1);
    for (size_t i = 0; i < n; i++) s.best[i] = UINT32_MAX;
    reach(&s, 0, 0, 0);
    for (uint32_t cost = 0; cost < MAX_NS; cost++) {
        for (size_t i = 0; i < s.at[cost].count && !found; i++) {
            uint32_t state = s.at[cost].data[i], done = state >> x->n_ops, set = state & ((1u << x->n_ops) - 1);
            if (s.best[state] != cost) continue;
            if (done == x->n_ops && set >> (x->n_ops - 1) & 1) found = cost;
            expand(&s, done, set, cost);
        }
        tide__vec_free(&s.at[cost]);
    }
    free(s.best);
    free(s.at);
    return found;
}

/* ---- the comparison ---- */

typedef struct tally {
    uint32_t compared, exact, beyond, not_found, wrong_bounds;
    double sum, worst, bound_sum;
} tally;

static void compare(const example *x, const tide_program *p, uint32_t budget_units, tally *t) {
    tide_machine m;
    tide_plan_options o;
    tide_plan *plan;
    uint64_t bound, best = optimum(x, budget_units) * (uint64_t)UNIT_NS;
    if (best == 0) return;
    tide_machine_init_default(&m);
    tide_plan_options_init(&o);
    o.policy = "hybrid:nomove";
    o.budgets.arena_bytes = budget_units * (uint64_t)UNIT_BYTES;
    check(tide_plan_bound(p, &m, &o, &bound));
    t->wrong_bounds += bound > best;
    if (tide_plan_create(p, &m, &o, NULL, &plan) != TIDE_OK) {
        t->not_found++;
        return;
    }
    double gap = (double)tide_plan_prediction(plan)->compute_ns / (double)best - 1;
    t->compared++;
    t->exact += gap < 1e-9;
    t->beyond += gap > 0.02;
    t->sum += gap;
    t->worst = gap > t->worst ? gap : t->worst;
    t->bound_sum += 1 - (double)bound / (double)best;
    tide_plan_destroy(plan);
}

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 40;
    static const double fractions[] = {.9, .8, .7, .6, .5};
    tally t = {0};
    rng_state = 1;
    for (uint32_t i = 0; i < n; i++) {
        example x = draw_example();
        tide_program *p = make_program(&x);
        tide_liveness *l;
        check(tide_liveness_create(p, &l));
        uint32_t peak = (uint32_t)(l->peak_bytes / UNIT_BYTES), least = (uint32_t)(l->floor_bytes / UNIT_BYTES);
        for (size_t k = 0; k < sizeof fractions / sizeof *fractions; k++) {
            uint32_t budget = (uint32_t)(fractions[k] * peak);
            if (budget >= least) compare(&x, p, budget, &t);
        }
        tide_liveness_destroy(l);
        tide_program_destroy(p);
    }
    double mean = t.compared ? 100 * t.sum / t.compared : 0;
    printf("hybrid:nomove on %u small programs and budgets: %u optimal, %u more than 2 %% above, %.2f %% above the "
           "optimum on average, worst "
           "%.1f %%; "
           "%u without a plan; lower bound %.1f %% below on average, %u times above\n",
           t.compared, t.exact, t.beyond, mean, 100 * t.worst, t.not_found,
           t.compared ? 100 * t.bound_sum / t.compared : 0, t.wrong_bounds);
    return mean > 2 || t.wrong_bounds > 0;
}
