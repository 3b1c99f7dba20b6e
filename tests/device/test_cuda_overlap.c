/* Copies beside compute: steps that follow a plan, on the timeline of the stand-in for CUDA's driver and on the one that the plan
 * is simulated to have. Each queue of copies makes the plan's copies in the plan's order, on a stream of its own, and as much
 * of their time lies under kernels as the simulator says. Kernels and copies take a time of the stand-in's, asleep, so that it hardly
 * matters what else the machine does. Skipped without the stand-in. */
#include "support/test.h"

#include <dlfcn.h>
#include <unistd.h>

#include "support/cuda.h"
#include "support/opencl.h"
#include "support/training.h"

enum { STEPS = 3, MAX_EVENTS = 1 << 16, FAULT_BYTES = 16, ATTEMPTS = 4 };
#define MIB_PER_S 20
#define KERNEL_US 4000
#define TOLERANCE 0.2 /* of the copies' time */

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

/* ---- timelines ---- */

typedef struct span {
    double begin, end; /* in microseconds */
    uint64_t bytes;
    unsigned stream;
} span;

typedef struct timeline {
    span *kernels, *copies;
    uint32_t n_kernels, n_copies;
} timeline;

static timeline new_timeline(void) {
    return (timeline){calloc(MAX_EVENTS, sizeof(span)), calloc(MAX_EVENTS, sizeof(span)), 0, 0};
}

static void free_timeline(timeline *t) {
    free(t->kernels);
    free(t->copies);
}

static void add(span *to, uint32_t *n, span s) {
    assert_true(*n < MAX_EVENTS);
    to[(*n)++] = s;
}

static int by_begin(const void *a, const void *b) {
    const double x = ((const span *)a)->begin, y = ((const span *)b)->begin;
    return (x > y) - (x < y);
}

/* The stand-in's: one event per line. Copies of FAULT_BYTES are what kernels found wrong. */
static timeline read_timeline(const char *path) {
    timeline t = new_timeline();
    char line[512], kind[16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const char *at = strstr(line, "\"cat\"");
        unsigned long long bytes;
        double took;
        span s;
        if (!at || sscanf(at,
                          "\"cat\": \"%15[a-z]\", \"ph\": \"X\", \"pid\": %*u, \"tid\": %u, \"ts\": %lf, \"dur\": %lf, "
                          "\"args\": {\"bytes\": %llu",
                          kind, &s.stream, &s.begin, &took, &bytes) != 5)
            continue;
        s.end = s.begin + took;
        s.bytes = bytes;
        if (strcmp(kind, "kernel") == 0) add(t.kernels, &t.n_kernels, s);
        if (strcmp(kind, "copy") == 0 && bytes > FAULT_BYTES) add(t.copies, &t.n_copies, s);
    }
    fclose(file);
    qsort(t.kernels, t.n_kernels, sizeof *t.kernels, by_begin);
    qsort(t.copies, t.n_copies, sizeof *t.copies, by_begin);
    return t;
}

/* What the simulator says of a step of the plan, ops taking this long. */
static timeline simulate(const tide_trainer *trainer, const uint64_t *op_ns) {
    timeline t = new_timeline();
    const tide_plan *plan = tide_trainer_plan(trainer);
    tide_program *program = NULL;
    tide_timeline *simulated = NULL;
    assert_ok(tide_program_with_costs(tide_step_program(tide_trainer_step_program(trainer)), op_ns, &program));
    assert_ok(tide_plan_simulate(plan, program, tide_trainer_machine(trainer), &simulated));
    for (uint32_t i = 0; i < simulated->n_actions; i++) {
        const tide_action a = tide_plan_action(plan, i);
        const span s = {(double)simulated->start_ns[i] / 1e3, (double)simulated->end_ns[i] / 1e3, 0, a.queue};
        if (a.kind == TIDE_RUN) add(t.kernels, &t.n_kernels, s);
        if (a.kind == TIDE_SAVE || a.kind == TIDE_LOAD) {
            add(t.copies, &t.n_copies, s);
            t.copies[t.n_copies - 1].bytes = tide_plan_residency(plan, a.uses[0])->size_bytes;
        }
    }
    tide_timeline_destroy(simulated);
    tide_program_destroy(program);
    return t;
}

/* When the last copy ended between the two; without one, `begin`. */
static double last_end(const timeline *t, double begin, double end) {
    double last = begin;
    for (uint32_t i = 0; i < t->n_copies; i++)
        if (t->copies[i].end > last && t->copies[i].end <= end) last = t->copies[i].end;
    return last;
}

/* A kernel may wait for the copies that end in the pause before it. The rest of the pause is the machine's, busy with
 * something else. */
static void close_pauses(timeline *t) {
    for (uint32_t i = 1; i < t->n_kernels; i++)
        t->kernels[i].begin = last_end(t, t->kernels[i - 1].end, t->kernels[i].begin);
}

static double common(const span *a, const span *b) {
    const double from = a->begin > b->begin ? a->begin : b->begin, to = a->end < b->end ? a->end : b->end;
    return to > from ? to - from : 0;
}

/* The share of the copies' time that lies under kernels, from the `n` last kernels on. */
static double overlap(timeline *t, uint64_t n) {
    double all = 0, under = 0;
    assert_true(n > 0 && n <= t->n_kernels);
    const span *end = t->kernels + t->n_kernels, *first = end - n;
    close_pauses(t);
    for (const span *c = t->copies; c < t->copies + t->n_copies; c++) {
        if (c->begin < first->begin || c->begin > end[-1].end) continue;
        all += c->end - c->begin;
        for (const span *k = first; k < end; k++) under += common(c, k);
    }
    assert_true(all > 0);
    return under / all;
}

