/* What only the OpenCL device has: a limit on arenas, copies by staging, a cache of programs, few waits of the host.
 * Skipped where there is no OpenCL. */
#include "support/test.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/opencl/opencl.h"
#include "support/opencl.h"
#include "support/training.h"

/* ---- opening ---- */

static void test_numbers(void **state) {
    (void)state;
    tide_device *device = NULL;
    tide_device_info info;
    assert_ok(tide_device_open("opencl:0", NULL, &device));
    assert_ok(tide_device_get_info(device, &info));
    assert_string_equal(info.name, "opencl:0");
    tide_device_close(device);
    device = NULL;
    static const char *const wrong[] = {"opencl:99", "opencl:", "opencl:x", "opencl:-1", "opencl:0x", "cpu:0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(tide_device_open(wrong[i], NULL, &device), TIDE_E_DEVICE);
        assert_error_has("available: cpu, host, opencl, sim");
    }
    assert_null(device);
}

static void test_without_a_library(void **state) {
    (void)state;
    tide_device *device = NULL;
    setenv("TIDE_OPENCL", "libno-such-opencl.so", 1);
    assert_status(tide_device_open("opencl", NULL, &device), TIDE_E_DEVICE);
    assert_error_has("no OpenCL here");
    assert_error_has("available: cpu, host, sim");
    assert_status(tide_device_open("nope", NULL, &device), TIDE_E_DEVICE);
    assert_error_has("no device \"nope\"; available: cpu, host, sim");
    setenv("TIDE_OPENCL", "libm.so.6", 1); /* loads, but is not OpenCL */
    assert_status(tide_device_open("opencl", NULL, &device), TIDE_E_DEVICE);
    unsetenv("TIDE_OPENCL");
    assert_null(device);
}

static void test_arena_limit(void **state) {
    (void)state;
    tide_device *device = open_opencl();
    tide_arena *arena = NULL;
    uint64_t most = ((tide__opencl *)device)->max_arena_bytes;
    assert_status(tide_arena_create(device, most + 1, &arena), TIDE_E_MEMORY);
    assert_error_has("allocates at once");
    assert_null(arena);
    tide_device_close(device);
}

/* ---- copies where the host cannot see the arena: the same device, told so ---- */

typedef struct store {
    unsigned char *bytes;
    uint64_t pieces, fail_at; /* of bytes */
} store;

static tide_status sink(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    store *s = context;
    s->pieces++;
    if (position + size_bytes > s->fail_at) return tide__fail(TIDE_E_IO, "no room at %d", (int)position);
    memcpy(s->bytes + position, data, size_bytes);
    return TIDE_OK;
}

static tide_status source(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    store *s = context;
    s->pieces++;
    if (position + size_bytes > s->fail_at) return tide__fail(TIDE_E_IO, "nothing at %d", (int)position);
    memcpy(data, s->bytes + position, size_bytes);
    return TIDE_OK;
}

static void round_trip(tide_device *device, tide_queue_kind kind, uint64_t size) {
    tide_arena *arena = NULL;
    tide_queue *queue = NULL;
    store from = {malloc(size), 0, UINT64_MAX}, to = {malloc(size), 0, UINT64_MAX};
    for (uint64_t i = 0; i < size; i++) from.bytes[i] = (unsigned char)(i * 2654435761u >> 11);
    assert_ok(tide_arena_create(device, 4096 + size, &arena));
    assert_null(tide_arena_host(arena));
    assert_ok(tide_queue_create(device, kind, &queue));
    assert_ok(tide_copy_in(queue, arena, 4096, size, (tide_io){source, &from, TIDE_NONE}));
    assert_ok(tide_copy_out(queue, arena, 4096, size, (tide_io){sink, &to, TIDE_NONE}));
    assert_ok(tide_queue_sync(queue));
    assert_memory_equal(from.bytes, to.bytes, size);
    uint64_t pieces = (2 * size + TIDE__GPU_SLOT_BYTES - 1) / TIDE__GPU_SLOT_BYTES;
    assert_true(from.pieces == pieces && to.pieces == pieces);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    free(from.bytes);
    free(to.bytes);
}

