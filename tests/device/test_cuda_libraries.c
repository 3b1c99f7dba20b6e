/* cuBLAS and cuDNN as variants on the CUDA device, by stand-ins for them and for the driver (tests/cuda): who may use them,
 * what they compute, whose workspace they use, and that a choice that was made once stays. Skipped without the stand-ins. */
#include "support/test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <unistd.h>

#include "device/gpu/cache.h"
#include "device/gpu/kernel.h"
#include "support/cuda.h"
#include "support/errand.h"
#include "support/opencl.h"
#include "support/training.h"

/* ---- a cache of the test's own ---- */

static char base[64], folder[128];

static int open_cache(void **state) {
    (void)state;
    snprintf(base, sizeof base, "/tmp/tide-libraries-XXXXXX");
    assert_non_null(mkdtemp(base));
    snprintf(folder, sizeof folder, "%s/tidemark/cuda", base);
    return setenv("XDG_CACHE_HOME", base, 1);
}

/* How many records there are; empties the folder if asked to. *key: of the one that was seen last. */
static int count_records(bool remove, uint64_t *key) {
    DIR *dir = opendir(folder);
    int n = 0;
    if (!dir) return 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char path[512];
        if (e->d_name[0] == '.') continue;
        n++;
        if (key) *key = strtoull(e->d_name, NULL, 16);
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (remove) unlink(path);
    }
    closedir(dir);
    return n;
}

static int close_cache(void **state) {
    (void)state;
    char parent[128];
    count_records(true, NULL);
    rmdir(folder);
    snprintf(parent, sizeof parent, "%s/tidemark", base);
    rmdir(parent);
    return rmdir(base);
}

/* ---- devices and kernels ---- */

static tide_device *open_with(tide_libraries libraries) {
    tide_device_options o;
    tide_device *device = NULL;
    tide_device_options_init(&o);
    o.libraries = libraries;
    assert_ok(tide_device_open("cuda", &o, &device));
    return device;
}

static const tide_op_desc fc = {.kind = TIDE_OP_FC_FWD, .x = {5, 24, 1, 1}, .y = {5, 18, 1, 1}, .bias = 1};
static const tide_op_desc conv = {.kind = TIDE_OP_CONV_FWD,
                                  .x = {2, 3, 9, 7},
                                  .y = {2, 5, 9, 7},
                                  .kernel_h = 3,
                                  .kernel_w = 3,
                                  .stride = 1,
                                  .pad_h = 1,
                                  .pad_w = 1,
                                  .bias = 1};

static uint32_t count_libraries(tide_device *device, const tide_op_desc *d) {
    tide_kernel *kernel = NULL;
    uint32_t n = 0;
    assert_ok(tide_kernel_create(device, d, &kernel));
    for (uint32_t i = 0; i < 4; i++) n += tide_kernel_variant_library(kernel, i) != NULL;
    tide_kernel_destroy(kernel);
    return n;
}

/* The first variant of a library; NULL: of our own. */
static uint32_t find_variant(const tide_kernel *kernel, const char *library) {
    for (uint32_t i = 0; i < 4; i++) {
        const char *its = tide_kernel_variant_library(kernel, i);
        if (its == library || (its && library && strcmp(its, library) == 0)) return i;
    }
    fail_msg("no variant of %s", library ? library : "our own");
    return 0;
}

