/* See plan_watch.h. */
#include "plan_watch.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static const uint64_t SHOW_EVERY_NS = UINT64_C(200) * 1000 * 1000;

static void show(plan_watch *w, const tide_plan_progress *p) {
    double whole = (double)(w->whole_ns ? w->whole_ns : 1);
    fprintf(stderr, "\r\x1b[Kplanning (%s) %.0f %%: ", p->phase, 100 * p->share);
    if (p->best_ns == UINT64_MAX)
        fputs("no plan yet", stderr);
    else
        fprintf(stderr, "best %.3f", (double)p->best_ns / whole);
    fprintf(stderr, ", bound %.3f; Ctrl-C takes the best so far", (double)p->bound_ns / whole);
    w->is_shown = true;
}

static bool watch_progress(void *self, const tide_plan_progress *p) {
    plan_watch *w = self;
    uint64_t now = now_ns();
    if (w->is_terminal && now - w->shown_ns >= SHOW_EVERY_NS) {
        w->shown_ns = now;
        show(w, p);
    }
    return !interrupted && (w->seconds <= 0 || (double)(now - w->begun_ns) < 1e9 * w->seconds);
}

void plan_watch_begin(plan_watch *w, tide_plan_options *options) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    w->is_terminal = isatty(STDERR_FILENO);
    w->begun_ns = w->shown_ns = now_ns();
    if (!w->is_terminal && w->seconds <= 0) return;
    options->progress = watch_progress;
    options->progress_self = w;
    sigaction(SIGINT, &action, NULL);
}

void plan_watch_end(plan_watch *w, tide_plan_options *options) {
    struct sigaction usual = {.sa_handler = SIG_DFL};
    if (!options->progress) return;
    if (w->is_shown) fputs("\r\x1b[K", stderr);
    options->progress = NULL;
    sigaction(SIGINT, &usual, NULL);
}
