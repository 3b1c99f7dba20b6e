/* The runtime on real devices: random programs whose ops hash what they read and fill what they write, executed from
 * plans of every kind, must leave the same bytes as a plain loop over the ops. */
#include "support/test.h"

#include <tidemark/run.h>

#include "base/hash.h"
#include "plan/schedule.h"
#include "support/random_program.h"

enum { STEPS = 3 };

static void fill(void *data, uint64_t size, uint64_t seed) {
    unsigned char *bytes = data;
    for (uint64_t i = 0; i < size; i++) bytes[i] = (unsigned char)(tide__hash_word(seed, i / 8) >> (8 * (i % 8)));
}

/* What op `id` writes to its k-th output when its reads have this hash. */
static uint64_t output_seed(tide_id id, uint32_t k, uint64_t reads, uint64_t step) {
    return tide__hash_word(tide__hash_word(reads, (uint64_t)id << 32 | k), step);
}

static uint64_t input_seed(tide_id tensor, uint64_t step) { return tide__hash_word(tensor, step + 1000); }

/* ---- the plain loop ---- */

typedef struct plain {
    const tide_program *program;
    unsigned char **values; /* per tensor */
} plain;

static uint64_t size_of(const tide_program *p, tide_id t) { return tide_program_tensor(p, t)->size_bytes; }

static plain plain_start(const tide_program *p) {
    uint32_t n = tide_program_tensor_count(p);
    plain x = {p, calloc(n + 1, sizeof *x.values)};
    for (tide_id t = 0; t < n; t++) {
        x.values[t] = malloc(size_of(p, t) + 1);
        if (tide_program_tensor(p, t)->start == TIDE_START_PRESENT) fill(x.values[t], size_of(p, t), t);
    }
    return x;
}

static void plain_step(plain *x, uint64_t step) {
    const tide_program *p = x->program;
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        if (tide_program_tensor(p, t)->start == TIDE_START_CLIENT)
            fill(x->values[t], size_of(p, t), input_seed(t, step));
    for (tide_id o = 0; o < tide_program_op_count(p); o++) {
        const tide_op *op = tide_program_op(p, o);
        uint64_t reads = 0;
        for (uint32_t k = 0; k < op->n_reads; k++)
            reads = tide__hash_bytes(reads, x->values[op->reads[k]], size_of(p, op->reads[k]));
        for (uint32_t k = 0; k < op->n_writes; k++)
            fill(x->values[op->writes[k]], size_of(p, op->writes[k]), output_seed(o, k, reads, step));
    }
}

static void plain_carry(plain *x) {
    const tide_program *p = x->program;
    uint32_t n = tide_program_carry_count(p);
    unsigned char **moved = calloc(n + 1, sizeof *moved);
    for (uint32_t i = 0; i < n; i++) { /* all at once: a value may be carried away and carried to */
        const tide_carry *c = tide_program_carry(p, i);
        moved[i] = malloc(size_of(p, c->from) + 1);
        memcpy(moved[i], x->values[c->from], size_of(p, c->from));
    }
    for (uint32_t i = 0; i < n; i++) {
        const tide_carry *c = tide_program_carry(p, i);
        memcpy(x->values[c->to], moved[i], size_of(p, c->to));
        free(moved[i]);
    }
    free(moved);
}

static void plain_end(plain *x) {
    for (tide_id t = 0; t < tide_program_tensor_count(x->program); t++) free(x->values[t]);
    free(x->values);
}

/* ---- the same as closures ---- */

typedef struct host_call {
    const tide_program *program;
    tide_id op;
    uint64_t step;
    unsigned char *arena;
    uint64_t offsets[64];
} host_call;

static tide_status run_host(void *context) {
    host_call *c = context;
    const tide_op *op = tide_program_op(c->program, c->op);
    uint64_t reads = 0;
    for (uint32_t k = 0; k < op->n_reads; k++)
        reads = tide__hash_bytes(reads, c->arena + c->offsets[k], size_of(c->program, op->reads[k]));
    for (uint32_t k = 0; k < op->n_writes; k++)
        fill(c->arena + c->offsets[op->n_reads + k], size_of(c->program, op->writes[k]),
             output_seed(c->op, k, reads, c->step));
    free(c);
    return TIDE_OK;
}

static tide_status run_op(void *context, const tide_call *call) {
    host_call *c = malloc(sizeof *c);
    *c = (host_call){
        .program = context, .op = call->op, .step = call->args->step, .arena = tide_arena_host(call->arena)};
    assert_true(call->n_offsets <= 64);
    memcpy(c->offsets, call->offsets, call->n_offsets * sizeof *c->offsets);
    return tide_queue_launch(call->queue, run_host, c, 100);
}

