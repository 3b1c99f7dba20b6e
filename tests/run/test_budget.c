/* The budget is real: what the process holds at its peak, as the kernel counts it, is what it held before the arena was
 * touched, plus the budget, plus two percent. Trains with the disk tier, evaluates and saves on the way; once more with
 * RAM and disk, where the budget of RAM counts, too; once with plans that change; and once with the data segment limited
 * to just that. In a child each, so that nothing else is counted. */
#include "support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/training.h"

#define MIB (UINT64_C(1) << 20)
/* Shadow memory is beyond any budget: the peak is not judged under a sanitizer, and a small batch does. */
enum { SANITIZED = SANITIZER_SHARE > 1 };
enum { STEPS = 1, BATCH = SANITIZED ? 256 : 3072, SAMPLES = 100 };

/* A line of /proc/self/status in bytes. */
static uint64_t status_bytes(const char *key) {
    char line[256];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) kib = strtoull(line + strlen(key) + 1, NULL, 10);
    if (f) fclose(f);
    return kib << 10;
}

static bool reset_peak(void) {
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "5", 1) == 1;
    if (fd >= 0) close(fd);
    return done;
}

/* Swaps every early activation, the largest to `tier` and the rest to disk; the budgets are what that plan needs. */
static void decide(training *t, const char *path, const char *tier) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"tidemark\":\"decisions\",\"version\":1}\n", f);
    fprintf(f, "{\"swap\":\"pool1\",\"tier\":\"%s\",\"after\":\"conv2\",\"before\":\"conv2.bwd-weights\"}\n", tier);
    fputs("{\"swap\":\"pool2\",\"tier\":\"disk\",\"after\":\"fc1\",\"before\":\"fc1.bwd-weights\"}\n", f);
    assert_int_equal(fclose(f), 0);
    t->options.plan.policy = "manual";
    t->options.plan.decisions = path;
}

/* Nothing is decided beforehand: the third step follows another plan than the first two. */
static void let_plans_change(training *t) {
    tide_trainer *trainer = training_start(t);
    t->options.plan.budgets.arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer)) * 90 / 100;
    tide_trainer_destroy(trainer);
    t->options.plan.policy = "hybrid";
    t->options.plan.effort = TIDE_EFFORT_LOW;
    for (uint32_t i = 0; i < t->machine.n_tiers; i++)
        if (t->machine.tier[i].kind == TIDE_TIER_RAM) t->options.plan.budgets.tier_bytes[i] = 0;
}

/* Any numbers will do; drawing digits would take most of the time. */
static tide_status sample(void *context, uint64_t index, float *pixels, int32_t *label) {
    (void)context;
    for (uint64_t i = 0; i < 28 * 28; i++) pixels[i] = (float)((i * 7 + index) % 13) / 13;
    *label = (int32_t)(index % 10);
    return TIDE_OK;
}

typedef struct paths {
    char decisions[64], checkpoint[64];
} paths;

/* Everything a training does; the hash after the same number of steps is always the same. */
static uint64_t train(const training *t, tide_trainer *trainer, const char *checkpoint) {
    double accuracy;
    training_run(trainer, STEPS);
    assert_ok(tide_trainer_evaluate(trainer, &t->data, SAMPLES, &accuracy));
    assert_ok(tide_trainer_save(trainer, checkpoint));
    training_run(trainer, STEPS);
    assert_ok(tide_trainer_load(trainer, checkpoint));
    training_run(trainer, 1);
    return training_hash(trainer);
}

static uint64_t in_pages(uint64_t bytes) { return (bytes + 4095) & ~UINT64_C(4095); }

/* Resident bytes of the mapping that has exactly this size: the arena. */
static uint64_t resident_in(uint64_t mapping_bytes) {
    char line[512];
    uint64_t begin, end, kib, found = 0;
    bool inside = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) inside = end - begin == mapping_bytes;
        if (inside && sscanf(line, "Rss: %" SCNu64, &kib) == 1) found += kib << 10;
    }
    if (f) fclose(f);
    return found;
}

/* The first training makes libraries load and pools fill; the second is judged. What it holds after initialisation
 * counts without the pages of the arena, where the first weights are by then. */
static int peak_child(const paths *p, const char *tier, bool limited) {
    training t;
    training_open(&t, "lenet", BATCH);
    t.data.sample = sample;
    bool changes = strcmp(tier, "any") == 0;
    if (changes)
        let_plans_change(&t);
    else
        decide(&t, p->decisions, tier);
    tide_trainer *trainer = training_start(&t);
    uint32_t ram_tier = tide_machine_find_tier(t.options.machine, TIDE_TIER_RAM);
    uint64_t ram = ram_tier == TIDE_NONE ? 0 : tide_plan_tier_bytes(tide_trainer_plan(trainer), ram_tier);
    uint64_t budget = tide_plan_arena_bytes(tide_trainer_plan(trainer)), hash = train(&t, trainer, p->checkpoint);
    assert_true((ram > MIB) == (strcmp(tier, "ram") == 0));
    tide_trainer_destroy(trainer);
    if (!changes) t.options.plan.budgets.arena_bytes = budget;
    if (ram) t.options.plan.budgets.tier_bytes[ram_tier] = ram;
    trainer = training_start(&t);
    uint64_t arena = resident_in(in_pages(budget));
    if (arena == 0) arena = resident_in(in_pages(budget) + in_pages(ram)); /* neighbours become one mapping */
    if (!reset_peak() || arena == 0) return 77;
    uint64_t before = status_bytes("VmHWM:") - arena;
    if (limited) {
        uint64_t data = status_bytes("VmData:"); /* the whole arena is in it; a thread more has 8 MiB of stack */
        const struct rlimit limit = {.rlim_cur = data + 16 * MIB, .rlim_max = RLIM_INFINITY};
        assert_true(budget > 32 * MIB);
        if (setrlimit(RLIMIT_DATA, &limit) != 0) return 77;
    }
    bool same = train(&t, trainer, p->checkpoint) == hash;
    uint64_t after = status_bytes("VmHWM:"), allowed = before + budget + budget / 50 + ram;
    printf("budget %.1f MiB, RAM %.1f MiB, peak %.1f MiB before the arena is touched, %.1f MiB after training\n",
           (double)budget / 0x1p20, (double)ram / 0x1p20, (double)before / 0x1p20, (double)after / 0x1p20);
    fflush(stdout);
    tide_trainer_destroy(trainer);
    training_close(&t);
    if (!same) return 2;
    if (before > 150 * MIB && !SANITIZED) return 3;
    return after <= allowed || SANITIZED ? 0 : 1;
}

static void run_child(const char *tier, bool limited) {
    paths p;
    char folder[] = "/tmp/tidemark-budget-XXXXXX";
    int status = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(p.decisions, sizeof p.decisions, "%s/d", folder);
    snprintf(p.checkpoint, sizeof p.checkpoint, "%s/c", folder);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(peak_child(&p, tier, limited));
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(p.decisions);
    unlink(p.checkpoint);
    assert_int_equal(rmdir(folder), 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip(); /* a system that does not tell */
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_peak(void **state) {
    (void)state;
    run_child("disk", false);
}

static void test_ram_and_disk(void **state) {
    (void)state;
    run_child("ram", false);
}

static void test_plans_that_change(void **state) {
    (void)state;
    run_child("any", false);
}

static void test_limited(void **state) {
    (void)state;
    if (SANITIZED) skip();
    run_child("disk", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peak), cmocka_unit_test(test_ram_and_disk),
                                       cmocka_unit_test(test_limited), cmocka_unit_test(test_plans_that_change)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
