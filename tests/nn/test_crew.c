/* Several threads for one list of jobs: each is done once, whoever does it; the first of those that fail is told, with its text. */
#include "support/test.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "nn/crew.h"

enum { N_JOBS = 200 };

typedef struct jobs {
    pthread_barrier_t barrier; /* of the first two: nobody does both */
    int done[N_JOBS];          /* each is its job's own */
    uint64_t fails_from;       /* every third from here on */
    bool together;
} jobs;

static tide_status do_job(void *context, uint64_t job) {
    jobs *j = context;
    if (j->together && job < 2) pthread_barrier_wait(&j->barrier);
    j->done[job]++;
    if (job >= j->fails_from && job % 3 == 0) return tide__fail(TIDE_E_IO, "job %llu", (unsigned long long)job);
    return TIDE_OK;
}

static void test_once_each(void **state) {
    (void)state;
    static const uint32_t threads[] = {0, 1, 2, 7, 1000};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        jobs j = {.fails_from = N_JOBS};
        assert_ok(tide__crew_run(threads[t], N_JOBS, do_job, &j));
        for (int i = 0; i < N_JOBS; i++) assert_int_equal(j.done[i], 1);
    }
    assert_ok(tide__crew_run(4, 0, do_job, NULL));
}

/* Would never end if one thread did all. */
static void test_at_once(void **state) {
    (void)state;
    jobs j = {.fails_from = N_JOBS, .together = true};
    assert_int_equal(pthread_barrier_init(&j.barrier, NULL, 2), 0);
    assert_ok(tide__crew_run(2, N_JOBS, do_job, &j));
    pthread_barrier_destroy(&j.barrier);
}

static void test_first_failure(void **state) {
    (void)state;
    for (int round = 0; round < 50; round++) {
        jobs j = {.fails_from = 40};
        assert_status(tide__crew_run(4, N_JOBS, do_job, &j), TIDE_E_IO);
        assert_error_has("job 42");
        for (int i = 0; i <= 42; i++) assert_int_equal(j.done[i], 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_each),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
