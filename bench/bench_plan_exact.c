/* Small training steps: policy hybrid against the exact optimum.
 *
 *   bench_plan_exact [PROGRAMS [SECONDS]]
 *
 * Re-runs only, hybrid:nomove. Steps of up to 15 ops: the optimum by shortest paths. Steps of up to 25 ops: by an integer
 * program, where cbc is installed (package coinor-cbc), with so many seconds for each; where they do not suffice, the
 * solver's lower bound counts instead.
 *
 * Moves, re-runs and variants together, hybrid: steps of 7 to 11 ops, every decision by depth-first search (exact.h says
 * which there are), each placed and simulated as plans are. Moving a value takes from a part of an op's time to several.
 *
 * The optimum by re-runs counts loads only, while hybrid's plans are placed and verified as well: where no plan of that
 * arena exists the optimum here is too low. The bar: every plan within 2 % of the optimum; the lower bound that the
 * library prints is never above it. */
#include <stdio.h>
#include <stdlib.h>

#include "plan_exact/exact.h"

typedef struct tally {
    uint32_t compared, exact, beyond, not_found, wrong_bounds, unsolved;
    uint64_t drafts;
    double sum, worst, bound_sum, seconds;
} tally;

/* Units of time, more than any plan of these steps takes. */
enum { NO_PLAN = 100000 };

typedef struct trial {
    uint64_t plan_ns, bound_ns; /* hybrid's plan, 0: none; the library's lower bound */
} trial;

static trial plan_in(const tide_program *p, const tide_machine *m, const char *policy, uint32_t budget_units) {
    tide_plan_options o;
    tide_plan *plan;
    trial r = {0};
    tide_plan_options_init(&o);
    o.policy = policy;
    o.budgets.arena_bytes = budget_units * (uint64_t)UNIT_BYTES;
    require(tide_plan_bound(p, m, &o, &r.bound_ns));
    if (tide_plan_create(p, m, &o, NULL, &plan) != TIDE_OK) return r;
    r.plan_ns = tide_plan_prediction(plan)->step_ns;
    tide_plan_destroy(plan);
    return r;
}

static trial plan_without_moves(const tide_program *p, uint32_t budget_units) {
    tide_machine m;
    tide_machine_init_default(&m);
    return plan_in(p, &m, "hybrid:nomove", budget_units);
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
    trial r = plan_without_moves(p, budget_units);
    if (r.plan_ns)
        count(t, &r, best * (double)UNIT_NS);
    else
        t->not_found++;
}

static void compare_with_integers(const example *x, const tide_program *p, uint32_t budget_units, uint32_t seconds,
                                  tally *t) {
    trial r = plan_without_moves(p, budget_units);
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

/* ---- moves, re-runs and variants together ---- */

static void compare_with_decisions(const example *x, const tide_program *p, const tide_machine *m,
                                   uint32_t budget_units, tally *t) {
    trial r = plan_in(p, m, "hybrid", budget_units);
    joint_answer a = optimum_by_decisions(x, p, m, budget_units, r.plan_ns ? r.plan_ns : UINT64_MAX);
    t->drafts += a.drafts;
    if (!a.complete)
        t->unsolved++;
    else if (r.plan_ns)
        count(t, &r, (double)a.ns);
    else
        t->not_found += a.ns != UINT64_MAX;
}

/* Budgets from the largest op to the load without any decision. */
static void run_joint(uint64_t *state, uint32_t layers, tally *t) {
    enum { STEPS = 5 };
    static const uint64_t rates[] = {128000000, 64000000, 32000000, 16000000}; /* 0.5 to 4 us a unit */
    tide_machine m;
    tide_liveness *l;
    example x = example_draw_joint(state, layers);
    tide_program *p = example_program(&x);
    tide_machine_init_default(&m);
    m.channel[0].bytes_per_s = m.channel[1].bytes_per_s = rates[draw_below(state, 4)];
    require(tide_liveness_create(p, &l));
    uint32_t peak = (uint32_t)(l->peak_bytes / UNIT_BYTES), least = (uint32_t)(l->largest_op_bytes / UNIT_BYTES);
    for (uint32_t k = 0, last = 0; k < STEPS; k++) {
        uint32_t budget = least + (peak - least) * k / STEPS;
        if (budget != last) compare_with_decisions(&x, p, &m, budget, t);
        last = budget;
    }
    tide_liveness_destroy(l);
    tide_program_destroy(p);
}

/* ---- all ---- */

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
    tally paths = {0}, integers = {0}, joint = {0};
    uint64_t state = 1;
    printf("hybrid against the optimum by moves, re-runs and variants\n");
    for (uint32_t i = 0; i < n; i++) run_joint(&state, 3 + i % (MAX_JOINT_LAYERS - 2), &joint);
    bool passed = report("every decision, 7 to 11 ops", &joint);
    printf("       %llu drafts; %u given up\n", (unsigned long long)joint.drafts, joint.unsolved);
    printf("hybrid:nomove against the optimum by re-runs\n");
    state = 1;
    for (uint32_t i = 0; i < n; i++) {
        example x = example_draw(&state, 3 + draw_below(&state, SHORT_LAYERS - 2));
        run_budgets(&x, 0, &paths);
    }
    passed &= report("shortest paths, up to 15 ops", &paths);
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
