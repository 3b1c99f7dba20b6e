/* Copies beside compute, as the timeline of the stand-in for CUDA's driver shows it: in steps that follow a plan, a good
 * part of the time that the plan hides copies for lies under kernels, whatever else the machine does. Skipped without the stand-in. */
#include "support/test.h"

#include <dlfcn.h>
#include <unistd.h>

#include "support/cuda.h"
#include "support/opencl.h"
#include "support/training.h"

enum { STEPS = 3, MIB_PER_S = 40, MAX_EVENTS = 1 << 16 };

static struct {
    void *library;
    void (*reset)(void), (*finish)(void);
    uint64_t (*calls)(const char *name);
    const char *(*report)(uint32_t n);
} standin;

static bool find(const char *name, void *out) {
    void *address = dlsym(standin.library, name);
    if (address) memcpy(out, &address, sizeof address);
    return address != NULL;
}

static bool load_standin(void) {
    const char *file = getenv("TIDE_CUDA_LIBRARY");
    standin.library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    return standin.library && find("standin_reset", &standin.reset) && find("standin_finish", &standin.finish) &&
           find("standin_calls", &standin.calls) && find("standin_report", &standin.report);
}

/* ---- the timeline ---- */

typedef struct span {
    double begin, end;
} span;

typedef struct timeline {
    span *kernels, *copies;
    uint32_t n_kernels, n_copies;
} timeline;

/* One event per line. Copies of a few bytes are the queue's faults. */
static void read_timeline(const char *path, timeline *t) {
    char line[512], kind[16];
    double begin, took;
    unsigned long long bytes;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    *t = (timeline){calloc(MAX_EVENTS, sizeof(span)), calloc(MAX_EVENTS, sizeof(span)), 0, 0};
    while (fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "\"cat\"");
        if (!at ||
            sscanf(at,
                   "\"cat\": \"%15[a-z]\", \"ph\": \"X\", \"pid\": %*u, \"tid\": %*u, \"ts\": %lf, \"dur\": %lf, "
                   "\"args\": {\"bytes\": %llu",
                   kind, &begin, &took, &bytes) != 4)
            continue;
        assert_true(t->n_kernels < MAX_EVENTS && t->n_copies < MAX_EVENTS);
        if (strcmp(kind, "kernel") == 0) t->kernels[t->n_kernels++] = (span){begin, begin + took};
        if (strcmp(kind, "copy") == 0 && bytes > 64) t->copies[t->n_copies++] = (span){begin, begin + took};
    }
    fclose(file);
}

static int by_begin(const void *a, const void *b) {
    const double x = ((const span *)a)->begin, y = ((const span *)b)->begin;
    return (x > y) - (x < y);
}

/* The share of the copies' time that lies under kernels, from the `n` last kernels on. */
static double overlap(const timeline *t, uint64_t n) {
    double all = 0, under = 0;
    qsort(t->kernels, t->n_kernels, sizeof *t->kernels, by_begin);
    assert_true(n < t->n_kernels);
    const span *last = t->kernels + t->n_kernels - n;
    for (uint32_t i = 0; i < t->n_copies; i++) {
        const span *c = &t->copies[i];
        if (c->begin < last->begin || c->begin > t->kernels[t->n_kernels - 1].end) continue;
        all += c->end - c->begin;
        for (const span *k = last; k < t->kernels + t->n_kernels; k++) {
            const double from = k->begin > c->begin ? k->begin : c->begin, to = k->end < c->end ? k->end : c->end;
            if (to > from) under += to - from;
        }
    }
    assert_true(all > 0);
    return under / all;
}

/* ---- the training ---- */

static void test_overlap(void **state) {
    (void)state;
    training t;
    timeline lines;
    char path[] = "/tmp/tide-timeline-XXXXXX", rate[16];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    snprintf(rate, sizeof rate, "%d", MIB_PER_S);
    setenv("TIDE_STANDIN_TIMELINE", path, 1);
    setenv("TIDE_STANDIN_COPY_MIBPS", rate, 1);
    standin.reset();
    training_open_on(&t, "cuda", "lenet", 16);
    for (uint32_t i = 0; i < t.machine.n_channels; i++) t.machine.channel[i].bytes_per_s = (uint64_t)MIB_PER_S << 20;
    t.options.plan.policy = "autoswap";
    t.options.plan.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = 0.6};
    tide_trainer *trainer = training_start(&t);
    training_run(trainer, 4); /* from the third step on it follows the plan from measured costs */
    const uint64_t before = standin.calls("cuLaunchKernel"), spun = standin.calls("cuStreamSynchronize");
    training_run(trainer, STEPS);
    const uint64_t kernels = standin.calls("cuLaunchKernel") - before;
    assert_int_equal(standin.calls("cuStreamSynchronize"), spun); /* waits are asleep, by events */
    const tide_prediction *planned = tide_plan_prediction(tide_trainer_plan(trainer));
    assert_true(planned->moved_bytes > 0);
    const double hidden = 1 - (double)planned->exposed_ns / (double)planned->transfer_ns;
    tide_trainer_destroy(trainer);
    training_close(&t);
    standin.finish();
    if (standin.report(0)) fail_msg("reported: %s", standin.report(0));
    read_timeline(path, &lines);
    const double measured = overlap(&lines, kernels);
    printf("of the copies' time %.0f %% is to be hidden, %.0f %% lies under kernels\n", 100 * hidden, 100 * measured);
    assert_true(hidden > 0.2);
    assert_true(measured > hidden / 3); /* a device that takes turns has nothing */
    free(lines.kernels);
    free(lines.copies);
    unlink(path);
    unsetenv("TIDE_STANDIN_TIMELINE");
    unsetenv("TIDE_STANDIN_COPY_MIBPS");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overlap)};
    if (!load_standin()) {
        printf("skipped: copies beside compute: TIDE_CUDA_LIBRARY is no stand-in\n");
        return SKIPPED;
    }
    return has_cuda() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
