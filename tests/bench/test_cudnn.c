/* What cuDNN answers for GPUs that are not here, and plans with its workspaces. Skipped where there is no cuDNN. */
#include "support/test.h"

#include "cudnn/planned.h"
#include "support/opencl.h"

static tide__dnn dnn;

static const tide_op_desc conv = {.kind = TIDE_OP_CONV_FWD,
                                  .x = {32, 64, 56, 56},
                                  .y = {32, 64, 56, 56},
                                  .kernel_h = 3,
                                  .kernel_w = 3,
                                  .stride = 1,
                                  .pad_h = 1,
                                  .pad_w = 1};

static void open_conv(int gpu, tide_op_kind kind, tide__dnn_gpu *described, tide__dnn_conv *out) {
    tide_op_desc d = conv;
    d.kind = kind;
    assert_ok(tide__dnn_describe(&dnn, planned_gpus[gpu].properties, described));
    assert_ok(tide__dnn_conv_open(described, &d, out));
}

/* The same question twice has the same answer, the lean way is the leanest, and float32 is always there. */
static void test_answers(void **state) {
    (void)state;
    static const tide_op_kind kinds[] = {TIDE_OP_CONV_FWD, TIDE_OP_CONV_BWD_DATA, TIDE_OP_CONV_BWD_WEIGHTS};
    for (int g = 0; g < PLANNED_GPUS; g++)
        for (int k = 0; k < 3; k++) {
            tide__dnn_gpu gpu[2];
            tide__dnn_conv c[2];
            for (int i = 0; i < 2; i++) open_conv(g, kinds[k], &gpu[i], &c[i]);
            for (int way = 0; way < TIDE__DNN_WAYS; way++)
                assert_int_equal(c[0].engine[way].workspace_bytes, c[1].engine[way].workspace_bytes);
            assert_non_null(c[0].engine[TIDE__DNN_FINE].plan);
            assert_true(c[0].engine[TIDE__DNN_LEAN].workspace_bytes <= c[0].engine[TIDE__DNN_FINE].workspace_bytes);
            for (int i = 0; i < 2; i++) {
                tide__dnn_conv_close(&c[i]);
                tide__dnn_forget(&gpu[i]);
            }
        }
}

/* A T4 has no TF32: an answer that were the same for all GPUs would not be one. */
static void test_answers_are_of_the_gpu(void **state) {
    (void)state;
    for (int g = 0; g < PLANNED_GPUS; g++) {
        tide__dnn_gpu gpu;
        tide__dnn_conv c;
        open_conv(g, TIDE_OP_CONV_FWD, &gpu, &c);
        assert_int_equal(c.engine[TIDE__DNN_COARSE].plan != NULL, strcmp(planned_gpus[g].machine, "t4") != 0);
        tide__dnn_conv_close(&c);
        tide__dnn_forget(&gpu);
    }
}

static void test_refuses(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "{}", "{\"deviceVer\":800}", "no json"};
    tide__dnn_gpu gpu = {0};
    tide__dnn_conv c = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(tide__dnn_describe(&dnn, wrong[i], &gpu), TIDE_E_DEVICE);
        assert_error_has("cuDNN cannot describe a GPU");
    }
    tide_op_desc d = {.kind = TIDE_OP_ADD};
    assert_ok(tide__dnn_describe(&dnn, planned_gpus[0].properties, &gpu));
    assert_status(tide__dnn_conv_open(&gpu, &d, &c), TIDE_E_UNSUPPORTED);
    d = conv;
    d.y.h = 7; /* not what the window leaves */
    assert_status(tide__dnn_conv_open(&gpu, &d, &c), TIDE_E_DEVICE);
    assert_int_equal(c.made.count, 0);
    tide__dnn_forget(&gpu);
}

/* bench_cudnn does the same for ResNet-50 and larger batches. */
static void test_plans(void **state) {
    (void)state;
    for (int g = 0; g < PLANNED_GPUS; g++) {
        planned r;
        assert_ok(planned_make(&dnn, &planned_gpus[g], "vgg16", 16, 0.6, &r));
        assert_int_equal(r.n_convolutions, 13 + 12 + 13); /* the first needs no gradient of its input */
        assert_int_equal(r.n_different, 0);
        assert_true(r.workspace_bytes > 0 && r.arena_bytes <= r.free_bytes / 10 * 6 + 6);
        assert_int_equal(r.n_runs[TIDE__DNN_COARSE] > 0, strcmp(planned_gpus[g].machine, "t4") != 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_answers_are_of_the_gpu),
                                       cmocka_unit_test(test_refuses), cmocka_unit_test(test_plans)};
    if (tide__dnn_load(&dnn) == TIDE_OK) return cmocka_run_group_tests(tests, NULL, NULL);
    printf("skipped: what cuDNN answers: %s; run: install cuDNN 9.8 or later\n", tide_last_error());
    return SKIPPED;
}
