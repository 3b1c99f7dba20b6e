/* Executes plans on a real device and checks every byte that is kept: ops hash what they read and fill what they write,
 * and after each step the run must hold what a plain loop over the ops computes. Any failure fails the test. */
#ifndef TIDE_TESTS_EXECUTE_H
#define TIDE_TESTS_EXECUTE_H

#include <tidemark/run.h>

/* Three steps of a repeating program, one of another. At most 64 operands per op. */
void execute_plan(tide_device *device, const tide_machine *machine, const tide_program *program, const tide_plan *plan);
/* The same without a look at any value before the last step is done, so that transfers go on from step to step. */
void execute_flowing(tide_device *device, const tide_machine *machine, const tide_program *program,
                     const tide_plan *plan);
/* The same, computed by the test as it pulls the ops. */
void execute_pulled(tide_device *device, const tide_machine *machine, const tide_program *program,
                    const tide_plan *plan);
/* Gives the first step up after so many ops and checks every value that can be rescued; how many these are. */
uint32_t execute_until(tide_device *device, const tide_machine *machine, const tide_program *program,
                       const tide_plan *plan, uint32_t n_ops);

/* The input function of such runs; context: an execute_inputs. */
typedef struct execute_inputs {
    const tide_program *program;
    uint64_t step;
} execute_inputs;
tide_status execute_give_input(void *context, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes);

#endif
