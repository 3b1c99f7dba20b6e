/* See busy.h. */
#include "busy.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t count_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

void remark_threads(uint32_t threads) {
    uint32_t cores = count_cores();
    if (threads <= cores) return;
    fprintf(stderr, "tidemark: %u threads on %u core%s: they take turns\n", threads, cores, cores == 1 ? "" : "s");
}

void remark_busy(const char *so) {
    double load;
    if (getloadavg(&load, 1) == 1 && load > 0.5)
        fprintf(stderr, "tidemark: the machine is busy (load %.1f): %s\n", load, so);
}
