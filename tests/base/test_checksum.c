/* The checksum of bytes in transit: damage shows, and all machines agree on it. */
#include "support/test.h"

#include "base/checksum.h"

enum { SIZE = 1000 }; /* seven rounds of the loop and a rest */

static void fill(unsigned char bytes[SIZE]) {
    for (int i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i * 37 + i / 251);
}

static void test_every_bit_counts(void **state) {
    (void)state;
    unsigned char bytes[SIZE];
    fill(bytes);
    const uint64_t sum = tide__checksum(bytes, SIZE);
    for (int bit = 0; bit < 8 * SIZE; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_true(tide__checksum(bytes, SIZE) != sum);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(tide__checksum(bytes, SIZE - 1) != sum);
    assert_true(tide__checksum(bytes, 0) == tide__checksum(NULL, 0));
}

/* Signs of two numbers that meet in one chain: a multiplication alone leaves the highest bit where it is. */
static void test_two_signs_count(void **state) {
    (void)state;
    unsigned char bytes[SIZE];
    fill(bytes);
    const uint64_t sum = tide__checksum(bytes, SIZE);
    for (int i = 3; i < SIZE; i += 4) {
        for (int j = i + 4; j < SIZE; j += 4) {
            bytes[i] ^= 0x80;
            bytes[j] ^= 0x80;
            assert_true(tide__checksum(bytes, SIZE) != sum);
            bytes[i] ^= 0x80;
            bytes[j] ^= 0x80;
        }
    }
}

static void test_order_counts(void **state) {
    (void)state;
    unsigned char bytes[SIZE], other[SIZE];
    fill(bytes);
    for (int size = 4; size <= 256; size *= 2) {
        memcpy(other, bytes, SIZE);
        memcpy(other, bytes + size, (size_t)size);
        memcpy(other + size, bytes, (size_t)size);
        assert_true(tide__checksum(other, SIZE) != tide__checksum(bytes, SIZE));
    }
}

/* Two machines compare sums, and one of them may have no wide registers. */
static void test_machines_agree(void **state) {
    (void)state;
    unsigned char bytes[SIZE];
    fill(bytes);
    if (*(const unsigned char *)&(const uint16_t){1} == 1)
        assert_int_equal(tide__checksum(bytes, SIZE), UINT64_C(0xdbd184865ac8401f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_two_signs_count),
        cmocka_unit_test(test_order_counts),
        cmocka_unit_test(test_machines_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
