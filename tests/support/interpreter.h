/* The slow reference for plans: executes a plan on symbolic values, byte by byte, with queues of random speed.
 *
 * It looks at what the actions do to the bytes of the arena and the tiers and at nothing else: intervals, owners and
 * clocks, which the verifier reasons with, mean nothing to it. Every byte of every value is a distinct symbol. An
 * action takes a random time; from its start to its end nobody else may write what it reads or touch what it writes,
 * and what it reads must be, at its start and at its end, the right value of the program. At its start it fills what
 * it writes with garbage (unless it updates in place), at its end it writes the result.
 *
 *   compute   |--RUN f--|      |--RUN g--|         start of RUN g: reads a: whole? right? nobody writing it?
 *   ram out            |-----SAVE a-----|          end of SAVE a: a still whole? then the tier's bytes become a's
 *
 * A repeating program runs a second step from what the first left behind. Across borders three steps run without a barrier: an
 * action starts when its queue, its waits and its crossings from the step before let it. */
#ifndef TIDE_TESTS_INTERPRETER_H
#define TIDE_TESTS_INTERPRETER_H

#include <tidemark/plan.h>

#include "plan/border.h"

#define INTERPRETER_MAX_BYTES (1u << 20) /* of a space; plans that declare more are refused */

typedef struct interpretation {
    bool ok;
    uint32_t step, action; /* where it broke; action TIDE_NONE: not at one action */
    char why[160];
} interpretation;

/* One execution, under the timing of this seed. Any plan, however broken, is safe to pass. budgets may be NULL. */
interpretation interpret(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                         const tide_budgets *budgets, uint64_t seed);

/* The same over the borders between steps, of a repeating program. Crossings are by `to`, as tide__plan_cross gives them. */
interpretation interpret_across(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                const tide_budgets *budgets, const tide__crossings *crossings, uint64_t seed);

#endif
