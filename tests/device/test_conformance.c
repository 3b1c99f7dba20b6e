/* The device contract, device by device: every test runs on every entry of `configs`. Where a test needs work to be
 * really pending, it is for devices that execute on threads of their own (`threaded`). Nothing is proved by timing:
 * work is held by gates and meets at rendezvous. */
#include "support/test.h"

#include <pthread.h>
#include <time.h>

#include <tidemark/device.h>

#include "base/error.h"
#include "support/cuda.h"
#include "support/errand.h"
#include "support/opencl.h"

typedef struct config {
    const char *label, *device;
    uint32_t threads;
    bool threaded;
    bool staged; /* opencl, as where the host does not see the arena */
} config;

static config configs[] = {
    {"cpu, 1 thread", "cpu", 1, true},
#ifndef __SANITIZE_THREAD__
    {"cpu, 2 threads", "cpu", 2, true},
#endif
    {"host", "host", 0, true},          {"sim", "sim", 0, false},
    {"opencl", "opencl", 0, true},      {"staged opencl", "opencl", 0, true, .staged = true},
    {"cuda", "cuda", 0, true},
};
#define N_CONFIGS (sizeof configs / sizeof configs[0])

/* ---- support ---- */

static tide_device *open_device(const config *c) {
    tide_device_options options;
    tide_device *device = NULL;
    tide_device_options_init(&options);
    options.threads = c->threads;
    assert_ok(tide_device_open(c->device, &options, &device));
    if (c->staged) hide_opencl_memory(device);
    return device;
}

static tide_queue *new_queue(tide_device *device, tide_queue_kind kind) {
    tide_queue *queue = NULL;
    assert_ok(tide_queue_create(device, kind, &queue));
    return queue;
}

static tide_event *new_event(tide_device *device) {
    tide_event *event = NULL;
    assert_ok(tide_event_create(device, &event));
    return event;
}

/* Appends `value` to a list shared by queues; the order of the list is the order of execution. */
typedef struct trail {
    pthread_mutex_t lock;
    int count, value[4096];
} trail;
typedef struct mark {
    trail *trail;
    int value;
} mark;

static tide_status leave_mark(void *context) {
    mark *m = context;
    pthread_mutex_lock(&m->trail->lock);
    m->trail->value[m->trail->count++] = m->value;
    pthread_mutex_unlock(&m->trail->lock);
    return TIDE_OK;
}

static tide_status fail_now(void *context) {
    (void)context;
    return tide__fail(TIDE_E_IO, "the disk is on fire");
}

static tide_status fail_without_text(void *context) {
    (void)context;
    return TIDE_E_CANCELLED;
}

/* ---- opening ---- */

static void test_open(void **state) {
    const config *c = *state;
    tide_device_options options;
    tide_device_info info;
    tide_device *device = NULL;
    tide_device_options_init(&options);
    setenv("TIDE_OPENCL", "libno-such-opencl.so", 1); /* whose driver not every sanitizer takes */
    assert_status(tide_device_open("abacus", &options, &device), TIDE_E_DEVICE);
    assert_error_has("available: cpu, ");
    assert_error_has("host, sim");
    unsetenv("TIDE_OPENCL");
    options.size++;
    assert_status(tide_device_open(c->device, &options, &device), TIDE_E_ARGUMENT);
    assert_null(device);
    device = open_device(c);
    assert_ok(tide_device_get_info(device, &info));
    assert_string_equal(info.name, c->device);
    assert_true(info.align_bytes > 0 && (info.align_bytes & (info.align_bytes - 1)) == 0);
    assert_true(info.memory_bytes > 0 && info.description[0]);
    close_device(device);
    close_device(NULL);
}

static void test_default_options(void **state) {
    const config *c = *state;
    tide_device_info info;
    tide_device *device = NULL;
    assert_ok(tide_device_open(c->device, NULL, &device));
    assert_ok(tide_device_get_info(device, &info));
    assert_true(info.threads >= 1);
    close_device(device);
}

/* ---- memory ---- */

