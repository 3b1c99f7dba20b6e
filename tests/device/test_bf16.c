/* Kernels of bf16 on operands that are cut into parts of samples: even ones, ones with fewer samples at the end, sums over
 * parts. And what no kernel does: numbers that are no numbers, other devices. Small operands are tested with the kernels of float32. */
#include "support/test.h"

#include <math.h>

#include "support/kernel_checks.h"
#include "support/opencl.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static tide_op_desc window(tide_op_kind kind, tide_shape x, int64_t outputs, int32_t kernel, int32_t stride) {
    tide_op_desc d = {.kind = kind, .x = x, .kernel_h = kernel, .kernel_w = kernel, .stride = stride, .bias = 1};
    d.pad_h = d.pad_w = kernel / 2;
    d.y = (tide_shape){x.n, outputs, (x.h + 2 * d.pad_h - kernel) / stride + 1,
                       (x.w + 2 * d.pad_w - kernel) / stride + 1};
    return d;
}

static void visit_cut(visit_fn visit, void *context) {
    static const tide_shape images = {9, 24, 60, 52}, rows = {2500, 260, 1, 1}, qkv = {11 * 96, 3 * 256, 1, 1};
    tide_op_desc d;
    for (int k = 0; k < 3; k++) {
        d = window((tide_op_kind)(TIDE_OP_CONV_FWD + k), images, 20, 3, 1), visit(&d, context);
        d = (tide_op_desc){.x = rows, .y = {rows.n, 300, 1, 1}, .bias = 1};
        d.kind = (tide_op_kind)(TIDE_OP_FC_FWD + k), visit(&d, context);
        d = (tide_op_desc){
            .x = {7, 24, 30, 36}, .y = {7, 40, 60, 72}, .kernel_h = 2, .kernel_w = 2, .stride = 2, .bias = 1};
        d.kind = (tide_op_kind)(TIDE_OP_UPCONV_FWD + k), visit(&d, context);
    }
    for (int k = 0; k < 4; k++)
        d = window((tide_op_kind)(TIDE_OP_MAXPOOL_FWD + k), images, images.c, 3, 2), visit(&d, context);
    for (int k = 0; k < 2; k++) {
        d = (tide_op_desc){.x = images, .y = images, .lrn_size = 5, .lrn_alpha = 0.5f, .lrn_beta = 0.75f, .lrn_k = 2};
        d.kind = (tide_op_kind)(TIDE_OP_LRN_FWD + k), visit(&d, context);
        d = (tide_op_desc){.x = rows, .y = rows, .eps = 1e-5f};
        d.kind = (tide_op_kind)(TIDE_OP_LAYERNORM_FWD + k), visit(&d, context);
        d = (tide_op_desc){.x = qkv, .y = {qkv.n, qkv.c / 3, 1, 1}, .heads = 4, .context = 96};
        d.kind = (tide_op_kind)(TIDE_OP_ATTENTION_FWD + k), visit(&d, context);
    }
    d = (tide_op_desc){.kind = TIDE_OP_BN_FWD, .x = images, .y = images, .eps = 1e-5f}, visit(&d, context);
    d.kind = TIDE_OP_BN_BWD, visit(&d, context);
    d.kind = TIDE_OP_BN_INFER, visit(&d, context);
}

static void test_cut(void **state) { check_all_bf16(*state, visit_cut); }

/* So few samples that one thread of many has none. */
static void visit_few(visit_fn visit, void *context) {
    tide_op_desc d = {.x = {64, 40, 1, 1}, .y = {64, 24, 1, 1}, .bias = 1};
    for (int k = 0; k < 3; k++) d.kind = (tide_op_kind)(TIDE_OP_FC_FWD + k), visit(&d, context);
    d = (tide_op_desc){.kind = TIDE_OP_LAYERNORM_BWD, .x = d.x, .y = d.x, .eps = 1e-5f}, visit(&d, context);
}

static void test_idle_threads(void **state) { check_all_bf16(*state, visit_few); }

/* Workspaces have some samples: four times as many want no more. */
static void see_workspace(const tide_op_desc *d, void *context) {
    tide_op_desc half = *d;
    half.bf16 = 1;
    half.x.n *= 4;
    half.y.n *= 4;
    const uint64_t wide = info_of(context, d).variant[0].workspace_bytes;
    assert_in_range(info_of(context, &half).variant[0].workspace_bytes, 0, wide + (5 << 20));
}

static void test_workspace(void **state) { check_all_on(*state, visit_cut, see_workspace); }

