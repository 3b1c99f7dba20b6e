/* tide_run_follow: two values that the next plan wants in each other's place. Where there is a way they change places, where
 * there is none the run is as before: it steps on, by the plan that it has, with the same bytes. */
#include "support/test.h"

#include <tidemark/run.h>

#include "plan/plan_data.h"

enum { BYTES = 8192 };

typedef struct rig {
    tide_device *device;
    tide_machine machine;
    tide_program *program;
    tide_plan *plan, *next; /* next: a and b have changed places */
    tide_run *run;
} rig;

/* ---- a step that keeps two values, and needs no room beside them ---- */

static tide_program *build(bool repeating) {
    tide_program_builder *b;
    tide_program *p;
    const tide_tensor kept[] = {{.name = "a", .size_bytes = BYTES, .start = TIDE_START_PRESENT, .keep = true},
                                {.name = "b", .size_bytes = BYTES, .start = TIDE_START_PRESENT, .keep = true}},
                      made = {.name = "sum", .size_bytes = 64};
    const tide_variant variant = {.cost_ns = 1};
    const tide_op add = {.name = "add",
                         .reads = (const tide_id[]){0, 1},
                         .n_reads = 2,
                         .writes = (const tide_id[]){2},
                         .n_writes = 1,
                         .variants = &variant,
                         .n_variants = 1};
    tide_id id;
    assert_ok(tide_program_builder_create("follow", repeating, &b));
    for (int i = 0; i < 2; i++) assert_ok(tide_program_builder_tensor(b, &kept[i], &id));
    assert_ok(tide_program_builder_tensor(b, &made, &id));
    assert_ok(tide_program_builder_op(b, &add, &id));
    for (tide_id t = 0; t < 2 && repeating; t++) assert_ok(tide_program_builder_carry(b, (tide_carry){t, t}));
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

static tide_status check_operands(void *context, void *const *operands) {
    (void)context;
    const unsigned char *a = operands[0], *b = operands[1];
    for (int i = 0; i < BYTES; i++)
        if (a[i] != 1 || b[i] != 2) return TIDE_E_INTERNAL;
    return TIDE_OK;
}

static tide_status run_op(void *context, const tide_call *call) {
    return tide_call_launch(call, check_operands, context);
}

static tide_plan *exchange(const tide_plan *plan) {
    tide_plan *other;
    uint64_t offsets[2] = {0};
    assert_ok(tide__plan_clone(plan, &other));
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < other->residencies.count; i++) {
            tide_residency *r = &other->residencies.data[i];
            if (r->tensor > 1) continue;
            if (pass == 0)
                offsets[r->tensor] = r->offset_bytes;
            else
                r->offset_bytes = offsets[1 - r->tensor];
        }
    return other;
}

static void rig_open_with(rig *r, bool with_ram, bool repeating, uint64_t arena_bytes, const char *online) {
    tide_plan_options plan;
    tide_run_options o;
    tide_device_options device;
    unsigned char bytes[BYTES];
    tide_machine_init_default(&r->machine);
    if (!with_ram) tide_machine_without(&r->machine, TIDE_TIER_RAM, &r->machine);
    tide_device_options_init(&device);
    device.threads = 1;
    assert_ok(tide_device_open("cpu", &device, &r->device));
    r->machine.align_bytes = 64;
    r->program = build(repeating);
    tide_plan_options_init(&plan);
    assert_ok(tide_plan_create(r->program, &r->machine, &plan, NULL, &r->plan));
    r->next = exchange(r->plan);
    tide_run_options_init(&o);
    o.device = r->device;
    o.program = r->program;
    o.machine = &r->machine;
    o.plan = r->plan;
    o.op = run_op;
    o.arena_bytes = arena_bytes;
    o.online = online;
    assert_ok(tide_run_create(&o, &r->run));
    for (tide_id t = 0; t < 2; t++) {
        memset(bytes, (int)t + 1, sizeof bytes);
        assert_ok(tide_run_write(r->run, t, bytes, sizeof bytes));
    }
}

static void rig_open(rig *r, bool with_ram, bool repeating) { rig_open_with(r, with_ram, repeating, 0, NULL); }

static void rig_close(rig *r) {
    tide_run_destroy(r->run);
    tide_plan_destroy(r->plan);
    tide_plan_destroy(r->next);
    tide_program_destroy(r->program);
    tide_device_close(r->device);
}

/* The op finds its operands, and both are read as they were written. */
static void check(rig *r) {
    const tide_step_args args = {0};
    unsigned char bytes[BYTES];
    assert_ok(tide_run_step(r->run, &args, NULL));
    for (tide_id t = 0; t < 2; t++) {
        assert_ok(tide_run_read(r->run, t, bytes, sizeof bytes));
        assert_true(bytes[0] == t + 1 && bytes[BYTES - 1] == t + 1);
    }
}

/* ---- the ways ---- */

static void test_through_a_tier(void **state) {
    (void)state;
    rig r;
    rig_open(&r, true, true);
    check(&r);
    assert_ok(tide_run_follow(r.run, r.next));
    check(&r);
    assert_ok(tide_run_follow(r.run, r.plan));
    check(&r);
    rig_close(&r);
}

/* The client's tier is not ours to put values in. */
static void test_no_way(void **state) {
    (void)state;
    rig r;
    rig_open(&r, false, true);
    check(&r);
    assert_status(tide_run_follow(r.run, r.next), TIDE_E_FIT);
    check(&r);
    check(&r);
    rig_close(&r);
}

static void test_tier_that_the_system_refuses(void **state) {
    (void)state;
    rig r;
    rig_open(&r, true, true);
    r.next->tier_bytes[tide_machine_find_tier(&r.machine, TIDE_TIER_RAM)] = UINT64_C(1) << 60;
    check(&r);
    assert_status(tide_run_follow(r.run, r.next), TIDE_E_TIER_FULL);
    assert_error_has("cannot map a RAM tier");
    check(&r);
    rig_close(&r);
}

static void test_one_shot(void **state) {
    (void)state;
    rig r;
    rig_open(&r, true, false);
    assert_ok(tide_run_follow(r.run, r.next));
    check(&r);
    assert_status(tide_run_follow(r.run, r.plan), TIDE_E_ARGUMENT);
    assert_error_has("a one-shot program runs once");
    unsigned char bytes[BYTES];
    assert_ok(tide_run_read(r.run, 1, bytes, sizeof bytes));
    rig_close(&r);
}

/* What fails before the first byte moves, here for a policy that there is none of, changes nothing. */
static void test_failure_before_anything_moved(void **state) {
    (void)state;
    rig r;
    rig_open_with(&r, true, true, 0, "nosuch");
    check(&r);
    assert_status(tide_run_follow(r.run, r.next), TIDE_E_ARGUMENT);
    check(&r);
    check(&r);
    rig_close(&r);
}

/* An arena with room for later plans is what the run has allocated, whatever the plan at hand needs of it. */
static void test_report_tells_what_is_allocated(void **state) {
    (void)state;
    enum { ARENA = 8 * BYTES };
    const tide_step_args args = {0};
    tide_step_report report;
    rig r;
    rig_open_with(&r, true, true, ARENA, NULL);
    assert_true(tide_plan_arena_bytes(r.plan) < ARENA);
    assert_ok(tide_run_step(r.run, &args, &report));
    assert_int_equal(report.arena_bytes, ARENA);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_through_a_tier),
        cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_tier_that_the_system_refuses),
        cmocka_unit_test(test_one_shot),
        cmocka_unit_test(test_failure_before_anything_moved),
        cmocka_unit_test(test_report_tells_what_is_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
