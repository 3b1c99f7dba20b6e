/* What goes wrong on the OpenCL device: in the driver, injected by replacing its functions, and in data. Skipped where
 * there is no OpenCL. */
#include "support/test.h"

#include "device/opencl/opencl.h"
#include "support/opencl.h"
#include "support/training.h"

static void close_session(training *t, tide_trainer *trainer) {
    tide_trainer_destroy(trainer);
    training_close(t);
}

/* ---- commands that end abnormally ---- */

static cl_int CL_API_CALL break_event(cl_event event, cl_int type, void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
                                      void *context) {
    notify(event, CL_OUT_OF_RESOURCES, context);
    return CL_SUCCESS;
}

static void test_abnormal_end(void **state) {
    (void)state;
    tide_device *device = open_opencl();
    tide_op_desc d = {.kind = TIDE_OP_RELU_FWD, .x = {1, 1, 1, 9}, .y = {1, 1, 1, 9}};
    tide_kernel *kernel = NULL;
    tide_queue *queue = NULL;
    tide_arena *arena = NULL;
    tide_event *event = NULL;
    ((tide__opencl *)device)->cl.SetEventCallback = break_event;
    assert_ok(tide_kernel_create(device, &d, &kernel));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    assert_ok(tide_arena_create(device, 4096, &arena));
    assert_ok(tide_event_create(device, &event));
    memset(tide_arena_host(arena), 0, 4096);
    assert_ok(tide_kernel_enqueue(kernel, 0, queue, arena, (uint64_t[]){0, 1024}, 2, NULL));
    assert_ok(tide_event_record(event, queue));
    assert_ok(tide_event_sync(event)); /* does not hang */
    for (int i = 0; i < 2; i++) {
        assert_status(tide_queue_sync(queue), TIDE_E_DEVICE);
        assert_error_has("complete a kernel: CL_OUT_OF_RESOURCES");
    }
    tide_event_destroy(event);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    tide_kernel_destroy(kernel);
    tide_device_close(device);
}

/* ---- wrong data ---- */

/* After a wrong label the queue computes nothing: what lies behind it stays as it was, and the queue says why. */
static void test_work_after_a_fault_is_skipped(void **state) {
    const char *lanes = *state;
    const tide_op_desc loss = {.kind = TIDE_OP_SOFTMAX_LOSS_BWD, .x = {2, 3, 1, 1}, .y = {2, 3, 1, 1}};
    const tide_op_desc zero = {.kind = TIDE_OP_ZERO, .elements = 100};
    tide_kernel *first = NULL, *second = NULL;
    tide_queue *queue = NULL;
    tide_arena *arena = NULL;
    setenv("TIDE_OPENCL_LANES", lanes, 1);
    tide_device *device = open_opencl();
    unsetenv("TIDE_OPENCL_LANES");
    assert_ok(tide_kernel_create(device, &loss, &first));
    assert_ok(tide_kernel_create(device, &zero, &second));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    assert_ok(tide_arena_create(device, 16384, &arena));
    unsigned char *host = tide_arena_host(arena);
    memset(host, 1, 16384);
    memset(host + 4096, 0, 8);
    assert_ok(tide_kernel_enqueue(second, 0, queue, arena, (uint64_t[]){8192}, 1, NULL));
    assert_ok(tide_kernel_enqueue(first, 0, queue, arena, (uint64_t[]){0, 4096, 0}, 3, NULL));
    assert_ok(tide_queue_sync(queue));
    assert_int_equal(host[8192], 0);
    ((int32_t *)(void *)(host + 4096))[1] = -7;
    assert_ok(tide_kernel_enqueue(first, 0, queue, arena, (uint64_t[]){0, 4096, 0}, 3, NULL));
    assert_ok(tide_kernel_enqueue(second, 0, queue, arena, (uint64_t[]){12288}, 1, NULL));
    assert_status(tide_queue_sync(queue), TIDE_E_ARGUMENT);
    assert_error_has("label -7 of sample 1 is not one of 3 classes");
    for (int i = 0; i < 400; i++) assert_int_equal(host[12288 + i], 1);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    tide_kernel_destroy(first);
    tide_kernel_destroy(second);
    tide_device_close(device);
}

static tide_status wrong_sample(void *context, uint64_t index, float *pixels, int32_t *label) {
    const tide_data *good = context;
    TIDE_TRY(good->sample(good->context, index, pixels, label));
    *label = 10;
    return TIDE_OK;
}