static void test_rounding(void **state) {
    static const struct {
        uint32_t from;
        uint16_t to;
    } numbers[] = {
        {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80},
        {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x00000001, 0x0000},
        {0x80000000, 0x8000}, {0x7f800001, 0x7fc0}, {0xffffffff, 0xffff}, {0x00008001, 0x0001},
    };
    enum { N = COUNT(numbers) };
    kernel_rig rig;
    tide_kernel *kernel = NULL;
    float plain[N], back[N];
    uint16_t stored[N];
    const tide_op_desc d = {.kind = TIDE_OP_RELU_FWD, .x = {1, N, 1, 1}, .y = {1, N, 1, 1}, .bf16 = 1};
    rig_open(&rig, *state);
    assert_ok(tide_kernel_create(rig.device, &d, &kernel));
    for (int i = 0; i < N; i++) memcpy(&plain[i], &numbers[i].from, sizeof *plain);
    assert_ok(tide_operand_pack(kernel, 0, plain, stored));
    for (int i = 0; i < N; i++) assert_int_equal(stored[i], numbers[i].to);
    assert_ok(tide_operand_unpack(kernel, 0, stored, back));
    for (int i = 0; i < N; i++) {
        uint32_t bits;
        memcpy(&bits, &back[i], sizeof bits);
        assert_int_equal(bits, (uint32_t)numbers[i].to << 16);
    }
    tide_kernel_destroy(kernel);
    rig_close(&rig);
}

static void run_numbers(kernel_rig *rig, const tide_op_desc *d, const float *numbers, int n, float *out) {
    const uint32_t reads = info_of(rig, d).n_reads;
    rig_case c;
    rig_case_init(&c, d, 1);
    for (uint32_t r = 0; r < reads; r++)
        for (int i = 0; i < n * n; i++) c.plain[r][i] = numbers[r ? i / n : i % n];
    rig_run(rig, &c, &(rig_options){.in_place_read = -1});
    memcpy(out, c.plain[reads], sizeof *out * (size_t)(n * n));
    rig_case_deinit(&c);
}

/* Signs, infinities and what is no number: ops that look at bf16 as it lies see the same as those of float32. */
static void test_numbers(void **state) {
    static const float numbers[] = {0, -0.0f, 1, -1, 1e-40f, -1e-40f, INFINITY, -INFINITY, NAN, -NAN, 3e38f, -3e38f};
    static const tide_op_kind kinds[] = {TIDE_OP_RELU_FWD, TIDE_OP_RELU_BWD, TIDE_OP_ADD};
    enum { N = COUNT(numbers) };
    float wide[N * N], half[N * N];
    kernel_rig rig;
    rig_open(&rig, *state);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        tide_op_desc d = {.kind = kinds[k], .x = {1, N * N, 1, 1}, .y = {1, N * N, 1, 1}};
        float short_ones[N];
        for (int i = 0; i < N; i++) short_ones[i] = nearest_bf16(numbers[i]);
        run_numbers(&rig, &d, short_ones, N, wide);
        d.bf16 = 1;
        run_numbers(&rig, &d, short_ones, N, half);
        for (int i = 0; i < N * N; i++) {
            const float expected = nearest_bf16(wide[i]);
            assert_int_equal(isnan(half[i]), isnan(expected));
            if (!isnan(expected)) assert_memory_equal(&half[i], &expected, sizeof expected);
        }
    }
    rig_close(&rig);
}

/* Winograd's method has a workspace of its own: with a bias the same, and with bf16, which it reads by itself. */
static void test_winograd(void **state) {
    kernel_rig rig;
    rig_open(&rig, *state);
    for (int k = 0; k < 3; k++) {
        tide_op_desc d = window((tide_op_kind)(TIDE_OP_CONV_FWD + k), (tide_shape){8, 64, 28, 28}, 128, 3, 1);
        const uint64_t with_bias = info_of(&rig, &d).variant[0].workspace_bytes;
        d.bias = 0;
        assert_int_equal(with_bias, info_of(&rig, &d).variant[0].workspace_bytes);
#if defined(__x86_64__)
        const bool works = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        assert_true(!works || with_bias > 1 << 20);
        d.bf16 = 1;
        if (works) assert_int_equal(with_bias, info_of(&rig, &d).variant[0].workspace_bytes);
#endif
    }
    rig_close(&rig);
}

static void test_refused_elsewhere(void **state) {
    tide_op_desc d = window(TIDE_OP_CONV_FWD, (tide_shape){2, 3, 8, 8}, 4, 3, 1);
    kernel_rig rig;
    (void)state;
    if (!has_opencl()) skip();
    rig_open(&rig, &(rig_config){.device = "opencl"});
    d.bf16 = 1;
    refuse(&rig, d, TIDE_E_UNSUPPORTED);
    assert_error_has("\"conv\" of bf16");
    rig_close(&rig);
}

int main(void) {
    static rig_config one = {.device = "cpu", .threads = 1};
    static rig_config two = {.device = "cpu", .threads = 2}, nine = {.device = "cpu", .threads = 9};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_cut, &one),
#ifndef __SANITIZE_THREAD__ /* it does not see the barriers of OpenMP's own library */
        cmocka_unit_test_prestate(test_cut, &two),       cmocka_unit_test_prestate(test_idle_threads, &nine),
#endif
        cmocka_unit_test_prestate(test_workspace, &one), cmocka_unit_test_prestate(test_rounding, &two),
        cmocka_unit_test_prestate(test_numbers, &one),   cmocka_unit_test_prestate(test_winograd, &two),
        cmocka_unit_test(test_refused_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
