/* The progress line: numbers that people can read, at any speed. */
#include "support/test.h"

#include <math.h>
#include <unistd.h>

#include "progress.h"

/* The line after `done` of 1000 steps of one image that took `seconds`. */
static void show(uint64_t done, double seconds, float loss, char line[256]) {
    FILE *file = tmpfile();
    int stderr_fd = dup(STDERR_FILENO);
    progress p;
    tide_machine machine = {0};
    tide_step_report report = {.arena_bytes = 1 << 20};
    assert_true(file && stderr_fd >= 0);
    dup2(fileno(file), STDERR_FILENO);
    progress_start(&p, "none", 0, 1000, "img", 1, false);
    p.start_ns = now_ns() - (uint64_t)(seconds * 1e9);
    p.shown_ns = 0;
    progress_step(&p, done, loss, &report, &machine);
    dup2(stderr_fd, STDERR_FILENO);
    close(stderr_fd);
    rewind(file);
    assert_non_null(fgets(line, 256, file));
    fclose(file);
}

#define assert_shows(done, seconds, loss, text)          \
    do {                                                 \
        char line_[256];                                 \
        show(done, seconds, loss, line_);                \
        if (!strstr(line_, text)) fail_msg("%s", line_); \
    } while (0)

static void test_what_is_left(void **state) {
    (void)state;
    assert_shows(1000, 3.0, 1.0F, " 0 s left");
    assert_shows(999, 3.0, 1.0F, " <1 s left"); /* 0 is for the end */
    assert_shows(500, 60.0, 1.0F, " 60 s left");
    assert_shows(500, 600.0, 1.0F, " 10 min left");
    assert_shows(1, 3600.0, 1.0F, " 999.0 h left");
}

static void test_speed(void **state) {
    (void)state;
    assert_shows(500, 5.0, 1.0F, " 100 img/s");
    assert_shows(500, 200.0, 1.0F, " 2.5 img/s");
    assert_shows(1, 20.0, 1.0F, " 0.05 img/s");
}

static void test_losses(void **state) {
    (void)state;
    assert_shows(500, 5.0, 0.25F, "loss 0.2500 ");
    assert_shows(500, 5.0, 3e30F, "e+30 ");
    assert_shows(500, 5.0, 3e-9F, "e-09 ");
    assert_shows(500, 5.0, NAN, "loss nan ");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_left), cmocka_unit_test(test_speed),
                                       cmocka_unit_test(test_losses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
