/* Random valid plans for tests: a random walk that always knows which values exist where, and picks what to run, save,
 * load, re-run or drop next. It uses nothing of the library's planner, so it is an independent source of plans that
 * the verifier must accept (tests/support/interpreter agrees, or the generator is wrong).
 *
 * What occurs: swaps to and from several tiers (with blocks), client inputs, re-runs and chains of them, in-place
 * pairs, variants with workspaces, values at the start in arena and tiers (also both), carries, several places at the
 * end, ops in another order than the program's, programs in parts, values of 0 bytes, padding, tight reuse of bytes, the smallest set of waits that works (or a few more). */
#ifndef TIDE_TESTS_RANDOM_PLAN_H
#define TIDE_TESTS_RANDOM_PLAN_H

#include <tidemark/plan.h>

typedef struct random_case {
    tide_program *program;
    tide_machine machine;
    tide_budgets budgets; /* which the plan keeps, sometimes exactly */
    tide_plan *plan;
} random_case;

/* max_ops: of the program; tensors have at most 64 bytes. The same for a seed. Fails the test on error. */
random_case random_case_make(uint64_t seed, uint32_t max_ops);
void random_case_free(random_case *c);

#endif
