/* Sessions: random steps whose ops hash what they read and fill what they write must leave the same bytes as a plain
 * loop, whatever the budget, the policy and the course of earlier steps. */
#include "support/test.h"

#include <dirent.h>
#include <unistd.h>

#include <tidemark/session.h>

#include "base/error.h"
#include "base/hash.h"
#include "plan/plan_data.h"
#include "run/session_data.h"
#include "support/random_program.h"

enum { MAX_TENSORS = 400, MAX_OPS = 200, N_STATES = 6, BLOCK = 4096 };

/* One op of the client; what its function finds at its addresses depends on nothing else. */
typedef struct op_context {
    uint32_t n_reads, n_writes;
    uint64_t sizes[8]; /* of reads, then writes */
    uint64_t salt;
    bool in_place;
} op_context;

typedef struct client {
    tide_device *device;
    tide_machine machine;
    tide_session *session;
    tide_id state[N_STATES];
    unsigned char *value[MAX_TENSORS]; /* as a plain loop computes them; the states first */
    uint64_t size[MAX_TENSORS];
    bool dead[MAX_TENSORS], kept[MAX_TENSORS];
    uint32_t n_tensors, n_ops;
    op_context ops[MAX_OPS];
    bool releases; /* it says when it needs a value no more */
    int fail_at;   /* the op that fails; -1: none */
} client;

/* ---- ops ---- */

static void fill(unsigned char *data, uint64_t size, uint64_t seed) {
    for (uint64_t i = 0; i < size; i++) data[i] = (unsigned char)(tide__hash_word(seed, i / 8) >> (8 * (i % 8)));
}

static uint64_t hash_reads(const op_context *c, void *const *at) {
    uint64_t hash = c->salt;
    for (uint32_t i = 0; i < c->n_reads; i++) hash = tide__hash_bytes(hash, at[i], c->sizes[i]);
    return hash;
}

static tide_status compute(void *context, void *const *at) {
    const op_context *c = context;
    uint64_t hash = hash_reads(c, at);
    for (uint32_t i = 0; i < c->n_writes; i++)
        fill(at[c->n_reads + i], c->sizes[c->n_reads + i], tide__hash_word(hash, i));
    return TIDE_OK;
}

static tide_status break_down(void *context, void *const *at) {
    (void)context, (void)at;
    return TIDE_E_DEVICE;
}

static tide_status enqueue(void *context, const tide_call *call) { return tide_call_launch(call, compute, context); }
static tide_status enqueue_failing(void *context, const tide_call *call) {
    return tide_call_launch(call, break_down, context);
}

/* ---- the client ---- */

static void open_session(client *c, uint64_t arena_bytes, const char *policy, const char *plan_folder) {
    tide_session_options o;
    tide_session_options_init(&o);
    o.device = c->device;
    o.machine = &c->machine;
    o.online = policy;
    o.plan_folder = plan_folder;
    o.journal = true;
    o.policy = QUICK_POLICY; /* any plan will do */
    o.effort = TIDE_EFFORT_LOW;
    o.budgets.arena_bytes = arena_bytes;
    assert_ok(tide_session_create(&o, &c->session));
    for (tide_id i = 0; i < N_STATES; i++) {
        c->size[i] = (i + 1) * BLOCK - i * 100;
        c->value[i] = malloc(c->size[i]);
        fill(c->value[i], c->size[i], i);
        assert_ok(tide_session_state(c->session, &(tide_tensor){.name = "w", .size_bytes = c->size[i]}, &c->state[i]));
        assert_int_equal(c->state[i], i);
        assert_ok(tide_session_write(c->session, i, c->value[i], c->size[i]));
    }
}

static void close_session(client *c) {
    tide_session_destroy(c->session);
    for (uint32_t i = 0; i < MAX_TENSORS; i++) free(c->value[i]);
    memset(c->value, 0, sizeof c->value);
}

static void forget_tensors(client *c) {
    for (uint32_t i = N_STATES; i < c->n_tensors; i++) {
        free(c->value[i]);
        c->value[i] = NULL;
    }
    c->n_tensors = N_STATES;
    c->n_ops = 0;
    memset(c->dead, 0, sizeof c->dead);
    memset(c->kept, 0, sizeof c->kept);
}