static void test_staged_copies(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1,
                                     4095,
                                     TIDE__GPU_SLOT_BYTES / 2,
                                     TIDE__GPU_SLOT_BYTES / 2 + 1,
                                     TIDE__GPU_SLOT_BYTES,
                                     3 * TIDE__GPU_SLOT_BYTES + 12345};
    tide_device *device = open_staged_opencl();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        round_trip(device, TIDE_QUEUE_COPY, sizes[i]);
        round_trip(device, TIDE_QUEUE_COMPUTE, sizes[i]);
    }
    tide_device_close(device);
}

static void test_staged_failures(void **state) {
    (void)state;
    const uint64_t half = TIDE__GPU_SLOT_BYTES / 2, size = 4 * half;
    tide_device *device = open_staged_opencl();
    tide_arena *arena = NULL;
    tide_queue *out = NULL, *in = NULL;
    store s = {malloc(size), 0, 2 * half};
    memset(s.bytes, 1, size);
    assert_ok(tide_arena_create(device, size, &arena));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COPY, &out));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COPY, &in));
    assert_ok(tide_copy_out(out, arena, 0, size, (tide_io){sink, &s, TIDE_NONE}));
    assert_status(tide_queue_sync(out), TIDE_E_IO);
    assert_ok(tide_copy_in(in, arena, 0, size, (tide_io){source, &s, TIDE_NONE}));
    assert_status(tide_queue_sync(in), TIDE_E_IO);
    assert_error_has("nothing at");
    assert_int_equal(s.pieces, 6); /* the third piece fails, in either direction */
    assert_status(tide_queue_launch(in, NULL, NULL, 0), TIDE_E_ARGUMENT);
    tide_queue_destroy(out);
    tide_queue_destroy(in);
    tide_arena_destroy(arena);
    tide_device_close(device);
    free(s.bytes);
}

static tide_status nothing(void *context) {
    (void)context;
    return TIDE_OK;
}

static void test_no_host_functions(void **state) {
    (void)state;
    tide_device *device = open_staged_opencl();
    tide_queue *queue = NULL;
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    assert_status(tide_queue_launch(queue, nothing, NULL, 0), TIDE_E_UNSUPPORTED);
    assert_error_has("the host cannot see its memory");
    tide_queue_destroy(queue);
    tide_device_close(device);
}

/* ---- the cache of programs ---- */

typedef struct listing {
    int count;
    off_t bytes;
    char path[512]; /* of the last file */
} listing;

static listing list_cache(const char *folder) {
    listing l = {0};
    struct stat info;
    DIR *dir = opendir(folder);
    if (!dir) return l;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (e->d_name[0] == '.') continue;
        snprintf(l.path, sizeof l.path, "%s/%s", folder, e->d_name);
        assert_int_equal(stat(l.path, &info), 0);
        l.count++;
        l.bytes += info.st_size;
    }
    closedir(dir);
    return l;
}

static void build_relu(void) {
    tide_device *device = open_opencl();
    tide_kernel *kernel = NULL;
    tide_op_desc d = {.kind = TIDE_OP_RELU_FWD, .x = {1, 1, 1, 9}, .y = {1, 1, 1, 9}};
    assert_ok(tide_kernel_create(device, &d, &kernel));
    tide_kernel_destroy(kernel);
    tide_device_close(device);
}

/* Flips a byte of the file, or cuts it. */
static void damage(const char *path, bool cut) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    if (cut) {
        assert_int_equal(ftruncate(fileno(file), 100), 0);
    } else {
        assert_int_equal(fseek(file, 200, SEEK_SET), 0);
        int byte = fgetc(file);
        assert_int_equal(fseek(file, 200, SEEK_SET), 0);
        fputc(byte ^ 0xff, file);
    }
    fclose(file);
}

