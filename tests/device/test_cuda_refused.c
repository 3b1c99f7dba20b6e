/* What the CUDA device says where it cannot be used: one line, whatever is missing. Needs no driver. */
#include "support/test.h"

#include <stdlib.h>

#include "support/cuda.h"
#include "support/opencl.h"

static void refuse(const char *library, const char *device_name, const char *why) {
    tide_device *device = NULL;
    const char *old = getenv("TIDE_CUDA_LIBRARY");
    char *saved = old ? strdup(old) : NULL;
    setenv("TIDE_CUDA_LIBRARY", library, 1);
    assert_status(tide_device_open(device_name, NULL, &device), TIDE_E_DEVICE);
    assert_error_has(why);
    assert_error_has("available: cpu, host");
    assert_null(strchr(tide_last_error(), '\n'));
    assert_null(device);
    if (saved)
        setenv("TIDE_CUDA_LIBRARY", saved, 1);
    else
        unsetenv("TIDE_CUDA_LIBRARY");
    free(saved);
}

static void test_without_a_driver(void **state) {
    (void)state;
    refuse("libno-such-driver.so", "cuda", "no NVIDIA driver here: libno-such-driver.so");
    refuse("libno-such-driver.so", "cuda:1", "no NVIDIA driver here");
}

static void test_no_driver_at_all(void **state) {
    (void)state;
    refuse("libm.so.6", "cuda", "libm.so.6 is no CUDA driver: it has no cuDriverGetVersion");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_a_driver),
                                       cmocka_unit_test(test_no_driver_at_all)};
    return is_cuda_built() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
