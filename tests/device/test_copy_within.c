/* Copies inside the arena, on every device: apart, and overlapping both ways, in queue order, as memmove has it. */
#include "support/test.h"

#include "support/opencl.h"

enum { AT = 65536, SIZE = 10007, ROOM = 262144 };

static tide_status take(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy((unsigned char *)context + position, data, size_bytes);
    return TIDE_OK;
}

static tide_status give(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy(data, (unsigned char *)context + position, size_bytes);
    return TIDE_OK;
}

static void fill(unsigned char *bytes, uint32_t seed) {
    for (uint32_t i = 0; i < ROOM; i++) bytes[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

/* One after the other, each from where the last one went. */
static void check_moves(tide_device *device) {
    static const uint64_t places[] = {AT, 0, AT, 131072, AT + 4096, AT, AT + 128, AT - 128, AT - 128, AT + 8192};
    unsigned char *expected = malloc(ROOM), *got = malloc(ROOM);
    tide_queue *queue;
    tide_arena *arena;
    assert_true(expected && got);
    fill(expected, 7);
    assert_ok(tide_arena_create(device, ROOM, &arena));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    assert_ok(tide_copy_in(queue, arena, 0, ROOM, (tide_io){give, expected, TIDE_NONE}));
    assert_ok(tide_queue_sync(queue));
    for (size_t i = 1; i < sizeof places / sizeof places[0]; i++) {
        memmove(expected + places[i], expected + places[i - 1], SIZE);
        assert_ok(tide_copy_within(queue, arena, places[i - 1], places[i], SIZE));
    }
    assert_ok(tide_copy_out(queue, arena, 0, ROOM, (tide_io){take, got, TIDE_NONE}));
    assert_ok(tide_queue_sync(queue));
    assert_memory_equal(got, expected, ROOM);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    free(expected);
    free(got);
}

static void check_bounds(tide_device *device) {
    tide_queue *compute, *copy;
    tide_arena *arena;
    assert_ok(tide_arena_create(device, 8192, &arena));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &compute));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COPY, &copy));
    assert_status(tide_copy_within(copy, arena, 0, 4096, 64), TIDE_E_ARGUMENT);
    assert_error_has("compute queues only");
    assert_status(tide_copy_within(compute, arena, 4096, 0, 4097), TIDE_E_ARGUMENT);
    assert_status(tide_copy_within(compute, arena, 0, 4096, 4097), TIDE_E_ARGUMENT);
    assert_error_has("4097 bytes at offset 4096");
    assert_ok(tide_copy_within(compute, arena, 0, 8192, 0));
    assert_ok(tide_queue_sync(compute));
    tide_queue_destroy(compute);
    tide_queue_destroy(copy);
    tide_arena_destroy(arena);
}

static void check_device(tide_device *device) {
    check_moves(device);
    check_bounds(device);
    tide_device_close(device);
}

static void check_named(const char *name) {
    tide_device *device;
    assert_ok(tide_device_open(name, NULL, &device));
    check_device(device);
}

static void test_cpu(void **state) {
    (void)state;
    check_named("cpu");
}

/* And it takes the time that the machine says. */
static void test_sim(void **state) {
    (void)state;
    tide_machine m;
    tide_device *device;
    tide_arena *arena;
    tide_queue *queue;
    tide_event *before, *after;
    uint64_t ns;
    check_named("sim");
    tide_machine_init_default(&m);
    assert_ok(tide_device_open("sim", NULL, &device));
    assert_ok(tide_arena_create(device, ROOM, &arena));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    assert_ok(tide_event_create(device, &before));
    assert_ok(tide_event_create(device, &after));
    assert_ok(tide_event_record(before, queue));
    assert_ok(tide_copy_within(queue, arena, 0, AT, SIZE));
    assert_ok(tide_event_record(after, queue));
    assert_ok(tide_event_elapsed(before, after, &ns));
    assert_int_equal(ns, tide_machine_relocate_ns(&m, SIZE, AT));
    tide_event_destroy(before);
    tide_event_destroy(after);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    tide_device_close(device);
}

static void test_opencl(void **state) {
    (void)state;
    if (!has_opencl()) skip();
    check_device(open_opencl());
    check_device(open_staged_opencl());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_sim),
        cmocka_unit_test(test_opencl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