static void test_cache(void **state) {
    (void)state;
    char base[] = "/tmp/tide-cache-XXXXXX", folder[512];
    const char *old = getenv("XDG_CACHE_HOME");
    char *saved = old ? strdup(old) : NULL;
    assert_non_null(mkdtemp(base));
    setenv("XDG_CACHE_HOME", base, 1);
    snprintf(folder, sizeof folder, "%s/tidemark/opencl", base);
    build_relu();
    listing first = list_cache(folder);
    assert_int_equal(first.count, 1);
    for (int i = 0; i < 2; i++) {
        damage(first.path, i);
        build_relu(); /* not from that file: written anew */
        listing again = list_cache(folder);
        assert_int_equal(again.count, 1);
        assert_true(again.bytes == first.bytes);
    }
    unlink(first.path);
    rmdir(folder);
    snprintf(folder, sizeof folder, "%s/tidemark", base);
    rmdir(folder);
    rmdir(base);
    if (saved)
        setenv("XDG_CACHE_HOME", saved, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(saved);
}

/* ---- training ---- */

static void close_session(training *t, tide_trainer *trainer) {
    tide_trainer_destroy(trainer);
    training_close(t);
}

/* Planned for 70 % of what it takes without a budget; staged: on a device whose memory the host cannot see. */
static tide_trainer *start_inside_budget(training *t, bool staged) {
    training_open_on(t, "opencl", "lenet", 8);
    ((tide__opencl *)t->device)->host_visible = !staged;
    t->options.plan.policy = "liveness";
    tide_trainer *whole = training_start(t);
    uint64_t arena = tide_plan_arena_bytes(tide_trainer_plan(whole));
    tide_trainer_destroy(whole);
    t->options.plan.policy = "hybrid";
    t->options.plan.budgets.arena_bytes = arena / 10 * 7;
    return training_start(t);
}

/* A planned step with transfers: the host waits at its end, where it also gets the loss, and nowhere else. */
static void count_waits(bool staged) {
    training t;
    tide_trainer *trainer = start_inside_budget(&t, staged);
    training_run(trainer, 3); /* from the third step on it follows the plan from measured costs */
    for (int i = 0; i < 3; i++) {
        tide__opencl *opencl = (tide__opencl *)t.device;
        uint64_t before = atomic_load(&opencl->gpu.host_waits);
        tide_step_report report;
        float loss = 0;
        assert_ok(tide_trainer_step(trainer, &loss, &report));
        assert_true(loss > 0 && loss < 100);
        assert_true(report.saved_bytes > 0 || report.n_reruns > 0);
        assert_int_equal(atomic_load(&opencl->gpu.host_waits) - before, 1);
        assert_true(report.staging_bytes == (staged ? TIDE__GPU_STAGING_BYTES : 0));
    }
    close_session(&t, trainer);
}

static void test_one_wait_per_step(void **state) {
    (void)state;
    count_waits(false);
    count_waits(true);
}

static void test_staged_training_has_the_same_bits(void **state) {
    (void)state;
    uint64_t hash[2];
    for (int staged = 0; staged < 2; staged++) {
        training t;
        tide_trainer *trainer = start_inside_budget(&t, staged);
        training_run(trainer, 3);
        hash[staged] = training_hash(trainer);
        close_session(&t, trainer);
    }
    assert_true(hash[0] == hash[1]);
}

/* ---- the host's budget has the pinned memory in it ---- */

static uint32_t ram_of(const tide_machine *m) {
    uint32_t t = 0;
    while (t < m->n_tiers && m->tier[t].kind != TIDE_TIER_RAM) t++;
    assert_true(t < m->n_tiers);
    return t;
}

static void test_host_budget(void **state) {
    (void)state;
    training t;
    tide_trainer *trainer = start_inside_budget(&t, true);
    uint64_t ram = tide_plan_tier_bytes(tide_trainer_plan(trainer), ram_of(&t.machine));
    tide_trainer_destroy(trainer);
    uint64_t *budget = &t.options.plan.budgets.tier_bytes[ram_of(&t.machine)];
    assert_true(ram > 0);
    *budget = TIDE__GPU_STAGING_BYTES - 1;
    trainer = NULL;
    assert_status(tide_trainer_create(&t.options, NULL, &trainer), TIDE_E_TIER_FULL);
    assert_error_has("16.0 MiB of pinned memory that copies of device opencl go through");
    t.options.mode = TIDE_MODE_ONLINE;
    t.options.plan.policy = "delta";
    assert_status(tide_trainer_create(&t.options, NULL, &trainer), TIDE_E_TIER_FULL);
    assert_null(trainer);
    t.options.mode = TIDE_MODE_PLANNED;
    t.options.plan.policy = "hybrid";
    *budget = TIDE__GPU_STAGING_BYTES + ram;
    trainer = training_start(&t);
    assert_true(tide_plan_tier_bytes(tide_trainer_plan(trainer), ram_of(&t.machine)) <= ram);
    training_run(trainer, 1);
    close_session(&t, trainer);
}

/* A plan that was made without regard to the pinned memory does not run. */
static void test_budgets_of_plans(void **state) {
    (void)state;
    tide_device *device = open_staged_opencl();
    tide_machine machine;
    tide_budgets budgets;
    assert_ok(tide_machine_load("cpu", &machine));
    tide_budgets_init(&budgets);
    const uint32_t ram = ram_of(&machine);
    assert_ok(tide_run_budgets(device, &machine, &budgets));
    assert_true(budgets.tier_bytes[ram] == UINT64_MAX);
    budgets.tier_bytes[ram] = TIDE__GPU_STAGING_BYTES + 5;
    assert_ok(tide_run_budgets(device, &machine, &budgets));
    assert_true(budgets.tier_bytes[ram] == 5);
    assert_status(tide_run_budgets(device, &machine, &budgets), TIDE_E_TIER_FULL);
    ((tide__opencl *)device)->host_visible = true;
    assert_ok(tide_run_budgets(device, &machine, &budgets));
    assert_true(budgets.tier_bytes[ram] == 5);
    tide_device_close(device);
}

/* ---- lanes ---- */

static void test_wrong_lanes(void **state) {
    (void)state;
    static const char *const wrong[] = {"0", "3", "x", "", "-1", "512", "8 "};
    tide_device *device = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("TIDE_OPENCL_LANES", wrong[i], 1);
        assert_status(tide_device_open("opencl", NULL, &device), TIDE_E_ARGUMENT);
        assert_error_has("not a power of two up to 256");
    }
    unsetenv("TIDE_OPENCL_LANES");
    assert_null(device);
}

