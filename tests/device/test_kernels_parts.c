/* Ops on parts of weights, gradients and states give the bits of the same op on the whole: norms in groups, updates in parts, values
 * that are cut and put together. On every device that has kernels. */
#include "support/test.h"

#include <math.h>

#include "base/rng.h"
#include "support/cuda.h"
#include "support/kernel_checks.h"
#include "support/opencl.h"

/* ---- norms in groups ---- */

static void run_at(kernel_rig *rig, const tide_op_desc *d, const tide_step_args *args, const uint64_t *offsets,
                   uint32_t n_offsets) {
    tide_kernel *kernel = NULL;
    assert_ok(tide_kernel_create(rig->device, d, &kernel));
    assert_ok(tide_kernel_enqueue(kernel, 0, rig->queue, rig->arena, offsets, n_offsets, args));
    assert_ok(tide_queue_sync(rig->queue));
    tide_kernel_destroy(kernel);
}

/* Three gradients at once, and in two groups: the same factor. */
static void test_norm_in_groups(void **state) {
    enum { A = 0, B = 4096, C = 8192, SUM = 12288, WHOLE = 16384, GROUPED = 20480, WORK = 24576, END = 28672 };
    static const uint64_t sizes[3] = {1000, 700, 33};
    kernel_rig rig;
    rig_open(&rig, *state);
    memset(rig.bytes, 0, END);
    for (int k = 0; k < 3; k++)
        for (uint64_t i = 0; i < sizes[k]; i++)
            ((float *)(void *)(rig.bytes + (uint64_t)k * B))[i] = 1 - 2 * tide__random_unit(5, (uint64_t)k, i);
    rig_put(&rig, 0, END);
    tide_op_desc whole = {.kind = TIDE_OP_GRAD_NORM, .n_grads = 3, .grad_elements = sizes, .clip_norm = 0.7f};
    tide_op_desc first = whole, rest = whole;
    first.n_grads = 2;
    first.has_next = 1;
    rest.n_grads = 1;
    rest.grad_elements = sizes + 2;
    rest.has_prev = 1;
    run_at(&rig, &whole, NULL, (const uint64_t[]){A, B, C, WHOLE, WORK}, 5);
    run_at(&rig, &first, NULL, (const uint64_t[]){A, B, SUM, WORK}, 4);
    run_at(&rig, &rest, NULL, (const uint64_t[]){C, SUM, GROUPED, WORK}, 4);
    rig_get(&rig, 0, END);
    const float *at_once = (float *)(void *)(rig.bytes + WHOLE), *grouped = (float *)(void *)(rig.bytes + GROUPED);
    assert_true(*at_once > 0 && *at_once < 1);
    if (!strcmp(((const rig_config *)*state)->device, "cpu"))
        assert_memory_equal(at_once, grouped, sizeof(float));
    else
        assert_true(fabsf(*at_once - *grouped) < 1e-6f);
    rig_close(&rig);
}

/* ---- updates in parts ---- */

enum { UPDATED = 1000, UPDATE_STRIDE = 4096, UPDATE_SCALE = 8 * UPDATE_STRIDE }; /* w, m, v, dw; the same; scale */

static tide_op_desc update_of(uint64_t first, uint64_t n) {
    return (tide_op_desc){.kind = TIDE_OP_ADAMW,
                          .elements = UPDATED,
                          .part_first = first,
                          .part_elements = n,
                          .beta1 = 0.9f,
                          .beta2 = 0.99f,
                          .weight_decay = 0.1f,
                          .clipped = 1};
}

/* n floats from `first` on, of the four values at `at`. */
static void update_part(kernel_rig *rig, uint64_t at, uint64_t first, uint64_t n) {
    const uint64_t m = at + UPDATE_STRIDE + first * sizeof(float), v = m + UPDATE_STRIDE, dw = at + 3 * UPDATE_STRIDE;
    const tide_step_args args = {.step = 2, .learning_rate = 0.1f};
    const tide_op_desc d = update_of(first, n < UPDATED ? n : 0);
    run_at(rig, &d, &args, (const uint64_t[]){at, m, v, dw, UPDATE_SCALE, at, m, v}, 8);
}

