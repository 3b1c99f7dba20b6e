/* Processor time of the calling thread, for tests that bound how long something takes: a busy machine, or one that
 * stands still for a while, does not matter. */
#ifndef TIDE_TESTS_CPU_TIME_H
#define TIDE_TESTS_CPU_TIME_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
