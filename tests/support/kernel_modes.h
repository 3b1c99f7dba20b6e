/* The modes of the programs that test kernels:
 *
 *      PROGRAM [test | grad | perf | bits] [DEVICE]
 *
 * test: against reference code, bits against bits, what is refused; grad: against finite differences; perf: prints how
 * fast each kind of op is on each device, and judges nothing; bits: CUDA against OpenCL (kernel_pairs.h). Without a mode:
 * test and grad. */
#ifndef TIDE_TESTS_KERNEL_MODES_H
#define TIDE_TESTS_KERNEL_MODES_H

#include "support/kernel_checks.h"

typedef struct kernel_modes {
    bool test, grad, perf, bits;
    bool cpu, opencl, cuda; /* the last two only where they are */
} kernel_modes;

/* Runs what the arguments ask for: the checks; the test of gradients, whose state is a rig_config; the bits of what
 * `visit_all` shows; the rates of what `visit_large` shows. Returns what main returns. */
int kernel_modes_run(int argc, char **argv, int (*checks)(const kernel_modes *modes), void (*gradients)(void **state),
                     visit_all_fn visit_all, visit_all_fn visit_large);

#endif
