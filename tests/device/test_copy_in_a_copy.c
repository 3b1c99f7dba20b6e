/* Part of the contract of every device: an io function may itself copy, by a queue that nobody else drives, and wait for
 * it, while another thread drives a third queue. An evaluation reads its weights like this. */
#include "support/test.h"

#include <tidemark/device.h>

#include "base/error.h"

enum { BYTES = 4096, ROUNDS = 20 };

/* Gives what it has itself brought from elsewhere in the arena. */
typedef struct relay {
    tide_queue *queue;
    tide_arena *arena;
    unsigned char bytes[BYTES];
} relay;

static tide_status sink(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy((unsigned char *)context + position, data, size_bytes);
    return TIDE_OK;
}

static tide_status source(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy(data, (unsigned char *)context + position, size_bytes);
    return TIDE_OK;
}

static tide_status relay_source(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    relay *r = context;
    TIDE_TRY(tide_copy_out(r->queue, r->arena, position, size_bytes, (tide_io){sink, r->bytes, TIDE_NONE}));
    TIDE_TRY(tide_queue_sync(r->queue));
    memcpy(data, r->bytes, size_bytes);
    return TIDE_OK;
}

static void check(const char *name) {
    tide_device *device;
    tide_queue *in, *other;
    relay r = {0};
    unsigned char bytes[BYTES], got[BYTES] = {0}, busy[BYTES] = {0};
    if (tide_device_open(name, NULL, &device) != TIDE_OK) return; /* not here */
    for (int i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i * 7);
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COPY, &in));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COPY, &other));
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COPY, &r.queue));
    assert_ok(tide_arena_create(device, (uint64_t)4 * BYTES, &r.arena));
    assert_ok(tide_copy_in(in, r.arena, 0, BYTES, (tide_io){source, bytes, TIDE_NONE}));
    assert_ok(tide_copy_in(in, r.arena, BYTES, BYTES, (tide_io){relay_source, &r, TIDE_NONE}));
    for (int i = 0; i < ROUNDS; i++) {
        assert_ok(tide_copy_out(other, r.arena, (uint64_t)2 * BYTES, BYTES, (tide_io){sink, busy, TIDE_NONE}));
        assert_ok(tide_queue_sync(other));
    }
    assert_ok(tide_copy_out(in, r.arena, BYTES, BYTES, (tide_io){sink, got, TIDE_NONE}));
    assert_ok(tide_queue_sync(in));
    assert_memory_equal(got, bytes, BYTES);
    tide_queue_destroy(in);
    tide_queue_destroy(other);
    tide_queue_destroy(r.queue);
    tide_arena_destroy(r.arena);
    tide_device_close(device);
}

static void test_every_device(void **state) {
    (void)state;
    const char *name;
    for (uint32_t i = 0; (name = tide_device_name(i)) != NULL; i++) check(name);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