static tide_id add_tensor(client *c, uint64_t size, bool keep) {
    tide_id id;
    tide_tensor t = {.size_bytes = size, .cls = TIDE_CLASS_ACTIVATION, .keep = keep};
    assert_ok(tide_session_tensor(c->session, &t, &id));
    assert_int_equal(id, c->n_tensors);
    c->n_tensors++;
    c->value[id] = malloc(size + 1);
    c->size[id] = size;
    c->kept[id] = keep;
    return id;
}

static void add_input(client *c, uint64_t size, uint64_t seed) {
    tide_id id = c->n_tensors++;
    c->size[id] = size;
    c->value[id] = malloc(size + 1);
    fill(c->value[id], size, seed);
    assert_ok(tide_session_input(c->session, &(tide_tensor){.size_bytes = size}, c->value[id], &id));
}

/* Submits the op and does the same to the plain values. */
static tide_status submit(client *c, op_context op, const tide_id *reads, const tide_id *writes, bool rerunnable) {
    void *at[8];
    bool fails = (int)c->n_ops == c->fail_at;
    op_context *own = &c->ops[c->n_ops++];
    for (uint32_t i = 0; i < op.n_reads; i++) op.sizes[i] = c->size[reads[i]], at[i] = c->value[reads[i]];
    for (uint32_t i = 0; i < op.n_writes; i++)
        op.sizes[op.n_reads + i] = c->size[writes[i]], at[op.n_reads + i] = c->value[writes[i]];
    *own = op;
    compute(own, at);
    tide_inplace first = {.must = true};
    tide_op t = {.name = "op",
                 .rerunnable = rerunnable && !op.in_place,
                 .n_reads = op.n_reads,
                 .n_writes = op.n_writes,
                 .reads = reads,
                 .writes = writes,
                 .n_inplace = op.in_place,
                 .inplace = &first};
    if (op.in_place) c->dead[reads[0]] = true;
    return tide_session_op(c->session, &t, fails ? enqueue_failing : enqueue, own);
}

static tide_id pick_live(const client *c, uint64_t *seed, const tide_id *others, uint32_t n_others) {
    for (;;) {
        tide_id id = (tide_id)random_below(seed, c->n_tensors);
        bool taken = c->dead[id];
        for (uint32_t i = 0; i < n_others; i++) taken |= others[i] == id;
        if (!taken) return id;
    }
}

static tide_status release_some(client *c, uint64_t *seed) {
    for (tide_id id = N_STATES; id < c->n_tensors && c->releases; id++) {
        if (c->dead[id] || c->kept[id] || random_below(seed, 8)) continue;
        c->dead[id] = true;
        TIDE_TRY(tide_session_release(c->session, id));
    }
    return TIDE_OK;
}

static tide_status random_op(client *c, uint64_t *seed) {
    op_context op = {.salt = *seed, .n_reads = 1 + (uint32_t)random_below(seed, 3)};
    tide_id reads[4], writes[2];
    for (uint32_t i = 0; i < op.n_reads; i++) reads[i] = pick_live(c, seed, reads, i);
    op.n_writes = 1 + (uint32_t)random_below(seed, 2);
    bool rerunnable = random_below(seed, 8) > 0, keep = random_below(seed, 10) == 0;
    for (uint32_t i = 0; i < op.n_writes; i++) writes[i] = add_tensor(c, random_below(seed, 5 * BLOCK), keep && i == 0);
    TIDE_TRY(submit(c, op, reads, writes, rerunnable));
    return release_some(c, seed);
}

/* A new value for a state: in place, or beside the old one. */
static tide_status update_state(client *c, tide_id state, uint64_t *seed, tide_id *updated) {
    op_context op = {.salt = *seed, .n_reads = 2, .n_writes = 1, .in_place = random_below(seed, 2) == 0};
    tide_id reads[2] = {state};
    reads[1] = pick_live(c, seed, reads, 1);
    *updated = add_tensor(c, c->size[state], false);
    TIDE_TRY(submit(c, op, reads, updated, true));
    c->dead[state] = true;
    return tide_session_carry(c->session, *updated, state);
}

