/* The sim device: what it charges, to the nanosecond, and what it refuses. The contract itself is test_conformance.c. */
#include "support/test.h"

#include <tidemark/device.h>

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

/* Two channels of 1 byte/ns that share a link, one of 2 bytes/ns on its own, all with a latency of 10 ns. */
static tide_device *open_sim(void) {
    tide_device_options options;
    tide_machine machine;
    tide_device *device = NULL;
    tide_machine_init_default(&machine);
    machine.n_channels = 3;
    for (uint32_t i = 0; i < 3; i++)
        machine.channel[i] =
            (tide_machine_channel){.tier = i == 2, .out = i == 0, .bytes_per_s = 1000000000, .latency_ns = 10};
    machine.channel[0].share = machine.channel[1].share = 1;
    machine.channel[2].bytes_per_s = 2000000000;
    machine.memory_bytes = 1 << 20;
    machine.align_bytes = 16;
    tide_device_options_init(&options);
    options.machine = &machine;
    options.reserve_bytes = 1 << 19;
    assert_ok(tide_device_open("sim", &options, &device));
    return device;
}

static uint64_t elapsed(tide_event *from, tide_event *to) {
    uint64_t ns = UINT64_MAX;
    assert_ok(tide_event_elapsed(from, to, &ns));
    return ns;
}

static tide_status do_nothing(void *context) {
    (void)context;
    return TIDE_OK;
}

static tide_status move_nothing(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    (void)context, (void)position, (void)data, (void)size_bytes;
    return TIDE_OK;
}

static void test_times(void **state) {
    (void)state;
    tide_device *device = open_sim();
    tide_queue *q[3];
    tide_event *start = new_event(device), *end[3];
    tide_arena *arena = NULL;
    for (int i = 0; i < 3; i++)
        q[i] = new_queue(device, i ? TIDE_QUEUE_COPY : TIDE_QUEUE_COMPUTE), end[i] = new_event(device);
    assert_ok(tide_arena_create(device, 1 << 19, &arena));
    assert_ok(tide_event_record(start, q[0]));
    assert_ok(tide_queue_launch(q[0], do_nothing, NULL, 700)); /* q0: 0 .. 700 */
    assert_ok(tide_event_record(end[0], q[0]));
    assert_ok(tide_copy_in(q[1], arena, 0, 4000, (tide_io){move_nothing, NULL, 2})); /* q1: 10 + 4000 / 2 */
    assert_ok(tide_event_record(end[1], q[1]));
    assert_ok(tide_event_wait(end[0], q[2]));
    assert_ok(tide_copy_in(q[2], arena, 16, 100, (tide_io){move_nothing, NULL, TIDE_NONE})); /* free, after 700 */
    assert_ok(tide_queue_launch(q[2], do_nothing, NULL, 5));
    assert_ok(tide_event_record(end[2], q[2]));
    assert_ok(tide_queue_sync(q[0]));
    assert_int_equal(elapsed(start, end[0]), 700);
    assert_int_equal(elapsed(start, end[1]), 2010);
    assert_int_equal(elapsed(start, end[2]), 705);
    assert_int_equal(elapsed(end[1], end[2]), 0);
    /* The host waited for all of it: what comes now starts at 2010. Both copies take turns on one link. */
    assert_ok(tide_event_wait(end[1], q[0]));
    assert_ok(tide_copy_out(q[0], arena, 0, 1000, (tide_io){move_nothing, NULL, 0}));
    assert_ok(tide_event_record(end[0], q[0]));
    assert_ok(tide_copy_in(q[2], arena, 2048, 1000, (tide_io){move_nothing, NULL, 1}));
    assert_ok(tide_event_record(end[2], q[2]));
    assert_int_equal(elapsed(start, end[0]), 2010 + 10 + 2000);
    assert_int_equal(elapsed(end[1], end[2]), 2010);
    assert_status(tide_copy_out(q[0], arena, 0, 16, (tide_io){move_nothing, NULL, 3}), TIDE_E_ARGUMENT);
    assert_status(tide_copy_out(q[0], arena, 8, 16, (tide_io){move_nothing, NULL, 0}), TIDE_E_ARGUMENT);
    for (int i = 0; i < 3; i++) tide_queue_destroy(q[i]), tide_event_destroy(end[i]);
    tide_event_destroy(start);
    tide_arena_destroy(arena);
    tide_device_close(device);
}

static void test_limits(void **state) {
    (void)state;
    tide_device *device = open_sim();
    tide_queue *queues[65];
    tide_arena *arena = NULL;
    tide_kernel *kernel = NULL;
    tide_device_info info;
    const tide_op_desc desc = {.kind = TIDE_OP_ZERO, .elements = 1};
    int n = 0;
    assert_status(tide_arena_create(device, (1 << 19) + 1, &arena), TIDE_E_MEMORY); /* half is the reserve */
    assert_status(tide_kernel_create(device, &desc, &kernel), TIDE_E_UNSUPPORTED);
    assert_ok(tide_device_get_info(device, &info));
    assert_false(info.has_kernels);
    assert_int_equal(info.align_bytes, 16);
    while (n < 65 && tide_queue_create(device, TIDE_QUEUE_COPY, &queues[n]) == TIDE_OK) n++;
    assert_int_equal(n, 64);
    for (int i = 0; i < n; i++) tide_queue_destroy(queues[i]);
    tide_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
