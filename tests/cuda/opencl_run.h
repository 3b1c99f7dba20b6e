/* A kernel of OpenCL C on the first device found, with nothing but the driver: what the stand-in is compared with. */
#ifndef TIDE_TESTS_CUDA_OPENCL_RUN_H
#define TIDE_TESTS_CUDA_OPENCL_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* The text of pairs/pairs.cl with OpenCL's words before it; freed by the caller. The PTX of the same text; NULL where it
 * was not made. */
char *pairs_opencl_text(void);
char *pairs_ptx_text(void);

/* False: no OpenCL here. */
bool opencl_run_open(const char *text, const char *options);
/* y from x by a kernel (x, y, n, width), on `groups` groups of `lanes`. Fails the test where the driver fails. */
void opencl_run(const char *kernel, const float *x, float *y, int32_t n, int32_t width, uint32_t groups,
                uint32_t lanes);
void opencl_run_close(void);

#endif
