/* Threads of the CPU device that wait do so asleep, whatever else the process has said about OpenMP: they take no time of
 * their own, and a program beside them that wants a core slows a step down by no more than its share. */
#include "support/test.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tidemark/tidemark.h>

#include "base/clock.h"

typedef struct rig {
    tide_device *device;
    tide_arena *arena;
    tide_queue *queue;
    tide_kernel *kernel;
} rig;

/* An op whose loop goes to all threads. */
static void rig_open(rig *r, uint32_t threads) {
    const tide_op_desc relu = {.kind = TIDE_OP_RELU_FWD, .x = {8, 16, 32, 32}, .y = {8, 16, 32, 32}};
    tide_device_options options;
    tide_device_options_init(&options);
    options.threads = threads;
    assert_ok(tide_device_open("cpu", &options, &r->device));
    assert_ok(tide_arena_create(r->device, UINT64_C(1) << 25, &r->arena));
    assert_ok(tide_queue_create(r->device, TIDE_QUEUE_COMPUTE, &r->queue));
    assert_ok(tide_kernel_create(r->device, &relu, &r->kernel));
}

static void rig_close(rig *r) {
    tide_kernel_destroy(r->kernel);
    tide_queue_destroy(r->queue);
    tide_arena_destroy(r->arena);
    tide_device_close(r->device);
}

static void run(const rig *r, int times) {
    const uint64_t offsets[] = {0, UINT64_C(1) << 24};
    for (int i = 0; i < times; i++) assert_ok(tide_kernel_enqueue(r->kernel, 0, r->queue, r->arena, offsets, 2, NULL));
    assert_ok(tide_queue_sync(r->queue));
}

/* Of all threads. */
static uint64_t processor_ns(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000000 +
           ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000;
}

enum { ROUNDS = 25 };

/* Between two ops nothing happens for 20 ms: threads that spin take most of that. */
static uint64_t with_pauses_ns(uint32_t threads) {
    rig r;
    rig_open(&r, threads);
    run(&r, 20);
    uint64_t start = processor_ns();
    for (int i = 0; i < ROUNDS; i++) {
        run(&r, 1);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    uint64_t took = processor_ns() - start;
    rig_close(&r);
    return took;
}

static void test_waits_cost_nothing(void **state) {
    (void)state;
    uint64_t one = with_pauses_ns(1), two = with_pauses_ns(2);
    printf("%.1f ms of processor time with one thread, %.1f ms with two\n", (double)one / 1e6, (double)two / 1e6);
    assert_true(two < 2 * one + UINT64_C(500000) * ROUNDS);
}

static uint64_t many_ops_ns(const rig *r) {
    uint64_t start = tide__now_ns();
    run(r, 2000);
    return tide__now_ns() - start;
}

static pid_t start_spinner(void) {
    pid_t child = fork();
    assert_true(child >= 0);
    volatile bool for_ever = child == 0;
    while (for_ever) {
    }
    return child;
}

/* On two cores, one of them shared with a program that never rests. Others may be busy, too: the best of some tries. */
static void test_busy_machine(void **state) {
    (void)state;
    cpu_set_t all, two;
    rig r;
    double ratio = 1e9;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2 || SANITIZER_SHARE > 1) skip();
    CPU_ZERO(&two);
    for (size_t i = 0; CPU_COUNT(&two) < 2; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &two);
    assert_int_equal(sched_setaffinity(0, sizeof two, &two), 0);
    rig_open(&r, 2);
    run(&r, 20);
    for (int i = 0; i < 5 && ratio > 2.2; i++) {
        uint64_t alone = many_ops_ns(&r);
        pid_t spinner = start_spinner();
        ratio = (double)many_ops_ns(&r) / (double)alone;
        kill(spinner, SIGKILL);
        waitpid(spinner, NULL, 0);
        printf("beside a busy program %.2f times the time\n", ratio);
    }
    assert_true(ratio <= 2.2);
    rig_close(&r);
    sched_setaffinity(0, sizeof all, &all);
}

/* Devices come and go, also several at a time. */
static void test_devices_come_and_go(void **state) {
    (void)state;
    rig a, b;
    for (int i = 0; i < 3; i++) {
        rig_open(&a, 2);
        rig_open(&b, 3);
        run(&a, 1);
        run(&b, 1);
        rig_close(&a);
        run(&b, 1);
        rig_close(&b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits_cost_nothing), cmocka_unit_test(test_busy_machine),
                                       cmocka_unit_test(test_devices_come_and_go)};
    (void)argc;
    if (SANITIZER_SHARE > 1) return 77; /* sanitizers take time of their own, and do not see libgomp's waits */
    if (getenv("OMP_WAIT_POLICY")) {    /* the runtime has read it already: once more, as a user's program is */
        unsetenv("OMP_WAIT_POLICY");
        execv("/proc/self/exe", argv);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
