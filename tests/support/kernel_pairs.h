/* The two drivers of GPUs against each other: the same kernels, as PTX through CUDA and as OpenCL C, with the same number of
 * lanes. All bits are equal, but of ops that call what the drivers have each their own of. */
#ifndef TIDE_TESTS_KERNEL_PAIRS_H
#define TIDE_TESTS_KERNEL_PAIRS_H

#include "support/kernel_checks.h"

/* Every descriptor, every variant; prints a line per kind of op and fails where a kind is further apart than it may be. How
 * many kinds failed. */
int check_pairs(visit_all_fn visit_all);

#endif