static void test_arena(void **state) {
    tide_device *device = open_device(*state);
    tide_arena *arena = NULL;
    assert_status(tide_arena_create(device, 0, &arena), TIDE_E_ARGUMENT);
    assert_ok(tide_arena_create(device, 3000001, &arena));
    assert_true(tide_arena_size(arena) == 3000001);
    unsigned char *host = tide_arena_host(arena);
    assert_int_equal(host != NULL, is_visible(device));
    if (host) {
        assert_int_equal((uintptr_t)host % 64, 0);
        memset(host, 0xab, 3000001);
        assert_int_equal(host[3000000], 0xab);
    }
    tide_arena_destroy(arena);
    tide_arena_destroy(NULL);
    close_device(device);
}

static void test_arena_too_large(void **state) {
    tide_device *device = open_device(*state);
    tide_arena *arena = NULL;
    assert_status(tide_arena_create(device, UINT64_C(1) << 60, &arena), TIDE_E_MEMORY);
    assert_error_has("1152921504606846976");
    assert_status(tide_arena_create(device, UINT64_MAX, &arena), TIDE_E_MEMORY);
    assert_null(arena);
    close_device(device);
}

/* ---- queues ---- */

static void test_queue_order(void **state) {
    enum { N = 2000 };
    static trail t;
    static mark marks[N];
    tide_device *device = open_device(*state);
    begin_work(device);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COMPUTE);
    t = (trail){.lock = PTHREAD_MUTEX_INITIALIZER};
    for (int i = 0; i < N; i++) {
        marks[i] = (mark){&t, i};
        work(queue, leave_mark, &marks[i], 1);
        if (i % 500 == 0) assert_ok(tide_queue_sync(queue));
    }
    assert_ok(tide_queue_sync(queue));
    assert_int_equal(t.count, N);
    for (int i = 0; i < N; i++) assert_int_equal(t.value[i], i);
    tide_queue_destroy(queue);
    tide_queue_destroy(NULL);
    close_device(device);
}

static void test_queues_are_concurrent(void **state) {
    const config *c = *state;
    if (!c->threaded) return;
    gate meeting;
    tide_device *device = open_device(c);
    begin_work(device);
    tide_queue *compute = new_queue(device, TIDE_QUEUE_COMPUTE), *out = new_queue(device, TIDE_QUEUE_COPY),
               *in = new_queue(device, TIDE_QUEUE_COPY);
    gate_init(&meeting, 3); /* passes only if all three queues are inside at the same time */
    work(compute, gate_pass, &meeting, 1);
    work(out, gate_pass, &meeting, 1);
    work(in, gate_pass, &meeting, 1);
    assert_ok(tide_queue_sync(compute));
    assert_ok(tide_queue_sync(out));
    assert_ok(tide_queue_sync(in));
    tide_queue_destroy(compute);
    tide_queue_destroy(out);
    tide_queue_destroy(in);
    close_device(device);
}

static tide_status count_up(void *context) {
    ++*(int *)context;
    return TIDE_OK;
}

static void test_enqueue_never_blocks(void **state) {
    enum { N = 200000 };
    const config *c = *state;
    gate hold;
    int count = 0;
    tide_device *device = open_device(c);
    begin_work(device);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COMPUTE);
    gate_init(&hold, 1000);
    if (c->threaded) work(queue, gate_pass, &hold, 1);
    for (int i = 0; i < N; i++) work(queue, count_up, &count, 1);
    gate_open(&hold);
    assert_ok(tide_queue_sync(queue));
    assert_int_equal(count, N);
    tide_queue_destroy(queue);
    close_device(device);
}

static void *open_later(void *context) {
    struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
    gate_open(context);
    return NULL;
}

static void test_destroy_waits(void **state) {
    const config *c = *state;
    gate hold;
    int count = 0;
    pthread_t opener;
    tide_device *device = open_device(c);
    begin_work(device);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COPY);
    gate_init(&hold, 1000);
    if (c->threaded) work(queue, gate_pass, &hold, 1);
    for (int i = 0; i < 100; i++) work(queue, count_up, &count, 1);
    assert_int_equal(pthread_create(&opener, NULL, open_later, &hold), 0);
    tide_queue_destroy(queue);
    assert_int_equal(count, 100);
    pthread_join(opener, NULL);
    close_device(device);
}

