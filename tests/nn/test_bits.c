/* The bits are the same: a part of the matrix of support/bits.h in which every pair of choices on two axes occurs. Plans
 * are the same on every device, so on the second the first points will do, which have every choice and most pairs. The
 * whole matrix, on both, is test_bits_full. */
#include "support/bits.h"
#include "support/opencl.h"
#include "support/test.h"

#include <math.h>

/* What of the matrix a device gets. Under a sanitizer it is the first points, too. */
typedef struct share {
    const char *device;
    uint32_t most_points;
} share;

enum { ALL_PAIRS = SANITIZER_SHARE > 1 ? 80 / SANITIZER_SHARE : 10000, FIRST_POINTS = ALL_PAIRS < 30 ? ALL_PAIRS : 30 };

typedef struct cover {
    const bits_matrix *matrix;
    uint32_t first[BITS_AXES], n; /* where an axis begins among all choices; how many there are */
    bool *paired;                 /* n x n: this pair has occurred */
} cover;

static void open_cover(cover *c, const bits_matrix *m) {
    *c = (cover){.matrix = m};
    for (int a = 0; a < BITS_AXES; a++) {
        c->first[a] = c->n;
        c->n += m->size[a];
    }
    c->paired = calloc((size_t)c->n * c->n, sizeof *c->paired);
    assert_non_null(c->paired);
}

static bool *pair_of(const cover *c, bits_point p, int a, int b) {
    return &c->paired[(size_t)(c->first[a] + p.at[a]) * c->n + c->first[b] + p.at[b]];
}

/* Pairs that this point would be the first to have. */
static uint32_t gain(const cover *c, bits_point p) {
    uint32_t n = 0;
    for (int a = 0; a < BITS_AXES; a++)
        for (int b = a + 1; b < BITS_AXES; b++) n += !*pair_of(c, p, a, b);
    return n;
}

/* The first of the points that gain most; false: nothing is left to gain. */
static bool next_point(const cover *c, bits_point *out) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < bits_count(c->matrix); i++) {
        bits_point p = bits_nth(c->matrix, i);
        uint32_t gained = gain(c, p);
        if (gained <= best) continue;
        best = gained;
        *out = p;
    }
    return best > 0;
}

static void test_pairs(void **state) {
    const share *part = *state;
    bits_matrix m;
    cover c;
    bits_point p;
    bits_open(&m, part->device, false);
    open_cover(&c, &m);
    while (m.n_done < part->most_points && next_point(&c, &p)) {
        bits_check(&m, p);
        for (int a = 0; a < BITS_AXES; a++)
            for (int b = a + 1; b < BITS_AXES; b++) *pair_of(&c, p, a, b) = true;
    }
    print_message("%u of %u trainings, %u with transfers, %u with re-runs, %u in more than was asked, %u in two "
                  "tiers\n",
                  m.n_done, bits_count(&m), m.n_moved, m.n_rerun, m.n_raised, m.n_both);
    assert_true(m.n_moved > m.n_done / 4 && m.n_rerun > m.n_done / 25 && m.n_both > m.n_done / 25);
    free(c.paired);
    bits_close(&m);
}

/* Another device computes other bits, but the same training. */
static void test_devices_agree(void **state) {
    (void)state;
    bits_matrix cpu, opencl;
    bits_open(&cpu, "cpu", false);
    bits_open(&opencl, "opencl", false);
    for (uint32_t f = 0; f < cpu.size[BITS_FAMILY]; f++) {
        float a[BITS_STEPS], b[BITS_STEPS];
        const char *name = bits_losses(&cpu, f, a);
        bits_losses(&opencl, f, b);
        for (int i = 0; i < BITS_STEPS; i++)
            if (!(fabsf(a[i] - b[i]) <= 1e-4f * fabsf(a[i])))
                fail_msg("%s, step %d: loss %.7g on opencl, %.7g on cpu", name, i, (double)b[i], (double)a[i]);
    }
    bits_close(&cpu);
    bits_close(&opencl);
}

/* An argument names the only device to test. */
int main(int argc, char **argv) {
    static share cpu = {"cpu", ALL_PAIRS}, opencl = {"opencl", FIRST_POINTS};
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_pairs, &cpu)};
    const struct CMUnitTest opencl_tests[] = {cmocka_unit_test_prestate(test_pairs, &opencl),
                                              cmocka_unit_test(test_devices_agree)};
    const char *only = argc > 1 ? argv[1] : "";
    int failed = 0;
    if (strcmp(only, "opencl") != 0) failed += cmocka_run_group_tests(tests, NULL, NULL);
    if (strcmp(only, "cpu") != 0 && has_opencl()) failed += cmocka_run_group_tests(opencl_tests, NULL, NULL);
    return failed;
}