/* From op `turn` on it does something else. */
static tide_status random_ops(client *c, uint64_t *seed, uint32_t turn, tide_id *updated) {
    for (uint64_t n = 10 + random_below(seed, 40); n > 0; n--) {
        if (c->n_ops == turn) *seed ^= 12345;
        TIDE_TRY(random_op(c, seed));
    }
    for (tide_id i = 0; i < N_STATES; i++) {
        updated[i] = TIDE_NONE;
        if (random_below(seed, 3)) TIDE_TRY(update_state(c, i, seed, &updated[i]));
        if (updated[i] != TIDE_NONE) c->kept[updated[i]] = true;
    }
    return TIDE_OK;
}

static void check_value(client *c, tide_id id, tide_id plain) {
    unsigned char *got = malloc(c->size[plain] + 1);
    assert_ok(tide_session_read(c->session, id, got, c->size[plain]));
    assert_memory_equal(got, c->value[plain], c->size[plain]);
    free(got);
}

/* `shape` and `turn` decide what the step does, `input` what it does it with. */
static tide_status random_step(client *c, uint64_t shape, uint32_t turn, uint64_t input) {
    tide_id updated[N_STATES];
    uint64_t seed = shape;
    tide_step_args args = {.step = input};
    forget_tensors(c);
    TIDE_TRY(tide_session_begin(c->session, &args));
    for (uint64_t i = 0; i < 1 + shape % 3; i++)
        add_input(c, random_below(&seed, 3 * BLOCK), tide__hash_word(input, i));
    TIDE_TRY(random_ops(c, &seed, turn, updated));
    TIDE_TRY(tide_session_end(c->session, NULL));
    for (tide_id i = N_STATES; i < c->n_tensors; i++)
        if (c->kept[i]) check_value(c, i, i);
    for (tide_id i = 0; i < N_STATES; i++) {
        check_value(c, i, updated[i] == TIDE_NONE ? i : updated[i]);
        if (updated[i] != TIDE_NONE) memcpy(c->value[i], c->value[updated[i]], c->size[i]);
    }
    return TIDE_OK;
}

static void open_client(client *c) {
    tide_device_options o;
    *c = (client){.n_tensors = N_STATES, .fail_at = -1};
    tide_device_options_init(&o);
    o.threads = 1;
    assert_ok(tide_machine_load("cpu", &c->machine));
    assert_ok(tide_device_open("cpu", &o, &c->device));
}

/* ---- tests ---- */

static void test_random_steps(void **state) {
    (void)state;
    static const char *const policies[] = {"delta", "cache", "dtr"};
    client c;
    uint32_t n_fit = 0, n_tight = 0;
    open_client(&c);
    tide_session_stats sum = {0};
    for (uint64_t seed = 0; seed < rounds(20); seed++) {
        uint64_t blocks = seed % 4 == 0 ? 1000 : 28 + seed % 60;
        c.releases = seed % 3 > 0;
        open_session(&c, blocks * BLOCK, policies[seed % 3], NULL);
        tide_status status = TIDE_OK;
        for (uint64_t step = 0; step < 10 && status == TIDE_OK; step++)
            status = random_step(&c, seed * 10 + step % 5 / 4, step == 2 || step == 8 ? 5 : TIDE_NONE, seed + step);
        bool too_small = tide_status_is_misfit(status);
        if (status != TIDE_OK && (!too_small || blocks == 1000))
            fail_msg("seed %llu: %s", (unsigned long long)seed, tide_last_error());
        if (too_small) assert_status(tide_session_begin(c.session, &(tide_step_args){0}), TIDE_E_POISONED);
        tide_session_stats stats = tide_session_get_stats(c.session);
        sum.n_planned += stats.n_planned;
        sum.n_deviations += stats.n_deviations;
        n_fit += status == TIDE_OK;
        n_tight += status == TIDE_OK && blocks < 100;
        close_session(&c);
    }
    assert_true(n_fit * SANITIZER_SHARE > 8 && n_tight * SANITIZER_SHARE > 4);
    /* at least the wide ones: how long a plan is kept depends on measured times */
    assert_true(sum.n_planned * SANITIZER_SHARE > 3 && sum.n_deviations * SANITIZER_SHARE > 3);
    tide_device_close(c.device);
}

static uint32_t count_files(const char *folder, char *path, size_t size) {
    DIR *d = opendir(folder);
    uint32_t n = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, size, "%s/%s", folder, e->d_name);
        n++;
    }
    closedir(d);
    return n;
}

