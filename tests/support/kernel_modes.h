/* The modes of the programs that test kernels:
 *
 *      PROGRAM [test | grad | perf] [DEVICE]
 *
 * test: against reference code, bits against bits, what is refused; grad: against finite differences; perf: prints how
 * fast each kind of op is on each device, and judges nothing. Without a mode: test and grad. */
#ifndef TIDE_TESTS_KERNEL_MODES_H
#define TIDE_TESTS_KERNEL_MODES_H

#include "support/kernel_checks.h"

typedef struct kernel_modes {
    bool test, grad, perf;
    bool cpu, opencl, cuda; /* the last two only where they are */
} kernel_modes;

/* Runs what the arguments ask for: the checks; the test of gradients, whose state is a rig_config; the rates of what
 * `visit_large` shows. Returns what main returns. */
int kernel_modes_run(int argc, char **argv, int (*checks)(const kernel_modes *modes), void (*gradients)(void **state),
                     visit_all_fn visit_large);

#endif
