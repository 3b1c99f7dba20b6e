/* The host in tests of devices: bytes of an arena that it may not see, and work of its own in a queue's order. */
#ifndef TIDE_TESTS_ERRAND_H
#define TIDE_TESTS_ERRAND_H

#include <pthread.h>
#include <stdbool.h>

#include <tidemark/device.h>

bool is_visible(tide_device *device);
/* Bytes of the arena from the host (`put`) or to it, at once. */
void exchange(tide_device *device, tide_arena *arena, uint64_t offset, void *bytes, uint64_t size, bool put);

/* A door that work waits at; it gives up after a minute, so that a broken device fails instead of hanging. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting, open_at; /* opens when `waiting` reaches open_at */
} gate;

void gate_init(gate *g, int open_at);
void gate_open(gate *g);
tide_status gate_pass(void *context); /* a tide_host_fn; context: the gate */

/* A function of the host in the queue's order. Where the device runs none, because its memory is its own, a copy of a byte
 * does it. */
void work(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns);
/* After a device is opened, where work() is used on it: on one at a time. */
void begin_work(tide_device *device);
/* As tide_device_close(). */
void close_device(tide_device *device);

#endif
