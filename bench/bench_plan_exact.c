/* Re-runs on small training steps: policy hybrid:nomove against the exact optimum.
 *
 *   bench_plan_exact [PROGRAMS [SECONDS]]
 *
 * Steps of up to 15 ops: the optimum by shortest paths. Steps of up to 25 ops: by an integer program, where cbc is
 * installed (package coinor-cbc), with so many seconds for each; where they do not suffice, the solver's lower bound
 * counts instead. Both know re-runs only: moves beside compute would make time continuous and the programs much larger.
 *
 * The optimum counts loads only, while hybrid's plans are placed and verified as well: where no plan of that arena exists
 * the optimum here is too low. The bar: every plan within 2 % of the optimum; the lower bound that the library prints is
 * never above it. */
#include <stdio.h>
#include <stdlib.h>

#include "plan_exact/exact.h"

typedef struct tally {
    uint32_t compared, exact, beyond, not_found, wrong_bounds, unsolved;
    double sum, worst, bound_sum, seconds;
} tally;

/* Units of time, more than any plan of these steps takes. */
enum { NO_PLAN = 100000 };

typedef struct trial {
    uint64_t plan_ns, bound_ns; /* hybrid's plan, 0: none; the library's lower bound */
} trial;

static trial plan_in(const tide_program *p, uint32_t budget_units) {
    tide_machine m;
    tide_plan_options o;
    tide_plan *plan;
    trial r = {0};
    tide_machine_init_default(&m);
    tide_plan_options_init(&o);
    o.policy = "hybrid:nomove";
    o.budgets.arena_bytes = budget_units * (uint64_t)UNIT_BYTES;
    require(tide_plan_bound(p, &m, &o, &r.bound_ns));
    if (tide_plan_create(p, &m, &o, NULL, &plan) != TIDE_OK) return r;
    r.plan_ns = tide_plan_prediction(plan)->compute_ns;
    tide_plan_destroy(plan);
    return r;
}

static void count(tally *t, const trial *r, double best_ns) {
    double gap = (double)r->plan_ns / best_ns - 1;
    t->wrong_bounds += (double)r->bound_ns > best_ns * (1 + 1e-9);
    t->compared++;
    t->exact += gap < 1e-9;
    t->beyond += gap > 0.02;
    t->sum += gap;
    t->worst = gap > t->worst ? gap : t->worst;
    t->bound_sum += 1 - (double)r->bound_ns / best_ns;
}

static void compare_with_paths(const example *x, const tide_program *p, uint32_t budget_units, tally *t) {
    uint32_t best = optimum_by_paths(x, budget_units - x->input_units);
    if (best == 0) return;
    trial r = plan_in(p, budget_units);
    if (r.plan_ns)
        count(t, &r, best * (double)UNIT_NS);
    else
        t->not_found++;
}

static void compare_with_integers(const example *x, const tide_program *p, uint32_t budget_units, uint32_t seconds,
                                  tally *t) {
    trial r = plan_in(p, budget_units);
    double time = r.plan_ns ? (double)r.plan_ns / UNIT_NS : NO_PLAN;
    integer_answer a = optimum_by_integers(x, budget_units - x->input_units, time, seconds);
    t->seconds += a.seconds;
    if (!r.plan_ns) {
        t->not_found += a.optimal;
        return;
    }
    if (!a.known) {
        fprintf(stderr, "cbc gave no answer\n");
        exit(1);
    }
    t->unsolved += !a.optimal;
    count(t, &r, a.bound * UNIT_NS);
}

static void run_budgets(const example *x, uint32_t seconds, tally *t) {
    static const double fractions[] = {.9, .8, .7, .6, .5};
    tide_program *p = example_program(x);
    tide_liveness *l;
    require(tide_liveness_create(p, &l));
    uint32_t peak = (uint32_t)(l->peak_bytes / UNIT_BYTES), least = (uint32_t)(l->floor_bytes / UNIT_BYTES);
    for (size_t k = 0; k < sizeof fractions / sizeof *fractions; k++) {
        uint32_t budget = (uint32_t)(fractions[k] * peak);
        if (budget < least) continue;
        if (seconds)
            compare_with_integers(x, p, budget, seconds, t);
        else
            compare_with_paths(x, p, budget, t);
    }
    tide_liveness_destroy(l);
    tide_program_destroy(p);
}

static bool report(const char *kind, const tally *t) {
    double n = t->compared ? t->compared : 1, mean = 100 * t->sum / n;
    bool passed = t->beyond == 0 && t->not_found == 0 && t->wrong_bounds == 0;
    printf(
        "  %s %s: %u programs and budgets, %u optimal, %u more than 2 %% above, %.2f %% above the optimum on average, "
        "worst %.1f %%; %u without a plan; lower bound %.1f %% below on average, %u times above\n",
        passed ? "PASS" : "MISS", kind, t->compared, t->exact, t->beyond, mean, 100 * t->worst, t->not_found,
        100 * t->bound_sum / n, t->wrong_bounds);
    return passed;
}

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 40;
    uint32_t seconds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10;
    tally paths = {0}, integers = {0};
    uint64_t state = 1;
    printf("hybrid:nomove against the optimum by re-runs\n");
    for (uint32_t i = 0; i < n; i++) {
        example x = example_draw(&state, 3 + draw_below(&state, SHORT_LAYERS - 2));
        run_budgets(&x, 0, &paths);
    }
    bool passed = report("shortest paths, up to 15 ops", &paths);
    if (!integer_solver_found()) {
        printf("  SKIP integer programs, up to 25 ops: cbc is not installed (apt-get install coinor-cbc)\n");
        return !passed;
    }
    for (uint32_t i = 0; i < (n + 7) / 8; i++) {
        example x = example_draw(&state, SHORT_LAYERS + 1 + i % (MAX_LAYERS - SHORT_LAYERS));
        run_budgets(&x, seconds, &integers);
    }
    passed &= report("integer programs, 17 to 25 ops", &integers);
    printf("       cbc: %.1f s; %u of %u not solved in %u s, their lower bound counts\n", integers.seconds,
           integers.unsolved, integers.compared, seconds);
    return !passed;
}