static void test_bad_arguments(void **state) {
    tide_device *device = open_device(*state), *other = open_device(*state);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COPY), *nothing = NULL;
    tide_event *foreign = new_event(other);
    assert_status(tide_queue_create(device, (tide_queue_kind)7, &nothing), TIDE_E_ARGUMENT);
    assert_status(tide_queue_launch(queue, NULL, NULL, 0), TIDE_E_ARGUMENT);
    assert_status(tide_event_record(foreign, queue), TIDE_E_ARGUMENT);
    assert_status(tide_event_wait(foreign, queue), TIDE_E_ARGUMENT);
    tide_event_destroy(foreign);
    tide_queue_destroy(queue);
    close_device(device);
    close_device(other);
}

/* ---- events ---- */

static void assert_complete(tide_event *event, bool expected) {
    bool complete = !expected;
    assert_ok(tide_event_query(event, &complete));
    assert_int_equal(complete, expected);
}

static void test_event_orders_queues(void **state) {
    const config *c = *state;
    trail t = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mark first = {&t, 1}, second = {&t, 2}, third = {&t, 3};
    gate hold;
    tide_device *device = open_device(c);
    begin_work(device);
    tide_queue *a = new_queue(device, TIDE_QUEUE_COMPUTE), *b = new_queue(device, TIDE_QUEUE_COPY);
    tide_event *e = new_event(device), *f = new_event(device);
    gate_init(&hold, 1000);
    if (c->threaded) work(a, gate_pass, &hold, 1);
    work(a, leave_mark, &first, 1);
    assert_ok(tide_event_record(e, a));
    assert_ok(tide_event_wait(e, b));
    work(b, leave_mark, &second, 1);
    assert_ok(tide_event_record(f, b));
    assert_ok(tide_event_wait(f, a));
    work(a, leave_mark, &third, 1);
    assert_complete(e, !c->threaded);
    gate_open(&hold);
    assert_ok(tide_queue_sync(a));
    assert_int_equal(t.count, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(t.value[i], i + 1);
    assert_complete(e, true);
    assert_complete(f, true);
    tide_event_destroy(e);
    tide_event_destroy(f);
    tide_queue_destroy(a);
    tide_queue_destroy(b);
    close_device(device);
}

static void test_event_never_recorded(void **state) {
    tide_device *device = open_device(*state);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COMPUTE);
    tide_event *a = new_event(device), *b = new_event(device);
    uint64_t ns = 77;
    assert_complete(a, true);
    assert_ok(tide_event_sync(a));
    assert_ok(tide_event_wait(a, queue));
    assert_ok(tide_queue_sync(queue));
    assert_status(tide_event_elapsed(a, b, &ns), TIDE_E_ARGUMENT);
    assert_int_equal(ns, 77);
    tide_event_destroy(a);
    tide_event_destroy(b);
    tide_event_destroy(NULL);
    tide_queue_destroy(queue);
    close_device(device);
}

/* A second record belongs to the second queue alone; a wait from before it still means the first record. */
static void test_event_recorded_again(void **state) {
    const config *c = *state;
    if (!c->threaded) return;
    gate hold;
    int count = 0;
    uint64_t ns;
    tide_device *device = open_device(c);
    begin_work(device);
    tide_queue *a = new_queue(device, TIDE_QUEUE_COMPUTE), *b = new_queue(device, TIDE_QUEUE_COPY),
               *d = new_queue(device, TIDE_QUEUE_COPY);
    tide_event *e = new_event(device), *after = new_event(device);
    gate_init(&hold, 1000);
    work(a, gate_pass, &hold, 1);
    assert_ok(tide_event_record(e, a));
    assert_ok(tide_event_wait(e, d));
    work(d, count_up, &count, 1);
    assert_ok(tide_event_record(after, d));
    assert_status(tide_event_elapsed(e, e, &ns), TIDE_E_ARGUMENT);
    assert_ok(tide_event_record(e, b));
    assert_ok(tide_event_sync(e)); /* b is free: complete although a is held */
    assert_complete(e, true);
    assert_complete(after, false); /* d waits for the record on a */
    gate_open(&hold);
    assert_ok(tide_event_sync(after));
    assert_int_equal(count, 1);
    for (int i = 0; i < 1000; i++) {
        assert_ok(tide_event_record(e, i % 2 ? a : b));
        assert_ok(tide_event_wait(e, i % 2 ? b : a));
    }
    assert_ok(tide_event_sync(e));
    tide_event_destroy(e);
    tide_event_destroy(after);
    tide_queue_destroy(a);
    tide_queue_destroy(b);
    tide_queue_destroy(d);
    close_device(device);
}

