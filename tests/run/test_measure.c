/* Measuring: what comes out is a valid machine that survives its file, and what cannot be measured says so. Figures are
 * not judged here: they belong to the machine. */
#include "support/test.h"

#include <unistd.h>

#include <tidemark/run.h>

static tide_device *device;

/* One thread: tests share the machine, and two would wait for each other. */
static int open_cpu(void **state) {
    tide_device_options o;
    tide_device_options_init(&o);
    o.threads = 1;
    return tide_device_open("cpu", &o, &device) == TIDE_OK ? 0 : -1;
}

static int close_cpu(void **state) {
    tide_device_close(device);
    return 0;
}

static tide_measure_options quick(void) {
    tide_measure_options o;
    tide_measure_options_init(&o);
    o.time_ns = 1;
    o.arena_bytes = UINT64_C(16) << 20;
    return o;
}

static void count(void *context, const char *text) {
    assert_true(strlen(text) > 0);
    ++*(int *)context;
}

static void measures_a_machine(void **state) {
    tide_measure_options o = quick();
    tide_machine m, again;
    int said = 0;
    o.name = "here";
    o.progress = count;
    o.progress_context = &said;
    assert_ok(tide_machine_measure(device, &o, &m));
    assert_ok(tide_machine_validate(&m));
    assert_string_equal(m.name, "here");
    assert_string_equal(m.source, "measured");
    assert_true(said >= 5);
    assert_true(m.flops_per_s > 1e6 && m.bytes_per_s > 1e6);
    assert_int_equal(m.n_tiers, 3);
    assert_int_equal(m.n_channels, 5);
    for (uint32_t i = 0; i < m.n_channels; i++) assert_true(m.channel[i].bytes_per_s > 1000);

    char path[] = "/tmp/tide-measure-XXXXXX.json";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    assert_ok(tide_machine_write(&m, path));
    assert_ok(tide_machine_load(path, &again));
    assert_true(tide_machine_fingerprint(&m) == tide_machine_fingerprint(&again));
    unlink(path);
    close(fd);
}

static void leaves_the_disk_out(void **state) {
    tide_measure_options o = quick();
    tide_machine m;
    o.disk_bytes = 0;
    o.disk_path = "/nonexistent/folder";
    assert_ok(tide_machine_measure(device, &o, &m));
    assert_string_equal(m.name, "cpu");
    assert_int_equal(tide_machine_find_tier(&m, TIDE_TIER_DISK), TIDE_NONE);
    assert_int_equal(m.n_channels, 3);
}

static void fails_cleanly(void **state) {
    tide_measure_options o = quick();
    tide_machine m = {.name = "untouched"};
    o.disk_path = "/nonexistent/folder";
    assert_status(tide_machine_measure(device, &o, &m), TIDE_E_IO);
    assert_error_has("/nonexistent/folder");
    char long_name[TIDE_MACHINE_NAME_BYTES + 1];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    o = quick();
    o.name = long_name;
    assert_status(tide_machine_measure(device, &o, &m), TIDE_E_ARGUMENT);
    o = quick();
    o.arena_bytes--;
    assert_status(tide_machine_measure(device, &o, &m), TIDE_E_ARGUMENT);
    o = quick();
    o.size = 3;
    assert_status(tide_machine_measure(device, &o, &m), TIDE_E_ARGUMENT);
    assert_status(tide_machine_measure(NULL, &o, &m), TIDE_E_ARGUMENT);
    assert_string_equal(m.name, "untouched");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures_a_machine),
        cmocka_unit_test(leaves_the_disk_out),
        cmocka_unit_test(fails_cleanly),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
