/* Disk requests by pread and pwrite on a few threads of the lane's own: for systems without io_uring. With O_DIRECT the
 * threads sleep while the disk works, so they take no core from anybody.
 *
 * A child of fork has the lane but none of its threads, and maybe a lock that one of them holds: it only gives the memory back.
 *
 * Invariant: a request is new, taken by a thread, or done; at most `depth` of them exist, so neither list overflows. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tier/disk_io.h"

enum { N_THREADS = 4 };

typedef struct entry {
    tide__disk_request request;
    uint32_t tag;
    int64_t result;
} entry;

typedef struct threads_lane {
    int fd;
    pid_t owner; /* the process that has the threads */
    uint32_t depth, n_threads;
    pthread_t thread[N_THREADS];
    pthread_mutex_t lock; /* protects all that follows */
    pthread_cond_t pushed, completed;
    uint32_t n_new, n_done;
    entry *new, *done; /* depth each: what nobody took yet, oldest first; results in any order */
    bool stopping;
} threads_lane;

static int64_t perform(int fd, const tide__disk_request *r) {
    ssize_t n = r->write ? pwrite(fd, r->data, r->size_bytes, (off_t)r->offset)
                         : pread(fd, r->data, r->size_bytes, (off_t)r->offset);
    return n < 0 ? -errno : n;
}

/* Takes the oldest request: a disk likes ascending addresses. */
static entry take(threads_lane *lane) {
    entry e = lane->new[0];
    lane->n_new--;
    for (uint32_t i = 0; i < lane->n_new; i++) lane->new[i] = lane->new[i + 1];
    return e;
}

static void *thread_main(void *context) {
    threads_lane *lane = context;
    pthread_mutex_lock(&lane->lock);
    for (;;) {
        while (lane->n_new == 0 && !lane->stopping) pthread_cond_wait(&lane->pushed, &lane->lock);
        if (lane->n_new == 0) break;
        entry e = take(lane);
        pthread_mutex_unlock(&lane->lock);
        e.result = perform(lane->fd, &e.request);
        pthread_mutex_lock(&lane->lock);
        lane->done[lane->n_done++] = e;
        pthread_cond_signal(&lane->completed);
    }
    pthread_mutex_unlock(&lane->lock);
    return NULL;
}

static void stop_threads(threads_lane *lane) {
    pthread_mutex_lock(&lane->lock);
    lane->stopping = true;
    pthread_cond_broadcast(&lane->pushed);
    pthread_mutex_unlock(&lane->lock);
    for (uint32_t i = 0; i < lane->n_threads; i++) pthread_join(lane->thread[i], NULL);
    pthread_mutex_destroy(&lane->lock);
    pthread_cond_destroy(&lane->pushed);
    pthread_cond_destroy(&lane->completed);
}

static void threads_close(void *context) {
    threads_lane *lane = context;
    if (lane->owner == getpid()) stop_threads(lane);
    free(lane->new);
    free(lane->done);
    free(lane);
}

/* They leave all signals to the host's threads. */
static int start_threads(threads_lane *lane) {
    int error = 0;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (lane->n_threads < N_THREADS && !error) {
        error = pthread_create(&lane->thread[lane->n_threads], NULL, thread_main, lane);
        lane->n_threads += !error;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return lane->n_threads ? 0 : error; /* one is enough */
}

static int threads_open(int fd, uint32_t depth, void **out) {
    threads_lane *lane = calloc(1, sizeof *lane);
    if (!lane) return ENOMEM;
    lane->fd = fd;
    lane->owner = getpid();
    lane->depth = depth;
    pthread_mutex_init(&lane->lock, NULL); /* none of the three fails with default attributes on Linux */
    pthread_cond_init(&lane->pushed, NULL);
    pthread_cond_init(&lane->completed, NULL);
    lane->new = malloc(depth * sizeof *lane->new);
    lane->done = malloc(depth * sizeof *lane->done);
    int error = lane->new && lane->done ? start_threads(lane) : ENOMEM;
    if (error) {
        threads_close(lane);
        return error;
    }
    *out = lane;
    return 0;
}

static int threads_push(void *context, const tide__disk_request *request, uint32_t tag) {
    threads_lane *lane = context;
    pthread_mutex_lock(&lane->lock);
    bool full = lane->n_new == lane->depth;
    if (!full) lane->new[lane->n_new++] = (entry){.request = *request, .tag = tag};
    pthread_cond_signal(&lane->pushed);
    pthread_mutex_unlock(&lane->lock);
    return full ? EBUSY : 0;
}

static int threads_wait(void *context, uint32_t *tag, int64_t *result) {
    threads_lane *lane = context;
    pthread_mutex_lock(&lane->lock);
    while (lane->n_done == 0) pthread_cond_wait(&lane->completed, &lane->lock);
    entry e = lane->done[--lane->n_done];
    pthread_mutex_unlock(&lane->lock);
    *tag = e.tag;
    *result = e.result;
    return 0;
}

const tide__disk_engine tide__disk_threads = {
    .name = "threads",
    .open = threads_open,
    .push = threads_push,
    .wait = threads_wait,
    .close = threads_close,
    .reserve = tide__disk_reserve,
};
