/* Policies on random programs and random budgets: every plan is proved and runs on symbolic values, or the answer is an
 * honest "does not fit". Shared by the tests of the policies. */
#ifndef TIDE_TESTS_TRY_POLICIES_H
#define TIDE_TESTS_TRY_POLICIES_H

#include <tidemark/plan.h>

typedef struct policy_tally {
    uint32_t made, refused, with_moves, with_reruns;
} policy_tally;

/* A plan of `policy` inside arena_bytes (UINT64_MAX: no budget), all else as by default. */
tide_status try_policy(const tide_program *p, const tide_machine *m, const char *policy, tide_effort effort,
                       uint64_t arena_bytes, tide_plan **plan);

/* The slow reference runs a small plan on symbolic values, byte by byte, under two random timings; larger plans pass. */
void check_by_running(const tide_plan *plan, const tide_program *p, const tide_machine *m, uint64_t seed);

/* n_seeds programs, each with one of the policies and a budget from a quarter of the unconstrained arena upwards. */
policy_tally try_policies(const char *const policies[], uint32_t n_policies, tide_effort effort, uint64_t n_seeds);

#endif
