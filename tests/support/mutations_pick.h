/* Shared by the mutations: picking a random entry of a plan that has some property. Each PICK_x declares a pointer to
 * one, or leaves the function with false if there is none; `x` is the candidate in the condition. */
#ifndef TIDE_TESTS_MUTATIONS_PICK_H
#define TIDE_TESTS_MUTATIONS_PICK_H

#include "plan/plan_data.h"
#include "support/random_plan.h"
#include "support/random_program.h"
#include "support/test.h"

static inline uint32_t pick(uint64_t *random, uint64_t n) { return (uint32_t)random_below(random, n); }

#define PICK_WHERE(type, found, vector, condition)                               \
    type *found = NULL;                                                          \
    do {                                                                         \
        size_t n_ = (vector)->count, first_ = n_ ? random_below(random, n_) : 0; \
        for (size_t k_ = 0; k_ < n_ && !(found); k_++) {                         \
            type *x = &(vector)->data[(first_ + k_) % n_];                       \
            if (condition) (found) = x;                                          \
        }                                                                        \
        if (!(found)) return false;                                              \
    } while (0)
#define PICK_ACTION(a, condition) PICK_WHERE(tide__action, a, &c->plan->actions, condition)
#define PICK_RESIDENCY(r, condition) PICK_WHERE(tide_residency, r, &c->plan->residencies, condition)
#define PICK_COPY(r, condition) PICK_WHERE(tide_copy, r, &c->plan->copies, condition)

static inline uint32_t index_of(const random_case *c, const tide__action *a) {
    return (uint32_t)(a - c->plan->actions.data);
}
static inline uint32_t *wait_of(random_case *c, const tide__action *a, uint32_t k) {
    return &c->plan->waits.data[a->waits + k];
}
static inline tide_id *use_of(random_case *c, const tide__action *a, uint32_t k) {
    return &c->plan->uses.data[a->uses + k];
}
static inline const tide_op *op_of(const random_case *c, const tide__action *a) {
    return tide_program_op(c->program, a->op);
}
static inline bool is_client(const random_case *c, const tide_copy *copy) {
    return c->machine.tier[copy->tier].kind == TIDE_TIER_CLIENT;
}

#endif
