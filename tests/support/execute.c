/* See execute.h. */
#include "support/execute.h"

#include "base/hash.h"
#include "support/test.h"

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

static void compute(const host_call *c) {
    const tide_op *op = tide_program_op(c->program, c->op);
    uint64_t reads = 0;
    for (uint32_t k = 0; k < op->n_reads; k++)
        reads = tide__hash_bytes(reads, c->arena + c->offsets[k], size_of(c->program, op->reads[k]));
    for (uint32_t k = 0; k < op->n_writes; k++)
        fill(c->arena + c->offsets[op->n_reads + k], size_of(c->program, op->writes[k]),
             output_seed(c->op, k, reads, c->step));
}

static tide_status run_host(void *context) {
    host_call *c = context;
    compute(c);
    free(c);
    return TIDE_OK;
}

static host_call read_call(const tide_program *p, const tide_call *call, uint64_t step) {
    host_call c = {.program = p, .op = call->op, .step = step, .arena = tide_arena_host(call->arena)};
    assert_true(call->n_offsets <= 64);
    memcpy(c.offsets, call->offsets, call->n_offsets * sizeof *c.offsets);
    return c;
}

static tide_status run_op(void *context, const tide_call *call) {
    host_call *c = malloc(sizeof *c);
    *c = read_call(context, call, call->args->step);
    return tide_queue_launch(call->queue, run_host, c, 100);
}

/* ---- the same, pulled ---- */

/* The first n ops of the plan, all for UINT32_MAX; whether the step came to its end. */
static bool pull_ops(tide_run *run, const tide_program *p, uint64_t step, uint32_t n) {
    tide_call call;
    assert_ok(tide_run_pull_begin(run));
    for (uint32_t i = 0; i < n; i++) {
        assert_ok(tide_run_pull(run, &call));
        if (call.op == TIDE_NONE) return true;
        host_call c = read_call(p, &call, step);
        compute(&c);
    }
    return false;
}