typedef struct inputs {
    const tide_program *program;
    uint64_t step;
} inputs;

static tide_status give_input(void *context, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes) {
    const inputs *in = context;
    unsigned char *whole = malloc(size_of(in->program, tensor) + 1);
    fill(whole, size_of(in->program, tensor), input_seed(tensor, in->step));
    memcpy(data, whole + position, size_bytes);
    free(whole);
    return TIDE_OK;
}

static void compare(tide_run *run, const plain *x) {
    const tide_program *p = x->program;
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++) {
        if (!tide_program_tensor(p, t)->keep) continue;
        unsigned char *got = malloc(size_of(p, t) + 1);
        assert_ok(tide_run_read(run, t, got, size_of(p, t)));
        if (memcmp(got, x->values[t], size_of(p, t)) != 0)
            fail_msg("tensor %u \"%s\" differs", t, tide_program_tensor(p, t)->name);
        free(got);
    }
}

static void run_plan(tide_device *device, const tide_machine *m, const tide_program *p, const tide_plan *plan) {
    inputs in = {.program = p};
    tide_run_options o;
    tide_run *run;
    tide_run_options_init(&o);
    o.device = device;
    o.program = p;
    o.machine = m;
    o.plan = plan;
    o.op = run_op;
    o.input = give_input;
    o.input_context = &in;
    union {
        const tide_program *read_only;
        void *pointer;
    } context = {p};
    o.op_context = context.pointer;
    assert_ok(tide_run_create(&o, &run));
    plain x = plain_start(p);
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        if (tide_program_tensor(p, t)->start == TIDE_START_PRESENT)
            assert_ok(tide_run_write(run, t, x.values[t], size_of(p, t)));
    uint64_t steps = tide_program_is_repeating(p) ? STEPS : 1;
    for (in.step = 0; in.step < steps; in.step++) {
        tide_step_args args = {.step = in.step};
        assert_ok(tide_run_step(run, &args, NULL));
        plain_step(&x, in.step);
        compare(run, &x);
        plain_carry(&x);
    }
    tide_step_args again = {0};
    if (steps == 1) assert_status(tide_run_step(run, &again, NULL), TIDE_E_ARGUMENT);
    plain_end(&x);
    tide_run_destroy(run);
}

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
    tide_plan *plan;
    decide(p, m, seed, &d);
    assert_ok(tide__plan_new(&plan));
    plan->signature = tide_program_signature(p);
    plan->n_queues = 1 + m->n_channels;
    plan->n_tiers = m->n_tiers;
    tide_status status = tide__schedule(p, m, &d, plan);
    if (status == TIDE_OK) status = tide__place_plan(p, m, false, UINT64_MAX, plan);
    if (status == TIDE_OK) status = tide__sync(plan);
    tide__decisions_free(&d);
    if (status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    return status;
}

static void run_program(tide_device *device, const tide_machine *m, uint64_t seed, uint32_t *n_random) {
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
        run_plan(device, m, p, plan);
        tide_plan_destroy(plan);
    }
    if (plan_randomly(p, m, seed, &plan) == TIDE_OK) {
        run_plan(device, m, p, plan);
        tide_plan_destroy(plan);
        (*n_random)++;
    }
    tide_program_destroy(p);
}

static void test_device(const char *name, uint64_t seeds) {
    tide_machine m;
    tide_device *device;
    tide_device_options o;
    uint32_t n_random = 0;
    assert_ok(tide_machine_load("cpu", &m));
    tide_device_options_init(&o);
    o.threads = 1;
    o.machine = &m;
    assert_ok(tide_device_open(name, &o, &device));
    for (uint64_t seed = 0; seed < seeds; seed++) run_program(device, &m, seed, &n_random);
    assert_true(n_random > seeds / 4);
    tide_device_close(device);
}

static void test_cpu(void **state) {
    (void)state;
    test_device("cpu", 60);
}

static void test_sim(void **state) {
    (void)state;
    test_device("sim", 60);
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
    inputs in = {.program = p};
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
    o.input = give_input;
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
    assert_status(tide_run_read(run, 0, &x, size_of(p, 0)), TIDE_E_POISONED);
    tide_run_destroy(run);
    tide_plan_destroy(plan);
    tide_device_close(device);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_sim),
        cmocka_unit_test(test_failure_poisons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