/* Of everything, and of one part after the other with a state of its own each, in place: the same bits. */
static void test_update_in_parts(void **state) {
    enum { OTHER = 4 * UPDATE_STRIDE, END = UPDATE_SCALE + UPDATE_STRIDE };
    kernel_rig rig;
    rig_open(&rig, *state);
    memset(rig.bytes, 0, END);
    for (uint64_t k = 0; k < 4; k++)
        for (uint64_t i = 0; i < UPDATED; i++) {
            const float x = 1 - 2 * tide__random_unit(7, k, i);
            ((float *)(void *)(rig.bytes + k * UPDATE_STRIDE))[i] = k == 2 ? fabsf(x) : x;
        }
    memcpy(rig.bytes + OTHER, rig.bytes, OTHER);
    *(float *)(void *)(rig.bytes + UPDATE_SCALE) = 0.5f;
    rig_put(&rig, 0, END);
    update_part(&rig, 0, 0, UPDATED);
    update_part(&rig, OTHER, 0, 384);
    rig_get(&rig, 0, END);
    assert_memory_equal(rig.bytes, rig.bytes + OTHER, 384 * sizeof(float));
    assert_memory_not_equal(rig.bytes, rig.bytes + OTHER, UPDATED * sizeof(float));
    update_part(&rig, OTHER, 384, UPDATED - 384);
    rig_get(&rig, 0, END);
    assert_memory_equal(rig.bytes, rig.bytes + OTHER, OTHER);
    refuse(&rig, update_of(UPDATED - 10, 11), TIDE_E_ARGUMENT);
    rig_close(&rig);
}

/* ---- parts ---- */

/* Cut into three and put together again, in place of the first: the same bytes. */
static void test_cut_and_paste(void **state) {
    enum { N = 1000, STRIDE = 4096, WHOLE = 4 * STRIDE, END = 5 * STRIDE };
    static const uint64_t ends[4] = {0, 384, 385, N};
    kernel_rig rig;
    rig_open(&rig, *state);
    memset(rig.bytes, 0, END);
    for (int i = 0; i < N; i++) ((float *)(void *)rig.bytes)[i] = 1 - 2 * tide__random_unit(9, 0, (uint64_t)i);
    rig_put(&rig, 0, END);
    for (uint64_t i = 0; i < 3; i++) {
        const uint64_t part = STRIDE * (1 + i);
        tide_op_desc d = {
            .kind = TIDE_OP_CUT, .elements = N, .part_first = ends[i], .part_elements = ends[i + 1] - ends[i]};
        run_at(&rig, &d, NULL, (const uint64_t[]){0, part}, 2);
        d.kind = TIDE_OP_PASTE;
        d.has_prev = i > 0;
        run_at(&rig, &d, NULL, i > 0 ? (const uint64_t[]){WHOLE, part, WHOLE} : (const uint64_t[]){part, WHOLE},
               i > 0 ? 3 : 2);
        rig_get(&rig, 0, END);
        assert_memory_equal(rig.bytes, rig.bytes + WHOLE, ends[i + 1] * sizeof(float));
        if (i < 2) assert_memory_not_equal(rig.bytes, rig.bytes + WHOLE, N * sizeof(float));
    }
    tide_op_desc d = {.kind = TIDE_OP_PASTE, .elements = N, .part_first = N - 10, .part_elements = 11};
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d.part_elements = 0;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    rig_close(&rig);
}

int main(void) {
    static rig_config cpu = {.device = "cpu", .threads = 1}, opencl = {.device = "opencl"}, cuda = {.device = "cuda"};
    static rig_config *const devices[] = {&cpu, &opencl, &cuda};
    const bool is_there[] = {true, has_opencl(), has_cuda()};
    int failed = 0;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(test_norm_in_groups, devices[i]),
            cmocka_unit_test_prestate(test_update_in_parts, devices[i]),
            cmocka_unit_test_prestate(test_cut_and_paste, devices[i]),
        };
        if (is_there[i]) failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
