/* See crew.h. Threads take the next job from a counter; a failure lowers the end of the list, so that jobs before it are still
 * done: one of them may fail as well, and is then the one to tell. */
#include "nn/crew.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

enum { MAX_THREADS = 64, STACK_BYTES = 1 << 18 }; /* stacks count where the data segment is limited */

typedef struct crew {
    pthread_mutex_t lock;
    uint64_t next, end; /* jobs to hand out; the first that failed is at `end` */
    tide__job_fn fn;
    void *context;
    tide_status status;
    char text[512]; /* of the failure: last errors belong to threads */
} crew;

static bool take_job(crew *c, uint64_t *job) {
    pthread_mutex_lock(&c->lock);
    bool some = c->next < c->end;
    if (some) *job = c->next++;
    pthread_mutex_unlock(&c->lock);
    return some;
}

static void note_failure(crew *c, uint64_t job, tide_status status) {
    pthread_mutex_lock(&c->lock);
    if (job < c->end) {
        c->end = job;
        c->status = status;
        snprintf(c->text, sizeof c->text, "%s", tide_last_error());
    }
    pthread_mutex_unlock(&c->lock);
}

static void *work(void *context) {
    crew *c = context;
    uint64_t job;
    while (take_job(c, &job)) {
        tide_status status = c->fn(c->context, job);
        if (status != TIDE_OK) note_failure(c, job, status);
    }
    return NULL;
}

/* Signals are the caller's business. */
static uint32_t start(crew *c, uint32_t n, pthread_t *threads) {
    pthread_attr_t attributes;
    sigset_t all, old;
    uint32_t started = 0;
    if (n == 0 || pthread_attr_init(&attributes) != 0) return 0;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (started < n && pthread_create(&threads[started], &attributes, work, c) == 0) started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

tide_status tide__crew_run(uint32_t n_threads, uint64_t n_jobs, tide__job_fn fn, void *context) {
    pthread_t threads[MAX_THREADS];
    crew c = {.end = n_jobs, .fn = fn, .context = context, .status = TIDE_OK};
    uint64_t most = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    if (most > n_jobs) most = n_jobs;
    if (pthread_mutex_init(&c.lock, NULL) != 0) return tide__fail_memory();
    uint32_t started = start(&c, most ? (uint32_t)most - 1 : 0, threads);
    work(&c);
    for (uint32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&c.lock);
    return c.status == TIDE_OK ? TIDE_OK : tide__fail(c.status, "%s", c.text);
}
