/* The bits are the same, on the whole matrix of support/bits.h; of the large families on a sample of it. */
#include "support/bits.h"
#include "support/opencl.h"
#include "support/test.h"

enum { SAMPLE = 17 }; /* every so many; prime to the sizes of all axes */

static void test_all(void **state) {
    bits_matrix m;
    bits_open(&m, *state, true);
    for (uint32_t i = 0; i < bits_count(&m); i++)
        if (!bits_is_large(bits_nth(&m, i)) || i % SAMPLE == 0) bits_check(&m, bits_nth(&m, i));
    print_message("%u trainings, %u with transfers, %u with re-runs, %u in more than was asked\n", m.n_done, m.n_moved,
                  m.n_rerun, m.n_raised);
    bits_close(&m);
}

int main(void) {
    static char cpu[] = "cpu", opencl[] = "opencl";
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_all, cpu)};
    const struct CMUnitTest opencl_tests[] = {cmocka_unit_test_prestate(test_all, opencl)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return has_opencl() ? failed + cmocka_run_group_tests(opencl_tests, NULL, NULL) : failed;
}
