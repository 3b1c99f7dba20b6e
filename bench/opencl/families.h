/* Small networks of every family, on two devices and under every policy: do they train alike? */
#ifndef TIDE_BENCH_OPENCL_FAMILIES_H
#define TIDE_BENCH_OPENCL_FAMILIES_H

#include <stdint.h>

typedef struct families_result {
    double farthest; /* the largest relative difference between the two devices' losses */
    uint32_t trainings,
        the_same; /* under policies and budgets on "opencl"; those with the bits of the unconstrained one */
} families_result;

/* Prints a line per family. */
families_result compare_families(void);

#endif
