/* See exact.h: the optimum as an integer program, written to a file for cbc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plan_exact/exact.h"

bool integer_solver_found(void) { return system("command -v cbc >/dev/null 2>&1") == 0; }

/* ---- the program as text ---- */

/* Would stage t ever re-run op k: is its value read between the two? */
static bool can_rerun(const example *x, uint32_t t, uint32_t k) {
    for (uint32_t j = k + 1; j <= t; j++)
        if (x->reads[j] >> k & 1) return k < t;
    return false;
}

static void write_objective(FILE *f, const example *x, const char *after) {
    for (uint32_t t = 0; t < x->n_ops; t++)
        for (uint32_t k = 0; k < t; k++)
            if (can_rerun(x, t, k)) fprintf(f, " + %u r%u_%u\n", x->cost[k], t, k);
    fprintf(f, "%s\n", after);
}

/* Value i at place k of stage t, i < t: there before, or made here. */
static void write_presence(FILE *f, const example *x, uint32_t t, uint32_t k, uint32_t i) {
    fprintf(f, " p%u_%u_%u", t, k, i);
    bool made_last = k == 0 && i + 1 == t; /* the op of the stage before made it */
    if (k > 0)
        fprintf(f, " - p%u_%u_%u", t, k - 1, i);
    else if (!made_last)
        fprintf(f, " - p%u_%u_%u", t - 1, t - 1, i);
    if (k == i && can_rerun(x, t, k)) fprintf(f, " - r%u_%u", t, k);
    fprintf(f, " <= %d\n", made_last);
}

/* An op that runs at place k needs its reads, and makes its value. */
static void write_needs(FILE *f, const example *x, uint32_t t, uint32_t k) {
    for (uint32_t i = 0; i <= k; i++) {
        bool needed = i == k || (x->reads[k] >> i & 1);
        if (needed && k < t && can_rerun(x, t, k)) fprintf(f, " p%u_%u_%u - r%u_%u >= 0\n", t, k, i, t, k);
        if (needed && k == t && i < t) fprintf(f, " p%u_%u_%u = 1\n", t, k, i);
    }
}

static void write_load(FILE *f, const example *x, uint32_t t, uint32_t k, uint32_t room) {
    uint32_t own = k == t ? x->units[t] : 0;
    if (t == 0) return;
    for (uint32_t i = 0; i < t; i++) fprintf(f, " + %u p%u_%u_%u\n", x->units[i], t, k, i);
    fprintf(f, " <= %d\n", (int)room - (int)own);
}

static void write_program(FILE *f, const example *x, uint32_t room, double known_extra) {
    fprintf(f, "Minimize\n obj:");
    write_objective(f, x, "Subject To");
    write_objective(f, x, "");
    fprintf(f, " <= %.0f\n", known_extra);
    for (uint32_t t = 0; t < x->n_ops; t++)
        for (uint32_t k = 0; k <= t; k++) {
            for (uint32_t i = 0; i < t; i++) write_presence(f, x, t, k, i);
            write_needs(f, x, t, k);
            write_load(f, x, t, k, room);
        }
    fprintf(f, "Bounds\n");
    for (uint32_t t = 0; t < x->n_ops; t++)
        for (uint32_t k = 0; k <= t; k++)
            for (uint32_t i = 0; i < t; i++) fprintf(f, " 0 <= p%u_%u_%u <= 1\n", t, k, i);
    fprintf(f, "Binaries\n");
    for (uint32_t t = 0; t < x->n_ops; t++)
        for (uint32_t k = 0; k < t; k++)
            if (can_rerun(x, t, k)) fprintf(f, " r%u_%u\n", t, k);
    fprintf(f, "End\n");
}

/* ---- the solver ---- */

/* Re-runs only: what every plan takes is not in the objective. */
static void read_answer(FILE *log, integer_answer *a) {
    char line[512];
    double bound = 0, value = -1;
    bool stopped = false;
    while (fgets(line, sizeof line, log)) {
        if (strncmp(line, "Result - ", 9) == 0) a->optimal = strstr(line, "Optimal") != NULL;
        if (strncmp(line, "Result - Stopped", 16) == 0) stopped = true;
        sscanf(line, "Objective value: %lf", &value);
        sscanf(line, "Lower bound: %lf", &bound);
    }
    a->known = a->optimal || stopped;
    a->time = value;
    a->bound = a->optimal ? value : bound;
}

static bool solve(const char *path, uint32_t limit_seconds, integer_answer *a) {
    char command[256];
    snprintf(command, sizeof command, "cbc %s -seconds %u -solve -quit 2>/dev/null", path, limit_seconds);
    FILE *log = popen(command, "r");
    if (!log) return false;
    read_answer(log, a);
    return pclose(log) == 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

integer_answer optimum_by_integers(const example *x, uint32_t room, double known_time, uint32_t limit_seconds) {
    char path[] = "/tmp/tidemark-XXXXXX.lp";
    integer_answer a = {0};
    double all = 0, since = now();
    for (uint32_t i = 0; i < x->n_ops; i++) all += x->cost[i];
    int fd = mkstemps(path, 3);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) {
        require(TIDE_E_IO); /* ends the program */
        return a;
    }
    write_program(f, x, room, known_time - all);
    bool written = fclose(f) == 0;
    if (!written || !solve(path, limit_seconds, &a)) a.known = false;
    unlink(path);
    a.time += all;
    a.bound += all;
    a.seconds = now() - since;
    return a;
}
