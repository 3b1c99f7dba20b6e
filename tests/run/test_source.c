/* Values in files: read in pieces as they are, or widened, which must be exact; and files that are not what was said. */
#include "support/test.h"

#include <tidemark/source.h>

#include <math.h>
#include <unistd.h>

enum { N_HALVES = 1 << 16, HEAD_BYTES = 24 };

/* A file of HEAD_BYTES of anything and then every number of 16 bits. */
static void write_halves(char *path) {
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    for (int i = 0; i < HEAD_BYTES; i++) fputc('x', file);
    for (uint32_t i = 0; i < N_HALVES; i++) {
        uint16_t half = (uint16_t)i;
        assert_int_equal(fwrite(&half, sizeof half, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

/* By definition, digit by digit. */
static double value_of_f16(uint32_t half) {
    uint32_t exponent = (half >> 10) & 31, fraction = half & 1023;
    double sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, -24);
    return sign * ldexp(1024 + fraction, (int)exponent - 25);
}

static void check_f16(const float *values) {
    for (uint32_t i = 0; i < N_HALVES; i++) {
        double want = value_of_f16(i);
        if (isnan(want))
            assert_true(isnan(values[i]));
        else
            assert_true((double)values[i] == want && !signbit(values[i]) == !signbit(want));
    }
}

static void check_bf16(const float *values) {
    for (uint32_t i = 0; i < N_HALVES; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        assert_int_equal(bits, i << 16);
    }
}

static void test_every_half(void **state) {
    (void)state;
    char path[] = "/tmp/tidemark-source-XXXXXX";
    static float values[N_HALVES];
    tide_source *source;
    write_halves(path);
    assert_ok(tide_source_create(&source));
    assert_ok(tide_source_add(source, 3, path, HEAD_BYTES, 2 * N_HALVES, TIDE_STORED_F16));
    assert_ok(tide_source_add(source, 0, path, HEAD_BYTES, 2 * N_HALVES, TIDE_STORED_BF16));
    assert_ok(tide_source_add(source, 1, path, 0, HEAD_BYTES + 2, TIDE_STORED_AS_IS));
    for (uint64_t at = 0; at < sizeof values; at += 100000) { /* in pieces of no round size */
        uint64_t n = sizeof values - at < 100000 ? sizeof values - at : 100000;
        assert_ok(tide_source_read(source, 3, at, (char *)values + at, n));
    }
    check_f16(values);
    assert_ok(tide_source_read(source, 0, 0, values, sizeof values));
    check_bf16(values);
    char plain[HEAD_BYTES + 2];
    assert_ok(tide_source_read(source, 1, 1, plain, HEAD_BYTES + 1));
    assert_memory_equal(plain, "xxxxxxxxxxxxxxxxxxxxxxx\0\0", HEAD_BYTES + 1);
    tide_source_destroy(source);
    unlink(path);
}

static void test_what_is_not_there(void **state) {
    (void)state;
    char path[] = "/tmp/tidemark-source-XXXXXX";
    char data[16];
    tide_source *source;
    write_halves(path);
    assert_ok(tide_source_create(&source));
    assert_status(tide_source_add(source, 0, "/nowhere/at/all", 0, 4, TIDE_STORED_AS_IS), TIDE_E_IO);
    assert_status(tide_source_add(source, 0, "/tmp", 0, 4, TIDE_STORED_AS_IS), TIDE_E_IO);
    assert_status(tide_source_add(source, 0, path, HEAD_BYTES, 2 * N_HALVES + 2, TIDE_STORED_BF16), TIDE_E_IO);
    assert_status(tide_source_add(source, 0, path, UINT64_MAX, 2, TIDE_STORED_BF16), TIDE_E_IO);
    assert_status(tide_source_add(source, 0, path, 0, 3, TIDE_STORED_BF16), TIDE_E_ARGUMENT);
    assert_ok(tide_source_add(source, 0, path, HEAD_BYTES, 8, TIDE_STORED_BF16));
    assert_status(tide_source_add(source, 0, path, 0, 2, TIDE_STORED_BF16), TIDE_E_ARGUMENT);
    assert_status(tide_source_read(source, 1, 0, data, 4), TIDE_E_ARGUMENT);
    assert_status(tide_source_read(source, 0, 2, data, 4), TIDE_E_ARGUMENT);
    assert_status(tide_source_read(source, 0, 4, data, 16), TIDE_E_ARGUMENT);
    assert_status(tide_source_read(source, 0, UINT64_MAX - 3, data, 4), TIDE_E_ARGUMENT);
    assert_int_equal(truncate(path, HEAD_BYTES + 4), 0);
    assert_status(tide_source_read(source, 0, 0, data, 16), TIDE_E_IO);
    tide_source_destroy(source);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_half),
        cmocka_unit_test(test_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