/* ---- orders ---- */

static uint32_t bytes_of_stream(const timeline *t, unsigned stream, uint64_t *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_copies; i++)
        if (t->copies[i].stream == stream) out[n++] = t->copies[i].bytes;
    return n;
}

/* Are the last copies of `ran` those of STEPS + 1 steps like `planned`? */
static bool repeats(const uint64_t *ran, uint32_t n_ran, const uint64_t *planned, uint32_t n) {
    if (n_ran < (STEPS + 1) * n) return false;
    for (uint32_t i = 0; i < (STEPS + 1) * n; i++)
        if (ran[n_ran - (STEPS + 1) * n + i] != planned[i % n]) return false;
    return true;
}

/* Every queue of the plan that copies has a stream that makes these copies, and kernels have another. How many queues. */
static uint32_t check_orders(const timeline *planned, const timeline *ran) {
    uint64_t *wanted = calloc(MAX_EVENTS, sizeof *wanted), *found = calloc(MAX_EVENTS, sizeof *found);
    uint32_t n_queues = 0;
    for (unsigned queue = 0; queue < 16; queue++) {
        const uint32_t n = bytes_of_stream(planned, queue, wanted);
        bool there = n == 0;
        n_queues += n > 0;
        for (unsigned stream = 0; stream < 64 && !there; stream++)
            there = stream != ran->kernels[ran->n_kernels - 1].stream &&
                    repeats(found, bytes_of_stream(ran, stream, found), wanted, n);
        if (!there) fail_msg("no stream copies as queue %u of the plan does, %u times a step", queue, n);
    }
    free(wanted);
    free(found);
    return n_queues;
}

/* ---- the training ---- */

typedef struct shares {
    double planned, ran;
} shares;

static void expect_quiet(void) {
    standin.finish();
    if (standin.report(0)) fail_msg("reported: %s", standin.report(0));
}

/* From the third step on the training follows the plan from measured costs. */
static uint64_t train(timeline *planned) {
    training t;
    uint64_t op_ns[1024];
    float loss;
    training_open_on(&t, "cuda", "lenet", 8);
    for (uint32_t i = 0; i < t.machine.n_channels; i++) t.machine.channel[i].bytes_per_s = (uint64_t)MIB_PER_S << 20;
    t.options.plan.policy = "autoswap";
    t.options.plan.arena_budget = (tide_budget){.kind = TIDE_BUDGET_SHARE, .share = 0.6};
    tide_trainer *trainer = training_start(&t);
    training_run(trainer, 4);
    const uint64_t before = standin.calls("cuLaunchKernel"), spun = standin.calls("cuStreamSynchronize");
    training_run(trainer, STEPS);
    assert_int_equal(standin.calls("cuStreamSynchronize"), spun); /* waits are asleep, by events */
    assert_true(tide_program_op_count(tide_step_program(tide_trainer_step_program(trainer))) <= 1024);
    assert_ok(tide_trainer_step_timed(trainer, &loss, NULL, op_ns));
    const uint64_t kernels = standin.calls("cuLaunchKernel") - before;
    *planned = simulate(trainer, op_ns);
    tide_trainer_destroy(trainer);
    training_close(&t);
    return kernels;
}

static shares measure(void) {
    char path[] = "/tmp/tide-timeline-XXXXXX";
    const int file = mkstemp(path);
    timeline planned;
    assert_true(file >= 0);
    close(file);
    setenv("TIDE_STANDIN_TIMELINE", path, 1);
    standin.reset();
    const uint64_t kernels = train(&planned);
    expect_quiet();
    timeline ran = read_timeline(path);
    assert_true(check_orders(&planned, &ran) >= 2);
    const shares found = {overlap(&planned, planned.n_kernels), overlap(&ran, kernels)};
    printf("under kernels are %.0f %% of the copies' time as simulated, %.0f %% as run\n", 100 * found.planned,
           100 * found.ran);
    free_timeline(&planned);
    free_timeline(&ran);
    unlink(path);
    unsetenv("TIDE_STANDIN_TIMELINE");
    return found;
}

/* A busy machine has less of it now and then, a device that makes copies wait always. */
static void test_as_simulated(void **state) {
    (void)state;
    for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
        const shares s = measure();
        assert_true(s.planned > 0.5);
        if (s.ran > s.planned - TOLERANCE) return;
    }
    fail_msg("copies run beside fewer kernels than planned, %d times", ATTEMPTS);
}

/* The test above would see a device whose copies do not run beside its kernels. */
static void test_taking_turns(void **state) {
    (void)state;
    setenv("TIDE_STANDIN_IN_TURN", "1", 1);
    const shares s = measure();
    unsetenv("TIDE_STANDIN_IN_TURN");
    assert_true(s.planned > 0.5);
    assert_true(s.ran < TOLERANCE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_simulated), cmocka_unit_test(test_taking_turns)};
    char rate[16], kernel[16];
    if (!load_standin()) {
        printf("skipped: copies beside compute: TIDE_CUDA_LIBRARY is no stand-in\n");
        return SKIPPED;
    }
    snprintf(rate, sizeof rate, "%d", MIB_PER_S);
    snprintf(kernel, sizeof kernel, "%d", KERNEL_US);
    setenv("TIDE_STANDIN_COPY_MIBPS", rate, 1);
    setenv("TIDE_STANDIN_KERNEL_US", kernel, 1);
    return has_cuda() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