static void test_event_destroyed_early(void **state) {
    const config *c = *state;
    gate hold;
    int count = 0;
    tide_device *device = open_device(c);
    begin_work(device);
    tide_queue *a = new_queue(device, TIDE_QUEUE_COMPUTE), *b = new_queue(device, TIDE_QUEUE_COPY);
    tide_event *e = new_event(device);
    gate_init(&hold, 1000);
    if (c->threaded) work(a, gate_pass, &hold, 1);
    assert_ok(tide_event_record(e, a));
    assert_ok(tide_event_wait(e, b));
    work(b, count_up, &count, 1);
    tide_event_destroy(e);
    gate_open(&hold);
    assert_ok(tide_queue_sync(b));
    assert_int_equal(count, 1);
    tide_queue_destroy(a);
    tide_queue_destroy(b);
    close_device(device);
}

static tide_status take_a_nap(void *context) {
    (void)context;
    struct timespec pause = {.tv_nsec = 5000000};
    nanosleep(&pause, NULL);
    return TIDE_OK;
}

static void test_event_elapsed(void **state) {
    tide_device *device = open_device(*state);
    begin_work(device);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COMPUTE);
    tide_event *from = new_event(device), *to = new_event(device);
    uint64_t ns = 0;
    assert_ok(tide_event_record(from, queue));
    assert_ok(tide_event_sync(from)); /* a GPU may pass it later than its queue goes on */
    work(queue, take_a_nap, NULL, 5000000);
    assert_ok(tide_event_record(to, queue));
    assert_ok(tide_event_sync(to));
    assert_ok(tide_event_elapsed(from, to, &ns));
    assert_true(ns >= 5000000); /* at least the nap; "sim" charges exactly that */
    assert_ok(tide_event_elapsed(from, from, &ns));
    assert_int_equal(ns, 0);
    tide_event_destroy(from);
    tide_event_destroy(to);
    tide_queue_destroy(queue);
    close_device(device);
}

/* Whatever the queue is for: when the host has waited for it, its events are complete. */
static void test_sync_completes_events(void **state) {
    tide_device *device = open_device(*state);
    begin_work(device);
    tide_event *from = new_event(device), *to = new_event(device);
    for (int kind = TIDE_QUEUE_COMPUTE; kind <= TIDE_QUEUE_COPY; kind++) {
        tide_queue *queue = new_queue(device, (tide_queue_kind)kind);
        for (int i = 0; i < 50; i++) {
            int count = 0;
            uint64_t ns = 0;
            assert_ok(tide_event_record(from, queue));
            if (i % 2) work(queue, count_up, &count, 1);
            assert_ok(tide_event_record(to, queue));
            assert_ok(tide_queue_sync(queue));
            assert_ok(tide_event_elapsed(from, to, &ns));
        }
        tide_queue_destroy(queue);
    }
    tide_event_destroy(from);
    tide_event_destroy(to);
    close_device(device);
}

/* ---- failures ---- */

