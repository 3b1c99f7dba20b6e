/* See clock.h. */
#include "base/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t tide__now_ns(void) { return read_clock(CLOCK_MONOTONIC); }
uint64_t tide__worked_ns(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
