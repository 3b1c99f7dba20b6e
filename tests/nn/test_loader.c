/* The next batch is loaded beside the step: a step ends while the batch after it is still being loaded; and a load that
 * fails ahead of its time is no failure yet. */
#include "support/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "base/error.h"
#include "support/training.h"

enum { BATCH = 4 };

typedef struct gate {
    tide_data inner;
    sem_t open;       /* whoever loads the second batch waits for it */
    pthread_t main;   /* who trains */
    int calls;        /* of the sample function; one thread at a time calls it */
    uint64_t failing; /* a bit per call: which of them fail */
    bool waits;
    bool timed_out, on_main; /* second batch: nobody opened; the training thread itself had to load it */
} gate;

static void wait_at(gate *g) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    g->on_main = pthread_equal(pthread_self(), g->main) != 0;
    if (!g->on_main && sem_timedwait(&g->open, &until) != 0) g->timed_out = true;
}

static tide_status sample(void *context, uint64_t index, float *pixels, int32_t *label) {
    gate *g = context;
    int call = g->calls++;
    if (call == BATCH && g->waits) wait_at(g);
    if (call < 64 && g->failing >> call & 1) return tide__fail(TIDE_E_IO, "the disk has a scratch");
    return g->inner.sample(g->inner.context, index, pixels, label);
}

static void start(training *t, gate *g) {
    training_open(t, "mlp:784,8,10", BATCH);
    g->inner = t->data;
    g->main = pthread_self();
    t->data.sample = sample;
    t->data.context = g;
    assert_int_equal(sem_init(&g->open, 0, 0), 0);
}

static void test_overlap(void **state) {
    (void)state;
    training t;
    gate g = {.waits = true};
    start(&t, &g);
    tide_trainer *trainer = training_start(&t);
    training_run(trainer, 1); /* returns although the second batch cannot be complete */
    assert_int_equal(sem_post(&g.open), 0);
    training_run(trainer, 1);
    assert_false(g.on_main);
    assert_false(g.timed_out);
    tide_trainer_destroy(trainer);
    training_close(&t);
    sem_destroy(&g.open);
}

/* The bits are those of a training whose loads never fail. */
static void test_failure(void **state) {
    (void)state;
    training t;
    gate g = {.waits = false};
    float loss;
    start(&t, &g);
    tide_trainer *whole = training_start(&t);
    training_run(whole, 4);
    uint64_t hash = training_hash(whole);
    tide_trainer_destroy(whole);
    g.calls = 0;
    /* The second batch fails ahead and when it is needed; then it is read by calls 6 to 9, and the third fails ahead. */
    g.failing = UINT64_C(1) << 4 | UINT64_C(1) << 5 | UINT64_C(1) << 10;
    tide_trainer *trainer = training_start(&t);
    training_run(trainer, 1);
    assert_status(tide_trainer_step(trainer, &loss, NULL), TIDE_E_IO);
    assert_error_has("scratch");
    training_run(trainer, 3);
    assert_true(training_hash(trainer) == hash);
    tide_trainer_destroy(trainer);
    training_close(&t);
    sem_destroy(&g.open);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overlap), cmocka_unit_test(test_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