static void test_failure_is_sticky(void **state) {
    int before = 0, after = 0, elsewhere = 0;
    tide_device *device = open_device(*state);
    begin_work(device);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COMPUTE), *other = new_queue(device, TIDE_QUEUE_COPY);
    tide_event *e = new_event(device);
    work(queue, count_up, &before, 1);
    work(queue, fail_now, NULL, 1);
    work(queue, count_up, &after, 1);
    work(queue, fail_without_text, NULL, 1); /* skipped: the first failure stays */
    assert_ok(tide_event_record(e, queue));
    assert_ok(tide_event_wait(e, other));
    work(other, count_up, &elsewhere, 1);
    assert_ok(tide_event_sync(e));
    assert_ok(tide_queue_sync(other));
    for (int i = 0; i < 2; i++) {
        assert_status(tide_queue_sync(queue), TIDE_E_IO);
        assert_error_has("the disk is on fire");
        tide_status told = tide_queue_check(queue); /* without waiting, where the device can */
        assert_true(told == TIDE_E_IO || told == TIDE_E_UNSUPPORTED);
        work(queue, count_up, &after, 1);
    }
    tide_queue_destroy(queue);
    assert_int_equal(before, 1);
    assert_int_equal(after, 0);
    assert_int_equal(elsewhere, 1);
    tide_event_destroy(e);
    tide_queue_destroy(other);
    close_device(device);
}

static void test_failure_without_text(void **state) {
    tide_device *device = open_device(*state);
    begin_work(device);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COMPUTE);
    work(queue, fail_without_text, NULL, 1);
    assert_status(tide_queue_sync(queue), TIDE_E_CANCELLED);
    assert_error_has(tide_status_text(TIDE_E_CANCELLED));
    tide_queue_destroy(queue);
    close_device(device);
}

/* ---- copies ---- */

typedef struct store {
    unsigned char *bytes;
    uint64_t expected; /* next position */
    uint64_t fail_at;
    bool in_order;
} store;

static tide_status check_piece(store *s, uint64_t position, uint64_t size_bytes) {
    if (position != s->expected || size_bytes == 0) s->in_order = false;
    if (position + size_bytes > s->fail_at)
        return tide__fail(TIDE_E_IO, "no room at %llu", (unsigned long long)position);
    s->expected = position + size_bytes;
    return TIDE_OK;
}

static tide_status store_sink(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    store *s = context;
    TIDE_TRY(check_piece(s, position, size_bytes));
    memcpy(s->bytes + position, data, size_bytes);
    return TIDE_OK;
}

static tide_status store_source(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    store *s = context;
    TIDE_TRY(check_piece(s, position, size_bytes));
    memcpy(data, s->bytes + position, size_bytes);
    return TIDE_OK;
}

static tide_io io_of(store *s, tide_io_fn fn) {
    s->expected = 0;
    s->in_order = true;
    return (tide_io){.fn = fn, .context = s, .channel = TIDE_NONE};
}

static void fill(unsigned char *bytes, uint64_t size, uint32_t seed) {
    for (uint64_t i = 0; i < size; i++) bytes[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

static void copy_round_trip(tide_device *device, tide_queue *queue, uint64_t size) {
    const uint64_t from = 4096, to = 4096 + (size + 4095) / 4096 * 4096;
    tide_arena *arena = NULL;
    store s = {.bytes = malloc(size + 1), .fail_at = UINT64_MAX};
    unsigned char *first = malloc(size), *second = malloc(size);
    assert_ok(tide_arena_create(device, to + size, &arena));
    fill(first, size, 5);
    exchange(device, arena, from, first, size, true);
    assert_ok(tide_copy_out(queue, arena, from, size, io_of(&s, store_sink)));
    assert_ok(tide_queue_sync(queue));
    assert_true(s.in_order && s.expected == size);
    assert_ok(tide_copy_in(queue, arena, to, size, io_of(&s, store_source)));
    assert_ok(tide_queue_sync(queue));
    assert_true(s.in_order && s.expected == size);
    exchange(device, arena, to, second, size, false);
    assert_memory_equal(first, second, size);
    tide_arena_destroy(arena);
    free(s.bytes);
    free(first);
    free(second);
}

static void test_copy(void **state) {
    tide_device *device = open_device(*state);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COPY);
    copy_round_trip(device, queue, 1);
    copy_round_trip(device, queue, 64);
    copy_round_trip(device, queue, 100003);
    copy_round_trip(device, queue, (UINT64_C(33) << 20) + 7); /* some devices go piece by piece */
    tide_queue_destroy(queue);
    close_device(device);
}

static void test_copy_of_nothing(void **state) {
    tide_device *device = open_device(*state);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COPY);
    tide_arena *arena = NULL;
    store s = {.fail_at = 0};
    assert_ok(tide_arena_create(device, 4096, &arena));
    assert_ok(tide_copy_out(queue, arena, 4096, 0, io_of(&s, store_sink)));
    assert_ok(tide_queue_sync(queue));
    assert_true(s.in_order); /* never called */
    tide_arena_destroy(arena);
    tide_queue_destroy(queue);
    close_device(device);
}

