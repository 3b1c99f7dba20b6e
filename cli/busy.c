/* See busy.h. */
#include "busy.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

void remark_threads(uint32_t threads) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || threads <= (uint32_t)CPU_COUNT(&set)) return;
    fprintf(stderr, "tidemark: %u threads on %d core%s: they take turns\n", threads, CPU_COUNT(&set),
            CPU_COUNT(&set) == 1 ? "" : "s");
}

void remark_busy(const char *so) {
    double load;
    if (getloadavg(&load, 1) == 1 && load > 0.5)
        fprintf(stderr, "tidemark: the machine is busy (load %.1f): %s\n", load, so);
}
