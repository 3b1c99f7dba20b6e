/* Eight threads on one pool, for seconds: storm.h. */
#include "storm.h"

static const uint64_t OPERATIONS = 400000; /* in each of the two storms */

static void trains_beside_small_blocks(void **state) {
    (void)state;
    double share;
    storm_run(OPERATIONS, true, &share);
    assert_true(share > 0.7);
}

static void survives_anything(void **state) {
    (void)state;
    double share;
    storm_run(OPERATIONS, false, &share);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_beside_small_blocks),
        cmocka_unit_test(survives_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