static void test_copy_failure(void **state) {
    tide_device *device = open_device(*state);
    begin_work(device);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COPY);
    tide_arena *arena = NULL;
    unsigned char bytes[4096];
    store s = {.bytes = bytes, .fail_at = 100};
    int after = 0;
    assert_ok(tide_arena_create(device, 1 << 20, &arena));
    assert_ok(tide_copy_out(queue, arena, 0, 4096, io_of(&s, store_sink)));
    work(queue, count_up, &after, 1);
    assert_status(tide_queue_sync(queue), TIDE_E_IO);
    assert_error_has("no room at ");
    assert_int_equal(after, 0);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    close_device(device);
}

static void test_copy_bounds(void **state) {
    tide_device_info info;
    tide_device *device = open_device(*state);
    tide_queue *queue = new_queue(device, TIDE_QUEUE_COPY);
    tide_arena *arena = NULL;
    store s = {.fail_at = UINT64_MAX};
    tide_io io = io_of(&s, store_sink), no_fn = {.channel = TIDE_NONE};
    assert_ok(tide_device_get_info(device, &info));
    assert_ok(tide_arena_create(device, 8192, &arena));
    assert_status(tide_copy_out(queue, arena, 4096, 4097, io), TIDE_E_ARGUMENT);
    assert_error_has("4097 bytes at offset 4096");
    assert_status(tide_copy_out(queue, arena, 16384, 0, io), TIDE_E_ARGUMENT);
    assert_status(tide_copy_in(queue, arena, 64, UINT64_MAX, io), TIDE_E_ARGUMENT);
    assert_status(tide_copy_in(queue, arena, UINT64_MAX - 63, 128, io), TIDE_E_ARGUMENT);
    assert_status(tide_copy_in(queue, arena, 0, 64, no_fn), TIDE_E_ARGUMENT);
    if (info.align_bytes > 1) {
        assert_status(tide_copy_out(queue, arena, info.align_bytes + 1, 16, io), TIDE_E_ARGUMENT);
        assert_error_has("not a multiple of");
    }
    assert_ok(tide_queue_sync(queue));
    assert_true(s.expected == 0); /* nothing was moved */
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    close_device(device);
}

/* A buffer handed between compute and copy by events, many times: the pattern of every swap. */
enum { SWAPPED_BYTES = 1000 };

static tide_status add_one(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    unsigned char *bytes = context;
    for (uint64_t i = 0; i < size_bytes; i++) ((unsigned char *)data)[i] = (unsigned char)(bytes[position + i] + 1);
    return TIDE_OK;
}

