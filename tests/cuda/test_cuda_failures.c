/* The driver fails at one call, whichever of them: for every function the CUDA device calls, its n-th call, for every n, with an
 * error of that call alone, without memory, and with an error that stays. Each time the device says what CUDA could not do, or its results are
 * right all the same; nobody hangs, nothing is used that is no more, nothing is left but what a failing call was to release, and a device opened
 * afterwards works. Skipped without the device. */
#include "support/test.h"

#include <unistd.h>

#include "base/error.h"
#include "cuda/loaded.h"
#include "support/cuda.h"
#include "support/opencl.h"

/* ---- a session: everything a device does ---- */

enum { FLOATS = 513 * 1024, SIGNED = 1024 }; /* copies have two pieces; the first floats get a ReLU */
#define BYTES ((uint64_t)FLOATS * sizeof(float))

static float source[FLOATS], result[FLOATS];

typedef struct session {
    tide_device *device;
    tide_arena *arena;
    tide_queue *compute, *in, *out;
    tide_event *event[3];
    tide_kernel *kernel;
} session;

static tide_status fill(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy(data, (const char *)source + position, size_bytes);
    return TIDE_OK;
}

static tide_status take(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy((char *)result + position, data, size_bytes);
    return TIDE_OK;
}

static tide_status create(session *s) {
    const tide_op_desc relu = {.kind = TIDE_OP_RELU_FWD, .x = {1, SIGNED, 1, 1}, .y = {1, SIGNED, 1, 1}};
    tide_device_info info;
    TIDE_TRY(tide_device_open("cuda:GPU-0001", NULL, &s->device)); /* the stand-in's first; asks for UUIDs, too */
    TIDE_TRY(tide_device_get_info(s->device, &info));
    TIDE_TRY(tide_arena_create(s->device, 2 * BYTES, &s->arena));
    TIDE_TRY(tide_kernel_create(s->device, &relu, &s->kernel));
    TIDE_TRY(tide_queue_create(s->device, TIDE_QUEUE_COMPUTE, &s->compute));
    TIDE_TRY(tide_queue_create(s->device, TIDE_QUEUE_COPY, &s->in));
    TIDE_TRY(tide_queue_create(s->device, TIDE_QUEUE_COPY, &s->out));
    for (int i = 0; i < 3; i++) TIDE_TRY(tide_event_create(s->device, &s->event[i]));
    return TIDE_OK;
}

/* In, ReLU of the beginning, to the second half of the arena, out. */
static tide_status enqueue(const session *s) {
    const uint64_t offsets[] = {0, 0};
    TIDE_TRY(tide_event_record(s->event[0], s->in));
    TIDE_TRY(tide_copy_in(s->in, s->arena, 0, BYTES, (tide_io){fill, NULL, TIDE_NONE}));
    TIDE_TRY(tide_event_record(s->event[1], s->in));
    TIDE_TRY(tide_event_wait(s->event[1], s->compute));
    TIDE_TRY(tide_kernel_enqueue(s->kernel, 0, s->compute, s->arena, offsets, 2, NULL));
    TIDE_TRY(tide_copy_within(s->compute, s->arena, 0, BYTES, BYTES));
    TIDE_TRY(tide_event_record(s->event[2], s->compute));
    TIDE_TRY(tide_event_wait(s->event[2], s->out));
    return tide_copy_out(s->out, s->arena, BYTES, BYTES, (tide_io){take, NULL, TIDE_NONE});
}

static tide_status wait_for_all(const session *s) {
    bool complete = false;
    uint64_t ns = 0;
    TIDE_TRY(tide_queue_sync(s->out));
    TIDE_TRY(tide_event_sync(s->event[2]));
    TIDE_TRY(tide_queue_sync(s->compute));
    TIDE_TRY(tide_queue_sync(s->in));
    TIDE_TRY(tide_event_query(s->event[1], &complete));
    return tide_event_elapsed(s->event[0], s->event[2], &ns);
}

static void destroy(const session *s) {
    for (int i = 0; i < 3; i++) tide_event_destroy(s->event[i]);
    tide_queue_destroy(s->compute);
    tide_queue_destroy(s->in);
    tide_queue_destroy(s->out);
    tide_kernel_destroy(s->kernel);
    tide_arena_destroy(s->arena);
    tide_device_close(s->device);
}

