/* Ways to break a plan, for tests: each changes one thing, somewhere at random. The result is usually broken, sometimes
 * harmless, never a crash. */
#ifndef TIDE_TESTS_MUTATIONS_H
#define TIDE_TESTS_MUTATIONS_H

#include "support/random_plan.h"

typedef struct mutation {
    const char *name;
    bool (*apply)(random_case *c, uint64_t *random); /* false: nothing of the kind in this plan; it is unchanged */
    /* What is to be expected, with a margin: more harmless ones, or fewer that the interpreter sees go wrong among
     * the rejected ones, would be suspicious. (Some rules are stricter than one step's bytes need.) */
    uint32_t max_accepted_percent, min_confirmed_percent;
} mutation;

const mutation *mutation_field_table(size_t *n); /* single fields: mutations.c */
const mutation *mutation_order_table(size_t *n); /* whole actions: mutations_order.c */

/* The case with a plan of its own to break; the program stays the caller's. Free with tide_plan_destroy(copy.plan). */
random_case mutation_copy(const random_case *c);

#endif
