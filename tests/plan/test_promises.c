/* The promises of policy hybrid on random layered graphs, for every variant and effort: more memory or more effort is never
 * slower and never refused, and a smaller budget never has the larger arena. bench_plan_graphs checks the same on large graphs. */
#include "support/test.h"

#include <tidemark/tidemark.h>

#include "support/random_graph.h"

enum { N_GRAPHS = 2, N_VARIANTS = 3, N_EFFORTS = 2, N_BUDGETS = 3 }; /* low and normal: high takes minutes here */

static const char *const variants[N_VARIANTS] = {"hybrid", "hybrid:nomove", "hybrid:norerun"};
static const uint64_t percents[N_BUDGETS] = {85, 70, 55};

typedef struct outcome {
    bool fits;
    uint64_t step_ns, arena_bytes;
} outcome;

typedef struct subject {
    uint64_t seed;
    tide_program *program;
    tide_machine machine;
    uint64_t budgets[N_BUDGETS];
} subject;

static void begin(subject *s, uint64_t seed, uint32_t n_ops) {
    random_graph_options o = random_graph_varied(seed, n_ops);
    tide_plan_options unconstrained;
    tide_plan *plan;
    s->seed = seed;
    assert_ok(random_graph(&o, &s->program));
    assert_int_equal(tide_program_op_count(s->program), n_ops);
    random_graph_machine(&o, &s->machine);
    tide_plan_options_init(&unconstrained);
    assert_ok(tide_plan_create(s->program, &s->machine, &unconstrained, NULL, &plan));
    for (uint32_t b = 0; b < N_BUDGETS; b++) s->budgets[b] = tide_plan_arena_bytes(plan) * percents[b] / 100;
    tide_plan_destroy(plan);
}

static tide_plan_options options_for(uint32_t variant, uint32_t effort) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.policy = variants[variant];
    o.effort = (tide_effort)effort;
    return o;
}

/* Destroys the plan; NULL: it does not fit. */
static outcome take(tide_plan *plan, uint64_t budget) {
    outcome r = {.fits = plan != NULL};
    if (!plan) return r;
    r.step_ns = tide_plan_prediction(plan)->step_ns;
    r.arena_bytes = tide_plan_arena_bytes(plan);
    assert_true(r.arena_bytes <= budget);
    tide_plan_destroy(plan);
    return r;
}

static outcome plan_in(const subject *s, uint32_t variant, uint32_t effort, uint32_t budget) {
    tide_plan_options o = options_for(variant, effort);
    tide_plan *plan = NULL;
    o.budgets.arena_bytes = s->budgets[budget];
    tide_status status = tide_plan_create(s->program, &s->machine, &o, NULL, &plan);
    if (!tide_status_is_misfit(status)) assert_ok(status);
    return take(plan, s->budgets[budget]);
}

/* `more` may do what `less` may. */
static uint32_t breaks(const subject *s, const char *what, outcome more, outcome less) {
    if (!less.fits || (more.fits && more.step_ns <= less.step_ns)) return 0;
    print_error("graph %llu: %s: %llu ns instead of %llu\n", (unsigned long long)s->seed, what,
                (unsigned long long)more.step_ns, (unsigned long long)less.step_ns);
    return 1;
}

/* Neighbours suffice: what holds from one to the next holds from each to each. */
static uint32_t count_broken(const subject *s, outcome (*r)[N_EFFORTS][N_BUDGETS]) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < N_VARIANTS; v++)
        for (uint32_t e = 0; e < N_EFFORTS; e++)
            for (uint32_t b = 0; b < N_BUDGETS; b++) {
                n += e > 0 ? breaks(s, "more effort", r[v][e][b], r[v][e - 1][b]) : 0;
                if (b + 1 == N_BUDGETS) continue;
                n += breaks(s, "more memory", r[v][e][b], r[v][e][b + 1]);
                n += r[v][e][b + 1].fits && r[v][e][b + 1].arena_bytes > r[v][e][b].arena_bytes;
            }
    return n;
}

static void single_plans_keep_the_promises(void **state) {
    (void)state;
    uint32_t broken = 0;
    for (uint32_t i = 0; i < rounds(N_GRAPHS); i++) {
        subject s;
        outcome r[N_VARIANTS][N_EFFORTS][N_BUDGETS];
        begin(&s, 4 + i, i == 0 ? 24 : 160); /* one band of budgets, and several (hybrid.c) */
        for (uint32_t v = 0; v < N_VARIANTS; v++)
            for (uint32_t e = 0; e < N_EFFORTS; e++)
                for (uint32_t b = 0; b < N_BUDGETS; b++) r[v][e][b] = plan_in(&s, v, e, b);
        broken += count_broken(&s, r);
        tide_program_destroy(s.program);
    }
    assert_int_equal(broken, 0);
}

static void frontiers_keep_the_promises(void **state) {
    (void)state;
    uint32_t broken = 0;
    for (uint32_t i = 0; i < rounds(N_GRAPHS); i++) {
        subject s;
        outcome r[N_VARIANTS][N_EFFORTS][N_BUDGETS];
        begin(&s, 11 + i, 40);
        for (uint32_t v = 0; v < N_VARIANTS; v++)
            for (uint32_t e = 0; e < N_EFFORTS; e++) {
                tide_plan_options o = options_for(v, e);
                tide_plan *plans[N_BUDGETS];
                assert_ok(tide_plan_frontier(s.program, &s.machine, &o, s.budgets, N_BUDGETS, NULL, plans));
                for (uint32_t b = 0; b < N_BUDGETS; b++) r[v][e][b] = take(plans[b], s.budgets[b]);
            }
        broken += count_broken(&s, r);
        tide_program_destroy(s.program);
    }
    assert_int_equal(broken, 0);
}

/* Moves that hide take no time: plans of a smaller band are as fast as those of a band that is closed, in fewer bytes. */
static void moves_that_hide_are_kept_in_every_band(void **state) {
    (void)state;
    subject s;
    begin(&s, 103, 180);
    for (uint32_t b = 0; b < N_BUDGETS; b++) {
        outcome both = plan_in(&s, 0, TIDE_EFFORT_LOW, b), moves = plan_in(&s, 2, TIDE_EFFORT_LOW, b);
        assert_true(moves.fits);
        assert_int_equal(breaks(&s, "re-runs as well as moves", both, moves), 0);
    }
    tide_program_destroy(s.program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_plans_keep_the_promises),
        cmocka_unit_test(frontiers_keep_the_promises),
        cmocka_unit_test(moves_that_hide_are_kept_in_every_band),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
