/* Where there is an OpenCL device to test, and where not: then tests say so and go without. */
#ifndef TIDE_TESTS_OPENCL_H
#define TIDE_TESTS_OPENCL_H

#include <stdbool.h>

/* What a program returns that has nothing to test without OpenCL: tests/CMakeLists.txt. */
enum { SKIPPED = 77 };

/* Says why not, once, on stderr. Drivers are not instrumented: ThreadSanitizer and MemorySanitizer go without. */
bool has_opencl(void);
/* With has_opencl(): CLBlast can be loaded, too. */
bool has_clblast(void);

#endif
