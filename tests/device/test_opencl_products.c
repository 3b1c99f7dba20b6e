/* Who computes matrix products on the OpenCL device: what is asked for, what is measured, and that a choice that was
 * made once stays. Skipped where there is no OpenCL. What CLBlast computes is tested in test_kernels.c. */
#include "support/test.h"

#include <dirent.h>
#include <unistd.h>

#include "device/gpu/gemm.h"
#include "device/opencl/opencl.h"
#include "support/opencl.h"

static tide__opencl *open_with(const char *products) {
    tide_device *device = NULL;
    setenv("TIDE_OPENCL_PRODUCTS", products, 1);
    assert_ok(tide_device_open("opencl", NULL, &device));
    unsetenv("TIDE_OPENCL_PRODUCTS");
    return (tide__opencl *)device;
}

static void test_unknown_way(void **state) {
    (void)state;
    tide_device *device = NULL;
    setenv("TIDE_OPENCL_PRODUCTS", "fast", 1);
    assert_status(tide_device_open("opencl", NULL, &device), TIDE_E_ARGUMENT);
    assert_error_has("TIDE_OPENCL_PRODUCTS is \"fast\", not measured, own or clblast");
    unsetenv("TIDE_OPENCL_PRODUCTS");
    assert_null(device);
}

/* CLBlast is not used with an OpenCL library of the user's own, which stands for one that is not installed. */
static void test_without_clblast(void **state) {
    (void)state;
    tide_device *device = NULL;
    setenv("TIDE_OPENCL", "libOpenCL.so.1", 1);
    assert_ok(tide_device_open("opencl", NULL, &device));
    assert_int_equal(((tide__opencl *)device)->products, TIDE__PRODUCTS_OWN);
    tide_device_close(device);
    device = NULL;
    setenv("TIDE_OPENCL_PRODUCTS", "clblast", 1);
    assert_status(tide_device_open("opencl", NULL, &device), TIDE_E_DEVICE);
    assert_error_has("asks for CLBlast, which is not here");
    unsetenv("TIDE_OPENCL_PRODUCTS");
    unsetenv("TIDE_OPENCL");
    assert_null(device);
}

/* Asked for, CLBlast has the products of all three ops of a fully connected layer. */
static void test_products_are_clblasts(void **state) {
    (void)state;
    static const tide_op_kind kinds[] = {TIDE_OP_FC_FWD, TIDE_OP_FC_BWD_DATA, TIDE_OP_FC_BWD_WEIGHTS};
    tide__opencl *own = open_with("own"), *clblast = open_with("clblast");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const tide_op_desc d = {.kind = kinds[i], .x = {70, 90, 1, 1}, .y = {70, 110, 1, 1}};
        tide_kernel *a, *b;
        assert_ok(tide_kernel_create(&own->gpu.base, &d, &a));
        assert_ok(tide_kernel_create(&clblast->gpu.base, &d, &b));
        assert_int_equal(((tide__gpu_kernel *)a)->products.count, 0);
        assert_int_equal(((tide__gpu_kernel *)b)->products.count, 1);
        tide_kernel_destroy(a);
        tide_kernel_destroy(b);
    }
    tide_device_close(&own->gpu.base);
    tide_device_close(&clblast->gpu.base);
}

/* ---- choices on disk ---- */

typedef struct cache {
    char base[64], *saved;
} cache;

static void cache_open(cache *c) {
    const char *old = getenv("XDG_CACHE_HOME");
    c->saved = old ? strdup(old) : NULL;
    snprintf(c->base, sizeof c->base, "/tmp/tide-products-XXXXXX");
    assert_non_null(mkdtemp(c->base));
    setenv("XDG_CACHE_HOME", c->base, 1);
}

static void empty(const char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    closedir(dir);
    rmdir(folder);
}

