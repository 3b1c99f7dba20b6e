/* Out of host memory at every single allocation, one after the other: the library must say so, give everything back and
 * work again afterwards. The linker sends the program's calls of malloc and its kin to the functions here (--wrap). */
#include "support/test.h"

#include <stdatomic.h>
#include <unistd.h>

#include <tidemark/run.h>

#include "support/hand_made.h"
#include "support/random_program.h"

/* ---- the allocator ---- */

static atomic_long calls, live; /* allocations asked for since the last reset; blocks that are not freed */
static long fails_at = -1;      /* which call fails; -1: none */

static bool refuses(void) { return atomic_fetch_add(&calls, 1) == fails_at; }

static void *count(void *block) {
    if (block) atomic_fetch_add(&live, 1);
    return block;
}

/* The names are the linker's. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size) { return refuses() ? NULL : count(__real_malloc(size)); }
void *__wrap_calloc(size_t n, size_t size) { return refuses() ? NULL : count(__real_calloc(n, size)); }
void *__wrap_aligned_alloc(size_t align, size_t size) {
    return refuses() ? NULL : count(__real_aligned_alloc(align, size));
}

void *__wrap_realloc(void *block, size_t size) {
    if (refuses()) return NULL;
    return block ? __real_realloc(block, size) : count(__real_malloc(size));
}

int __wrap_posix_memalign(void **out, size_t align, size_t size) {
    if (refuses()) return 12; /* ENOMEM */
    int error = __real_posix_memalign(out, align, size);
    if (error == 0) atomic_fetch_add(&live, 1);
    return error;
}

void __wrap_free(void *block) {
    if (block) atomic_fetch_sub(&live, 1);
    __real_free(block);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- trying with one call less each time ---- */

typedef tide_status (*task_fn)(void *context);

/* Runs the task until none of its allocations is refused any more. */
static void exhaust(task_fn task, void *context) {
    assert_ok(task(context)); /* what is made once and stays does not count */
    tide_status status;
    long n = 0;
    do {
        long before = atomic_load(&live);
        atomic_store(&calls, 0);
        fails_at = n++;
        status = task(context);
        fails_at = -1;
        if (status != TIDE_OK) assert_status(status, TIDE_E_MEMORY);
        if (status != TIDE_OK) assert_error_has("memory");
        if (atomic_load(&live) != before) fail_msg("allocation %ld refused: %ld blocks lost", n - 1, live - before);
    } while (atomic_load(&calls) >= n);
    assert_ok(status);
    assert_true(n > 5);
}

/* ---- the tasks ---- */

typedef struct setting {
    tide_machine machine;
    tide_device *device;
    tide_program *program;
    const char *program_path, *plan_path, *decisions_path;
} setting;

static tide_status do_nothing(void *context, const tide_call *call) {
    (void)context, (void)call;
    return TIDE_OK;
}

static tide_status give_nothing(void *context, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes) {
    (void)context, (void)tensor, (void)position;
    memset(data, 0, size_bytes);
    return TIDE_OK;
}

static tide_status run_plan(const setting *s, const tide_plan *plan) {
    tide_run_options o;
    tide_run *run;
    tide_run_options_init(&o);
    o.device = s->device;
    o.program = s->program;
    o.machine = &s->machine;
    o.plan = plan;
    o.op = do_nothing;
    o.input = give_nothing;
    TIDE_TRY(tide_run_create(&o, &run));
    tide_run_destroy(run);
    return TIDE_OK;
}

static tide_status plan_and_run(void *context) {
    const setting *s = context;
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    o.policy = "manual";
    o.decisions = s->decisions_path;
    TIDE_TRY(tide_plan_create(s->program, &s->machine, &o, NULL, &plan));
    tide_status status = run_plan(s, plan);
    tide_plan_destroy(plan);
    return status;
}

static tide_status refuse_budget(void *context) {
    const setting *s = context;
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    o.budgets.arena_bytes = 1;
    tide_status status = tide_plan_create(s->program, &s->machine, &o, NULL, &plan);
    return status == TIDE_E_FIT ? TIDE_OK : status;
}

static tide_status read_files(void *context) {
    const setting *s = context;
    tide_program *program;
    tide_plan *plan;
    TIDE_TRY(tide_program_read(s->program_path, &program));
    tide_status status = tide_plan_read(s->plan_path, &plan);
    tide_program_destroy(program);
    if (status == TIDE_OK) tide_plan_destroy(plan);
    return status;
}

static tide_status unroll(void *context) {
    const setting *s = context;
    tide_program *twice;
    uint32_t needed;
    TIDE_TRY(tide_program_unroll_needed(s->program, &needed));
    TIDE_TRY(tide_program_unroll(s->program, 2, &twice));
    tide_program_destroy(twice);
    return TIDE_OK;
}

/* ---- the setting ---- */

static void write_decisions(const setting *s) {
    tide_gap *gaps;
    size_t n;
    assert_ok(tide_liveness_gaps(s->program, &gaps, &n));
    FILE *f = fopen(s->decisions_path, "w");
    assert_non_null(f);
    fputs("{\"tidemark\":\"decisions\",\"version\":1}\n", f);
    assert_true(n > 2);
    for (size_t i = 0; i < n; i += 2)
        fprintf(f, "{\"swap\":%u,\"tier\":\"%s\",\"after\":%u,\"before\":%u}\n", gaps[i].tensor, i % 4 ? "ram" : "disk",
                gaps[i].after_op, gaps[i].before_op);
    fclose(f);
    free(gaps);
}

static void write_files(const setting *s) {
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    assert_ok(tide_program_write(s->program, s->program_path));
    assert_ok(tide_plan_create(s->program, &s->machine, &o, NULL, &plan));
    assert_ok(tide_plan_write(plan, s->plan_path));
    tide_plan_destroy(plan);
    write_decisions(s);
}

static void test_every_allocation(void **state) {
    (void)state;
    static const task_fn tasks[] = {plan_and_run, refuse_budget, read_files, unroll};
    char folder[] = "/tmp/tidemark-memory-XXXXXX", path[3][64];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) snprintf(path[i], sizeof path[i], "%s/%d", folder, i);
    random_program_options o = random_program_defaults(1);
    o.n_ops = 16;
    setting s = {.machine = machine_with_disk(),
                 .program = random_program(&o),
                 .program_path = path[0],
                 .plan_path = path[1],
                 .decisions_path = path[2]};
    tide_device_options d;
    tide_device_options_init(&d);
    d.machine = &s.machine;
    assert_ok(tide_device_open("sim", &d, &s.device));
    write_files(&s);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) exhaust(tasks[i], &s);
    tide_device_close(s.device);
    tide_program_destroy(s.program);
    for (int i = 0; i < 3; i++) unlink(path[i]);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
