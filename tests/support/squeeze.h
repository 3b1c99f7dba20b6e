/* Plans that have to relocate: whatever they had for offsets, blocks take the lowest hole, and the arena is hardly larger than
 * the load. */
#ifndef TIDE_TESTS_SQUEEZE_H
#define TIDE_TESTS_SQUEEZE_H

#include <tidemark/plan.h>

/* The bytes that a plan's residencies have at once, at most. */
uint64_t plan_load(const tide_plan *plan, const tide_program *program, const tide_machine *machine);

/* The plan within `capacity`, with waits; true if that worked. Else it is as it was. */
bool squeeze_plan(const tide_program *program, const tide_machine *machine, uint64_t capacity, tide_plan *plan);

#endif
