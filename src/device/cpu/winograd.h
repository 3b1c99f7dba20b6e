/* Convolutions with 3 x 3 windows, stride 1 and many channels by Winograd's method (winograd_math.h): a third of the
 * multiplications of oneDNN's direct code or less, for some workspace. All three kinds, on the layouts that oneDNN's
 * forward primitive has: nChw8c, and OIhw8i8o for weights, so that they need no reorder for backward. */
#ifndef TIDE_DEVICE_CPU_WINOGRAD_H
#define TIDE_DEVICE_CPU_WINOGRAD_H

#include "device/cpu/kernel.h"

/* Is a convolution of this description done faster so? */
bool tide__winograd_is_for(const tide_op_desc *d);
/* Can weights that are stored like this be read? */
bool tide__winograd_reads(const tide_op_desc *d, tide__md weights);
tide_status tide__winograd_build(tide__cpu_kernel *k, tide__md weights);

#endif
