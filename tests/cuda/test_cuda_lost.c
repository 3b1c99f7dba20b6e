/* The CUDA device beside others in its process that use the same context: one whose kernel fails, one that resets the device.
 * The training is poisoned, with an op's name; closing is clean; a device that is opened anew trains. And in a child of its
 * process, where it is refused and the parent's goes on. Skipped without the device. */
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cuda/texts.h"
#include "support/cuda.h"
#include "support/opencl.h"
#include "support/training.h"

/* ---- the other user ---- */

typedef struct other {
    CUcontext context;
    CUmodule module;
} other;

static void other_begin(other *o) {
    standin_load();
    cu.reset();
    assert_cu(cu.cuInit(0));
    assert_cu(cu.cuDevicePrimaryCtxRetain(&o->context, 0));
}

/* Asks nothing afterwards: whoever calls next is told. */
static void other_fails(other *o) {
    CUdeviceptr nowhere = 0;
    void *arguments[] = {&nowhere};
    assert_cu(cu.cuCtxSetCurrent(o->context));
    CUfunction f = standin_kernel_of(TEXT_ONE("f", "trap;\n"), "f", &o->module);
    assert_cu(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
    assert_cu(cu.cuCtxSetCurrent(NULL));
}

static void other_ends(const other *o) {
    if (o->module) {
        (void)cu.cuCtxSetCurrent(o->context);
        (void)cu.cuModuleUnload(o->module);
        (void)cu.cuCtxSetCurrent(NULL);
    }
    (void)cu.cuDevicePrimaryCtxRelease_v2(0);
}

/* ---- the training ---- */

enum { MOST_QUEUES = 6 }; /* compute, and each way to each tier of the profile */

static tide_trainer *begin(training *t) {
    training_open_on(t, "cuda", "lenet", 2);
    tide_trainer *trainer = training_start(t);
    training_run(trainer, 1);
    return trainer;
}

static void expect_poisoned(training *t, tide_trainer *trainer, const char *error) {
    tide_status status = TIDE_OK;
    float loss;
    for (int i = 0; i < 100 && status == TIDE_OK; i++) status = tide_trainer_step(trainer, &loss, NULL);
    assert_status(status, TIDE_E_DEVICE);
    assert_error_has(error);
    if (!strstr(tide_last_error(), ", after ") && !strstr(tide_last_error(), " under way"))
        fail_msg("no op in: %s", tide_last_error());
    assert_status(tide_trainer_step(trainer, &loss, NULL), TIDE_E_POISONED);
    tide_trainer_destroy(trainer);
    training_close(t);
}

/* Nothing is used that is no more, nothing is left, and all of it works again. */
static void expect_clean(void) {
    static const standin_misuse never[] = {MISUSE_NO_CONTEXT, MISUSE_BAD_HANDLE,  MISUSE_DESTROYED, MISUSE_AFTER_FREE,
                                           MISUSE_BAD_FREE,   MISUSE_DOUBLE_FREE, MISUSE_LEAK,      MISUSE_BUSY_MEMORY};
    for (uint32_t i = 0; i < sizeof never / sizeof *never; i++)
        if (cu.misuse_count(never[i])) {
            for (uint32_t n = 0; cu.report(n); n++) print_error("%s\n", cu.report(n));
            fail_msg("misuse %d", (int)never[i]);
        }
    /* A call of every queue may be on its way while another is told. */
    assert_true(cu.misuse_count(MISUSE_AFTER_ERROR) <= MOST_QUEUES);
    training t;
    tide_trainer *trainer = begin(&t);
    tide_trainer_destroy(trainer);
    training_close(&t);
}

static void test_another_kernel_fails(void **state) {
    (void)state;
    training t;
    other o = {0};
    other_begin(&o);
    tide_trainer *trainer = begin(&t);
    other_fails(&o);
    expect_poisoned(&t, trainer, "CUDA_ERROR_");
    other_ends(&o);
    expect_clean();
}

static void test_another_resets_the_device(void **state) {
    (void)state;
    training t;
    other o = {0};
    other_begin(&o);
    tide_trainer *trainer = begin(&t);
    assert_cu(cu.cuDevicePrimaryCtxReset_v2(0));
    expect_poisoned(&t, trainer, "CUDA_ERROR_CONTEXT_IS_DESTROYED");
    other_ends(&o);
    expect_clean();
}

/* ---- a child of fork() ---- */

/* In the child: nothing of the parent's device works, nothing hangs, and CUDA says why it does not begin. */
static int use_in_child(training *t, tide_trainer *trainer) {
    tide_device *another = NULL;
    tide_device_info info;
    alarm(20);
    const bool refused = tide_device_get_info(t->device, &info) == TIDE_E_DEVICE &&
                         strstr(tide_last_error(), "before this process was forked");
    const bool step_refused = tide_trainer_step(trainer, NULL, NULL) != TIDE_OK;
    const bool open_refused =
        tide_device_open("cuda", NULL, &another) == TIDE_E_DEVICE && strstr(tide_last_error(), "was forked from one");
    tide_trainer_destroy(trainer);
    tide_device_close(t->device);
    return (refused ? 0 : 1) + (step_refused ? 0 : 2) + (open_refused ? 0 : 4);
}

static void test_fork(void **state) {
    (void)state;
    training t;
    int status = 0;
    standin_load();
    cu.reset();
    tide_trainer *trainer = begin(&t);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(use_in_child(&t, trainer));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("the child ended with %#x", status);
    training_run(trainer, 1);
    tide_trainer_destroy(trainer);
    training_close(&t);
    standin_expect_quiet();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_kernel_fails),
        cmocka_unit_test(test_another_resets_the_device),
        cmocka_unit_test(test_fork),
    };
    return has_cuda() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
