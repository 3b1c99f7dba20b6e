/* Queues whose commands a thread of the host takes from a tape, in order, and the events between them. Shared by the
 * devices that execute on real hardware: what a kernel, and where it matters a copy, means is a matter of their hooks.
 *
 * A device may leave work in flight when its hook returns (a driver's own queue): then `record` says when events
 * complete, and `drain` waits for what is in flight. */
#ifndef TIDE_DEVICE_HOST_QUEUE_H
#define TIDE_DEVICE_HOST_QUEUE_H

#include <pthread.h>

#include "base/vec.h"
#include "device/device_vtable.h"
#include "device/tape.h"

/* An event may be recorded again while an older record is still pending, even on another queue: each record has a
 * number, and a wait names the record it waits for. */
typedef struct tide__host_event {
    tide_event base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t records;           /* made so far; the latest has this number, 0: never recorded */
    const tide_queue *latest;   /* the queue of the latest record; only compared, never followed */
    TIDE_VEC(uint64_t) pending; /* numbers of the records that are not complete; almost always 0 or 1 of them */
    uint64_t t_ns;              /* when the latest record completed */
    uint32_t references;        /* the handle and every enqueued command that names the event */
} tide__host_event;

typedef enum tide__command_kind {
    TIDE__COMMAND_LAUNCH,
    TIDE__COMMAND_COPY,
    TIDE__COMMAND_WITHIN,
    TIDE__COMMAND_KERNEL,
    TIDE__COMMAND_RECORD,
    TIDE__COMMAND_WAIT,
    TIDE__COMMAND_MARK,
    TIDE__COMMAND_DRAIN,
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
            tide_arena *arena;
            uint64_t offset, size_bytes;
            bool out;
        } copy;
        struct {
            tide_arena *arena;
            uint64_t from, to, size_bytes;
        } within;
        struct {
            const tide_kernel *kernel;
            uint32_t variant;
            tide_arena *arena;
            tide_step_args args;
        } kernel;
        struct {
            tide__host_event *event;
            uint64_t record;
        } event; /* record, wait */
        struct {
            void *mark;
            bool wait;
        } mark;
    };
    uint64_t offsets[]; /* kernel: of its operands */
} tide__command;

typedef struct tide__host_queue tide__host_queue;

/* All are called on the queue's thread. */
typedef struct tide__queue_hooks {
    void (*begin)(tide__host_queue *queue); /* before the first command; optional */
    tide_status (*run_kernel)(tide__host_queue *queue, const tide__command *command);
    /* Optional: by default io.fn gets the bytes of tide_arena_host() at once; a tier knows best how to cut them. */
    tide_status (*run_copy)(tide__host_queue *queue, const tide__command *command);
    /* Optional, may leave work in flight: by default the thread moves the bytes of tide_arena_host(). */
    tide_status (*run_within)(tide__host_queue *queue, const tide__command *command);
    /* Optional: nothing is ever in flight. The failure of what was, if any. */
    tide_status (*drain)(tide__host_queue *queue);
    /* Optional. True: tide__host_event_complete() will be called when what is in flight is done. */
    bool (*record)(tide__host_queue *queue, tide__host_event *event, uint64_t record);
    /* Of devices with events of their own: a record of one, or a wait for it. Also called after a failure. */
    void (*mark)(tide__host_queue *queue, const tide__command *command);
} tide__queue_hooks;

struct tide__host_queue {
    tide_queue base;
    const tide__queue_hooks *hooks;
    pthread_t thread;
    pthread_mutex_t lock; /* protects all that follows */
    pthread_cond_t work;  /* there is a command, or the queue stops */
    pthread_cond_t idle;  /* a command completed while somebody waited */
    tide__command_tape tape;
    uint64_t enqueued, completed;
    uint32_t n_syncing; /* host threads inside queue_sync */
    bool stopping;
    tide_status failure; /* the first one; sticky */
    char failure_text[1024];
};

/* Fills `queue`, the beginning of a device's own zeroed struct, and starts its thread. */
tide_status tide__host_queue_start(tide__host_queue *queue, tide_device *device, tide_queue_kind kind,
                                   const tide__queue_hooks *hooks);
/* Waits for what is enqueued and releases all but the struct itself. */
void tide__host_queue_stop(tide__host_queue *queue);
/* Appends a copy of the command, with these offsets. */
tide_status tide__host_enqueue(tide__host_queue *queue, const tide__command *command, const uint64_t *offsets,
                               uint32_t n_offsets);

/* Slots of vtables. */
tide_status tide__host_queue_sync(tide_queue *queue);
tide_status tide__host_queue_check(tide_queue *queue);
tide_status tide__host_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns);
tide_status tide__host_copy(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io io,
                            bool out);
tide_status tide__host_copy_within(tide_queue *queue, tide_arena *arena, uint64_t from, uint64_t to,
                                   uint64_t size_bytes);
tide_status tide__host_kernel_enqueue(tide_kernel *kernel, uint32_t variant, tide_queue *queue, tide_arena *arena,
                                      const uint64_t *offsets, uint32_t n_offsets, const tide_step_args *args);
tide_status tide__host_event_create(tide_device *device, tide_event **out);
void tide__host_event_destroy(tide_event *event);
tide_status tide__host_event_record(tide_event *event, tide_queue *queue);
tide_status tide__host_event_wait(tide_event *event, tide_queue *queue);
tide_status tide__host_event_query(tide_event *event, bool *complete);
tide_status tide__host_event_sync(tide_event *event);
tide_status tide__host_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns);

/* On a thread of the device. Both give up the command's reference to the event. */
void tide__host_event_complete(tide__host_event *event, uint64_t record);
void tide__host_event_await(tide__host_event *event, uint64_t record);

#endif
