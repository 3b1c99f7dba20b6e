/* The stand-in for libcuda used as it is meant to be: copies, kernels, events, the default stream, errors on request, the
 * timeline. What it refuses is in test_standin_mutants.c. */
#include "support/test.h"

#include <dlfcn.h>
#include <unistd.h>

#include "cuda/texts.h"

enum { N = 256 };

static CUdeviceptr upload(const float *x, uint32_t n) {
    CUdeviceptr at = 0;
    assert_cu(cu.cuMemAlloc_v2(&at, n * sizeof *x));
    assert_cu(cu.cuMemcpyHtoD_v2(at, x, n * sizeof *x));
    return at;
}

static void fill(float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) x[i] = (float)i - 7.5f;
}

static void launch(CUfunction f, uint32_t groups, uint32_t shared, CUstream s, void **arguments) {
    assert_cu(cu.cuLaunchKernel(f, groups, 1, 1, 64, 1, 1, shared, s, arguments, NULL));
}

/* ---- the driver ---- */

static void test_driver(void **state) {
    (void)state;
    int version = 0, count = 0, value = 0;
    char name[64];
    void *found = NULL;
    CUdriverProcAddressQueryResult status = 99;
    standin_open();
    assert_cu(cu.cuDriverGetVersion(&version));
    assert_int_equal(version, 13000);
    assert_cu(cu.cuDeviceGetCount(&count));
    assert_int_equal(count, 1);
    assert_cu(cu.cuDeviceGetName(name, sizeof name, 0));
    assert_string_equal(name, "Stand-in 0");
    assert_cu(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 0));
    assert_int_equal(value, 65535);
    assert_int_equal(cu.cuDeviceGet(&value, 1), CUDA_ERROR_INVALID_DEVICE);
    assert_cu(cu.cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status));
    assert_true(found == *(void **)&cu.cuMemAlloc_v2);
    assert_int_equal(cu.cuGetProcAddress_v2("cuMemAllocManaged", &found, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    standin_close();
}

/* Functions of the first drivers had sizes of 32 bits: a program that asks for those must not get today's. */
static void test_names(void **state) {
    (void)state;
    standin_load();
    void *library = dlopen(standin_library(), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    assert_null(dlsym(library, "cuMemAlloc"));
    assert_null(dlsym(library, "cuMemcpyHtoDAsync"));
    assert_non_null(dlsym(library, "cuEventElapsedTime"));
    assert_ptr_equal(dlsym(library, "cuDevicePrimaryCtxRelease"), dlsym(library, "cuDevicePrimaryCtxRelease_v2"));
    dlclose(library);
}

/* ---- memory ---- */

static void test_memory(void **state) {
    (void)state;
    size_t before = 0, during = 0, total = 0;
    CUdeviceptr a = 0, b = 0;
    setenv("TIDE_STANDIN_MEMORY", "4M", 1);
    standin_open();
    assert_cu(cu.cuMemGetInfo_v2(&before, &total));
    assert_int_equal(total, 4 << 20);
    assert_cu(cu.cuMemAlloc_v2(&a, 3 << 20));
    assert_cu(cu.cuMemGetInfo_v2(&during, &total));
    assert_int_equal(before - during, 3 << 20);
    assert_int_equal(cu.cuMemAlloc_v2(&b, 2 << 20), CUDA_ERROR_OUT_OF_MEMORY);
    assert_cu(cu.cuMemFree_v2(a));
    assert_cu(cu.cuMemAlloc_v2(&b, 2 << 20));
    assert_cu(cu.cuMemFree_v2(b));
    standin_close();
    unsetenv("TIDE_STANDIN_MEMORY");
}

/* ---- kernels ---- */

static void test_kernel(void **state) {
    (void)state;
    float x[N], y[N];
    uint32_t n = N - 3;
    CUmodule module;
    fill(x, N);
    standin_open();
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    CUdeviceptr at = upload(x, N);
    launch(f, N / 64, 0, NULL, (void *[]){&at, &n});
    assert_cu(cu.cuMemcpyDtoH_v2(y, at, sizeof y));
    for (uint32_t i = 0; i < N; i++) assert_true(y[i] == (i < n ? 2 * x[i] + 1 : x[i]));
    assert_cu(cu.cuMemFree_v2(at));
    assert_cu(cu.cuModuleUnload(module));
    standin_close();
}

static void test_barriers(void **state) {
    (void)state;
    float x[N], y[N];
    CUmodule module;
    for (uint32_t i = 0; i < N; i++) x[i] = (float)(i % 13);
    for (int seed = 1; seed <= 5; seed++) { /* other orders of lanes, the same sums */
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        setenv("TIDE_STANDIN_SEED", text, 1);
        standin_open();
        CUfunction f = standin_kernel_of(TEXT_SUM("bar.sync 0;\n"), "sum", &module);
        CUdeviceptr at = upload(x, N);
        launch(f, N / 64, 256, NULL, (void *[]){&at});
        assert_cu(cu.cuMemcpyDtoH_v2(y, at, sizeof y));
        for (uint32_t g = 0; g < N / 64; g++) {
            float sum = 0;
            for (uint32_t i = 0; i < 64; i++) sum += x[64 * g + i];
            assert_true(y[64 * g] == sum);
        }
        assert_cu(cu.cuMemFree_v2(at));
        assert_cu(cu.cuModuleUnload(module));
        standin_close();
    }
    unsetenv("TIDE_STANDIN_SEED");
}

/* A cubin is for another GPU; PTX of a later GPU or driver is refused by its own errors. */
static void test_images(void **state) {
    (void)state;
    CUmodule module = NULL;
    setenv("TIDE_STANDIN_CAPABILITY", "75", 1);
    standin_open();
    assert_int_equal(cu.cuModuleLoadData(&module, "\x7f"
                                                  "ELF..."),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(cu.cuModuleLoadData(&module, ".version 7.5\n.target sm_80\n.address_size 64\n"),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(cu.cuModuleLoadData(&module, ".version 9.9\n.target sm_75\n.address_size 64\n"),
                     CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert_null(module);
    assert_cu(cu.cuModuleLoadData(&module, TEXT_TWICE));
    CUfunction f = NULL;
    assert_int_equal(cu.cuModuleGetFunction(&f, module, "thrice"), CUDA_ERROR_NOT_FOUND);
    assert_cu(cu.cuModuleUnload(module));
    standin_close();
    unsetenv("TIDE_STANDIN_CAPABILITY");
}

/* ---- streams and events ---- */

typedef struct gate {
    volatile int open, passed;
} gate;

static void CUDAAPI pass_gate(void *data) {
    gate *g = data;
    while (!__atomic_load_n(&g->open, __ATOMIC_ACQUIRE)) usleep(100);
    __atomic_store_n(&g->passed, 1, __ATOMIC_RELEASE);
}

/* A stream that waits for an event waits; others go on. Recording again changes nothing for who waits already. */
static void test_events(void **state) {
    (void)state;
    gate first = {0, 0}, second = {1, 0};
    CUstream a, b;
    CUevent event;
    standin_open();
    assert_cu(cu.cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    assert_cu(cu.cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    assert_cu(cu.cuEventCreate(&event, CU_EVENT_DEFAULT));
    assert_cu(cu.cuEventQuery(event)); /* never recorded: complete */
    assert_cu(cu.cuLaunchHostFunc(a, pass_gate, &first));
    assert_cu(cu.cuEventRecord(event, a));
    assert_cu(cu.cuStreamWaitEvent(b, event, 0));
    assert_cu(cu.cuLaunchHostFunc(b, pass_gate, &second));
    assert_cu(cu.cuEventRecord(event, b)); /* the wait is for the earlier record */
    usleep(5000);
    assert_int_equal(cu.cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    assert_false(second.passed);
    __atomic_store_n(&first.open, 1, __ATOMIC_RELEASE);
    assert_cu(cu.cuEventSynchronize(event));
    assert_true(second.passed);
    assert_cu(cu.cuStreamDestroy_v2(a));
    assert_cu(cu.cuStreamDestroy_v2(b));
    assert_cu(cu.cuEventDestroy_v2(event));
    standin_close();
}

static void test_elapsed(void **state) {
    (void)state;
    gate g = {0, 0};
    CUevent begin, end;
    float ms = -1;
    standin_open();
    assert_cu(cu.cuEventCreate(&begin, CU_EVENT_DEFAULT));
    assert_cu(cu.cuEventCreate(&end, CU_EVENT_DEFAULT));
    assert_cu(cu.cuEventRecord(begin, NULL));
    assert_cu(cu.cuEventSynchronize(begin));
    assert_cu(cu.cuLaunchHostFunc(NULL, pass_gate, &g));
    assert_cu(cu.cuEventRecord(end, NULL));
    assert_int_equal(cu.cuEventElapsedTime_v2(&ms, begin, end), CUDA_ERROR_NOT_READY);
    usleep(3000);
    __atomic_store_n(&g.open, 1, __ATOMIC_RELEASE);
    assert_cu(cu.cuEventSynchronize(end));
    assert_cu(cu.cuEventElapsedTime_v2(&ms, begin, end));
    assert_true(ms >= 2);
    assert_cu(cu.cuEventDestroy_v2(begin));
    assert_cu(cu.cuEventDestroy_v2(end));
    standin_close();
}

/* Blocking streams and the default stream wait for each other; a stream that does not block is left alone. */
static void test_default_stream(void **state) {
    (void)state;
    gate held = {0, 0}, then = {1, 0}, free_one = {1, 0};
    CUstream blocking, alone;
    standin_open();
    assert_cu(cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    assert_cu(cu.cuStreamCreate(&alone, CU_STREAM_NON_BLOCKING));
    assert_cu(cu.cuLaunchHostFunc(blocking, pass_gate, &held));
    assert_cu(cu.cuLaunchHostFunc(NULL, pass_gate, &then));
    assert_cu(cu.cuLaunchHostFunc(alone, pass_gate, &free_one));
    assert_cu(cu.cuStreamSynchronize(alone));
    assert_true(free_one.passed);
    assert_false(then.passed);
    __atomic_store_n(&held.open, 1, __ATOMIC_RELEASE);
    assert_cu(cu.cuCtxSynchronize());
    assert_true(then.passed);
    held.open = held.passed = then.passed = 0;
    assert_cu(cu.cuLaunchHostFunc(CU_STREAM_LEGACY, pass_gate, &held));
    assert_cu(cu.cuLaunchHostFunc(blocking, pass_gate, &then));
    usleep(3000);
    assert_false(then.passed);
    __atomic_store_n(&held.open, 1, __ATOMIC_RELEASE);
    assert_cu(cu.cuStreamSynchronize(blocking));
    assert_cu(cu.cuStreamDestroy_v2(blocking));
    assert_cu(cu.cuStreamDestroy_v2(alone));
    standin_close();
}

/* Copies of two streams run beside each other, at the speed they are given. */
static void test_overlap(void **state) {
    (void)state;
    enum { BYTES = 1 << 18 }; /* 125 ms: long enough for a busy machine to begin with both */
    CUstream streams[2];
    CUevent begin[2], end[2];
    CUdeviceptr at[2];
    void *host[2];
    float ms = 0;
    setenv("TIDE_STANDIN_COPY_MIBPS", "2", 1);
    standin_open();
    unsetenv("TIDE_STANDIN_COPY_MIBPS");
    for (int i = 0; i < 2; i++) {
        assert_cu(cu.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        assert_cu(cu.cuEventCreate(&begin[i], CU_EVENT_DEFAULT));
        assert_cu(cu.cuEventCreate(&end[i], CU_EVENT_DEFAULT));
        assert_cu(cu.cuMemAlloc_v2(&at[i], BYTES));
        assert_cu(cu.cuMemHostAlloc(&host[i], BYTES, 0));
    }
    for (int i = 0; i < 2; i++) {
        assert_cu(cu.cuEventRecord(begin[i], streams[i]));
        assert_cu(cu.cuMemcpyDtoHAsync_v2(host[i], at[i], BYTES, streams[i]));
        assert_cu(cu.cuEventRecord(end[i], streams[i]));
    }
    assert_cu(cu.cuCtxSynchronize());
    for (int i = 0; i < 2; i++) {
        assert_cu(cu.cuEventElapsedTime_v2(&ms, begin[i], end[i]));
        assert_true(ms >= 125);
        assert_cu(cu.cuEventElapsedTime_v2(&ms, begin[i], end[1 - i]));
        assert_true(ms > 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_cu(cu.cuStreamDestroy_v2(streams[i]));
        assert_cu(cu.cuEventDestroy_v2(begin[i]));
        assert_cu(cu.cuEventDestroy_v2(end[i]));
        assert_cu(cu.cuMemFree_v2(at[i]));
        assert_cu(cu.cuMemFreeHost(host[i]));
    }
    standin_close();
}

/* ---- errors ---- */

static void test_failures(void **state) {
    (void)state;
    CUdeviceptr a = 0, b = 0;
    setenv("TIDE_STANDIN_FAIL", "cuMemAlloc_v2:2:2,cuMemsetD8Async:1+:1", 1);
    standin_open();
    assert_cu(cu.cuMemAlloc_v2(&a, 64));
    assert_int_equal(cu.cuMemAlloc_v2(&b, 64), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(b, 0);
    assert_cu(cu.cuMemAlloc_v2(&b, 64));
    for (int i = 0; i < 3; i++) assert_int_equal(cu.cuMemsetD8Async(a, 0, 64, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.calls("cuMemAlloc_v2"), 3);
    assert_cu(cu.cuMemFree_v2(a));
    assert_cu(cu.cuMemFree_v2(b));
    standin_close();
    unsetenv("TIDE_STANDIN_FAIL");
}

/* An error that stays is returned by everything, lets go of memory all the same, and ends with a reset. */
static void test_error_that_stays(void **state) {
    (void)state;
    float x[N];
    CUmodule module;
    uint32_t n = 2 * N;
    fill(x, N);
    standin_open();
    CUfunction f = standin_kernel_of(TEXT_TWICE, "twice", &module);
    CUdeviceptr at = upload(x, N);
    launch(f, 2 * N / 64, 0, NULL, (void *[]){&at, &n});
    assert_int_equal(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuStreamQuery(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu.cuMemFree_v2(at), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cu.misuse_count(MISUSE_KERNEL_BOUNDS), 1);
    assert_int_equal(cu.misuse_count(MISUSE_AFTER_ERROR), 0);
    assert_non_null(strstr(cu.report(0), "kernel-bounds: twice: twice, line "));
    CUcontext context = NULL;
    assert_cu(cu.cuDevicePrimaryCtxReset_v2(0));
    assert_cu(cu.cuDevicePrimaryCtxRelease_v2(0));
    assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 0));
    assert_cu(cu.cuCtxSetCurrent(context));
    assert_cu(cu.cuMemAlloc_v2(&at, 64));
    assert_cu(cu.cuMemFree_v2(at));
    assert_cu(cu.cuDevicePrimaryCtxRelease_v2(0));
}

/* ---- the timeline ---- */

static bool is_in_file(const char *path, const char *text) {
    char line[512];
    bool found = false;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) found |= strstr(line, text) != NULL;
    fclose(file);
    return found;
}

static void test_files(void **state) {
    (void)state;
    char timeline[] = "/tmp/standin-timeline-XXXXXX", report[] = "/tmp/standin-report-XXXXXX";
    float x[N];
    fill(x, N);
    close(mkstemp(timeline));
    close(mkstemp(report));
    setenv("TIDE_STANDIN_TIMELINE", timeline, 1);
    setenv("TIDE_STANDIN_REPORT", report, 1);
    standin_open();
    CUdeviceptr at = upload(x, N);
    assert_int_equal(cu.cuMemFree_v2(at + 4), CUDA_ERROR_INVALID_VALUE);
    assert_cu(cu.cuMemFree_v2(at));
    assert_cu(cu.cuDevicePrimaryCtxRelease_v2(0));
    cu.finish();
    unsetenv("TIDE_STANDIN_TIMELINE");
    unsetenv("TIDE_STANDIN_REPORT");
    assert_true(is_in_file(timeline, "\"name\": \"copy to device\", \"cat\": \"copy\", \"ph\": \"X\""));
    assert_true(is_in_file(timeline, "\"args\": {\"bytes\": 1024}"));
    assert_true(is_in_file(timeline, "\"cuMemFree_v2\": 2"));
    assert_true(is_in_file(report, "bad-free: cuMemFree_v2: "));
    unlink(timeline);
    unlink(report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver),  cmocka_unit_test(test_names),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_kernel),  cmocka_unit_test(test_barriers), cmocka_unit_test(test_images),
        cmocka_unit_test(test_events),  cmocka_unit_test(test_elapsed),  cmocka_unit_test(test_default_stream),
        cmocka_unit_test(test_overlap), cmocka_unit_test(test_failures), cmocka_unit_test(test_error_that_stays),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