static void test_swap_loop(void **state) {
    enum { ROUNDS = 300 };
    tide_device *device = open_device(*state);
    begin_work(device);
    tide_queue *compute = new_queue(device, TIDE_QUEUE_COMPUTE), *out = new_queue(device, TIDE_QUEUE_COPY),
               *in = new_queue(device, TIDE_QUEUE_COPY);
    tide_event *computed = new_event(device), *saved = new_event(device), *loaded = new_event(device);
    tide_arena *arena = NULL;
    unsigned char bytes[SWAPPED_BYTES], computing[SWAPPED_BYTES] = {0};
    store s = {.bytes = bytes, .fail_at = UINT64_MAX}, added = {.bytes = computing, .fail_at = UINT64_MAX};
    assert_ok(tide_arena_create(device, 4096, &arena));
    exchange(device, arena, 0, computing, SWAPPED_BYTES, true);
    s.in_order = true;
    for (int i = 0; i < ROUNDS; i++) {
        assert_ok(tide_copy_out(compute, arena, 0, SWAPPED_BYTES, (tide_io){store_sink, &added, TIDE_NONE}));
        assert_ok(tide_copy_in(compute, arena, 0, SWAPPED_BYTES, (tide_io){add_one, computing, TIDE_NONE}));
        assert_ok(tide_event_record(computed, compute));
        assert_ok(tide_event_wait(computed, out));
        assert_ok(tide_copy_out(out, arena, 0, SWAPPED_BYTES, (tide_io){store_sink, &s, TIDE_NONE}));
        assert_ok(tide_event_record(saved, out));
        assert_ok(tide_event_wait(saved, in));
        assert_ok(tide_copy_in(in, arena, 0, SWAPPED_BYTES, (tide_io){store_source, &s, TIDE_NONE}));
        assert_ok(tide_event_record(loaded, in));
        assert_ok(tide_event_wait(loaded, compute));
    }
    assert_ok(tide_queue_sync(compute));
    assert_ok(tide_queue_sync(out));
    assert_ok(tide_queue_sync(in));
    exchange(device, arena, 0, computing, SWAPPED_BYTES, false);
    for (int i = 0; i < SWAPPED_BYTES; i++) assert_int_equal(computing[i], ROUNDS % 256);
    tide_event_destroy(computed);
    tide_event_destroy(saved);
    tide_event_destroy(loaded);
    tide_queue_destroy(compute);
    tide_queue_destroy(out);
    tide_queue_destroy(in);
    tide_arena_destroy(arena);
    close_device(device);
}

typedef struct named_test {
    const char *name;
    CMUnitTestFunction run;
} named_test;

static const named_test contract[] = {
    {"open", test_open},
    {"default options", test_default_options},
    {"arena", test_arena},
    {"arena too large", test_arena_too_large},
    {"queue order", test_queue_order},
    {"queues are concurrent", test_queues_are_concurrent},
    {"enqueue never blocks", test_enqueue_never_blocks},
    {"destroy waits", test_destroy_waits},
    {"bad arguments", test_bad_arguments},
    {"events order queues", test_event_orders_queues},
    {"event never recorded", test_event_never_recorded},
    {"event recorded again", test_event_recorded_again},
    {"event destroyed early", test_event_destroyed_early},
    {"event elapsed", test_event_elapsed},
    {"sync completes events", test_sync_completes_events},
    {"failure is sticky", test_failure_is_sticky},
    {"failure without text", test_failure_without_text},
    {"copy", test_copy},
    {"copy of nothing", test_copy_of_nothing},
    {"copy failure", test_copy_failure},
    {"copy bounds", test_copy_bounds},
    {"swap loop", test_swap_loop},
};
#define N_CONTRACT (sizeof contract / sizeof contract[0])

static bool is_here(const config *c) {
    if (strcmp(c->device, "opencl") == 0) return has_opencl();
    return strcmp(c->device, "cuda") != 0 || has_cuda();
}

int main(void) {
    static char names[N_CONFIGS][N_CONTRACT][96];
    struct CMUnitTest tests[N_CONFIGS * N_CONTRACT] = {0};
    size_t n = 0;
    for (size_t i = 0; i < N_CONFIGS; i++)
        for (size_t k = 0; k < N_CONTRACT && (k > 0 || is_here(&configs[i])); k++) {
            snprintf(names[i][k], sizeof names[i][k], "%s: %s", configs[i].label, contract[k].name);
            tests[n++] =
                (struct CMUnitTest){.name = names[i][k], .test_func = contract[k].run, .initial_state = &configs[i]};
        }
    return _cmocka_run_group_tests("conformance", tests, n, NULL, NULL);
}