static bool is_right(void) {
    for (int i = 0; i < FLOATS; i++) {
        const float wanted = i < SIGNED && source[i] < 0 ? 0 : source[i];
        if (result[i] != wanted) return false;
    }
    return true;
}

/* With what the environment says of failures; *error: the text of the first. */
static tide_status run_session(char *error, size_t size) {
    session s = {0};
    cu.reset();
    memset(result, 0xff, sizeof result);
    tide_status status = create(&s);
    if (status == TIDE_OK) status = enqueue(&s);
    if (status == TIDE_OK) status = wait_for_all(&s);
    snprintf(error, size, "%s", status == TIDE_OK ? "" : tide_last_error());
    destroy(&s);
    cu.finish();
    return status;
}

/* ---- failures ---- */

static const char *const functions[] = {
#define STANDIN_TEXT(name, parameters) #name,
    STANDIN_FUNCTIONS(STANDIN_TEXT)
#undef STANDIN_TEXT
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/* Where one of these does nothing, something stays: whoever releases has to have the context. */
static bool releases(const char *name) {
    return strstr(name, "Destroy") || strstr(name, "Free") || strstr(name, "Release") || strstr(name, "Unload") ||
           strstr(name, "CtxP"); /* push and pop */
}

static void expect_no_misuse(const char *failure, bool may_leak) {
    static const standin_misuse fine[] = {MISUSE_AFTER_ERROR, MISUSE_LEAK};
    enum { QUEUES = 3 }; /* each may have a call on its way while another is told */
    for (int kind = 0; kind < MISUSES; kind++)
        if (kind != (int)fine[0] && kind != (int)fine[1] && cu.misuse_count((standin_misuse)kind))
            fail_msg("%s: %s", failure, cu.report(0));
    if (cu.misuse_count(MISUSE_AFTER_ERROR) > QUEUES) fail_msg("%s: goes on after the error", failure);
    if (cu.misuse_count(MISUSE_LEAK) && !may_leak) fail_msg("%s: %s", failure, cu.report(0));
}

static void fail_call(const char *name, uint64_t n, CUresult how) {
    char failure[96], error[1024];
    snprintf(failure, sizeof failure, "%s:%llu:%d", name, (unsigned long long)n, (int)how);
    setenv("TIDE_STANDIN_FAIL", failure, 1);
    alarm(60);
    const tide_status status = run_session(error, sizeof error);
    alarm(0);
    if (status == TIDE_OK && !is_right()) fail_msg("%s: wrong results, and nothing said so", failure);
    if (status != TIDE_OK && status != TIDE_E_DEVICE && status != TIDE_E_MEMORY)
        fail_msg("%s: status %d, %s", failure, (int)status, error);
    if (status != TIDE_OK && (!(strstr(error, "CUDA") || strstr(error, "cuda")) || strchr(error, '\n')))
        fail_msg("%s says \"%s\"", failure, error);
    expect_no_misuse(failure, releases(name));
}

static void test_every_call(void **state) {
    (void)state;
    static const CUresult how[] = {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_ILLEGAL_ADDRESS};
    const char *share = getenv("TIDE_TEST_SHARE"); /* of the failures one of so many */
    uint64_t calls[N_FUNCTIONS], all = 0;
    char error[1024];
    standin_load();
    unsetenv("TIDE_STANDIN_FAIL");
    if (run_session(error, sizeof error) != TIDE_OK) fail_msg("%s", error);
    assert_true(is_right());
    standin_expect_quiet();
    for (int i = 0; i < N_FUNCTIONS; i++) calls[i] = cu.calls(functions[i]);
    for (int i = 0; i < N_FUNCTIONS; i++)
        for (uint64_t n = 1; n <= calls[i]; n++)
            for (size_t e = 0; e < sizeof how / sizeof *how; e++)
                if (all++ % (share ? strtoull(share, NULL, 10) : 1) == 0) fail_call(functions[i], n, how[e]);
    unsetenv("TIDE_STANDIN_FAIL");
    printf("%llu failures of calls, of which every %s was tried\n", (unsigned long long)all, share ? share : "one");
    if (run_session(error, sizeof error) != TIDE_OK) fail_msg("afterwards: %s", error);
    standin_expect_quiet();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call)};
    for (int i = 0; i < FLOATS; i++) source[i] = (float)((i * 37) % 101 - 50);
    return has_cuda() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