tide_status execute_give_input(void *context, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes) {
    const execute_inputs *in = context;
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

/* New values for what the next step starts with, as a checkpoint would bring them; both ids of each must see them. */
static void rewrite_carried(tide_run *run, plain *x, uint64_t step) {
    const tide_program *p = x->program;
    for (uint32_t i = 0; i < tide_program_carry_count(p); i++) {
        const tide_carry *c = tide_program_carry(p, i);
        uint64_t size = size_of(p, c->to);
        unsigned char *got = malloc(size + 1);
        fill(x->values[c->to], size, tide__hash_word(step, c->to));
        assert_ok(tide_run_write(run, c->from, x->values[c->to], size));
        bool one_value = c->to == c->from || !tide_program_tensor(p, c->to)->keep; /* kept: this step's own is read */
        assert_ok(tide_run_read(run, one_value ? c->to : c->from, got, size));
        assert_memory_equal(got, x->values[c->to], size);
        free(got);
    }
}

/* ---- runs ---- */

typedef struct subject {
    execute_inputs in;
    plain x;
    tide_run *run;
} subject;

static void begin_subject(subject *s, tide_device *device, const tide_machine *m, const tide_program *p,
                          const tide_plan *plan, tide_op_fn op) {
    tide_run_options o;
    *s = (subject){.in = {.program = p}};
    tide_run_options_init(&o);
    o.device = device;
    o.program = p;
    o.machine = m;
    o.plan = plan;
    o.op = op;
    o.input = execute_give_input;
    o.input_context = &s->in;
    union {
        const tide_program *read_only;
        void *pointer;
    } context = {p};
    o.op_context = context.pointer;
    assert_ok(tide_run_create(&o, &s->run));
    s->x = plain_start(p);
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        if (tide_program_tensor(p, t)->start == TIDE_START_PRESENT)
            assert_ok(tide_run_write(s->run, t, s->x.values[t], size_of(p, t)));
}

static void end_subject(subject *s) {
    plain_end(&s->x);
    tide_run_destroy(s->run);
}

static void step_subject(subject *s, bool pulled) {
    tide_step_args args = {.step = s->in.step};
    if (!pulled) {
        assert_ok(tide_run_step(s->run, &args, NULL));
        return;
    }
    tide_step_report report;
    assert_true(pull_ops(s->run, s->in.program, s->in.step, UINT32_MAX));
    assert_ok(tide_run_pull_end(s->run, &report));
    assert_true(report.step_ns > 0);
}

static void execute(tide_device *device, const tide_machine *m, const tide_program *p, const tide_plan *plan,
                    bool pulled) {
    subject s;
    begin_subject(&s, device, m, p, plan, pulled ? NULL : run_op);
    uint64_t steps = tide_program_is_repeating(p) ? STEPS : 1;
    for (s.in.step = 0; s.in.step < steps; s.in.step++) {
        step_subject(&s, pulled);
        plain_step(&s.x, s.in.step);
        compare(s.run, &s.x);
        plain_carry(&s.x);
        if (s.in.step == 0) rewrite_carried(s.run, &s.x, s.in.step);
    }
    tide_step_args again = {0};
    if (steps == 1)
        assert_status(pulled ? tide_run_pull_begin(s.run) : tide_run_step(s.run, &again, NULL), TIDE_E_ARGUMENT);
    end_subject(&s);
}

void execute_plan(tide_device *device, const tide_machine *m, const tide_program *p, const tide_plan *plan) {
    execute(device, m, p, plan, false);
}

void execute_flowing(tide_device *device, const tide_machine *m, const tide_program *p, const tide_plan *plan) {
    subject s;
    begin_subject(&s, device, m, p, plan, run_op);
    uint64_t steps = tide_program_is_repeating(p) ? 2 * STEPS : 1;
    for (s.in.step = 0; s.in.step < steps; s.in.step++) {
        if (s.in.step > 0) plain_carry(&s.x);
        step_subject(&s, false);
        plain_step(&s.x, s.in.step);
    }
    compare(s.run, &s.x);
    end_subject(&s);
}

void execute_pulled(tide_device *device, const tide_machine *m, const tide_program *p, const tide_plan *plan) {
    execute(device, m, p, plan, true);
}

/* ---- given up half-way ---- */

/* Is this value computed by the first n RUNs, or there from the start? */
static bool is_computed(const tide_program *p, const tide_plan *plan, tide_id tensor, uint32_t n) {
    if (tide_program_tensor(p, tensor)->start != TIDE_START_ABSENT) return true;
    for (uint32_t i = 0, runs = 0; i < tide_plan_action_count(plan) && runs < n; i++) {
        tide_action a = tide_plan_action(plan, i);
        if (a.kind != TIDE_RUN) continue;
        runs++;
        if (tide_program_producer(p, tensor) == a.op) return true;
    }
    return false;
}

uint32_t execute_until(tide_device *device, const tide_machine *m, const tide_program *p, const tide_plan *plan,
                       uint32_t n_ops) {
    subject s;
    uint32_t n_rescued = 0;
    begin_subject(&s, device, m, p, plan, NULL);
    bool ended = pull_ops(s.run, p, 0, n_ops);
    assert_status(tide_run_rest(s.run), TIDE_E_ARGUMENT);
    assert_ok(tide_run_pull_stop(s.run, true));
    plain_step(&s.x, 0);
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++) {
        unsigned char *got = malloc(size_of(p, t) + 1);
        bool rescued = tide_run_rescue(s.run, t, got, size_of(p, t)) == TIDE_OK;
        assert_true(rescued || !ended || !tide_program_tensor(p, t)->keep);
        if (rescued) {
            assert_true(ended || is_computed(p, plan, t, n_ops));
            assert_memory_equal(got, s.x.values[t], size_of(p, t));
            n_rescued++;
        }
        free(got);
    }
    assert_status(tide_run_pull_begin(s.run), TIDE_E_POISONED);
    end_subject(&s);
    return n_rescued;
}
