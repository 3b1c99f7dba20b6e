/* See progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void progress_start(progress *p, const char *label, uint64_t total, uint64_t samples_per_step, bool quiet) {
    *p = (progress){.label = label, .total = total, .samples_per_step = samples_per_step, .quiet = quiet};
    p->terminal = isatty(STDERR_FILENO);
    p->start_ns = p->shown_ns = now_ns();
}

/* Ten times a second on a terminal, every five seconds in a log; the last step always. */
void progress_step(progress *p, uint64_t done, float loss, uint64_t arena_bytes) {
    uint64_t now = now_ns(), pause = p->terminal ? UINT64_C(100000000) : UINT64_C(5000000000);
    if (p->quiet || (done < p->total && now - p->shown_ns < pause)) return;
    p->shown_ns = now;
    double seconds = (double)(now - p->start_ns) / 1e9;
    double left = seconds / (double)done * (double)(p->total - done);
    fprintf(stderr, "%s%-10s step %" PRIu64 "/%" PRIu64 "  loss %.4f  %.0f img/s  arena %s  %.0f s left%s",
            p->terminal ? "\r" : "", p->label, done, p->total, (double)loss,
            (double)(done * p->samples_per_step) / (seconds > 0 ? seconds : 1), show_bytes(arena_bytes), left,
            p->terminal ? "   " : "\n");
    fflush(stderr);
}

void progress_end(progress *p) {
    if (!p->quiet && p->terminal) fputc('\n', stderr);
}