/* A whole step: it fails, says which label, and the training is poisoned, with its weights as they were. */
static void test_wrong_label_in_training(void **state) {
    (void)state;
    training t;
    training_open_on(&t, "opencl", "lenet", 8);
    tide_data wrong = t.data;
    wrong.context = &t.data;
    wrong.sample = wrong_sample;
    t.options.data = &wrong;
    tide_trainer *trainer = training_start(&t);
    float loss;
    assert_status(tide_trainer_step(trainer, &loss, NULL), TIDE_E_ARGUMENT);
    assert_error_has("label 10 of sample");
    assert_status(tide_trainer_step(trainer, &loss, NULL), TIDE_E_POISONED);
    close_session(&t, trainer);
}

/* ---- injected failures: what the driver refuses ---- */

static cl_mem CL_API_CALL no_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *error) {
    (void)context, (void)flags, (void)size, (void)host;
    *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
}

static cl_command_queue CL_API_CALL no_queue(cl_context context, cl_device_id id, cl_command_queue_properties p,
                                             cl_int *error) {
    (void)context, (void)id, (void)p;
    *error = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static void test_failing_allocations(void **state) {
    (void)state;
    for (int staged = 0; staged < 2; staged++) {
        tide__opencl *opencl = (tide__opencl *)(staged ? open_staged_opencl() : open_opencl());
        const tide__cl real = opencl->cl;
        tide_arena *arena = NULL;
        tide_queue *queue = NULL;
        opencl->cl.CreateBuffer = no_buffer;
        assert_status(tide_arena_create(&opencl->gpu.base, 4096, &arena), TIDE_E_MEMORY);
        assert_error_has("create the buffer of an arena: CL_MEM_OBJECT_ALLOCATION_FAILURE");
        assert_status(tide_queue_create(&opencl->gpu.base, TIDE_QUEUE_COMPUTE, &queue), TIDE_E_MEMORY);
        if (staged) assert_status(tide_queue_create(&opencl->gpu.base, TIDE_QUEUE_COPY, &queue), TIDE_E_MEMORY);
        opencl->cl = real;
        opencl->cl.CreateCommandQueue = no_queue;
        assert_status(tide_queue_create(&opencl->gpu.base, TIDE_QUEUE_COMPUTE, &queue), TIDE_E_MEMORY);
        assert_error_has("create a queue: CL_OUT_OF_HOST_MEMORY");
        opencl->cl = real;
        assert_null(arena);
        assert_null(queue);
        assert_ok(tide_queue_create(&opencl->gpu.base, TIDE_QUEUE_COMPUTE, &queue)); /* nothing stayed behind */
        tide_queue_destroy(queue);
        tide_device_close(&opencl->gpu.base);
    }
}

static cl_int CL_API_CALL no_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                                    const size_t *items, const size_t *lanes, cl_uint n, const cl_event *list,
                                    cl_event *event) {
    (void)queue, (void)kernel, (void)dimensions, (void)offset, (void)items, (void)lanes, (void)n, (void)list,
        (void)event;
    return CL_OUT_OF_RESOURCES;
}

static cl_int CL_API_CALL no_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    (void)kernel, (void)index, (void)size, (void)value;
    return CL_INVALID_ARG_SIZE;
}

/* The failure is the queue's: work behind it is skipped, events complete, and a training says which step failed. */
static void test_failing_launches(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        training t;
        float loss;
        training_open_on(&t, "opencl", "lenet", 8);
        tide_trainer *trainer = training_start(&t);
        training_run(trainer, 1);
        tide__cl *cl = &((tide__opencl *)t.device)->cl;
        if (i)
            cl->SetKernelArg = no_argument;
        else
            cl->EnqueueNDRangeKernel = no_launch;
        assert_status(tide_trainer_step(trainer, &loss, NULL), TIDE_E_DEVICE);
        assert_error_has(i ? "CL_INVALID_ARG_SIZE" : "CL_OUT_OF_RESOURCES");
        assert_error_has("step 1: OpenCL cannot launch");
        assert_status(tide_trainer_step(trainer, &loss, NULL), TIDE_E_POISONED);
        close_session(&t, trainer);
    }
}

/* ---- injected failures: copies through pinned memory ---- */

static tide__cl driver;  /* as it is */
static int n_under_way;  /* reads of the arena whose events were not released */
static int flushes_left; /* until they fail */

