/* Where there is an OpenCL device to test, and where not: then tests say so and go without. */
#ifndef TIDE_TESTS_OPENCL_H
#define TIDE_TESTS_OPENCL_H

#include <stdbool.h>

#include <tidemark/device.h>

/* What a program returns that has nothing to test without OpenCL: tests/CMakeLists.txt. */
enum { SKIPPED = 77 };

/* Says why not, once, on stderr. Drivers are not instrumented: ThreadSanitizer and MemorySanitizer go without. */
bool has_opencl(void);
/* With has_opencl(): CLBlast can be loaded, too. */
bool has_clblast(void);

/* The device "opencl"; and one that takes the way of devices whose memory the host cannot see. Fails the test on error. */
tide_device *open_opencl(void);
tide_device *open_staged_opencl(void);
/* Of a device without arenas and queues: from here on the host does not see its memory. */
void hide_opencl_memory(tide_device *device);

#endif
