/* The runtime on real devices: random programs whose ops hash what they read and fill what they write, executed from
 * plans of every kind, must leave the same bytes as a plain loop over the ops. */
#include "support/test.h"

#include <tidemark/run.h>

#include "support/execute.h"
#include "support/hand_made.h"
#include "support/random_program.h"
#include "support/squeeze.h"

/* ---- plans ---- */

static void decide(const tide_program *p, const tide_machine *m, uint64_t seed, tide__decisions *d) {
    tide_gap *gaps;
    size_t n_gaps;
    assert_ok(tide_liveness_gaps(p, &gaps, &n_gaps));
    for (size_t i = 0; i < n_gaps; i++) {
        uint32_t tier = (uint32_t)random_below(&seed, 2);
        if (random_below(&seed, 4) || m->tier[tier].kind == TIDE_TIER_CLIENT) continue;
        tide__swap s = {gaps[i].tensor, tier, gaps[i].after_op + 1, gaps[i].before_op};
        assert_ok(tide__vec_push(&d->swaps, s));
    }
    for (uint32_t op = 0; op + 2 < tide_program_op_count(p); op++) {
        if (random_below(&seed, 20) || !tide_program_op(p, op)->rerunnable) continue;
        tide__rerun r = {.slot = op + 1, .op = op}; /* right after: its reads are often still there */
        assert_ok(tide__vec_push(&d->reruns, r));
    }
    free(gaps);
}

static tide_status plan_randomly(const tide_program *p, const tide_machine *m, uint64_t seed, tide_plan **out) {
    tide__decisions d = {0};
    decide(p, m, seed, &d);
    tide_status status = plan_from_decisions(p, m, &d, out);
    tide__decisions_free(&d);
    return status;
}

typedef void (*execute_fn)(tide_device *device, const tide_machine *machine, const tide_program *program,
                           const tide_plan *plan);

/* Again, in as few bytes as its copies inside the arena allow. */
static void run_squeezed(tide_device *device, const tide_machine *m, execute_fn execute, const tide_program *p,
                         tide_plan *plan, uint32_t *n_relocating) {
    if (!squeeze_plan(p, m, plan_load(plan, p, m) + 4096, plan)) return;
    for (uint32_t i = 0; i < tide_plan_action_count(plan); i++)
        if (tide_plan_action(plan, i).kind == TIDE_RELOCATE) {
            execute(device, m, p, plan);
            (*n_relocating)++;
            return;
        }
}

static void run_program(tide_device *device, const tide_machine *m, execute_fn execute, uint64_t seed,
                        uint32_t *n_random, uint32_t *n_relocating) {
    static const char *const policies[] = {"none", "liveness"};
    random_program_options o = random_program_varied(seed);
    o.prefetch = false;
    tide_program *p = random_program(&o);
    tide_plan *plan;
    for (int i = 0; i < 2; i++) {
        tide_plan_options options;
        tide_plan_options_init(&options);
        options.policy = policies[i];
        assert_ok(tide_plan_create(p, m, &options, NULL, &plan));
        execute(device, m, p, plan);
        if (i > 0) run_squeezed(device, m, execute, p, plan, n_relocating);
        tide_plan_destroy(plan);
    }
    if (plan_randomly(p, m, seed, &plan) == TIDE_OK) {
        execute(device, m, p, plan);
        run_squeezed(device, m, execute, p, plan, n_relocating);
        tide_plan_destroy(plan);
        (*n_random)++;
    }
    tide_program_destroy(p);
}

static void test_device(const char *name, execute_fn execute, uint64_t seeds) {
    tide_machine m;
    tide_device *device;
    tide_device_options o;
    uint32_t n_random = 0, n_relocating = 0;
    assert_ok(tide_machine_load("cpu", &m));
    tide_device_options_init(&o);
    o.threads = 1;
    o.machine = &m;
    assert_ok(tide_device_open(name, &o, &device));
    for (uint64_t seed = 0; seed < seeds; seed++) run_program(device, &m, execute, seed, &n_random, &n_relocating);
    assert_true(n_random > seeds / 4 && n_relocating > seeds / 4);
    tide_device_close(device);
}

static void test_cpu(void **state) {
    (void)state;
    test_device("cpu", execute_plan, rounds(60));
}

static void test_flowing(void **state) {
    (void)state;
    test_device("cpu", execute_flowing, rounds(60));
}

static void test_sim(void **state) {
    (void)state;
    test_device("sim", execute_plan, rounds(60));
}

/* The device without kernels: the test computes. */
static void test_pulled(void **state) {
    (void)state;
    test_device("host", execute_pulled, rounds(60));
}

