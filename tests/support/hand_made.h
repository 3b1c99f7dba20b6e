/* Plans from decisions that a test makes itself, on a machine with every kind of tier. */
#ifndef TIDE_TESTS_HAND_MADE_H
#define TIDE_TESTS_HAND_MADE_H

#include "plan/decide/decide.h"
#include "plan/plan_data.h"

enum { RAM, DISK, CLIENT }; /* the tiers of machine_with_disk */

/* RAM and disk, whose two channels share a link and whose blocks are larger than the arena's alignment. */
tide_machine machine_with_disk(void);

/* Schedule, place, sync; what tide_plan_create does between the policy and the verifier, which is left to the test. */
tide_status plan_from_decisions(const tide_program *program, const tide_machine *machine,
                                const tide__decisions *decisions, tide_plan **out);

#endif
