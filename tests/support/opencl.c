/* See opencl.h. */
#include "support/opencl.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/opencl/opencl.h"
#include "support/test.h"

static bool opens(const char *what) {
    tide_device *device = NULL;
    tide_status status = tide_device_open("opencl", NULL, &device);
    if (status != TIDE_OK) fprintf(stderr, "skipped: %s: %s; run: tools/deps opencl\n", what, tide_last_error());
    tide_device_close(device);
    return status == TIDE_OK;
}

bool has_opencl(void) {
#if defined(__SANITIZE_THREAD__) || HAS_SANITIZER(thread_sanitizer) || HAS_SANITIZER(memory_sanitizer)
    fprintf(stderr, "skipped: OpenCL: its drivers are not instrumented for this sanitizer\n");
    return false;
#else
    return opens("OpenCL");
#endif
}

bool has_clblast(void) {
    setenv("TIDE_OPENCL_PRODUCTS", "clblast", 1);
    const bool yes = opens("CLBlast");
    unsetenv("TIDE_OPENCL_PRODUCTS");
    return yes;
}

tide_device *open_opencl(void) {
    tide_device *device = NULL;
    assert_ok(tide_device_open("opencl", NULL, &device));
    return device;
}

void hide_opencl_memory(tide_device *device) { ((tide__opencl *)device)->host_visible = false; }

tide_device *open_staged_opencl(void) {
    tide_device *device = open_opencl();
    hide_opencl_memory(device);
    return device;
}
