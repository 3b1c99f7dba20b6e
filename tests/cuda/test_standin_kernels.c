/* The same kernels as PTX of NVIDIA's compiler in the stand-in, and as OpenCL C by a driver (PoCL, here): bits equal where
 * nothing is approximated, and within a few units of the last place elsewhere. Skipped without either. */
#include "support/test.h"

#include <math.h>

#include "cuda/loaded.h"
#include "cuda/opencl_run.h"
#include "support/random_below.h"

enum { N = 1 << 14, GROUPS = 4, LANES = 64, SKIPPED = 77 };

typedef struct pair_case {
    const char *name;
    int32_t width;
    float most_ulps; /* 0: bits are equal; else units of the last place of the larger of the result and `scale` */
    float scale;
} pair_case;

/* Either side has its own exp and tanh, each within two units of the last place; a quotient of sums may be four apart. */
static const pair_case cases[] = {
    {"adam", 64, 0, 0},       {"product", 128, 0, 0}, {"product", 135, 0, 0}, {"normalise", 100, 0, 0},
    {"normalise", 512, 0, 0}, {"drop", 3, 0, 0},      {"pool", 37, 0, 0},     {"whole", 1, 0, 0},
    {"count", 1, 0, 0},       {"softmax", 100, 4, 0}, {"gelu", 1, 2, 0.5f},   {"gate", 1, 2, 0.5f},
    {"log_loss", 1, 2, 0},
};

static char *ptx;

static void draw(float *x) {
    uint64_t random = 11;
    for (int i = 0; i < N; i++) x[i] = (float)((double)random_below(&random, 1 << 24) / (1 << 22) - 2);
}

static void run_standin(const pair_case *c, const float *x, float *y) {
    CUmodule module = NULL;
    CUdeviceptr from = 0, to = 0;
    int32_t n = c->width > 1 ? N / c->width / 8 * 8 * c->width : N, width = c->width;
    standin_open();
    CUfunction f = standin_kernel_of(ptx, c->name, &module);
    assert_cu(cu.cuMemAlloc_v2(&from, N * sizeof *x));
    assert_cu(cu.cuMemAlloc_v2(&to, N * sizeof *y));
    assert_cu(cu.cuMemcpyHtoD_v2(from, x, N * sizeof *x));
    assert_cu(cu.cuMemcpyHtoD_v2(to, y, N * sizeof *y));
    assert_cu(cu.cuLaunchKernel(f, GROUPS, 1, 1, LANES, 1, 1, 0, NULL, (void *[]){&from, &to, &n, &width}, NULL));
    const CUresult result = cu.cuMemcpyDtoH_v2(y, to, N * sizeof *y);
    if (result != CUDA_SUCCESS) fail_msg("%s: %d, %s", c->name, (int)result, cu.report(0));
    assert_cu(cu.cuMemFree_v2(from));
    assert_cu(cu.cuMemFree_v2(to));
    assert_cu(cu.cuModuleUnload(module));
    standin_close();
}

static void run_opencl(const pair_case *c, const float *x, float *y) {
    const int32_t n = c->width > 1 ? N / c->width / 8 * 8 * c->width : N;
    float *all = malloc(N * sizeof *all);
    memcpy(all, y, N * sizeof *all);
    opencl_run(c->name, x, all, n, c->width, GROUPS, LANES);
    memcpy(y, all, (size_t)n * sizeof *y);
    free(all);
}

static void compare(const pair_case *c, const float *a, const float *b) {
    double worst = 0;
    for (int i = 0; i < N; i++) {
        if (memcmp(a + i, b + i, sizeof *a) == 0) continue;
        if (c->most_ulps == 0) fail_msg("%s: element %d is %a, not %a", c->name, i, (double)a[i], (double)b[i]);
        const double size = fmax(fabs((double)b[i]), (double)c->scale), ulp = ldexp(1, ilogb(size) - 23);
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]) / ulp);
    }
    if (c->most_ulps > 0) print_message("%s: at most %g units of the last place apart\n", c->name, worst);
    if (worst > (double)c->most_ulps) fail_msg("%s: %g units of the last place apart", c->name, worst);
}

static void test_pairs(void **state) {
    (void)state;
    static float x[N], a[N], b[N];
    draw(x);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        run_standin(&cases[i], x, a);
        run_opencl(&cases[i], x, b);
        compare(&cases[i], a, b);
    }
}

/* What lanes share has no order that matters: another one gives the same bits. */
static void test_orders(void **state) {
    (void)state;
    static float x[N], a[N], b[N];
    draw(x);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        run_standin(&cases[i], x, a);
        setenv("TIDE_STANDIN_SEED", "99", 1);
        run_standin(&cases[i], x, b);
        unsetenv("TIDE_STANDIN_SEED");
        assert_memory_equal(a, b, sizeof a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_orders)};
    char *text = pairs_opencl_text(), options[64];
    ptx = pairs_ptx_text();
    snprintf(options, sizeof options, "-cl-std=CL1.2 -w -DLANES=%d", LANES);
    int failed = SKIPPED;
    if (ptx && opencl_run_open(text, options)) {
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        opencl_run_close();
    }
    free(text);
    free(ptx);
    return failed;
}