static void cache_close(cache *c) {
    char folder[128];
    snprintf(folder, sizeof folder, "%s/tidemark/opencl", c->base);
    empty(folder);
    snprintf(folder, sizeof folder, "%s/tidemark", c->base);
    rmdir(folder);
    rmdir(c->base);
    if (c->saved)
        setenv("XDG_CACHE_HOME", c->saved, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(c->saved);
}

/* y = x w', of the smallest class. */
static const tide__gemm small = {.m = 20,
                                 .n = 30,
                                 .depth = 40,
                                 .a = {.operand = 0, .row = 40, .column = 1},
                                 .b = {.operand = 1, .row = 1, .column = 40},
                                 .c = {.operand = 2, .row = 30},
                                 .alpha = 1};

static const tide__product_choice *known(const tide__opencl *opencl) {
    for (int i = 0; i < TIDE__PRODUCT_CLASSES; i++)
        if (opencl->choices[i].way != TIDE__PRODUCTS_MEASURED) return &opencl->choices[i];
    return NULL;
}

/* The second device does not measure, but has the times of the first. */
static void test_a_choice_is_kept(void **state) {
    (void)state;
    cache c;
    cache_open(&c);
    tide__opencl *first = open_with("measured"), *second = open_with("measured");
    const bool way = tide__product_is_clblast(&first->gpu, &small);
    assert_true(tide__product_is_clblast(&first->gpu, &small) == way);
    assert_true(tide__product_is_clblast(&second->gpu, &small) == way);
    const tide__product_choice *a = known(first), *b = known(second);
    assert_true(a && b && a->own_ns > 0 && a->clblast_ns > 0);
    assert_memory_equal(a, b, sizeof *a);
    tide_device_close(&first->gpu.base);
    tide_device_close(&second->gpu.base);
    cache_close(&c);
}

/* Who comes second takes what the first has written, whatever it measured itself. */
static void test_the_first_decides(void **state) {
    (void)state;
    cache c;
    cache_open(&c);
    uint64_t one = 1, two = 2, damaged[3] = {7, 7, 7};
    assert_true(tide__gpu_cache_keep("opencl", 99, &one, sizeof one));
    assert_true(tide__gpu_cache_keep("opencl", 99, &two, sizeof two));
    assert_int_equal(two, 1);
    assert_false(tide__gpu_cache_keep("opencl", 99, damaged, sizeof damaged)); /* of another size: not what was kept */
    assert_true(tide__gpu_cache_keep("opencl", 99, damaged, sizeof damaged));
    cache_close(&c);
}

/* Nowhere to keep a choice, so there is none. */
static void test_without_a_cache(void **state) {
    (void)state;
    const char *cache_home = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *saved_cache = cache_home ? strdup(cache_home) : NULL, *saved_home = home ? strdup(home) : NULL;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    tide__opencl *opencl = open_with("measured");
    assert_false(tide__product_is_clblast(&opencl->gpu, &small));
    tide_device_close(&opencl->gpu.base);
    if (saved_cache) setenv("XDG_CACHE_HOME", saved_cache, 1);
    if (saved_home) setenv("HOME", saved_home, 1);
    free(saved_cache);
    free(saved_home);
}

/* What is not a plain product is never CLBlast's. */
static void test_only_plain_products(void **state) {
    (void)state;
    tide__opencl *opencl = open_with("clblast");
    tide__gemm g = small;
    assert_true(tide__product_is_clblast(&opencl->gpu, &g));
    g.flags = TIDE__GEMM_LOWER_C;
    assert_false(tide__product_is_clblast(&opencl->gpu, &g));
    g = small, g.heads = 2;
    assert_false(tide__product_is_clblast(&opencl->gpu, &g));
    g = small, g.depth = 0;
    assert_false(tide__product_is_clblast(&opencl->gpu, &g));
    g = small, g.a.column = 2;
    assert_false(tide__product_is_clblast(&opencl->gpu, &g));
    tide_device_close(&opencl->gpu.base);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unknown_way), cmocka_unit_test(test_without_clblast),
                                       cmocka_unit_test(test_the_first_decides)};
    const struct CMUnitTest with_clblast[] = {
        cmocka_unit_test(test_products_are_clblasts),
        cmocka_unit_test(test_a_choice_is_kept),
        cmocka_unit_test(test_without_a_cache),
        cmocka_unit_test(test_only_plain_products),
    };
    if (!has_opencl()) return SKIPPED;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (has_clblast()) failed += cmocka_run_group_tests(with_clblast, NULL, NULL);
    return failed;
}
