/* Where there is a CUDA device to test, and where not: then tests say so and go without. */
#ifndef TIDE_TESTS_CUDA_H
#define TIDE_TESTS_CUDA_H

#include <stdbool.h>

/* Part of this build, whether or not there is a driver. */
bool is_cuda_built(void);
/* Says why not, once, on stderr. TIDE_CUDA_LIBRARY names the driver. */
bool has_cuda(void);

#endif
