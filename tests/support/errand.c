/* See errand.h. */
#include "support/errand.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "support/test.h"

bool is_visible(tide_device *device) {
    tide_device_info info;
    assert_ok(tide_device_get_info(device, &info));
    return info.host_visible;
}

static tide_status put_bytes(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy(data, (const unsigned char *)context + position, size_bytes);
    return TIDE_OK;
}

static tide_status get_bytes(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy((unsigned char *)context + position, data, size_bytes);
    return TIDE_OK;
}

void exchange(tide_device *device, tide_arena *arena, uint64_t offset, void *bytes, uint64_t size, bool put) {
    tide_queue *queue = NULL;
    assert_ok(tide_queue_create(device, TIDE_QUEUE_COPY, &queue));
    if (put)
        assert_ok(tide_copy_in(queue, arena, offset, size, (tide_io){put_bytes, bytes, TIDE_NONE}));
    else
        assert_ok(tide_copy_out(queue, arena, offset, size, (tide_io){get_bytes, bytes, TIDE_NONE}));
    assert_ok(tide_queue_sync(queue));
    tide_queue_destroy(queue);
}

/* ---- work ---- */

typedef struct errand {
    tide_host_fn fn;
    void *context;
} errand;

static struct errands {
    tide_device *device; /* NULL: as yet no errand that is a copy */
    tide_arena *arena;
    const tide_queue *queue[8]; /* each has bytes of its own */
    errand *list[256];          /* in blocks, as commands point to them */
    size_t count;
} errands;
enum { ERRANDS_OF_BLOCK = 1024 };

static tide_status run_errand(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    const errand *e = context;
    *(unsigned char *)data = 0;
    return e->fn(e->context);
}

static errand *new_errand(void) {
    errand **block = &errands.list[errands.count / ERRANDS_OF_BLOCK];
    if (!*block) *block = malloc(ERRANDS_OF_BLOCK * sizeof **block);
    assert_non_null(*block);
    return *block + errands.count++ % ERRANDS_OF_BLOCK;
}

static uint64_t place_of(const tide_queue *queue) {
    enum { APART = 4096 };
    for (uint64_t i = 0; i < sizeof errands.queue / sizeof *errands.queue; i++) {
        if (!errands.queue[i]) errands.queue[i] = queue;
        if (errands.queue[i] == queue) return i * APART;
    }
    fail_msg("a test has more queues than errands have places");
    return 0;
}

void work(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns) {
    if (!errands.device) {
        assert_ok(tide_queue_launch(queue, fn, context, cost_ns));
        return;
    }
    errand *e = new_errand();
    *e = (errand){fn, context};
    assert_ok(tide_copy_in(queue, errands.arena, place_of(queue), 1, (tide_io){run_errand, e, TIDE_NONE}));
}

void begin_work(tide_device *device) {
    if (is_visible(device)) return;
    errands.device = device;
    assert_ok(tide_arena_create(device, 8 * 4096, &errands.arena));
}

void close_device(tide_device *device) {
    if (device && errands.device == device) {
        tide_arena_destroy(errands.arena);
        for (size_t i = 0; i < sizeof errands.list / sizeof *errands.list; i++) free(errands.list[i]);
        errands = (struct errands){0};
    }
    tide_device_close(device);
}

/* ---- gates ---- */

void gate_init(gate *g, int open_at) {
    *g = (gate){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .open_at = open_at};
}

void gate_open(gate *g) {
    pthread_mutex_lock(&g->lock);
    g->open_at = 0;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

tide_status gate_pass(void *context) {
    gate *g = context;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    int error = 0;
    pthread_mutex_lock(&g->lock);
    g->waiting++;
    pthread_cond_broadcast(&g->changed);
    while (g->waiting < g->open_at && !error) error = pthread_cond_timedwait(&g->changed, &g->lock, &limit);
    pthread_mutex_unlock(&g->lock);
    return error ? tide__fail(TIDE_E_INTERNAL, "nobody came to the gate") : TIDE_OK;
}