/* A plan file that says so of itself, whole and with the right fingerprint. */
static void allow_other_bits(const char *path) {
    tide_plan *plan;
    assert_ok(tide_plan_read(path, &plan));
    plan->bits_any = true;
    assert_ok(tide_plan_write(plan, path));
    tide_plan_destroy(plan);
}

/* Plans outlive the session in a folder, so that the next one begins with them; what is no plan is not followed. */
static void test_plan_folder(void **state) {
    (void)state;
    client c;
    char folder[] = "/tmp/tidemark-plans-XXXXXX", path[4096];
    /* of 4 steps: learned, from the folder, from a spoiled one, from one that may have other bits */
    static const uint64_t planned[] = {2, 3, 2, 2};
    assert_non_null(mkdtemp(folder));
    open_client(&c);
    c.releases = true;
    for (int round = 0; round < 4; round++) {
        open_session(&c, 300 * BLOCK, NULL, folder);
        for (uint64_t step = 0; step < 4; step++) assert_ok(random_step(&c, 11, TIDE_NONE, step));
        assert_int_equal(tide_session_get_stats(c.session).n_planned, planned[round]);
        assert_int_equal(tide_session_get_stats(c.session).n_plans, 1);
        close_session(&c);
        assert_int_equal(count_files(folder, path, sizeof path), 1);
        if (round == 1) assert_int_equal(truncate(path, 1000), 0);
        if (round == 2) allow_other_bits(path);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    tide_device_close(c.device);
}

/* ---- a state in the arena and in a tier ---- */

static uint32_t disk_tier(const client *c) {
    uint32_t t = 0;
    while (c->machine.tier[t].kind != TIDE_TIER_DISK) t++;
    return t;
}

/* Instead of the plan that the session made: state 0 starts and ends in both places, leaves after op 0 without a SAVE, and
 * op 2 reads what the LOAD from the tier brought. */
static void plan_two_places(client *c) {
    char path[] = "/tmp/tidemark-decisions-XXXXXX";
    int file = mkstemp(path);
    tide__plan_cache *cache = &c->session->cache;
    tide__cached *entry = cache->entries.data[0];
    tide_plan_options o = cache->options;
    assert_int_equal(cache->entries.count, 1);
    assert_true(file >= 0);
    dprintf(file, "{\"tidemark\":\"decisions\",\"version\":1}\n{\"swap\":0,\"tier\":\"%s\",\"before\":2}\n",
            c->machine.tier[disk_tier(c)].name);
    close(file);
    o.policy = "manual";
    o.decisions = path;
    tide__plan_cache_forget_plan(entry);
    assert_ok(tide_plan_create(entry->program, cache->machine, &o, NULL, &entry->plan));
    entry->plan_number = ++cache->clock;
    assert_int_equal(unlink(path), 0);
}

/* Three ops, the first and the last read state 0. */
static void two_reads_step(client *c) {
    op_context op = {.n_reads = 1, .n_writes = 1}, join = {.n_reads = 2, .n_writes = 1};
    forget_tensors(c);
    assert_ok(tide_session_begin(c->session, &(tide_step_args){0}));
    tide_id x = add_tensor(c, 3 * BLOCK, false), y = add_tensor(c, 5 * BLOCK, false), z = add_tensor(c, BLOCK, true);
    assert_ok(submit(c, op, (tide_id[]){0}, &x, true));
    assert_ok(submit(c, op, &x, &y, true));
    assert_ok(tide_session_release(c->session, x));
    assert_ok(submit(c, join, (tide_id[]){0, y}, &z, true));
    assert_ok(tide_session_release(c->session, y));
    assert_ok(tide_session_end(c->session, NULL));
    check_value(c, z, z);
}

static void write_state(client *c, tide_id id, uint64_t seed) {
    fill(c->value[id], c->size[id], seed);
    assert_ok(tide_session_write(c->session, id, c->value[id], c->size[id]));
}

static bool has_two_places(const client *c, tide_id id) {
    const tide__place *p = &c->session->run->online->places.data[id];
    return p->in_arena && p->tier != TIDE_NONE;
}

/* What the tier has is free, or a state has it. */
static void check_slots(const client *c) {
    const struct tide__run_online *online = c->session->run->online;
    uint32_t t = disk_tier(c);
    uint64_t bytes = online->tiers[t].free_bytes;
    for (tide_id i = 0; i < N_STATES; i++)
        if (online->places.data[i].tier == t) bytes += online->places.data[i].bytes;
    assert_int_equal(bytes, online->tier_bytes[t]);
}

/* A write between steps is what the next step reads, in both places; leaving the arena needs no second slot. */
static void test_two_places(void **state) {
    (void)state;
    client c;
    open_client(&c);
    open_session(&c, 100 * BLOCK, NULL, NULL);
    two_reads_step(&c);
    two_reads_step(&c);
    plan_two_places(&c);
    for (uint64_t step = 0; step < 3; step++) {
        two_reads_step(&c);
        assert_int_equal(tide_session_get_stats(c.session).n_planned, step + 1);
        assert_true(has_two_places(&c, 0));
        write_state(&c, 0, 100 + step);
        check_value(&c, 0, 0);
    }
    two_reads_step(&c);
    assert_true(has_two_places(&c, 0));
    assert_ok(tide_session_set_budget(c.session, 50 * BLOCK));
    check_slots(&c);
    for (tide_id i = 0; i < N_STATES; i++) check_value(&c, i, i);
    two_reads_step(&c);
    close_session(&c);
    tide_device_close(c.device);
}

/* Another budget between two steps: the values go on, plans are made anew. */
static void test_budget_changes(void **state) {
    (void)state;
    static const uint64_t blocks[] = {300, 120, 900, 200};
    client c;
    float x;
    open_client(&c);
    c.releases = true;
    open_session(&c, 300 * BLOCK, NULL, NULL);
    for (uint64_t step = 0; step < 12; step++) {
        if (step % 3 == 0) {
            assert_ok(tide_session_set_budget(c.session, blocks[step / 3] * BLOCK));
            assert_int_equal(tide_session_get_stats(c.session).n_plans, 0);
        }
        assert_ok(random_step(&c, 11, TIDE_NONE, step));
    }
    assert_true(tide_session_get_stats(c.session).n_planned >= 4);
    assert_status(tide_session_set_budget(c.session, UINT64_C(1) << 60),
                  TIDE_E_MEMORY); /* it goes on with what it had */
    assert_ok(random_step(&c, 11, TIDE_NONE, 12));
    assert_ok(tide_session_set_budget(c.session, 2 * BLOCK));
    assert_status(random_step(&c, 11, TIDE_NONE, 13), TIDE_E_FIT);
    assert_status(tide_session_set_budget(c.session, 300 * BLOCK), TIDE_E_POISONED);
    assert_status(tide_session_read(c.session, 0, &x, sizeof x), TIDE_E_POISONED);
    close_session(&c);
    tide_device_close(c.device);
}

/* The device fails in mid-step: the step says so, and the session is of no use any more. */
static void test_failure_poisons(void **state) {
    (void)state;
    client c;
    float x;
    open_client(&c);
    c.releases = true;
    for (c.fail_at = 0; c.fail_at < 12; c.fail_at += 3) {
        open_session(&c, 300 * BLOCK, NULL, NULL);
        int fail_at = c.fail_at;
        c.fail_at = -1;
        for (uint64_t step = 0; step < (fail_at % 2 ? 3u : 0u); step++) assert_ok(random_step(&c, 7, TIDE_NONE, step));
        assert_int_equal(tide_session_get_stats(c.session).n_planned, fail_at % 2);
        c.fail_at = fail_at; /* in an online step, or in a planned one */
        assert_status(random_step(&c, 7, TIDE_NONE, 5), TIDE_E_DEVICE);
        assert_error_has("step 5");
        assert_status(tide_session_begin(c.session, &(tide_step_args){0}), TIDE_E_POISONED);
        assert_status(tide_session_end(c.session, NULL), TIDE_E_POISONED);
        assert_status(tide_session_read(c.session, 0, &x, sizeof x), TIDE_E_POISONED);
        close_session(&c);
    }
    tide_device_close(c.device);
}

/* Wrong calls are refused and change nothing. */
static void test_arguments(void **state) {
    (void)state;
    client c;
    tide_id id;
    tide_tensor t = {.size_bytes = 64};
    open_client(&c);
    open_session(&c, 1000 * BLOCK, NULL, NULL);
    assert_status(tide_session_tensor(c.session, &t, &id), TIDE_E_ARGUMENT);
    assert_error_has("no step has begun");
    assert_status(tide_session_end(c.session, NULL), TIDE_E_ARGUMENT);
    assert_ok(tide_session_begin(c.session, &(tide_step_args){0}));
    assert_status(tide_session_begin(c.session, &(tide_step_args){0}), TIDE_E_ARGUMENT);
    assert_status(tide_session_state(c.session, &t, &id), TIDE_E_ARGUMENT);
    tide_id a = add_tensor(&c, 64, false), b = add_tensor(&c, 64, true);
    assert_status(tide_session_release(c.session, a), TIDE_E_ARGUMENT);
    assert_error_has("no value to release");
    assert_status(tide_session_release(c.session, 99), TIDE_E_ARGUMENT);
    op_context op = {.n_reads = 1, .n_writes = 1};
    assert_status(submit(&c, op, (tide_id[]){a}, (tide_id[]){b}, true), TIDE_E_ARGUMENT); /* a has no value */
    assert_ok(submit(&c, op, (tide_id[]){0}, (tide_id[]){a}, true));
    assert_status(tide_session_input(c.session, &t, &t, &id), TIDE_E_ARGUMENT);
    assert_ok(submit(&c, op, (tide_id[]){a}, (tide_id[]){b}, true));
    assert_status(tide_session_release(c.session, b), TIDE_E_ARGUMENT);
    assert_error_has("kept");
    assert_ok(tide_session_release(c.session, a));
    assert_status(tide_session_release(c.session, a), TIDE_E_ARGUMENT);
    assert_status(tide_session_carry(c.session, a, 0), TIDE_E_ARGUMENT);
    assert_status(tide_session_carry(c.session, b, 0), TIDE_E_ARGUMENT); /* another size */
    assert_ok(tide_session_release(c.session, 1));
    assert_status(tide_session_end(c.session, NULL), TIDE_E_ARGUMENT); /* state 1 would be lost */
    assert_error_has("state 1");
    assert_ok(tide_session_carry(c.session, 2, 2));
    close_session(&c); /* in the middle of a step */
    tide_device_close(c.device);
}

/* Tensors that no op writes are nobody's business, unless they are kept. */
static void test_unwritten(void **state) {
    (void)state;
    client c;
    char x[64];
    open_client(&c);
    open_session(&c, 1000 * BLOCK, NULL, NULL);
    op_context op = {.n_reads = 1, .n_writes = 1};
    for (int step = 0; step < 4; step++) {
        forget_tensors(&c);
        assert_ok(tide_session_begin(c.session, &(tide_step_args){0}));
        tide_id a = add_tensor(&c, 64, true), b;
        assert_ok(submit(&c, op, (tide_id[]){0}, &a, true));
        b = add_tensor(&c, 64, step == 3);
        assert_status(tide_session_end(c.session, NULL), step == 3 ? TIDE_E_ARGUMENT : TIDE_OK);
        if (step == 3) break;
        assert_ok(tide_session_read(c.session, a, x, 64));
        assert_status(tide_session_read(c.session, b, x, 64), TIDE_E_ARGUMENT);
        assert_status(tide_session_read(c.session, 1000, x, 64), TIDE_E_ARGUMENT);
    }
    assert_error_has("no op has written it");
    assert_int_equal(tide_session_get_stats(c.session).n_planned, 1);
    close_session(&c);
    tide_device_close(c.device);
}

static void test_options(void **state) {
    (void)state;
    client c;
    tide_session_options o;
    open_client(&c);
    tide_session_options_init(&o);
    assert_status(tide_session_create(&o, &c.session), TIDE_E_ARGUMENT);
    o.device = c.device;
    o.machine = &c.machine;
    assert_status(tide_session_create(&o, &c.session), TIDE_E_ARGUMENT);
    assert_error_has("budget");
    o.budgets.arena_bytes = 1 << 20;
    o.online = "liveness";
    assert_status(tide_session_create(&o, &c.session), TIDE_E_ARGUMENT);
    assert_error_has("not an online policy");
    tide_device_close(c.device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_steps),   cmocka_unit_test(test_plan_folder),
        cmocka_unit_test(test_budget_changes), cmocka_unit_test(test_failure_poisons),
        cmocka_unit_test(test_arguments),      cmocka_unit_test(test_unwritten),
        cmocka_unit_test(test_options),        cmocka_unit_test(test_two_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
