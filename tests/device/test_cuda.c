/* What only the CUDA device has: GPUs by number and UUID, refusals with what is free, grids over the limits, one wait of
 * the host per step. Skipped without a driver; TIDE_CUDA_LIBRARY names one. */
#include "support/test.h"

#include "device/gpu/gpu.h"
#include "support/cuda.h"
#include "support/errand.h"
#include "support/opencl.h"
#include "support/training.h"

static tide_device *open_cuda(void) {
    tide_device *device = NULL;
    assert_ok(tide_device_open("cuda", NULL, &device));
    return device;
}

static void test_names(void **state) {
    (void)state;
    tide_device *device = NULL;
    tide_device_info info;
    assert_ok(tide_device_open("cuda:0", NULL, &device));
    assert_ok(tide_device_get_info(device, &info));
    assert_string_equal(info.name, "cuda:0");
    assert_true(info.staging_bytes > 0 && info.flops_per_s > 0 && !info.host_visible);
    tide_device_close(device);
    device = NULL;
    static const char *const wrong[] = {"cuda:99", "cuda:", "cuda:x", "cuda:-1", "cuda:0x", "cuda:GPU-", "cuda:GPU-zz"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_status(tide_device_open(wrong[i], NULL, &device), TIDE_E_DEVICE);
    assert_null(device);
}

static void test_arena_says_what_is_free(void **state) {
    (void)state;
    tide_device *device = open_cuda();
    tide_arena *arena = NULL;
    tide_device_info info;
    assert_ok(tide_device_get_info(device, &info));
    assert_status(tide_arena_create(device, info.memory_bytes + (UINT64_C(1) << 30), &arena), TIDE_E_MEMORY);
    assert_error_has("are free");
    assert_null(arena);
    assert_ok(tide_arena_create(device, 1 << 20, &arena));
    tide_arena_destroy(arena);
    tide_device_close(device);
}

static tide_status nothing(void *context) { return TIDE_OK; }

static void test_no_host_functions(void **state) {
    (void)state;
    tide_device *device = open_cuda();
    tide_queue *queue = NULL;
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    assert_status(tide_queue_launch(queue, nothing, NULL, 0), TIDE_E_UNSUPPORTED);
    tide_queue_destroy(queue);
    tide_device_close(device);
}

/* One group per row, in y: more than a grid has. */
static void test_more_groups_than_a_grid_has(void **state) {
    (void)state;
    enum { ROWS = 65535 + 300, STEPS = 2 };
    const tide_op_desc d = {
        .kind = TIDE_OP_SLICE, .x = {ROWS * STEPS, 1, 1, 1}, .y = {ROWS, 1, 1, 1}, .steps = STEPS, .step = 1};
    const uint64_t offsets[2] = {0, 1 << 20}, bytes = (1 << 20) + ROWS * sizeof(float);
    tide_device *device = open_cuda();
    tide_arena *arena = NULL;
    tide_queue *queue = NULL;
    tide_kernel *kernel = NULL;
    float *values = calloc(1, bytes), *sliced = values + (1 << 18);
    for (int i = 0; i < ROWS * STEPS; i++) values[i] = (float)i;
    assert_ok(tide_arena_create(device, bytes, &arena));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    assert_ok(tide_kernel_create(device, &d, &kernel));
    exchange(device, arena, 0, values, bytes, true);
    assert_ok(tide_kernel_enqueue(kernel, 0, queue, arena, offsets, 2, NULL));
    assert_ok(tide_queue_sync(queue));
    exchange(device, arena, 0, values, bytes, false);
    for (int i = 0; i < ROWS; i++) assert_true(sliced[i] == (float)(STEPS * i + 1));
    tide_kernel_destroy(kernel);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    tide_device_close(device);
    free(values);
}

/* Planned for 75 % of what it takes without a budget: the host waits at the end of a step, and nowhere else. */
static void test_one_wait_per_step(void **state) {
    (void)state;
    training t;
    training_open_on(&t, "cuda", "lenet", 2);
    t.options.plan.policy = "hybrid";
    t.options.plan.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = 0.75};
    tide_trainer *trainer = training_start(&t);
    training_run(trainer, 3); /* from the third step on it follows the plan from measured costs */
    for (int i = 0; i < 2; i++) {
        const tide__gpu *gpu = (const tide__gpu *)t.device;
        const uint64_t before = atomic_load(&gpu->host_waits);
        tide_step_report report;
        float loss = 0;
        assert_ok(tide_trainer_step(trainer, &loss, &report));
        assert_true(report.saved_bytes > 0 || report.n_reruns > 0);
        assert_int_equal(atomic_load(&gpu->host_waits) - before, 1);
    }
    tide_trainer_destroy(trainer);
    training_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_arena_says_what_is_free),
        cmocka_unit_test(test_no_host_functions),
        cmocka_unit_test(test_more_groups_than_a_grid_has),
        cmocka_unit_test(test_one_wait_per_step),
    };
    return has_cuda() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