/* The stand-in for the driver reports what nobody may do. */
static void expect_quiet(void) {
    void *library = dlopen(getenv("TIDE_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    const char *(*report)(uint32_t n);
    void *address = dlsym(library, "standin_report");
    assert_non_null(address);
    memcpy(&report, &address, sizeof address);
    if (report(0)) fail_msg("reported: %s", report(0));
    dlclose(library);
}

/* ---- who may use them ---- */

static void test_only_after_the_self_test(void **state) {
    (void)state;
    tide_device *trusted = open_with(TIDE_LIBRARIES_TRUSTED);
    assert_null(dlopen(getenv("TIDE_CUDNN_LIBRARY"), RTLD_NOW | RTLD_NOLOAD)); /* not even loaded */
    tide_device *all = open_with(TIDE_LIBRARIES_ALL), *none = open_with(TIDE_LIBRARIES_NONE);
    assert_int_equal(count_libraries(all, &fc), 2);
    assert_int_equal(count_libraries(all, &conv), 2);
    assert_int_equal(count_libraries(none, &conv), 0);
    assert_int_equal(count_libraries(trusted, &conv), 0);
    assert_status(tide_device_trust(none), TIDE_E_UNSUPPORTED);
    tide_device_close(trusted);
    assert_ok(tide_device_trust(all));
    trusted = open_with(TIDE_LIBRARIES_TRUSTED);
    assert_int_equal(count_libraries(trusted, &conv), 2);
    assert_int_equal(count_libraries(none, &conv), 0);
    tide_device_close(trusted);
    tide_device_close(none);
    tide_device_close(all);
}

static char *copy_of(const char *variable) {
    const char *value = getenv(variable);
    return strdup(value ? value : "");
}

static void test_without_them(void **state) {
    (void)state;
    char *saved[2] = {copy_of("TIDE_CUBLAS_LIBRARY"), copy_of("TIDE_CUDNN_LIBRARY")};
    setenv("TIDE_CUBLAS_LIBRARY", "libno-such-blas.so", 1);
    setenv("TIDE_CUDNN_LIBRARY", "libm.so.6", 1); /* one without its functions */
    tide_device *device = open_with(TIDE_LIBRARIES_ALL);
    assert_int_equal(count_libraries(device, &fc), 0);
    assert_int_equal(count_libraries(device, &conv), 0);
    tide_device_close(device);
    unsetenv("TIDE_CUBLAS_LIBRARY"); /* and with a driver of our own, none that the system has */
    unsetenv("TIDE_CUDNN_LIBRARY");
    device = open_with(TIDE_LIBRARIES_ALL);
    assert_int_equal(count_libraries(device, &fc), 0);
    tide_device_close(device);
    setenv("TIDE_CUBLAS_LIBRARY", saved[0], 1);
    setenv("TIDE_CUDNN_LIBRARY", saved[1], 1);
    for (int i = 0; i < 2; i++) free(saved[i]);
}

/* ---- what they compute ---- */

enum { MAX_FLOATS = 1 << 22 };

/* Operands close to each other, the workspace close to the last: a byte too much breaks one. Results at the end. */
static void run_variant(tide_device *device, tide_kernel *kernel, uint32_t variant, float *values, uint64_t *result_at,
                        uint64_t *result_bytes) {
    tide_kernel_info info;
    tide_arena *arena = NULL;
    tide_queue *queue = NULL;
    uint64_t offsets[8], end = 0;
    uint32_t n = 0;
    assert_ok(tide_kernel_get_info(kernel, &info));
    for (; n < info.n_reads + info.n_writes; n++, end = (end + 255) & ~UINT64_C(255)) {
        offsets[n] = end;
        end += n < info.n_reads ? info.read[n].size_bytes : info.write[n - info.n_reads].size_bytes;
        if (n == info.n_reads) *result_at = offsets[n];
    }
    *result_bytes = end - *result_at;
    if (info.variant[variant].workspace_bytes) offsets[n++] = end, end += info.variant[variant].workspace_bytes;
    assert_true(end <= MAX_FLOATS * sizeof(float) * 2);
    assert_ok(tide_arena_create(device, end, &arena));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    for (uint64_t i = 0; i < *result_at / sizeof(float); i++)
        values[i] = (float)((i * 2654435761u >> 9) % 2001) / 1000 - 1;
    memset((char *)values + *result_at, 0, *result_bytes);
    exchange(device, arena, 0, values, *result_at + *result_bytes, true);
    assert_ok(tide_kernel_enqueue(kernel, variant, queue, arena, offsets, n, NULL));
    assert_ok(tide_queue_sync(queue));
    exchange(device, arena, 0, values, *result_at + *result_bytes, false);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
}

static double largest_difference(const float *a, const float *b, uint64_t bytes) {
    double worst = 0;
    for (uint64_t i = 0; i < bytes / sizeof *a; i++) worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

/* Ours, twice the library's, and a TF32 that is not float32. */
static void compare_variants(tide_device *device, const tide_op_desc *d) {
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    uint64_t at = 0, bytes = 0;
    float *own = calloc(MAX_FLOATS, sizeof *own), *first = calloc(MAX_FLOATS, sizeof *first);
    float *second = calloc(MAX_FLOATS, sizeof *second);
    assert_ok(tide_kernel_create(device, d, &kernel));
    assert_ok(tide_kernel_get_info(kernel, &info));
    uint32_t ours = find_variant(kernel, NULL);
    run_variant(device, kernel, ours, own, &at, &bytes);
    for (uint32_t i = 0; i < info.n_variants; i++) {
        const char *library = tide_kernel_variant_library(kernel, i);
        assert_true(info.variant[i].cost_ns > 0);
        if (!library) continue;
        assert_true(info.variant[i].bits_class != info.variant[ours].bits_class);
        run_variant(device, kernel, i, first, &at, &bytes);
        run_variant(device, kernel, i, second, &at, &bytes);
        assert_memory_equal(first + at / 4, second + at / 4, bytes);
        const double apart = largest_difference(own + at / 4, first + at / 4, bytes);
        assert_true(strstr(library, "TF32") ? apart > 1e-6 && apart < 2e-2 : apart < 2e-5);
    }
    tide_kernel_destroy(kernel);
    free(own);
    free(first);
    free(second);
}

static void test_results(void **state) {
    (void)state;
    static const tide_op_kind products[] = {TIDE_OP_FC_FWD, TIDE_OP_FC_BWD_DATA, TIDE_OP_FC_BWD_WEIGHTS};
    static const tide_op_kind convs[] = {TIDE_OP_CONV_FWD, TIDE_OP_CONV_BWD_DATA, TIDE_OP_CONV_BWD_WEIGHTS};
    tide_device *device = open_with(TIDE_LIBRARIES_ALL);
    for (int i = 0; i < 3; i++)
        for (int bias = 0; bias < (i == 1 ? 1 : 2); bias++) {
            tide_op_desc d = fc;
            d.kind = products[i];
            d.bias = bias;
            compare_variants(device, &d);
            d = conv;
            d.kind = convs[i];
            d.bias = bias;
            compare_variants(device, &d);
        }
    tide_device_close(device);
    expect_quiet();
}

/* ---- choices ---- */

typedef struct times {
    uint64_t ns[4];
} times;

/* What a GPU measured decides: here it is told to have been. TF32 is the fastest, and still not the default. */
static void test_the_fastest_float32_is_the_default(void **state) {
    (void)state;
    tide_device *device = open_with(TIDE_LIBRARIES_ALL);
    times told = {{1000, 1000, 500, 100}};
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    uint64_t key = 0;
    count_records(true, NULL);
    assert_int_equal(count_libraries(device, &conv), 2);
    assert_int_equal(count_records(true, &key), 1);
    assert_true(tide__gpu_cache_keep("cuda", key, &told, sizeof told));
    assert_ok(tide_kernel_create(device, &conv, &kernel));
    assert_ok(tide_kernel_get_info(kernel, &info));
    assert_string_equal(tide_kernel_variant_library(kernel, 0), "cuDNN");
    assert_null(tide_kernel_variant_library(kernel, 1));
    assert_null(tide_kernel_variant_library(kernel, 2));
    assert_string_equal(tide_kernel_variant_library(kernel, 3), "cuDNN, TF32");
    assert_int_equal(info.variant[0].cost_ns, 500);
    assert_int_equal(info.variant[2].cost_ns, 1000);
    assert_int_equal(info.variant[0].workspace_bytes, 1000);
    assert_int_equal(info.variant[1].bits_class, info.variant[2].bits_class); /* our two */
    for (uint32_t i = 1; i < 4; i++) assert_int_not_equal(info.variant[0].bits_class, info.variant[i].bits_class);
    float *values = calloc(MAX_FLOATS, sizeof *values), *own = calloc(MAX_FLOATS, sizeof *own);
    uint64_t at = 0, bytes = 0;
    run_variant(device, kernel, 0, values, &at, &bytes);
    run_variant(device, kernel, 2, own, &at, &bytes);
    assert_true(largest_difference(own + at / 4, values + at / 4, bytes) < 2e-5);
    tide_kernel_destroy(kernel);
    free(values);
    free(own);
    tide_device_close(device);
    expect_quiet();
}

/* As if the last variant of convolutions, TF32, were ten times as fast as all others. */
static void tell_times(void) {
    const times told = {{1000, 1000, 1000, 100}};
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        const uint64_t key = strtoull(e->d_name, NULL, 16);
        size_t size = 0;
        unsigned char *kept = key ? tide__gpu_cache_read("cuda", key, &size) : NULL;
        free(kept);
        if (kept && size == sizeof told) tide__gpu_cache_write("cuda", key, (const unsigned char *)&told, sizeof told);
    }
    closedir(dir);
}

/* Weights after a step; how many ops of its plan round otherwise than the default. */
static uint64_t train_with(bool bits_any, uint32_t *n_others) {
    training t;
    float loss;
    training_open_on(&t, "cuda", "lenet", 2);
    t.options.plan.bits_any = bits_any;
    t.options.plan.policy = "superneurons"; /* which chooses variants */
    t.options.plan.effort = TIDE_EFFORT_LOW;
    tide_trainer *trainer = training_start(&t);
    const tide_program *program = tide_step_program(tide_trainer_step_program(trainer));
    const tide_plan *plan = tide_trainer_plan(trainer);
    *n_others = 0;
    for (uint32_t i = 0; i < tide_plan_action_count(plan); i++) {
        const tide_action a = tide_plan_action(plan, i);
        if (a.kind != TIDE_RUN) continue;
        const tide_variant *variants = tide_program_op(program, a.op)->variants;
        *n_others += variants[a.variant].bits_class != variants[0].bits_class;
    }
    assert_ok(tide_trainer_step(trainer, &loss, NULL));
    uint64_t hash = training_hash(trainer);
    tide_trainer_destroy(trainer);
    training_close(&t);
    return hash;
}

/* A training takes TF32 where other bits are accepted, and nowhere else. */
static void test_tf32_in_training(void **state) {
    (void)state;
    uint32_t n_same = 0, n_any = 0;
    tide_device *device = open_with(TIDE_LIBRARIES_ALL);
    assert_ok(tide_device_trust(device));
    tide_device_close(device);
    train_with(false, &n_same); /* measures */
    tell_times();
    const uint64_t same = train_with(false, &n_same), any = train_with(true, &n_any);
    assert_int_equal(n_same, 0);
    assert_true(n_any > 0);
    assert_true(any != same);
    expect_quiet();
}

/* Where nothing can be kept, nothing is measured twice with two results: ours is the default. */
static void test_nothing_kept(void **state) {
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    tide_device *device = open_with(TIDE_LIBRARIES_ALL);
    tide_kernel *kernel = NULL;
    assert_status(tide_device_trust(device), TIDE_E_IO);
    assert_ok(tide_kernel_create(device, &conv, &kernel));
    assert_null(tide_kernel_variant_library(kernel, 0));
    tide_kernel_destroy(kernel);
    tide_device_close(device);
    setenv("XDG_CACHE_HOME", base, 1);
}

/* A library that fails in mid-step fails the queue, with its name. */
static void test_failures(void **state) {
    (void)state;
    tide_device *device = open_with(TIDE_LIBRARIES_ALL);
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    tide_arena *arena = NULL;
    tide_queue *queue = NULL;
    assert_ok(tide_kernel_create(device, &conv, &kernel));
    assert_ok(tide_kernel_get_info(kernel, &info));
    assert_ok(tide_arena_create(device, 1 << 20, &arena));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    const uint64_t offsets[5] = {0, 4096, 8192, 16384, 65536};
    tide__gpu_product *product = &((tide__gpu_kernel *)kernel)->products.data[0]; /* of float32 */
    product->is_conv = false;
    product->shape.m = 7; /* with rows of no elements: cuBLAS refuses it */
    assert_ok(tide_kernel_enqueue(kernel, find_variant(kernel, "cuDNN"), queue, arena, offsets, 5, NULL));
    assert_status(tide_queue_sync(queue), TIDE_E_DEVICE);
    assert_error_has("cuBLAS cannot multiply");
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    tide_kernel_destroy(kernel);
    tide_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_after_the_self_test),
        cmocka_unit_test(test_without_them),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_the_fastest_float32_is_the_default),
        cmocka_unit_test(test_tf32_in_training),
        cmocka_unit_test(test_nothing_kept),
        cmocka_unit_test(test_failures),
    };
    if (!getenv("TIDE_CUDNN_LIBRARY")) {
        printf("skipped: cuBLAS and cuDNN on the CUDA device: built without their headers\n");
        return SKIPPED;
    }
    return has_cuda() ? cmocka_run_group_tests(tests, open_cache, close_cache) : SKIPPED;
}