/* A training through the kernels of GPUs and staged copies, as a GPU would do it: the same bits under a budget, the
 * same losses as through those of processors. */
static float train_with(const char *lanes, bool constrained, uint64_t *hash) {
    training t;
    setenv("TIDE_OPENCL_LANES", lanes, 1);
    training_open_on(&t, "opencl", "lenet", 8);
    unsetenv("TIDE_OPENCL_LANES");
    ((tide__opencl *)t.device)->host_visible = false;
    t.options.learning_rate = 0.01f;
    t.options.plan.policy = "liveness";
    tide_trainer *trainer = training_start(&t);
    if (constrained) {
        uint64_t arena = tide_plan_arena_bytes(tide_trainer_plan(trainer));
        tide_trainer_destroy(trainer);
        t.options.plan.policy = "hybrid";
        t.options.plan.budgets.arena_bytes = arena / 10 * 7;
        trainer = training_start(&t);
    }
    float loss = training_run(trainer, 3);
    *hash = training_hash(trainer);
    close_session(&t, trainer);
    return loss;
}

static void test_training_with_lanes(void **state) {
    (void)state;
    uint64_t one, many, again;
    const float a = train_with("1", false, &one), b = train_with("16", false, &many);
    train_with("16", true, &again);
    assert_true(many == again);
    assert_true(fabsf(a - b) <= 1e-4f * fabsf(a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),           cmocka_unit_test(test_arena_limit),
        cmocka_unit_test(test_staged_copies),     cmocka_unit_test(test_staged_failures),
        cmocka_unit_test(test_no_host_functions), cmocka_unit_test(test_cache),
        cmocka_unit_test(test_one_wait_per_step), cmocka_unit_test(test_staged_training_has_the_same_bits),
        cmocka_unit_test(test_host_budget),       cmocka_unit_test(test_budgets_of_plans),
        cmocka_unit_test(test_wrong_lanes),       cmocka_unit_test(test_training_with_lanes),
    };
    const struct CMUnitTest always[] = {cmocka_unit_test(test_without_a_library)};
    int failed = cmocka_run_group_tests(always, NULL, NULL);
    if (!has_opencl()) return failed ? failed : SKIPPED;
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