static cl_int CL_API_CALL count_read(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                     size_t size, void *data, cl_uint n, const cl_event *list, cl_event *event) {
    if (event) n_under_way++;
    return driver.EnqueueReadBuffer(queue, buffer, blocking, offset, size, data, n, list, event);
}

static cl_int CL_API_CALL count_release(cl_event event) {
    n_under_way--;
    return driver.ReleaseEvent(event);
}

static cl_int CL_API_CALL flush_some(cl_command_queue queue) {
    return flushes_left-- > 0 ? driver.Flush(queue) : CL_OUT_OF_RESOURCES;
}

static tide_status discard(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    (void)context, (void)position, (void)data, (void)size_bytes;
    return TIDE_OK;
}

/* Whatever the driver has begun to write to the pinned memory is awaited before another copy may have it. */
static void test_failing_copies(void **state) {
    (void)state;
    const uint64_t size = 3 * TIDE__GPU_SLOT_BYTES;
    for (int fail_at = 0; fail_at < 4; fail_at++) {
        tide__opencl *opencl = (tide__opencl *)open_staged_opencl();
        tide_arena *arena = NULL;
        tide_queue *queue = NULL;
        assert_ok(tide_arena_create(&opencl->gpu.base, size, &arena));
        assert_ok(tide_queue_create(&opencl->gpu.base, TIDE_QUEUE_COPY, &queue));
        driver = opencl->cl;
        n_under_way = 0;
        flushes_left = fail_at;
        opencl->cl.EnqueueReadBuffer = count_read;
        opencl->cl.ReleaseEvent = count_release;
        opencl->cl.Flush = flush_some;
        assert_ok(tide_copy_out(queue, arena, 0, size, (tide_io){.fn = discard, .channel = TIDE_NONE}));
        assert_status(tide_queue_sync(queue), TIDE_E_DEVICE);
        assert_error_has("OpenCL cannot start a copy: CL_OUT_OF_RESOURCES");
        assert_int_equal(n_under_way, 0);
        opencl->cl = driver;
        tide_queue_destroy(queue);
        tide_arena_destroy(arena);
        tide_device_close(&opencl->gpu.base);
    }
}

/* ---- injected failures: programs ---- */

static cl_program CL_API_CALL no_program(cl_context context, cl_uint n, const char **texts, const size_t *sizes,
                                         cl_int *error) {
    (void)context, (void)n, (void)texts, (void)sizes;
    *error = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static cl_int CL_API_CALL no_build(cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
                                   void(CL_CALLBACK *notify)(cl_program, void *), void *context) {
    (void)program, (void)n, (void)devices, (void)options, (void)notify, (void)context;
    return CL_BUILD_PROGRAM_FAILURE;
}

static void test_failing_builds(void **state) {
    (void)state;
    const tide_op_desc d = {.kind = TIDE_OP_RELU_FWD, .x = {1, 1, 1, 9}, .y = {1, 1, 1, 9}};
    tide__opencl *opencl = (tide__opencl *)open_opencl();
    const tide__cl real = opencl->cl;
    tide_kernel *kernel = NULL;
    opencl->cl.BuildProgram = no_build;
    assert_status(tide_kernel_create(&opencl->gpu.base, &d, &kernel), TIDE_E_DEVICE);
    assert_error_has("the driver cannot build elementwise.gpu: CL_BUILD_PROGRAM_FAILURE");
    opencl->cl.CreateProgramWithSource = no_program; /* a binary does not build either */
    assert_status(tide_kernel_create(&opencl->gpu.base, &d, &kernel), TIDE_E_MEMORY);
    assert_null(kernel);
    opencl->cl = real;
    assert_ok(tide_kernel_create(&opencl->gpu.base, &d, &kernel));
    tide_kernel_destroy(kernel);
    tide_device_close(&opencl->gpu.base);
}

int main(void) {
    static char one_lane[] = "1", lanes[] = "8";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_abnormal_end),
        cmocka_unit_test_prestate(test_work_after_a_fault_is_skipped, one_lane),
        cmocka_unit_test_prestate(test_work_after_a_fault_is_skipped, lanes),
        cmocka_unit_test(test_wrong_label_in_training),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_failing_launches),
        cmocka_unit_test(test_failing_copies),
        cmocka_unit_test(test_failing_builds),
    };
    return has_opencl() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
