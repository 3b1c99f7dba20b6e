/* The CPU device: host memory as the arena, a thread per queue, kernels by oneDNN and by own loops.
 *
 * Compute queues run their kernels with the device's number of OpenMP threads; kernels are created under the same
 * number, because oneDNN builds it into its primitives. */
#ifndef TIDE_DEVICE_CPU_CPU_H
#define TIDE_DEVICE_CPU_CPU_H

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>

#include "base/vec.h"
#include "device/cpu/tape.h"
#include "device/host_arena.h"

#define TIDE__CPU_ALIGN 64 /* bytes: a cache line, and what oneDNN's fastest paths want */

typedef struct tide__cpu {
    tide_device base;
    uint32_t threads;
    dnnl_engine_t engine;
} tide__cpu;

/* An event may be recorded again while an older record is still pending, even on another queue: each record has a
 * number, and a wait names the record it waits for. */
typedef struct tide__cpu_event {
    tide_event base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t records;           /* made so far; the latest has this number, 0: never recorded */
    TIDE_VEC(uint64_t) pending; /* numbers of the records that are not complete; almost always 0 or 1 of them */
    uint64_t t_ns;              /* when the latest record completed */
    uint32_t references;        /* the handle and every enqueued command that names the event */
} tide__cpu_event;

typedef enum tide__command_kind {
    TIDE__COMMAND_LAUNCH,
    TIDE__COMMAND_COPY,
    TIDE__COMMAND_KERNEL,
    TIDE__COMMAND_RECORD,
    TIDE__COMMAND_WAIT,
} tide__command_kind;

typedef struct tide__command {
    tide__command_kind kind;
    union {
        struct {
            tide_host_fn fn;
            void *context;
        } launch;
        struct {
            tide_io io;
            char *data;
            uint64_t size_bytes;
        } copy;
        struct {
            const struct tide__cpu_kernel *kernel;
            uint32_t variant;
            char *arena;
            tide_step_args args;
        } kernel;
        struct {
            tide__cpu_event *event;
            uint64_t record;
        } event; /* record, wait */
    };
    uint64_t offsets[]; /* kernel: of its operands */
} tide__command;

typedef struct tide__cpu_queue {
    tide_queue base;
    pthread_t thread;
    dnnl_stream_t stream; /* compute queues only */
    pthread_mutex_t lock; /* protects all that follows */
    pthread_cond_t work;  /* there is a command, or the queue stops */
    pthread_cond_t idle;  /* a command completed while somebody waited */
    tide__tape tape;
    uint64_t enqueued, completed;
    uint32_t n_syncing; /* host threads inside queue_sync */
    bool stopping;
    tide_status failure; /* the first one; sticky */
    char failure_text[1024];
} tide__cpu_queue;

/* queue.c */
tide_status tide__cpu_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out);
void tide__cpu_queue_destroy(tide_queue *queue);
tide_status tide__cpu_queue_sync(tide_queue *queue);
tide_status tide__cpu_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns);
tide_status tide__cpu_copy(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io io,
                           bool out);
/* Appends a copy of the command, with these offsets. */
tide_status tide__cpu_enqueue(tide__cpu_queue *queue, const tide__command *command, const uint64_t *offsets,
                              uint32_t n_offsets);

/* event.c */
tide_status tide__cpu_event_create(tide_device *device, tide_event **out);
void tide__cpu_event_destroy(tide_event *event);
tide_status tide__cpu_event_record(tide_event *event, tide_queue *queue);
tide_status tide__cpu_event_wait(tide_event *event, tide_queue *queue);
tide_status tide__cpu_event_query(tide_event *event, bool *complete);
tide_status tide__cpu_event_sync(tide_event *event);
tide_status tide__cpu_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns);
/* On a queue's thread. Both give up the command's reference to the event. */
void tide__cpu_event_complete(tide__cpu_event *event, uint64_t record);
void tide__cpu_event_await(tide__cpu_event *event, uint64_t record);

#endif
