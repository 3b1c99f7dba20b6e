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
    bool test, grad, perf, cpu, opencl; /* opencl only where there is one */
} kernel_modes;

/* Ends the program where the arguments make no sense. */
kernel_modes kernel_modes_of(int argc, char **argv);

/* A line per descriptor: its kind, its shape, and time and rate on each device. Speeds are per second of processor
 * time, of all threads together, where the device is the processor. */
void print_rates(const kernel_modes *modes, visit_all_fn visit_all);

#endif
