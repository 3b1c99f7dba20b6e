/* The two drivers of GPUs against each other: the same kernels, as PTX through CUDA and as OpenCL C, with the same number of
 * lanes: all bits are equal. */
#ifndef TIDE_TESTS_KERNEL_PAIRS_H
#define TIDE_TESTS_KERNEL_PAIRS_H

#include "support/kernel_checks.h"

/* Every descriptor, every variant; prints a line per kind of op. How many kinds have other bits. */
int check_pairs(visit_all_fn visit_all);

#endif
