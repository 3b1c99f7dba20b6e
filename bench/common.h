/* What benchmarks share: the time of all cores that this process has used, and an end where nothing can go on. */
#ifndef TIDE_BENCH_COMMON_H
#define TIDE_BENCH_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tidemark/status.h>

static inline double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void require(tide_status status) {
    if (status == TIDE_OK) return;
    fprintf(stderr, "%s: %s\n", tide_status_name(status), tide_last_error());
    exit(1);
}

#endif