/* After every third op and after the last one. */
static uint32_t stop_everywhere(tide_device *device, const tide_machine *m, const tide_program *p,
                                const tide_plan *plan) {
    uint32_t n_rescued = 0;
    for (uint32_t n = 0; n <= tide_program_op_count(p); n += 3) n_rescued += execute_until(device, m, p, plan, n);
    return n_rescued + execute_until(device, m, p, plan, UINT32_MAX);
}

static void stop_program(tide_device *device, const tide_machine *m, uint64_t seed, uint32_t *n_rescued) {
    random_program_options o = random_program_varied(seed);
    o.prefetch = false;
    tide_program *p = random_program(&o);
    tide_plan *plan;
    if (plan_randomly(p, m, seed, &plan) == TIDE_OK) {
        *n_rescued += stop_everywhere(device, m, p, plan);
        if (squeeze_plan(p, m, plan_load(plan, p, m) + 4096, plan)) *n_rescued += stop_everywhere(device, m, p, plan);
        tide_plan_destroy(plan);
    }
    tide_program_destroy(p);
}

/* In memory of the client's. */
static void test_pull_given_up(void **state) {
    (void)state;
    enum { MEMORY_BYTES = 16 << 20 };
    tide_machine m;
    tide_device *device;
    tide_device_options o;
    uint32_t n_rescued = 0;
    assert_ok(tide_machine_load("cpu", &m));
    tide_device_options_init(&o);
    o.memory_bytes = MEMORY_BYTES;
    o.memory = aligned_alloc(64, MEMORY_BYTES);
    assert_non_null(o.memory);
    assert_ok(tide_device_open("host", &o, &device));
    for (uint64_t seed = 0; seed < rounds(16); seed++) stop_program(device, &m, seed, &n_rescued);
    assert_true(n_rescued > 100);
    tide_device_close(device);
    free(o.memory);
}

static void test_client_memory(void **state) {
    (void)state;
    _Alignas(64) char memory[256];
    tide_device *device;
    tide_arena *arena;
    tide_device_options o;
    tide_device_options_init(&o);
    o.memory = memory + 1;
    o.memory_bytes = 128;
    assert_status(tide_device_open("host", &o, &device), TIDE_E_ARGUMENT);
    o.memory = memory;
    assert_ok(tide_device_open("host", &o, &device));
    assert_status(tide_arena_create(device, 129, &arena), TIDE_E_MEMORY);
    assert_ok(tide_arena_create(device, 128, &arena));
    assert_ptr_equal(tide_arena_host(arena), memory);
    tide_arena_destroy(arena);
    tide_device_close(device);
}

/* ---- failures ---- */

static tide_status fail_third(void *context) {
    int *calls = context;
    return ++*calls == 3 ? TIDE_E_DEVICE : TIDE_OK;
}

static tide_status run_failing(void *context, const tide_call *call) {
    return tide_queue_launch(call->queue, fail_third, context, 1);
}

static void test_failure_poisons(void **state) {
    (void)state;
    random_program_options po = random_program_defaults(3);
    po.prefetch = false;
    tide_program *p = random_program(&po);
    tide_machine m;
    tide_device *device;
    tide_device_options d;
    tide_plan_options plan_options;
    tide_plan *plan;
    tide_run_options o;
    tide_run *run;
    int calls = 0;
    execute_inputs in = {.program = p};
    assert_ok(tide_machine_load("cpu", &m));
    tide_device_options_init(&d);
    assert_ok(tide_device_open("cpu", &d, &device));
    tide_plan_options_init(&plan_options);
    assert_ok(tide_plan_create(p, &m, &plan_options, NULL, &plan));
    tide_run_options_init(&o);
    o.device = device;
    o.program = p;
    o.machine = &m;
    o.plan = plan;
    o.op = run_failing;
    o.op_context = &calls;
    assert_status(tide_run_create(&o, &run), TIDE_E_ARGUMENT); /* no input function */
    o.input = execute_give_input;
    o.input_context = &in;
    o.budgets.arena_bytes = 16;
    assert_status(tide_run_create(&o, &run), TIDE_E_PLAN); /* verified again, against this run's budget */
    o.budgets.arena_bytes = UINT64_MAX;
    assert_ok(tide_run_create(&o, &run));
    tide_step_args args = {.step = 7};
    assert_status(tide_run_step(run, &args, NULL), TIDE_E_DEVICE);
    assert_error_has("step 7");
    assert_status(tide_run_step(run, &args, NULL), TIDE_E_POISONED);
    float x;
    assert_status(tide_run_read(run, 0, &x, tide_program_tensor(p, 0)->size_bytes), TIDE_E_POISONED);
    tide_run_destroy(run);
    tide_plan_destroy(plan);
    tide_device_close(device);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flowing),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_sim),
        cmocka_unit_test(test_pulled),
        cmocka_unit_test(test_pull_given_up),
        cmocka_unit_test(test_client_memory),
        cmocka_unit_test(test_failure_poisons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
