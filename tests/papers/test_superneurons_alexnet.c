/* SuperNeurons' figures for AlexNet, batch 200 (MB = 2^20 bytes): baseline 2189.437, with liveness 1489.355, the peak
 * at the backward of POOL5. */
#include "papers/superneurons.h"

#define MIB 1048576.0

static double relative_error(double value, double expected) {
    double difference = value - expected;
    return (difference < 0 ? -difference : difference) / expected;
}

/* Every tensor has its own bytes, but for gradients in place. */
static uint64_t baseline_bytes(const tide_program *p) {
    uint64_t sum = 0;
    for (tide_id i = 0; i < tide_program_tensor_count(p); i++) sum += tide_program_tensor(p, i)->size_bytes;
    for (tide_id i = 0; i < tide_program_op_count(p); i++) {
        const tide_op *op = tide_program_op(p, i);
        for (uint32_t k = 0; k < op->n_inplace; k++)
            sum -= tide_program_tensor(p, op->writes[op->inplace[k].write])->size_bytes;
    }
    return sum;
}

static void baseline(void **state) {
    (void)state;
    paper_options o = {.batch = 200};
    o.inplace[PAPER_RELU] = o.inplace[PAPER_LRN] = o.inplace[PAPER_SOFTMAX] = true;
    tide_program *p = paper_program(paper_alexnet, PAPER_ALEXNET_LAYERS, &o);
    double mib = (double)baseline_bytes(p) / MIB;
    print_message("baseline %.3f MiB, paper 2189.437\n", mib);
    assert_true(relative_error(mib, 2189.437) < 1e-3);
    tide_program_destroy(p);
}

static void liveness(void **state) {
    (void)state;
    paper_options o = {.batch = 200};
    o.inplace[PAPER_RELU] = true;
    tide_program *p = paper_program(paper_alexnet, PAPER_ALEXNET_LAYERS, &o);
    tide_liveness *l;
    assert_ok(tide_liveness_create(p, &l));
    double mib = (double)l->peak_bytes / MIB;
    print_message("liveness %.3f MiB at %s, paper 1489.355 at POOL5 backward\n", mib,
                  tide_program_op(p, l->peak_op)->name);
    assert_true(relative_error(mib, 1489.355) < 1e-3);
    assert_string_equal(tide_program_op(p, l->peak_op)->name, "pool5.bwd");
    tide_liveness_destroy(l);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(baseline), cmocka_unit_test(liveness)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
