/* Out of host memory at every single allocation, one after the other: the library must say so, give everything back and
 * work again afterwards. */
#include "support/test.h"

#include <unistd.h>

#include <tidemark/run.h>

#include "support/hand_made.h"
#include "support/random_program.h"
#include "support/short_memory.h"

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
