/* See team.h. Invariant: from the end of tide__team_open to tide__team_close the runtime counts the sleepers. */
#include "device/cpu/team.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

/* LLVM's runtime has a call for this; it is there in builds with clang. */
/* NOLINTNEXTLINE(readability-redundant-declaration): only some headers have it */
extern void kmp_set_blocktime(int ms) __attribute__((weak));

struct tide__team {
    pthread_t thread; /* whose OpenMP threads sleep */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t sleepers;
    bool counted, closing;
};

static void announce(tide__team *team) {
    pthread_mutex_lock(&team->lock);
    team->counted = true;
    pthread_cond_broadcast(&team->changed);
    while (!team->closing) pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

static void *sleep_main(void *context) {
    tide__team *team = context;
    volatile int started = 0; /* so that the region is not left out */
    omp_set_dynamic(0);
    omp_set_num_threads((int)team->sleepers);
#pragma omp parallel
    {
#pragma omp atomic
        started += 1;
    }
    announce(team);
    return NULL; /* its OpenMP threads end with it */
}

/* Signals are for the host's threads. */
static int start(tide__team *team) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(&team->thread, NULL, sleep_main, team);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

static void release(tide__team *team) {
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->changed);
    free(team);
}

tide_status tide__team_open(uint32_t cores, tide__team **out) {
    tide__team *team = calloc(1, sizeof *team);
    if (!team) return tide__fail_memory();
    if (kmp_set_blocktime) kmp_set_blocktime(0);
    team->sleepers = cores > 1 ? cores : 2;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    int error = start(team);
    if (error) {
        release(team);
        return tide__fail_errno(TIDE_E_DEVICE, error, "cannot start a thread");
    }
    pthread_mutex_lock(&team->lock);
    while (!team->counted) pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
    *out = team;
    return TIDE_OK;
}

void tide__team_close(tide__team *team) {
    if (!team) return;
    pthread_mutex_lock(&team->lock);
    team->closing = true;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    pthread_join(team->thread, NULL);
    release(team);
}
