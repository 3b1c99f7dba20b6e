/* The matrix of trainings that must all compute the same bits: families x ways to decide x budgets x tiers x threads.
 * A point of it is a small training of five steps; it is compared with the unconstrained one of its family and threads. */
#ifndef TIDE_TESTS_BITS_H
#define TIDE_TESTS_BITS_H

#include <stdbool.h>
#include <stdint.h>

enum { BITS_FAMILY, BITS_WAY, BITS_BUDGET, BITS_TIER, BITS_THREADS, BITS_AXES };

typedef struct bits_point {
    uint32_t at[BITS_AXES]; /* index on each axis */
} bits_point;

typedef struct bits_matrix {
    const char *device;
    uint32_t size[BITS_AXES];
    /* trainings; with transfers, with re-runs, in a larger budget than asked, with two tiers in use */
    uint32_t n_done, n_moved, n_rerun, n_raised, n_both;
    struct bits_memory *memory; /* what has been measured already */
} bits_matrix;

/* large: more families at the end of their axis, whose points cost seconds. Devices other than "cpu" have one number of
 * threads. */
void bits_open(bits_matrix *m, const char *device, bool large);
bool bits_is_large(bits_point p);
void bits_close(bits_matrix *m);
/* The i-th point, of the product of the sizes. */
bits_point bits_nth(const bits_matrix *m, uint32_t i);
uint32_t bits_count(const bits_matrix *m);
/* Trains, compares, and fails the test where the bits differ or the budget does not hold. */
void bits_check(bits_matrix *m, bits_point p);

/* The losses of a family's unconstrained training, on one thread; returns its name. */
enum { BITS_STEPS = 5 };
const char *bits_losses(const bits_matrix *m, uint32_t family, float loss[BITS_STEPS]);

#endif
